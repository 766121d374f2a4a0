import numpy as np
import pytest

from quanet import ACC, EMQ, PACC, Bags, Gaussians, difference, difference_bags, predict_interval_bags, trend_bags
from quanet.drift.scale import without_drift
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.methods.counting import soft_rates
from quanet.uncertainty.comparisons import differences_of, trend_of
from quanet.uncertainty.contrasts import combined_reaches, drift_correlation, p_values, read_sides
from quanet.uncertainty.relearning import held_out_of
from quanet.uncertainty.widening import wilson

SHARES = (0.2, 0.2, 0.5, 0.02)
KINDS = ("EMQ", "PACC", "ACC")


def fitted(method, k=2, n=400, seed=0):
    X, y = Gaussians(k=k).draw(np.full(k, 1 / k), n, rng=seed)
    with without_drift():
        return method().fit(X, y)


@pytest.fixture(scope="module")
def quantifiers():
    return {
        "EMQ": fitted(EMQ),
        "PACC": fitted(PACC),
        "ACC": fitted(ACC),
        "three": fitted(PACC, 3),
        "EMQ3": fitted(EMQ, 3),
    }


@pytest.fixture(scope="module")
def pool():
    parts = [Gaussians().draw([1 - p, p], 300, rng=10 + at)[0] for at, p in enumerate(SHARES)]
    return np.concatenate(parts), Bags(np.arange(1200).reshape(4, -1), labels=["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def drifting():
    """A quantifier with a drift scale, and bags of three places: the training data, elsewhere, and elsewhere again."""
    world = Gaussians(k=2)
    X, y = world.draw([0.5, 0.5], 1200, rng=0)
    noise = np.random.default_rng(1).normal(size=(1200, 3))
    quantifier = PACC().fit(np.hstack([X, noise]), y)
    new = np.vstack(
        [
            np.hstack([world.draw([0.6, 0.4], 500, rng=9 + at)[0], np.random.default_rng(at).normal(size=(500, 3))])
            for at in range(5)
        ]
    )
    new[1000:2000, 2] += 1.0
    new[2000:, 3] += 1.0
    return quantifier, new, Bags(np.arange(2500).reshape(5, -1))


@pytest.mark.parametrize("kind", KINDS)
def test_exchanged_sides_have_the_opposite_difference(quantifiers, pool, kind):
    X, bags = pool
    there = difference_bags(quantifiers[kind], X, bags, [[0, 2], [1, 3]], drift=False)
    back = difference_bags(quantifiers[kind], X, bags, [[2, 0], [3, 1]], drift=False)
    np.testing.assert_allclose(there.estimate, -back.estimate, atol=1e-12)
    np.testing.assert_allclose(there.lower, -back.upper, atol=1e-12)
    np.testing.assert_allclose(there.p_value, back.p_value, atol=1e-12)
    np.testing.assert_allclose(there.lower[:, 0], -there.upper[:, 1], atol=1e-9)  # of two classes, one is the mirror


@pytest.mark.parametrize("kind", KINDS)
def test_a_bag_does_not_differ_from_its_copy(quantifiers, pool, kind):
    X, _ = pool
    found = difference(quantifiers[kind], X[:300], X[:300].copy())
    np.testing.assert_allclose(found.estimate, 0, atol=1e-12)
    np.testing.assert_allclose(found.lower, -found.upper, atol=1e-12)
    assert (found.p_value == 1).all()


def test_what_was_learned_cancels_where_prevalences_are_equal(quantifiers, pool):
    X, _ = pool
    for kind in KINDS:
        sides = read_sides(quantifiers[kind], np.vstack([X[:300], X[:300]]), Bags(np.arange(600).reshape(2, -1)), 0.95)
        parts = sides.learned.parts
        assert (parts**2).sum() > 0
        np.testing.assert_allclose(parts[:, 0], parts[:, 1], atol=1e-12)


def test_the_covariance_of_counts_is_that_of_the_delta_method(quantifiers, pool):
    quantifier = quantifiers["three"]
    X = np.vstack([Gaussians(k=3).draw(p, 300, rng=5)[0] for p in ([0.6, 0.2, 0.2], [0.2, 0.3, 0.5])])
    sides = read_sides(quantifier, X, Bags(np.arange(600).reshape(2, -1)), 0.95)
    held_out = held_out_of(quantifier)
    scores, m = held_out.inputs[:, :3], held_out.learning_sizes
    inverse = np.linalg.inv(soft_rates(scores, held_out.codes))
    p = (sides.interval.estimate + 1 / 600) / (1 + 3 / 600)
    within = [np.cov(scores[held_out.codes == c].T) for c in range(3)]
    expected = inverse @ sum(p[0, c] * p[1, c] / m[c] * within[c] for c in range(3)) @ inverse.T
    counts = sides.learned.parts[:-3]  # the last three are errors that were never seen
    found = np.einsum("rc,rd->cd", counts[:, 0], counts[:, 1])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["EMQ", "PACC", "EMQ3"])
def test_the_interval_is_narrower_than_that_of_independent_estimates(quantifiers, kind):
    k = 3 if kind == "EMQ3" else 2
    X, _ = Gaussians(k=k).draw(np.full(k, 1 / k), 4000, rng=5)
    found = difference(quantifiers[kind], X[:2000], X[2000:])
    # 400 held-out instances and 2000 of a bag: most of the error was learned, and cancels.
    assert (found.relative_width < 0.75).all()
    one = predict_interval_bags(quantifiers[kind], X, Bags(np.arange(4000).reshape(2, -1)), target="source")
    independent = np.hypot(*(one.upper - one.lower))
    np.testing.assert_allclose((found.upper - found.lower)[0] / independent, found.relative_width[0], rtol=0.1)


def test_many_comparisons_at_once_are_those_of_one_at_a_time(quantifiers, pool):
    X, bags = pool
    pairs = np.array([[0, 1], [0, 2], [2, 3]])
    together = difference_bags(quantifiers["PACC"], X, bags, pairs, drift=False)
    for at, pair in enumerate(pairs):
        alone = difference_bags(quantifiers["PACC"], X, bags.take(pair), [[0, 1]], drift=False)
        for name in ("estimate", "lower", "upper", "p_value"):
            np.testing.assert_allclose(getattr(together, name)[at], getattr(alone, name)[0], rtol=1e-6, atol=1e-9)


def test_other_names_of_classes_only_permute_the_answer():
    X, y = Gaussians(k=3).draw(np.full(3, 1 / 3), 400, rng=0)
    new = [Gaussians(k=3).draw(p, 300, rng=5)[0] for p in ([0.6, 0.2, 0.2], [0.2, 0.3, 0.5])]
    with without_drift():
        found, renamed = (difference(PACC().fit(X, labels), *new) for labels in (y, 2 - y))
    for name in ("estimate", "lower", "upper", "p_value"):
        np.testing.assert_allclose(getattr(found, name), getattr(renamed, name)[:, ::-1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_p_is_small_if_and_only_if_the_interval_excludes_zero(quantifiers, drifting, level):
    X, _ = Gaussians().draw([0.7, 0.3], 2000, rng=3)
    bags = Bags(np.random.default_rng(0).permutation(2000).reshape(40, -1))
    results = [difference_bags(quantifiers[kind], X, bags, "previous", level) for kind in KINDS]
    quantifier, new, five = drifting
    results.append(difference_bags(quantifier, new, five, "previous", level))
    for found in results:
        outside = (found.lower > 0) | (found.upper < 0)
        np.testing.assert_array_equal(found.p_value < 1 - level, outside)


def test_newcombes_example():
    # Newcombe (1998), Statistics in Medicine 17, table II (a): 56/70 - 48/80, method 10: .0524 to .3339.
    share = np.array([48 / 80, 56 / 70])[None, :, None]
    low, high = wilson(share, np.array([1 / 80, 1 / 70])[None, :, None], 1.959964)
    weights = np.array([-1.0, 1.0])[None, :, None]
    nothing = np.zeros(share.shape, dtype=bool)
    below, above = combined_reaches(weights, share - low, high - share, np.eye(2)[None], nothing)
    assert 0.2 - below[0, 0] == pytest.approx(0.0524, abs=1e-4)
    assert 0.2 + above[0, 0] == pytest.approx(0.3339, abs=1e-4)


def test_errors_that_are_the_same_on_both_sides_cancel():
    reach, weights = np.full((1, 2, 1), 0.1), np.array([-1.0, 1.0])[None, :, None]
    nothing = np.zeros((1, 2, 1), dtype=bool)
    for correlation, expected in ((1.0, 0.0), (0.0, np.sqrt(0.02)), (-1.0, 0.2)):
        matrix = np.array([[[1.0, correlation], [correlation, 1.0]]])
        for found in combined_reaches(weights, reach, reach, matrix, nothing):
            assert found[0, 0] == pytest.approx(expected, abs=1e-7)


def test_p_values_of_sampling_and_drift_together():
    # With Student's t alone: t = 2.228 has p = 5 % on 10 degrees.
    p = p_values(np.array([2.2281]), np.array([0.0]), np.array([2.2281]), 0.95, 2.2281, 10)
    assert p[0] == pytest.approx(0.05, abs=1e-4)
    assert p_values(np.array([0.0, -1.0]), np.ones(2), np.zeros(2), 0.95, 1.0, np.inf).tolist() == [1.0, 1.0]


def test_a_group_against_the_rest(quantifiers, pool):
    X, bags = pool
    found = difference_bags(quantifiers["PACC"], X, bags, drift=False)
    assert found.second.tolist() == ["a", "b", "c", "d"]
    assert set(found.first) == {"the rest"}
    alone = difference(quantifiers["PACC"], X[300:], X[:300], drift=False)
    np.testing.assert_allclose(found.lower[0], alone.lower[0], rtol=1e-6)
    assert found.sizes.tolist() == [[900, 300]] * 4
    two = difference_bags(quantifiers["PACC"], X, bags.take(np.array([0, 2])), drift=False)
    assert len(two) == 1  # the second comparison would be the mirror image


def test_the_rest_in_bounded_memory_is_the_same(quantifiers, pool, monkeypatch):
    X, bags = pool
    whole = difference_bags(quantifiers["PACC"], X, bags, drift=False)
    monkeypatch.setattr("quanet.uncertainty.comparisons.ROWS", 2000)
    parts = difference_bags(quantifiers["PACC"], X, bags, drift=False)
    np.testing.assert_allclose(whole.adjusted, parts.adjusted, rtol=1e-6)


def test_equal_weights_change_nothing(quantifiers, pool):
    X, _ = pool
    plain = difference(quantifiers["PACC"], X[:300], X[600:900])
    weighted = difference(quantifiers["PACC"], X[:300], X[600:900], weights=(np.full(300, 2.0), np.full(300, 2.0)))
    np.testing.assert_allclose(plain.lower, weighted.lower, atol=1e-6)


def test_a_bag_that_says_nothing_leaves_every_difference_possible(quantifiers, pool):
    X, _ = pool
    found = difference(quantifiers["EMQ"], X[:1], X[1:2])
    assert found.lower.tolist() == [[-1.0, -1.0]]
    assert found.upper.tolist() == [[1.0, 1.0]]
    assert "one instance" in found.notes[0]


def test_a_useless_classifier_leaves_every_difference_possible():
    rng = np.random.default_rng(0)
    with without_drift(), pytest.warns(match="does not separate"):
        quantifier = PACC().fit(rng.normal(size=(200, 2)), np.arange(200) % 2)
    found = difference(quantifier, rng.normal(size=(50, 2)), rng.normal(size=(50, 2)))
    assert (found.lower == -1).all()
    assert (found.upper == 1).all()
    assert (found.p_value == 1).all()


def test_bags_that_drifted_alike_share_their_bias(drifting):
    quantifier, X, bags = drifting
    sides = read_sides(quantifier, X, bags, 0.95)
    pairs = np.array([[2, 3], [2, 4]])  # the same place, and another one
    alike, apart = drift_correlation(quantifier, sides.inputs, bags, sides.interval.estimate, sides.drift, pairs)[
        :, 0, 1
    ]
    assert alike > 0.7
    assert apart < 0.3
    found = differences_of(sides, pairs)
    assert found.drift[0, 1] < 0.7 * found.drift[1, 1]
    without = difference_bags(quantifier, X, bags, pairs, drift=False)
    assert without.drift is None
    assert (found.upper - found.lower > without.upper - without.lower).all()


def test_a_trend_is_the_slope_of_the_line():
    quantifier = fitted(PACC)
    shares = (0.2, 0.3, 0.4, 0.5)
    X = np.concatenate([Gaussians().draw([1 - p, p], 1000, rng=at)[0] for at, p in enumerate(shares)])
    bags = Bags(np.arange(4000).reshape(4, -1), labels=["Q1", "Q2", "Q3", "Q4"])
    found = trend_bags(quantifier, X, bags)
    assert found.lower[1] < 0.1 < found.upper[1]
    assert found.p_value[1] < 1e-6
    assert (found.first, found.last, found.periods) == ("Q1", "Q4", 4)
    np.testing.assert_allclose(found.estimate[0], -found.estimate[1])
    slower = trend_bags(quantifier, X, bags, times=[0, 2, 4, 6])
    np.testing.assert_allclose(slower.estimate * 2, found.estimate)
    backwards = trend_bags(quantifier, X, bags.take(np.array([3, 2, 1, 0])))
    np.testing.assert_allclose(backwards.lower, -found.upper, atol=1e-9)
    assert "points per period" in str(found)
    assert found.frame()["slope"].tolist() == found.estimate.tolist()


def test_a_trend_near_0_is_neither_pulled_to_0_nor_too_certain():
    # Bags of 60: with variances at the estimates as weights, the mean slope was 15 % too small.
    source, slope, size, runs = Gaussians(distance=4), 0.08 / 6, 60, 60
    shares = 0.02 + slope * np.arange(7)
    found = []
    for training in range(3):
        quantifier = PACC().fit(*source.draw([0.5, 0.5], 600, rng=training))
        rng = np.random.default_rng(training)
        drawn = rng.binomial(size, shares, size=(runs, 7)) / size
        X = np.concatenate([source.draw([1 - p, p], size, rng=rng)[0] for p in drawn.ravel()])
        weeks = Bags(np.arange(runs * 7 * size).reshape(-1, size))
        sides = read_sides(quantifier, X, weeks, 0.95, drift=False)
        found += [trend_of(sides, members=np.arange(7 * run, 7 * run + 7)) for run in range(runs)]
    lower, upper, estimate = (
        np.array([getattr(one, name)[1] for one in found]) for name in ("lower", "upper", "estimate")
    )
    assert abs(estimate.mean() - slope) < 2.5 * estimate.std() / np.sqrt(len(found))
    assert abs(estimate.mean() / slope - 1) < 0.08
    assert 0.91 < ((lower < slope) & (slope < upper)).mean() < 0.99


def test_the_weight_of_a_period_is_its_size_and_not_its_estimate():
    X = np.concatenate([Gaussians().draw([1 - p, p], 400, rng=at)[0] for at, p in enumerate((0.02, 0.2, 0.5, 0.4))])
    bags = Bags([np.arange(0, 400), np.arange(400, 500), np.arange(800, 1200), np.arange(1200, 1600)])
    found = trend_bags(fitted(PACC), X, bags, drift=False)
    shares = predict_interval_bags(fitted(PACC), X, bags, drift=False).estimate[:, 1]
    slope = np.polyfit(np.arange(4), shares, 1, w=np.sqrt([4, 1, 4, 4]))[0]
    assert found.estimate[1] == pytest.approx(slope)


def test_what_cannot_be_compared_says_why(quantifiers, pool):
    X, bags = pool
    quantifier = quantifiers["PACC"]
    with pytest.raises(InvalidBags, match="one bag only"):
        difference_bags(quantifier, X, bags.take(np.array([0])))
    with pytest.raises(InvalidSetting, match="'rest' or 'previous'"):
        difference_bags(quantifier, X, bags, "next")
    with pytest.raises(InvalidSetting, match="positions from 0 to 3"):
        difference_bags(quantifier, X, bags, [[0, 4]])
    with pytest.raises(InvalidSetting, match=r"shape \(m, 2\)"):
        difference_bags(quantifier, X, bags, [0, 1])
    overlapping = Bags([np.arange(300), np.arange(299, 600), np.arange(700, 800)], labels=["May", "June", "July"])
    with pytest.raises(InvalidBags, match=r"'May' and 'June' share instances \(row 299\)"):
        difference_bags(quantifier, X, overlapping, [[0, 1]])
    with pytest.raises(InvalidBags, match="share instances"):
        difference_bags(quantifier, X, overlapping, "rest")
    assert len(difference_bags(quantifier, X, overlapping, [[0, 2]], drift=False)) == 1
    with pytest.raises(InvalidData, match="at least 3 periods; got 2"):
        trend_bags(quantifier, X, bags.take(np.array([0, 1])))
    with pytest.raises(InvalidData, match="4 numbers"):
        trend_bags(quantifier, X, bags, times=[1, 1, 1, 1])
