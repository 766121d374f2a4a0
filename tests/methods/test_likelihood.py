import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from quanet import APP, EMQ, LEIP, MAPLS, OEMQ, PACC, PCC, UPP, Gaussians, evaluate
from quanet.classifiers.calibration import METHODS, calibrate
from quanet.classifiers.cross_fitting import cross_fit, posteriors_of
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.methods.likelihood import adaptive_trust, expectation_maximization, incremental_prior, maximum_a_posteriori
from quanet.methods.solvers import maximum_likelihood
from tests.methods.test_counting import fixed_bag
from tests.strategies import fixed_posteriors, posteriors, prevalences

SOLVERS = [maximum_likelihood, expectation_maximization]


def plain_em(posteriors, prior, steps):
    """Saerens, Latinne and Decaestecker's loop, as published."""
    prevalence = prior
    for _ in range(steps):
        joint = posteriors * prevalence / prior
        prevalence = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return prevalence


@given(posteriors(), st.integers(12, 60))
def test_em_is_the_published_loop(stack, steps):
    k = stack.shape[-1]
    prior = np.arange(1, k + 1) / (k * (k + 1) / 2)
    found, unsettled = expectation_maximization(stack, prior, tol=0.0, max_iter=steps)
    assert unsettled == len(stack)
    np.testing.assert_allclose(found, [plain_em(bag, prior, steps) for bag in stack], atol=1e-10)


@pytest.mark.no_cover
@given(posteriors())
def test_newton_and_a_very_long_em_find_the_same_prevalences(stack):
    k = stack.shape[-1]
    prior = np.full(k, 1 / k)
    exact, _ = maximum_likelihood(stack, prior)
    approached = np.stack([plain_em(bag, prior, 3000) for bag in stack])
    likelihood = [np.log(np.clip(stack @ p[..., None], 1e-300, None)).mean(axis=(1, 2)) for p in (exact, approached)]
    assert (likelihood[0] >= likelihood[1] - 1e-9).all()


@pytest.mark.parametrize("solve", SOLVERS)
@given(stack=posteriors())
def test_a_bag_never_depends_on_its_neighbours(solve, stack):
    prior = np.full(stack.shape[-1], 1 / stack.shape[-1])
    alone = np.stack([solve(bag, prior, max_iter=5000)[0] for bag in stack])
    np.testing.assert_array_equal(solve(stack, prior, max_iter=5000)[0], alone)


@pytest.mark.parametrize("solve", SOLVERS)
@given(prior=prevalences(b=2))
def test_an_uninformative_classifier_returns_the_prior(solve, prior):
    prior = prior[1] * 0.9 + 0.1 / len(prior[1])
    np.testing.assert_allclose(solve(np.tile(prior, (50, 1)), prior)[0], prior, atol=1e-12)


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_certain_posteriors_are_counted(solve, k):
    codes = np.repeat(np.arange(k), np.arange(1, k + 1))
    prior = np.full(k, 1 / k)
    np.testing.assert_allclose(solve(np.eye(k)[codes], prior)[0], np.bincount(codes) / len(codes), atol=1e-9)


@pytest.mark.parametrize("solve", SOLVERS)
@given(stack=posteriors(3), order=st.permutations(range(3)))
def test_classes_in_another_order_give_the_same_shares(solve, stack, order):
    prior = np.array([0.2, 0.3, 0.5])
    direct, permuted = solve(stack, prior)[0], solve(stack[..., order], prior[order])[0]
    likelihood = [
        np.log(np.clip(((stack / prior) @ p[..., None]).squeeze(-1), 1e-300, None)).mean(axis=-1)
        for p in (direct, permuted[..., np.argsort(order)])
    ]
    np.testing.assert_allclose(likelihood[0], likelihood[1], atol=1e-7)


@pytest.mark.parametrize("k", [2, 5])
def test_true_posteriors_give_estimates_without_bias(k):
    source = Gaussians(k=k, distance=2.5)
    uniform = np.full(k, 1 / k)
    X, y = source.draw(uniform, 4000, rng=0)
    pool, y_pool = source.draw(uniform, 4000 * k, rng=1)
    held, rows = source.posteriors(X, uniform), source.posteriors(pool, uniform)
    quantifier = EMQ("precomputed", calibration=None).fit(held, y)
    target = np.arange(1, k + 1) / (k * (k + 1) / 2)
    results = evaluate(quantifier, rows, y_pool, APP(bag_size=400, repeats=100, prevalences=[target]), rng=2)
    np.testing.assert_allclose(results.estimate.mean(axis=0), target, atol=0.01)


def test_calibration_mends_an_overconfident_classifier():
    source = Gaussians(k=2, distance=1.5)
    X, y = source.draw([0.7, 0.3], 4000, rng=0)
    pool, y_pool = source.draw([0.5, 0.5], 8000, rng=1)
    held, rows = (source.posteriors(part, [0.7, 0.3]) ** 4 for part in (X, pool))
    held, rows = (part / part.sum(axis=1, keepdims=True) for part in (held, rows))
    errors = {
        method: evaluate(EMQ("precomputed", calibration=method).fit(held, y), rows, y_pool, APP(repeats=10), rng=2)
        .error()
        .mean()
        for method in (None, *METHODS)
    }
    assert all(errors[method] < 0.6 * errors[None] for method in METHODS)


def test_emq_beats_its_rivals_on_the_data_it_is_made_for():
    source = Gaussians(k=3, distance=2.0)
    X, y = source.draw([0.5, 0.3, 0.2], 3000, rng=0)
    pool, y_pool = source.draw(np.full(3, 1 / 3), 6000, rng=1)
    protocol = APP(bag_size=200, repeats=2)
    emq, pacc, pcc = (
        evaluate(method().fit(X, y), pool, y_pool, protocol, rng=0).error().mean() for method in (EMQ, PACC, PCC)
    )
    assert emq < pacc < pcc


QUAPY_EMQ = {  # EMQ of QuaPy 0.2.3
    2: [0.320050430685, 0.679949569315],
    3: [0.000668776096, 0.345669458609, 0.653661765295],
}


@pytest.mark.parametrize("k", [2, 3])
def test_with_quapys_stopping_rule_the_estimates_are_quapys(k):
    held, y = fixed_posteriors(60, k, 0.0)
    quantifier = EMQ("precomputed", calibration=None, solver="em", tol=1e-4).fit(held, y)
    np.testing.assert_allclose(quantifier.predict(fixed_bag(k)), QUAPY_EMQ[k], atol=1e-11)


def test_steps_that_run_out_are_told():
    held, y = fixed_posteriors(60, 2, 0.0)
    with pytest.warns(QuanetWarning, match=r"did not settle within 12 steps on 1 bags. Raise max_iter"):
        EMQ("precomputed", solver="em", tol=1e-12, max_iter=12).fit(held, y).predict(fixed_bag(2))


def test_an_unknown_solver_or_calibration_is_refused_in_fit():
    held, y = fixed_posteriors(60, 2, 0.0)
    with pytest.raises(InvalidSetting, match="EMQ: solver must be 'newton' or 'em'; got 'lbfgs'"):
        EMQ("precomputed", solver="lbfgs").fit(held, y)
    with pytest.raises(InvalidSetting, match=r"EMQ: calibration must be one of .*, or None; got 'isotonic'"):
        EMQ("precomputed", calibration="isotonic").fit(held, y)


def absolute_error_of(quantifier, X, y, pool, truth):
    bags = UPP(bag_size=200, repeats=60).draw(truth, rng=np.random.default_rng(0))
    return np.abs(quantifier.fit(X, y).predict_bags(pool, bags) - bags.prevalences).mean()


@pytest.mark.parametrize(
    "classifier",
    [
        DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
        KNeighborsClassifier(15),
        RandomForestClassifier(20, random_state=0),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_posteriors_of_zero_do_not_put_emq_behind_pacc(classifier):
    source = Gaussians(k=5, distance=2.0)
    X, y = source.draw(np.full(5, 0.2), 1000, rng=0)
    pool, truth = source.draw(np.full(5, 0.2), 2000, rng=1)
    _, posteriors, held = cross_fit(classifier, X, y, np.arange(5), cv=5)
    assert (posteriors == 0).any()
    of_pool = posteriors_of(clone(classifier).fit(X, y), pool, np.arange(5))
    found = [
        absolute_error_of(one, posteriors, y[held], of_pool, truth)
        for one in (EMQ("precomputed"), OEMQ("precomputed", strength=0.0), PACC("precomputed"))
    ]
    assert found[0] < found[2]
    assert found[1] == pytest.approx(found[0], abs=1e-4)


@pytest.mark.parametrize("confidence", [0.005, 0.1])
def test_an_underconfident_classifier_gives_the_estimate_of_a_calibrated_one(confidence):
    source, prior = Gaussians(k=2, distance=2.0), np.array([0.8, 0.2])
    (X, y), (bag, _) = source.draw(prior, 2000, rng=0), source.draw([0.5, 0.5], 500, rng=1)
    exact = EMQ("precomputed").fit(source.posteriors(X, prior), y).predict(source.posteriors(bag, prior))

    def dull(instances):
        """As a regression with strong regularisation: near the prior, and only a little to either side of it."""
        return softmax(np.log(prior) + confidence * np.log(source.posteriors(instances, prior) / prior), axis=1)

    np.testing.assert_allclose(EMQ("precomputed").fit(dull(X), y).predict(dull(bag)), exact, atol=1e-4)


QUAPY = {  # QuaPy 0.2.3: its function mapls, divergence "kl", and its LEIP
    (2, "trust None"): [0.367225790836, 0.632774209164],
    (2, "trust 0.7"): [0.399132562578, 0.600867437422],
    (3, "trust None"): [0.101358313429, 0.311408864231, 0.58723282234],
    (3, "trust 0.7"): [0.175616138089, 0.305680884541, 0.51870297737],
    (2, "recall"): [0.407407407407, 0.592592592593],
    (2, "precision"): [0.407407407407, 0.592592592593],
    (3, "recall"): [0.0, 0.333333333333, 0.666666666667],
    (3, "precision"): [0.0, 0.333333333333, 0.666666666667],
}


@pytest.mark.parametrize(("k", "setting"), QUAPY)
def test_estimates_are_quapys(k, setting):
    held, y = fixed_posteriors(60, k, 0.0)
    if setting.startswith("trust"):
        quantifier = MAPLS("precomputed", calibration=None, trust=None if "None" in setting else 0.7)
    else:
        quantifier = LEIP("precomputed", retained=setting)
    np.testing.assert_allclose(quantifier.fit(held, y).predict(fixed_bag(k)), QUAPY[k, setting], atol=1e-6)


def test_trust_is_the_authors():
    held, y = fixed_posteriors(60, 3, 0.0)
    prior = np.bincount(y) / 60
    first = EMQ("precomputed", calibration=None, solver="em", tol=1e-12, max_iter=5000).fit(held, y)
    assert float(adaptive_trust(first.predict(fixed_bag(3)), prior)) == pytest.approx(0.8803229, abs=1e-3)  # QuaPy


def test_retained_shares_are_the_least_recall_and_precision():
    held, y = fixed_posteriors(60, 3, 0.0)
    shares = [LEIP("precomputed", retained=name).fit(held, y).retained_ for name in ("recall", "precision")]
    np.testing.assert_allclose(shares, [0.4166666666666667, 0.5263157894736842])  # QuaPy 0.2.3


@given(stack=posteriors(), prior=prevalences())
def test_full_trust_is_em_and_none_is_uniform(stack, prior):
    k = stack.shape[-1]
    source = np.full(k, 1 / k)
    np.testing.assert_allclose(maximum_a_posteriori(stack, source, trust=0.0), 1 / k, atol=1e-12)
    believed = maximum_a_posteriori(stack, source, trust=1.0, tol=0.0, max_iter=50)
    joint = stack * believed[..., None, :]
    again = (joint / joint.sum(axis=-1, keepdims=True)).mean(axis=-2)
    # After fifty steps of EM another one changes little.
    assert np.abs(again - believed).max() < 0.05
    trust = adaptive_trust(prior, np.full(prior.shape[-1], 1 / prior.shape[-1]))
    assert ((trust >= 0) & (trust <= 1)).all()


def incremental_by_hand(bag, prior, retained):
    """Algorithm 1 of Zhang, Batista and Kanhere, instance by instance."""
    surest = bag.max(axis=1)
    tau = np.inf if retained <= 0 else -np.inf if retained >= 1 else np.quantile(surest, 1 - retained)
    first = surest >= tau
    labels = list(bag[first].argmax(axis=1))
    for row in bag[~first][np.argsort(-surest[~first], kind="stable")]:
        shares = np.bincount(labels, minlength=len(prior)) / len(labels) if labels else prior
        labels.append((row * np.maximum(shares, 1e-12) / prior).argmax())
    shares = np.bincount(labels, minlength=len(prior)) / len(bag)
    final = (bag * np.maximum(shares, 1e-12) / prior).argmax(axis=1)
    return np.bincount(final, minlength=len(prior)) / len(bag)


@pytest.mark.parametrize("retained", [0.0, 0.3, 0.8, 1.0])
def test_labels_are_given_one_by_one(retained):
    rng = np.random.default_rng(0)
    stack, prior = rng.dirichlet(np.full(4, 0.7), size=(6, 25)), np.array([0.1, 0.2, 0.3, 0.4])
    expected = [incremental_by_hand(bag, prior, retained) for bag in stack]
    np.testing.assert_allclose(incremental_prior(stack, prior, retained), expected, atol=1e-12)


def test_the_prior_helps_small_bags_of_many_classes():
    source, uniform = Gaussians(k=10, distance=1.0), np.full(10, 0.1)
    (X, y), (pool, y_pool) = source.draw(uniform, 2000, rng=0), source.draw(uniform, 4000, rng=1)
    protocol = UPP(bag_size=30, repeats=200)
    plain, pulled = (evaluate(one().fit(X, y), pool, y_pool, protocol, rng=2).error().mean() for one in (EMQ, MAPLS))
    assert pulled < plain


def test_an_honest_classifier_is_enough_for_both():
    source = Gaussians(distance=2.5)
    (X, y), (pool, y_pool) = source.draw([0.6, 0.4], 2000, rng=0), source.draw([0.5, 0.5], 6000, rng=1)
    for method in (MAPLS, LEIP):
        errors = evaluate(method().fit(X, y), pool, y_pool, APP(bag_size=300, repeats=5), rng=2).error()
        assert errors.mean() < 0.05


def test_mean_posteriors_are_the_prior_after_bcts_and_not_without():
    held, y = fixed_posteriors(60, 3, 0.0)
    by_labels, by_posteriors = (EMQ("precomputed", prior=prior).fit(held, y) for prior in ("labels", "posteriors"))
    np.testing.assert_allclose(by_posteriors.mean_posterior_, by_labels.prior_, atol=1e-5)
    plain = EMQ("precomputed", calibration=None, prior="posteriors", solver="em", tol=1e-4).fit(held, y)
    np.testing.assert_allclose(plain.mean_posterior_, held.mean(axis=0))
    # EMQ of QuaPy 0.2.3 with exact_train_prev=False
    np.testing.assert_allclose(plain.predict(fixed_bag(3)), ALEXANDARI, atol=1e-11)


ALEXANDARI = [0.017069628025, 0.396712812317, 0.586217559658]


def test_nbvs_scales_each_class_and_shifts_none():
    held, y = fixed_posteriors(60, 3, 0.0)
    fitted = calibrate(held, y, method="nbvs")
    assert len(set(fitted.scale.round(6))) == 3
    np.testing.assert_array_equal(fitted.shift, 0)


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (MAPLS("precomputed", trust=2), "trust must be a number from 0 to 1, or None; got 2"),
        (LEIP("precomputed", retained="accuracy"), "retained must be a number from 0 to 1, or 'recall' or 'precision'"),
        (
            LEIP("precomputed", retained=-0.1),
            "retained must be a number from 0 to 1, or 'recall' or 'precision'",
        ),
        (EMQ("precomputed", prior="guess"), "prior must be 'labels' or 'posteriors'; got 'guess'"),
    ],
)
def test_settings_that_mean_nothing_are_named(quantifier, message):
    held, y = fixed_posteriors(60, 2, 0.0)
    with pytest.raises(InvalidSetting, match=message):
        quantifier.fit(held, y)
