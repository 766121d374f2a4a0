import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from quanet import ACC, BBSE, PACC, RLLS, Gaussians
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.methods.weights import black_box_weights, regularised_weights
from quanet.simplex import check_prevalences
from tests.methods.test_counting import fixed_bag
from tests.strategies import SEEDS, fixed_posteriors, prevalences


@pytest.mark.no_cover
@given(data=st.data())
def test_weights_turn_the_training_shares_into_the_truth(data):
    k = data.draw(st.integers(2, 5))
    truth, prior = data.draw(prevalences(k)), data.draw(prevalences(k))[1] * 0.8 + 0.2 / k
    rates = data.draw(prevalences(k, b=k)).T * 0.4 + 0.6 * np.eye(k)
    weights = black_box_weights(truth @ rates.T, rates * prior)
    np.testing.assert_allclose(weights * prior, truth, atol=1e-8)
    np.testing.assert_allclose(regularised_weights(truth @ rates.T, rates * prior, 0.0), weights, atol=1e-5)


def penalised(joint, target, rho):
    """The published objective, minimised by a general optimiser from several starts."""

    def loss(shift):
        return np.linalg.norm(joint @ shift - target) + rho * np.linalg.norm(shift)

    starts = [
        np.full(len(target), -0.1),
        np.linalg.solve(joint, target).clip(-0.99),
        np.linspace(-0.5, 0.5, len(target)),
    ]
    found = [minimize(loss, start, bounds=[(-1, None)] * len(target), tol=1e-13) for start in starts]
    return min([*(one.fun for one in found), loss(np.zeros(len(target)))]), loss


@pytest.mark.no_cover
@given(seed=SEEDS, k=st.integers(2, 4), rho=st.sampled_from([0.003, 0.03, 0.1, 0.5]))
def test_regularised_weights_minimise_the_published_objective(seed, k, rho):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(k, 5.0))
    joint = (rng.dirichlet(np.ones(k), size=k).T * 0.5 + 0.5 * np.eye(k)) * prior
    counted = rng.dirichlet(np.full(k, 0.5), size=3)  # often beyond what any weights explain
    weights = regularised_weights(counted, joint, rho)
    assert (weights >= 0).all()
    for one, seen in zip(weights, counted, strict=True):
        least, loss = penalised(joint, seen - joint.sum(axis=1), rho)
        assert loss(one - 1) <= least + 1e-7


QUAPY = {  # QuaPy 0.2.3: BBSEhard and BBSEsoft with solver="exact-raise", RLLS by cvxpy
    (2, BBSE, "hard", None): [0.217391304348, 0.782608695652],
    (2, BBSE, "soft", None): [0.2744189713, 0.7255810287],
    (3, BBSE, "hard", None): [0.0, 0.701369863014, 0.298630136986],
    (3, BBSE, "soft", None): [0.0, 0.615826546999, 0.384173453001],
    (2, RLLS, "soft", 0.01): [0.274418678804, 0.725581321196],
    (2, RLLS, "hard", 0.1): [0.217391482588, 0.782608517412],
    (2, RLLS, "hard", 0.2): [0.6, 0.4],
    (3, RLLS, "soft", 0.01): [1.363e-09, 0.607681361434, 0.392318637203],
    (3, RLLS, "soft", 0.1): [0.229650487661, 0.434323582587, 0.336025929752],
    (3, RLLS, "hard", 0.01): [0.0, 0.564394347563, 0.435605652437],
    (3, RLLS, "hard", 0.1): [0.239515116735, 0.362946081663, 0.397538801602],
    (3, RLLS, "hard", 0.2): [0.4, 0.4, 0.2],
}


@pytest.mark.parametrize(("k", "method", "outputs", "alpha"), QUAPY)
def test_estimates_are_quapys(k, method, outputs, alpha):
    held, y = fixed_posteriors(60, k, 0.0)
    settings = {} if alpha is None else {"alpha": alpha}
    estimate = method("precomputed", outputs=outputs, **settings).fit(held, y).predict(fixed_bag(k))
    # cvxpy's SCS stops some 1e-5 from the optimum.
    np.testing.assert_allclose(estimate, QUAPY[k, method, outputs, alpha], atol=1e-11 if alpha is None else 2e-5)


@pytest.mark.parametrize(("outputs", "plain"), [("hard", ACC), ("soft", PACC)])
def test_two_classes_are_adjusted_counting(outputs, plain):
    held, y = fixed_posteriors(60, 2, 0.0)
    bags = fixed_posteriors(90, 2, 0.7)[0].reshape(9, 10, 2)
    black_box = BBSE("precomputed", outputs=outputs).fit(held, y)
    np.testing.assert_allclose(black_box.aggregate(bags), plain("precomputed").fit(held, y).aggregate(bags), atol=1e-9)


def test_no_shift_gives_weights_of_one():
    held, y = fixed_posteriors(60, 3, 0.0)
    for quantifier in (BBSE("precomputed", outputs="soft"), RLLS("precomputed")):
        np.testing.assert_allclose(quantifier.fit(held, y).weights(held), 1, atol=1e-9)


def test_regularisation_sees_no_shift_with_few_instances_and_all_of_it_with_many():
    source = Gaussians(k=3, distance=2.0)
    bag, _ = source.draw([0.6, 0.3, 0.1], 2000, rng=1)
    rows = source.posteriors(bag, np.full(3, 1 / 3))
    found = []
    for n in (30, 30_000):
        X, y = source.draw(np.full(3, 1 / 3), n, rng=0)
        found.append(RLLS("precomputed", alpha=0.1).fit(source.posteriors(X, np.full(3, 1 / 3)), y).predict(rows))
    np.testing.assert_allclose(found[0], 1 / 3, atol=0.01)
    np.testing.assert_allclose(found[1], [0.6, 0.3, 0.1], atol=0.03)


def test_a_singular_matrix_is_told_and_weights_stay_near_one():
    codes = np.repeat([0, 1, 2], 10)
    hits = np.eye(3)[np.where(codes == 0, 0, 1)]  # class 2 is always taken for class 1
    with pytest.warns(QuanetWarning, match="BBSE cannot separate all classes: .* singular"):
        quantifier = BBSE("precomputed").fit(hits, codes)
    estimate = quantifier.predict(np.eye(3)[[0, 0, 0, 1]])
    np.testing.assert_allclose(estimate, [0.75, 0.125, 0.125], atol=1e-9)
    check_prevalences(RLLS("precomputed").fit(hits, codes).predict(np.eye(3)[[0, 0, 0, 1]]))


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (BBSE("precomputed", outputs="crisp"), "outputs must be 'hard' or 'soft'; got 'crisp'"),
        (RLLS("precomputed", alpha=-1), "alpha must be a number of at least 0; got -1"),
        (RLLS("precomputed", delta=0), "delta must be a number between 0 and 1; got 0"),
    ],
)
def test_settings_that_mean_nothing_are_named(quantifier, message):
    held, y = fixed_posteriors(60, 2, 0.0)
    with pytest.raises(InvalidSetting, match=message):
        quantifier.fit(held, y)
