import numpy as np
import pytest
from hypothesis import given

from quanet import APP, EMQ, LEIP, MAPLS, UPP, Gaussians, evaluate
from quanet.classifiers.calibration import calibrate
from quanet.errors import InvalidSetting
from quanet.methods.likelihood import adaptive_trust, incremental_prior, maximum_a_posteriori
from tests.methods.test_counting import fixed_bag
from tests.strategies import fixed_posteriors, posteriors, prevalences

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
