import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet import ACC, APP, CC, MAX, MS, MS2, PACC, T50, TAC, Gaussians, OneVsRest, X, evaluate
from quanet.data.duplicates import canonical_order
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.methods.thresholds import RateCurve, median_sweep, rate_curve, share_reaching
from quanet.uncertainty.relearning import replicates
from tests.methods.test_counting import fixed_bag
from tests.strategies import SEEDS, fixed_posteriors

ALL = [T50, MAX, X, MS, MS2]


def sweep_by_hand(scores, curve):
    """The definition: an adjusted count at each threshold, one after another, then their median."""
    adjusted = [np.clip(((scores >= t).mean() - fpr) / (tpr - fpr), 0, 1) for t, tpr, fpr in zip(*curve, strict=True)]
    return np.median(adjusted)


@given(seed=SEEDS, m=st.integers(1, 60), n=st.integers(1, 40), sharp=st.sampled_from([0.05, 1.0, 5.0]))
def test_a_median_sweep_is_the_median_of_all_adjusted_counts(seed, m, n, sharp):
    rng = np.random.default_rng(seed)
    held, bags = rng.beta(sharp, sharp, size=m + 1), rng.beta(sharp, sharp, size=(3, n)).round(2)
    held[: m // 3] = held[: m // 3].round(1)  # ties, and thresholds of exactly 0 and 1
    curve = rate_curve(held, np.arange(m + 1) % 2 == 0)
    curve = curve.where(curve.tpr != curve.fpr)
    if len(curve.thresholds):
        np.testing.assert_allclose(median_sweep(bags, curve), [sweep_by_hand(bag, curve) for bag in bags], atol=1e-12)


@given(seed=SEEDS, n=st.integers(2, 40))
def test_rates_are_the_shares_that_reach_each_score(seed, n):
    rng = np.random.default_rng(seed)
    scores, positive = rng.random(n).round(1), np.arange(n) % 2 == 0
    curve = rate_curve(scores, positive)
    np.testing.assert_allclose(curve.tpr, [share_reaching(scores[positive], t) for t in curve.thresholds])
    np.testing.assert_allclose(curve.fpr, [share_reaching(scores[~positive], t) for t in curve.thresholds])
    assert curve.tpr[0] == curve.fpr[0] == 1.0


def test_each_rule_takes_the_threshold_it_is_named_after():
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    y = np.array([0, 0, 1, 0, 0, 1, 1, 1])
    posteriors = np.column_stack([1 - scores, scores])
    chosen = {method: method("precomputed", positive=1).fit(posteriors, y) for method in (T50, MAX, X)}
    assert [chosen[T50].threshold_, chosen[T50].tpr_, chosen[T50].fpr_] == [0.7, 0.5, 0.0]
    assert [chosen[MAX].threshold_, chosen[MAX].tpr_, chosen[MAX].fpr_] == [0.6, 0.75, 0.0]
    assert [chosen[X].threshold_, chosen[X].tpr_, chosen[X].fpr_] == [0.5, 0.75, 0.25]


QUAPY = {  # QuaPy 0.2.3, whose positive class is the second
    T50: [0.333333333333, 0.666666666667],
    MAX: [0.296296296296, 0.703703703704],
    X: [0.222222222222, 0.777777777778],
    MS: [0.307692307692, 0.692307692308],
    MS2: [0.307692307692, 0.692307692308],
}


@pytest.mark.parametrize("method", QUAPY)
def test_estimates_are_quapys(method):
    held, y = fixed_posteriors(60, 2, 0.0)
    estimate = method("precomputed", positive=1).fit(held, y).predict(fixed_bag(2))
    np.testing.assert_allclose(estimate, QUAPY[method], atol=1e-11)


def test_the_sweep_is_over_scores_as_published_not_over_hundredths():
    held, y = fixed_posteriors(60, 2, 0.0)
    mlquantify = [0.272727272727, 0.727272727273]  # MS of mlquantify 0.5.1, at 0, 0.01, ..., 1
    hundredths = rate_curve(held[:, 1], y == 1, np.linspace(0, 1, 101))
    counted = share_reaching(fixed_bag(2)[:, 1][None, :], hundredths.thresholds[:, None])
    gap = hundredths.tpr - hundredths.fpr
    adjusted = np.where(gap == 0, counted, np.clip((counted - hundredths.fpr) / np.where(gap == 0, 1, gap), 0, 1))
    assert np.median(adjusted) == pytest.approx(mlquantify[1])
    assert MS("precomputed", positive=1).fit(held, y).predict(fixed_bag(2))[1] != pytest.approx(mlquantify[1])


def test_at_one_half_it_is_mlquantifys_tac_and_acc():
    held, y = fixed_posteriors(60, 2, 0.0)
    estimate = TAC("precomputed").fit(held, y).predict(fixed_bag(2))
    np.testing.assert_allclose(estimate, [0.217391304348, 0.782608695652], atol=1e-11)  # TAC of mlquantify 0.5.1
    np.testing.assert_allclose(estimate, ACC("precomputed").fit(held, y).predict(fixed_bag(2)), atol=1e-12)


@pytest.mark.parametrize("method", [*ALL, TAC])
def test_equal_rates_at_every_threshold_leave_the_plain_count_with_a_warning(method):
    useless = np.tile([[0.3, 0.7]], (10, 1))
    with pytest.warns(QuanetWarning, match=rf"{method.__name__} cannot correct .*tpr = fpr at"):
        quantifier = method("precomputed").fit(useless, ["a", "b"] * 5)
    bag = [[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]
    np.testing.assert_allclose(quantifier.predict(bag), CC("precomputed").fit(useless, ["a", "b"] * 5).predict(bag))


def test_without_a_clear_threshold_ms2_sweeps_them_all_with_a_warning():
    scores = np.linspace(0.1, 0.9, 40)
    posteriors, y = np.column_stack([1 - scores, scores]), np.arange(40) % 2
    with pytest.warns(QuanetWarning, match=r"tpr - fpr above 0.25, but the largest difference is 0.05"):
        swept = MS2("precomputed", positive=1).fit(posteriors, y)
    np.testing.assert_array_equal(
        swept.predict(posteriors[:9]), MS("precomputed", positive=1).fit(posteriors, y).predict(posteriors[:9])
    )


def test_the_rarer_class_is_the_positive_one():
    held, y = fixed_posteriors(60, 2, 0.0)  # 36 of class 0, 24 of class 1
    plain, named, other = (T50("precomputed", positive=one).fit(held, y) for one in (None, 1, 0))
    assert plain.threshold_ == named.threshold_ != other.threshold_
    assert T50("precomputed").fit(held[:, ::-1], 1 - y).threshold_ == plain.threshold_
    np.testing.assert_allclose(other.tpr_, 0.5, atol=0.02)


def test_thresholds_help_where_positives_are_few():
    source = Gaussians(distance=2.0)
    X_train, y = source.draw([0.97, 0.03], 2000, rng=0)
    pool, y_pool = source.draw([0.5, 0.5], 8000, rng=1)
    protocol = APP(bag_size=500, repeats=10)
    plain, swept = (evaluate(one().fit(X_train, y), pool, y_pool, protocol, rng=2).error().mean() for one in (ACC, MS))
    assert swept < 0.7 * plain


def test_each_of_more_classes_is_swept_on_precomputed_posteriors():
    source, uniform = Gaussians(k=3, distance=3.0), np.full(3, 1 / 3)
    (X_train, y), (new, _) = source.draw(uniform, 900, rng=0), source.draw([0.2, 0.3, 0.5], 2000, rng=1)
    held, rows = source.posteriors(X_train, uniform), source.posteriors(new, uniform)
    estimate = OneVsRest(MS("precomputed")).fit(held, y).predict(rows)
    np.testing.assert_allclose(estimate, [0.2, 0.3, 0.5], atol=0.04)
    np.testing.assert_allclose(estimate, PACC("precomputed").fit(held, y).predict(rows), atol=0.04)


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (T50("precomputed", positive="yes"), r"positive is 'yes', but the classes are \[0, 1\]"),
        (TAC("precomputed", threshold=1.5), "TAC: threshold must be a number from 0 to 1; got 1.5"),
    ],
)
def test_settings_that_mean_nothing_are_named(quantifier, message):
    held, y = fixed_posteriors(60, 2, 0.0)
    with pytest.raises(InvalidSetting, match=message):
        quantifier.fit(held, y)


def test_a_curve_keeps_its_three_parts_together():
    kept = RateCurve(np.array([0.1, 0.2]), np.array([1.0, 0.5]), np.array([1.0, 0.2])).where(np.array([False, True]))
    assert [part.tolist() for part in kept] == [[0.2], [0.5], [0.2]]


@pytest.mark.parametrize("method", [*ALL, TAC], ids=lambda method: method.__name__)
@pytest.mark.parametrize("first", [0, 1])
def test_on_balanced_data_replicates_count_the_class_that_fit_chose(method, first):
    X, y = Gaussians(distance=1.5).draw([0.5, 0.5], 200, rng=0)
    y = y if y[canonical_order(X, y)[0]] == first else 1 - y
    fitted = method().fit(X, y)
    assert fitted.positive_ == first
    assert {one.positive_ for one in replicates(fitted)} == {first}
    # From the same held-out rows, in any order, it learns the same.
    order = np.random.default_rng(0).permutation(len(fitted.held_out_.codes))
    again = fitted.relearn(fitted.held_out_.inputs[order].astype(float), fitted.held_out_.codes[order])
    same = fitted.relearn(fitted.held_out_.inputs.astype(float), fitted.held_out_.codes)
    np.testing.assert_array_equal(again.predict(X), same.predict(X))


def test_a_second_fit_chooses_the_positive_class_again():
    X, y = Gaussians(distance=1.5).draw([0.3, 0.7], 200, rng=0)
    quantifier = T50()
    assert quantifier.fit(X, y).positive_ == 0
    assert quantifier.fit(X, 1 - y).positive_ == 1
