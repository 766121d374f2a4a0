import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.model_selection import KFold, ShuffleSplit

from quanet import (
    ACC,
    CC,
    EMQ,
    OACC,
    OEMQ,
    OPACC,
    PACC,
    PCC,
    T50,
    UPP,
    DMy,
    FrankHall,
    Gaussians,
    GridSearchQ,
    ODMy,
    evaluate,
)
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.methods.divergences import DIVERGENCES
from quanet.methods.order import monotone, second_differences
from quanet.simplex import check_prevalences
from tests.strategies import fixed_posteriors, posteriors, prevalences

HELD, Y = fixed_posteriors(80, 4, 0.0)
ROWS, CLASSES = fixed_posteriors(60, 4, 0.7)
BAG = ROWS[CLASSES != 0]


def least(loss, k, start):
    whole = {"type": "eq", "fun": lambda p: p.sum() - 1}
    found = minimize(loss, start, bounds=[(1e-12, 1)] * k, constraints=whole, tol=1e-13, options={"maxiter": 1000})
    return found.fun


@pytest.mark.parametrize("strength", [0.0, 0.01, 1.0])
@pytest.mark.parametrize(("method", "count"), [(OACC, CC), (OPACC, PCC)])
def test_shares_minimise_the_published_objective(method, count, strength):
    quantifier = method("precomputed", strength=strength).fit(HELD, Y)
    counted = count("precomputed").fit(HELD, Y).predict(BAG)

    def loss(p):
        fit, rough = quantifier.rates_ @ p - counted, second_differences(4) @ p
        return fit @ fit + strength / 2 * rough @ rough

    estimate = quantifier.predict(BAG)
    assert loss(estimate) <= least(loss, 4, np.full(4, 0.25)) + 1e-9


@pytest.mark.parametrize("strength", [0.0, 0.01, 1.0])
def test_the_likelihood_is_maximised_with_its_penalty(strength):
    quantifier = OEMQ("precomputed", calibration=None, strength=strength).fit(HELD, Y)

    def loss(p):
        rough = second_differences(4) @ p
        return -np.log(BAG / quantifier.prior_ @ p).mean() + strength / 2 * rough @ rough

    assert loss(quantifier.predict(BAG)) <= least(loss, 4, np.full(4, 0.25)) + 1e-9


@pytest.mark.same_lines
@pytest.mark.parametrize("strength", [0.0, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("divergence", ["hellinger", "topsoe", "l2"])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_a_smooth_mixture_is_the_nearest(k, divergence, strength):
    (held, y), (rows, classes) = fixed_posteriors(80, k, 0.0), fixed_posteriors(60, k, 0.7)
    bag = rows[classes != 0]
    quantifier = ODMy("precomputed", bins=4, divergence=divergence, strength=strength).fit(held, y)
    templates = DMy("precomputed", bins=4).fit(held, y).matcher_.templates
    columns = bag[:, 1:] if k == 2 else bag
    counted = np.concatenate([np.histogram(column, bins=4, range=(0, 1))[0] for column in columns.T]) / len(bag)

    def loss(p):
        rough = second_differences(k) @ p
        apart = DIVERGENCES[divergence].value(np.maximum(templates @ p, 1e-30), counted).sum()
        return apart + strength / 2 * rough @ rough

    estimate = quantifier.predict(bag)
    assert loss(estimate) <= least(loss, k, np.full(k, 1 / k)) + 1e-9
    if strength == 0 or k == 2:
        plain = DMy("precomputed", bins=4, divergence=divergence).fit(held, y)
        np.testing.assert_array_equal(estimate, plain.predict(bag))


def test_a_mixture_is_smooth_in_the_given_order():
    names = np.array(["low", "middle", "high", "top"])
    estimates = ODMy("precomputed", bins=4, strength=1.0).fit(HELD, Y).predict(BAG)
    by_name = np.argsort(names)
    named = ODMy("precomputed", bins=4, strength=1.0, order=names.tolist()).fit(HELD[:, by_name], names[Y])
    np.testing.assert_allclose(named.predict(BAG[:, by_name]), estimates[by_name], atol=1e-7)


@given(stack=posteriors(4))
def test_without_strength_it_is_plain_maximum_likelihood(stack):
    prior = np.full(4, 0.25)
    quantifier = OEMQ("precomputed", calibration=None, strength=0.0).fit(np.eye(4)[[0, 1, 2, 3]], [1, 2, 3, 4])
    plain = EMQ("precomputed", calibration=None).fit(np.eye(4)[[0, 1, 2, 3]], [1, 2, 3, 4])
    height = [
        np.log(np.maximum(stack / prior @ p[..., None], 1e-300)).mean(axis=(1, 2))
        for p in (quantifier.aggregate(stack), plain.aggregate(stack))
    ]
    np.testing.assert_allclose(height[0], height[1], atol=1e-6)


@pytest.mark.parametrize(("smooth", "plain"), [(OACC, ACC), (OPACC, PACC)])
def test_without_strength_it_is_the_plain_method(smooth, plain):
    bags = ROWS.reshape(6, 10, 4)
    found = smooth("precomputed", strength=0.0).fit(HELD, Y).aggregate(bags)
    np.testing.assert_allclose(found, plain("precomputed").fit(HELD, Y).aggregate(bags), atol=1e-7)


@pytest.mark.parametrize("method", [OACC, OPACC, OEMQ, ODMy])
def test_much_strength_leaves_a_line(method):
    estimate = method("precomputed", strength=1e6).fit(HELD, Y).predict(BAG)
    np.testing.assert_allclose(second_differences(4) @ estimate, 0, atol=1e-4)


QUANTIFICATIONLIB = {  # FrankAndHallQuantifier of quantificationlib 0.1.2 on cumulated posteriors
    ACC: [0.0, 0.368421052632, 0.353801169591, 0.277777777778],
    PACC: [0.0, 0.380821749112, 0.426513652666, 0.192664598222],
    CC: [0.0, 0.416666666667, 0.444444444444, 0.138888888889],
    PCC: [0.04871391639, 0.382292896075, 0.407132612101, 0.161860575434],
}


@pytest.mark.parametrize("method", QUANTIFICATIONLIB)
def test_splits_are_quantificationlibs(method):
    estimate = FrankHall(method("precomputed")).fit(HELD, Y).predict(BAG)
    np.testing.assert_allclose(estimate, QUANTIFICATIONLIB[method], atol=1e-9)


@given(cumulated=st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_mended_sums_rise_and_risen_ones_stay(cumulated):
    mended = monotone(np.array(cumulated))
    assert (np.diff(mended) >= 0).all()
    np.testing.assert_allclose(monotone(mended), mended)
    np.testing.assert_allclose(monotone(np.sort(cumulated)), np.sort(cumulated))


@given(truth=prevalences(5))
def test_a_perfect_classifier_counts_every_ladder(truth):
    counts = np.maximum((truth[0] * 20).round().astype(int), 1)
    rows = np.eye(5)[np.repeat(np.arange(5), counts)]
    quantifier = FrankHall(CC("precomputed"), order=list("caedb")).fit(np.eye(5), list("abcde"))
    np.testing.assert_allclose(quantifier.predict(rows), counts / counts.sum(), atol=1e-12)


def test_the_given_order_decides_what_is_smooth():
    stars = np.array(["five", "four", "one", "three", "two"])  # sorted by name
    order = ["one", "two", "three", "four", "five"]
    codes = np.repeat(np.arange(5), 8)
    quantifier = OACC("precomputed", strength=1e6, order=order).fit(np.eye(5)[codes], stars[codes])
    estimate = dict(zip(quantifier.classes_.tolist(), quantifier.predict(np.eye(5)[[2, 2, 2, 4]]), strict=True))
    np.testing.assert_allclose(second_differences(5) @ [estimate[name] for name in order], 0, atol=1e-4)
    assert estimate["one"] > estimate["two"] > estimate["three"] > estimate["five"] - 1e-9


def test_smoothness_lessens_the_match_distance_of_smooth_shares():
    source = Gaussians(k=7, distance=1.0)
    (X, y), (pool, y_pool) = source.draw(np.full(7, 1 / 7), 1400, rng=0), source.draw(np.full(7, 1 / 7), 9000, rng=1)

    class Smooth(UPP):
        def counts(self, available, *, rng):
            middle = rng.uniform(0, 6, size=(100, 1))
            shares = np.exp(-0.5 * ((np.arange(7) - middle) / 2) ** 2)
            return np.array([rng.multinomial(100, share / share.sum()) for share in shares])

    errors = [
        evaluate(one.fit(X, y), pool, y_pool, Smooth(), rng=2).error("md").mean()
        for one in (PACC(), OPACC(strength=0.1), ACC(), OACC(strength=0.1), DMy(), ODMy(strength=0.1))
    ]
    assert errors[1] < errors[0]
    assert errors[3] < errors[2]
    assert errors[5] < errors[4]


def test_its_strength_can_be_searched_by_the_match_distance():
    X, y = Gaussians(k=4, distance=2).draw(np.full(4, 0.25), 400, rng=0)
    grid = {"strength": [1e-3, 1e-1]}
    search = GridSearchQ(OPACC(), grid, metric="md", protocol=UPP(bag_size=50, repeats=50)).fit(X, y)
    assert search.best_setting_ in [{"strength": 1e-3}, {"strength": 1e-1}]


def test_a_singular_matrix_is_told():
    codes = np.repeat([0, 1, 2], 10)
    hits = np.eye(3)[np.where(codes == 0, 0, 1)]  # class 2 is always taken for class 1
    with pytest.warns(QuanetWarning, match="OACC cannot separate all classes"):
        quantifier = OACC("precomputed").fit(hits, codes)
    check_prevalences(quantifier.predict(np.eye(3)[[0, 0, 0, 1]]))


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (OACC("precomputed", strength=-1), "strength must be a number of at least 0; got -1"),
        (OEMQ("precomputed", strength=-1), "strength must be a number of at least 0; got -1"),
        (ODMy("precomputed", strength=-1), "strength must be a number of at least 0; got -1"),
        (OPACC("precomputed", order=[0, 1, 2]), r"order is \[0, 1, 2\], but the classes are \[0, 1, 2, 3\]"),
    ],
)
def test_settings_that_mean_nothing_are_named(quantifier, message):
    with pytest.raises(InvalidSetting, match=message):
        quantifier.fit(HELD, Y)


def test_folds_without_a_class_are_named():
    X, y = Gaussians().draw([0.5, 0.5], 40, rng=0)
    apart = np.argsort(y, kind="stable")
    with pytest.raises(InvalidData, match=r"Pipeline cannot use X: .*at least 2 classes"):
        T50(cv=KFold(2)).fit(X[apart], y[apart])
    few = np.append(np.zeros(38, dtype=int), [1, 1])
    splitter = ShuffleSplit(1, test_size=2, random_state=0)
    with pytest.raises(InvalidData, match="class 1 has no instance in the held-out part that"):
        PACC(cv=splitter).fit(X, few)


def test_a_search_by_the_match_distance_uses_the_order_of_its_quantifier():
    X, y = Gaussians(k=3, distance=2).draw(np.full(3, 1 / 3), 600, rng=0)
    order, protocol = ["low", "middle", "high"], UPP(bag_size=30, repeats=100)
    numbered, named = (
        GridSearchQ(OPACC(order=given), {"strength": [1e-3, 1e-1]}, metric="md", protocol=protocol).fit(X, labels)
        for given, labels in ((None, y), (order, np.array(order)[y]))
    )
    # The bags differ, since classes are drawn in the order of their names; errors of other orders are twice as large.
    np.testing.assert_allclose(named.errors_, numbered.errors_, atol=0.05)
    with pytest.raises(InvalidData, match="md needs ordered classes"):
        GridSearchQ(PACC(), {"cv": [3]}, metric="md", protocol=protocol).fit(X, np.array(order)[y])
