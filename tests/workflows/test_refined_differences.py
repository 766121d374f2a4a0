"""Differences between refined groups: MOVER by hand, laws, and coverage."""

from types import SimpleNamespace

import numpy as np
import pytest

from quanet.data.periods import Key
from quanet.labels.group_labels import GroupLabels, RefinedGroups, refine_groups
from quanet.labels.prediction_powered import LabelDesign, score_interval
from quanet.labels.refine import fixed_label_em
from quanet.workflows.refined_differences import compare_refined


def refined(estimate, lower, upper, own=None):
    share = [np.stack([1 - np.asarray(part), part], axis=1) for part in (estimate, lower, upper)]
    g = len(estimate)
    ends = np.stack([1 - share[2][:, 1], share[1][:, 1]], 1), np.stack([1 - share[1][:, 1], share[2][:, 1]], 1)
    own = np.ones(g, dtype=bool) if own is None else own
    return RefinedGroups(share[0], *ends, np.full(g, 50), own, np.nan, np.full((g, 2), np.inf), np.full(g, np.inf))


def of_rows(groups, shares):
    """Differences of exactly these rows, whose intervals are those given."""
    return compare_refined(groups, shares, 0.95, "bag")


def labelled(counts, n, size=np.inf):
    """Groups with plain shares of n random labels of `size` rows."""
    share = np.stack([1 - np.asarray(counts) / n, np.asarray(counts) / n], axis=1)
    effective = np.full(share.shape, np.inf if size == n else n / (1 - n / size))
    g = len(counts)
    every = np.full(g, float(size))
    return RefinedGroups(
        share, *score_interval(share, effective, 0.95), np.full(g, n), np.ones(g, dtype=bool), np.nan, effective, every
    )


YEAR = Key("date", "year")


def named(*names, key=YEAR, sizes=None):
    return SimpleNamespace(
        keys=(key,),
        groups=tuple((name,) for name in names),
        classes=np.array(["bad", "good"]),
        sizes=np.full(len(names), 100) if sizes is None else np.array(sizes),
    )


def test_two_periods_by_hand():
    found = of_rows(refined([0.2, 0.5], [0.17, 0.46], [0.24, 0.55]), named("2016", "2017"))
    difference = found.differences
    assert (found.against, found.changes, difference.first.tolist(), difference.second.tolist()) == (
        "previous",
        None,
        ["2016"],
        ["2017"],
    )
    assert difference.estimate[0, 1] == pytest.approx(0.3)
    assert difference.lower[0, 1] == pytest.approx(0.3 - np.hypot(0.04, 0.04))
    assert difference.upper[0, 1] == pytest.approx(0.3 + np.hypot(0.05, 0.03))
    np.testing.assert_allclose(difference.estimate[0, 0], -difference.estimate[0, 1])
    assert difference.p_value[0, 1] < 1e-10


def test_a_difference_is_clear_if_and_only_if_its_interval_excludes_zero():
    for second in np.linspace(0.21, 0.35, 15):
        shares = refined([0.2, second], [0.15, second - 0.05], [0.26, second + 0.06])
        found = of_rows(shares, named("a", "b", key=Key("product"))).differences
        assert (found.p_value[0, 1] < 0.05) == (found.lower[0, 1] > 0)


def test_three_periods_have_their_overall_change_and_groups_are_compared_with_the_rest():
    shares = refined([0.2, 0.3, 0.5], [0.1, 0.2, 0.4], [0.3, 0.4, 0.6])
    years = of_rows(shares, named("2015", "2016", "2017"))
    assert years.differences.second.tolist() == ["2016", "2017"]
    assert years.changes.estimate[0, 1] == pytest.approx(0.3)
    products = of_rows(shares, named("a", "b", "c", key=Key("product"), sizes=[100, 300, 100]))
    assert products.against == "rest"
    np.testing.assert_allclose(products.differences.first_estimate[:, 1], [0.35, 0.35, 0.275])
    np.testing.assert_allclose(products.differences.estimate[:, 1], [-0.15, -0.05, 0.225])
    assert products.differences.sizes.tolist() == [[400, 100], [200, 300], [400, 100]]


def test_only_groups_with_labels_of_their_own_are_compared():
    shares = refined([0.2, 0.3, 0.5], [0.1, 0.2, 0.4], [0.3, 0.4, 0.6], own=np.array([True, False, True]))
    found = of_rows(shares, named("2015", "2016", "2017"))
    assert (found.differences.first.tolist(), found.differences.second.tolist()) == (["2015"], ["2017"])
    alone = refined([0.2, 0.3], [0.1, 0.2], [0.3, 0.4], own=np.array([True, False]))
    assert of_rows(alone, named("2015", "2016")) is None


@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.05, 0.3), (0.4, 0.6)])
def test_intervals_contain_the_true_difference_as_often_as_they_say(shares):
    rng = np.random.default_rng(0)
    n, trials = 60, 1500
    drawn = rng.binomial(n, shares, size=(trials, 2)) / n
    lower, upper = score_interval(drawn, np.full(drawn.shape, float(n)), 0.95)
    groups = refined(drawn.ravel(), lower.ravel(), upper.ravel())
    keys = (Key("trial"), Key("date", "year"))
    pairs = SimpleNamespace(
        keys=keys,
        groups=tuple((str(trial), year) for trial in range(trials) for year in ("2016", "2017")),
        classes=np.array(["bad", "good"]),
        sizes=np.full(2 * trials, 1000),
    )
    inside = []
    for start in range(0, trials, 200):  # in parts that are compared together
        part = slice(2 * start, 2 * (start + 200))
        some = RefinedGroups(
            *(getattr(groups, name)[part] for name in ("estimate", "lower", "upper", "labelled", "own")),
            np.nan,
            groups.effective[part],
            groups.sizes[part],
        )
        view = SimpleNamespace(keys=keys, groups=pairs.groups[part], classes=pairs.classes, sizes=pairs.sizes[part])
        found = of_rows(some, view).differences
        truth = shares[1] - shares[0]
        inside += ((found.lower[:, 1] <= truth) & (truth <= found.upper[:, 1])).tolist()
    assert len(inside) == trials
    assert 0.93 <= np.mean(inside) <= 0.98


def test_fully_labelled_groups_are_compared_as_draws_from_their_sources():
    # 25 and 16 of 64 reviews: Wilson's limits are .2806 and .5131, and .1601 and .3682. Newcombe's interval by hand:
    # from -.1406 - hypot(.2500 - .1601, .5131 - .3906) to -.1406 + hypot(.3682 - .2500, .3906 - .2806).
    groups, view = labelled([25, 16], 64, 64), named("2016", "2017", sizes=[64, 64])
    found = compare_refined(groups, view, 0.95)
    assert found.target == "source"
    difference = found.differences
    assert difference.estimate[0, 1] == pytest.approx(-9 / 64)
    assert difference.lower[0, 1] == pytest.approx(-0.2925, abs=1e-4)
    assert difference.upper[0, 1] == pytest.approx(0.0209, abs=1e-4)
    # The test of two proportions: pooled .088, Wald's .085.
    assert difference.p_value[0, 1] == pytest.approx(0.088, abs=0.005)
    # Exactly these rows differ beyond doubt.
    assert of_rows(groups, view).differences.p_value[0, 1] < 1e-6


def test_a_difference_of_sources_is_that_of_labels_without_finite_population_correction():
    # 40 random labels of 64 rows or of a million say the same of the source.
    few, many = (labelled([20, 10], 40, size) for size in (64, 10**6))
    found = [compare_refined(groups, named("2016", "2017"), 0.95).differences for groups in (few, many)]
    np.testing.assert_allclose(found[0].lower, found[1].lower, atol=1e-4)
    np.testing.assert_allclose(found[0].p_value, found[1].p_value, rtol=1e-3)


@pytest.mark.parametrize("n", [20, 60])
def test_differences_cover_those_of_the_sources_under_repeated_draws(n):
    rng = np.random.default_rng(1)
    size, trials, inside = 60, 150, []
    for _ in range(trials):
        shares = np.array([0.25, 0.4])
        y = (rng.random((2, size)) < shares[:, None]).astype(int)  # rows drawn from their sources
        f = np.clip(rng.normal(0.35 + 0.3 * y, 0.15), 0.02, 0.98)  # what a model sees of them
        ratios = np.stack([1 - f, f], axis=2).reshape(-1, 2)
        owner = np.repeat([0, 1], size)
        places = np.concatenate([g * size + rng.permutation(size)[:n] for g in (0, 1)])
        codes = y.ravel()[places]
        design = LabelDesign.of(2 * n, 2 * size, strata=owner[places])
        labels = GroupLabels(ratios, owner, ratios[places], owner[places], codes, design)
        groups = refine_groups(labels, fixed_label_em(ratios, ratios[places], codes), level=0.95)
        found = compare_refined(groups, named("2016", "2017", sizes=[size, size]), 0.95).differences
        inside.append(found.lower[0, 1] <= 0.15 <= found.upper[0, 1])
    assert 0.91 <= np.mean(inside) <= 0.99
