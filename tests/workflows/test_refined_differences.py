"""Differences between refined groups: MOVER by hand, laws, and coverage."""

from types import SimpleNamespace

import numpy as np
import pytest

from quanet.data.periods import Key
from quanet.labels.group_labels import RefinedGroups
from quanet.labels.prediction_powered import score_interval
from quanet.workflows.refined_differences import compare_refined


def refined(estimate, lower, upper, own=None):
    share = [np.stack([1 - np.asarray(part), part], axis=1) for part in (estimate, lower, upper)]
    g = len(estimate)
    ends = np.stack([1 - share[2][:, 1], share[1][:, 1]], 1), np.stack([1 - share[1][:, 1], share[2][:, 1]], 1)
    return RefinedGroups(share[0], *ends, np.full(g, 50), np.ones(g, dtype=bool) if own is None else own, np.nan)


YEAR = Key("date", "year")


def named(*names, key=YEAR, sizes=None):
    return SimpleNamespace(
        keys=(key,),
        groups=tuple((name,) for name in names),
        classes=np.array(["bad", "good"]),
        sizes=np.full(len(names), 100) if sizes is None else np.array(sizes),
    )


def test_two_periods_by_hand():
    found = compare_refined(refined([0.2, 0.5], [0.17, 0.46], [0.24, 0.55]), named("2016", "2017"), 0.95)
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
        found = compare_refined(shares, named("a", "b", key=Key("product")), 0.95).differences
        assert (found.p_value[0, 1] < 0.05) == (found.lower[0, 1] > 0)


def test_three_periods_have_their_overall_change_and_groups_are_compared_with_the_rest():
    shares = refined([0.2, 0.3, 0.5], [0.1, 0.2, 0.4], [0.3, 0.4, 0.6])
    years = compare_refined(shares, named("2015", "2016", "2017"), 0.95)
    assert years.differences.second.tolist() == ["2016", "2017"]
    assert years.changes.estimate[0, 1] == pytest.approx(0.3)
    products = compare_refined(shares, named("a", "b", "c", key=Key("product"), sizes=[100, 300, 100]), 0.95)
    assert products.against == "rest"
    np.testing.assert_allclose(products.differences.first_estimate[:, 1], [0.35, 0.35, 0.275])
    np.testing.assert_allclose(products.differences.estimate[:, 1], [-0.15, -0.05, 0.225])
    assert products.differences.sizes.tolist() == [[400, 100], [200, 300], [400, 100]]


def test_only_groups_with_labels_of_their_own_are_compared():
    shares = refined([0.2, 0.3, 0.5], [0.1, 0.2, 0.4], [0.3, 0.4, 0.6], own=np.array([True, False, True]))
    found = compare_refined(shares, named("2015", "2016", "2017"), 0.95)
    assert (found.differences.first.tolist(), found.differences.second.tolist()) == (["2015"], ["2017"])
    alone = refined([0.2, 0.3], [0.1, 0.2], [0.3, 0.4], own=np.array([True, False]))
    assert compare_refined(alone, named("2015", "2016"), 0.95) is None


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
            *(getattr(groups, name)[part] for name in ("estimate", "lower", "upper", "labelled", "own")), np.nan
        )
        view = SimpleNamespace(keys=keys, groups=pairs.groups[part], classes=pairs.classes, sizes=pairs.sizes[part])
        found = compare_refined(some, view, 0.95).differences
        truth = shares[1] - shares[0]
        inside += ((found.lower[:, 1] <= truth) & (truth <= found.upper[:, 1])).tolist()
    assert len(inside) == trials
    assert 0.93 <= np.mean(inside) <= 0.98
