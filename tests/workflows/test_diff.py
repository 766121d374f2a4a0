import numpy as np
import pytest

from quanet import PACC, Gaussians, Inputs
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.data.periods import Key
from quanet.errors import InvalidData, InvalidSetting
from quanet.workflows.diff import compare_groups, join_readings, period_number

MONTHS = ("2023-11", "2023-12", "2024-01", "2024-03")


@pytest.fixture(scope="module")
def quantifier():
    return PACC().fit(*Gaussians().draw([0.5, 0.5], 400, rng=0))


def reading(quantifier, groups, shares, n=120, seed=1, weights=None):
    parts = [Gaussians().draw([1 - p, p], n, rng=seed + at)[0] for at, p in enumerate(shares)]
    instances = quantifier.read(np.concatenate(parts))
    codes = np.repeat(np.arange(len(groups)), n)
    return GroupedInputs(instances, codes, list(groups), {"no text": 3}, None, weights=weights)


def months(quantifier):
    return reading(quantifier, [(month,) for month in MONTHS], (0.2, 0.3, 0.4, 0.6))


def test_periods_are_compared_with_the_one_before(quantifier):
    found = compare_groups(quantifier, months(quantifier), keys=[Key("date", "month")])
    assert found.against == "previous"
    assert (tuple(found.differences.first), tuple(found.differences.second)) == (MONTHS[:-1], MONTHS[1:])
    assert (found.changes.first.tolist(), found.changes.second.tolist()) == (["2023-11"], ["2024-03"])
    # February is missing, so the slope is over 0, 1, 2 and 4 months.
    trend = found.trends[""]
    assert found.period == "month"
    assert trend.lower[1] < 0.1 < trend.upper[1]
    assert found.skipped == {"no text": 3}


def test_every_series_has_its_own_trend(quantifier):
    groups = [(product, month) for product in ("lamp", "radio") for month in MONTHS[:3]]
    found = compare_groups(
        quantifier,
        reading(quantifier, groups, (0.2, 0.3, 0.4, 0.5, 0.5, 0.5)),
        keys=[Key("product"), Key("date", "month")],
    )
    assert len(found.differences) == 4  # never between products
    assert list(found.trends) == ["lamp", "radio"]
    assert found.changes.first.tolist() == ["lamp, 2023-11", "radio, 2023-11"]


def test_groups_are_compared_with_the_rest_or_a_baseline(quantifier):
    three = reading(quantifier, [("a",), ("b",), ("c",)], (0.2, 0.5, 0.5))
    rest = compare_groups(quantifier, three, keys=[Key("product")])
    assert (rest.against, rest.differences.second.tolist()) == ("rest", ["a", "b", "c"])
    assert rest.differences.estimate[0, 1] < -0.15
    base = compare_groups(quantifier, three, keys=[Key("product")], against="b")
    assert (base.against, base.differences.first.tolist()) == ("baseline", ["b", "b"])
    two = compare_groups(quantifier, three, keys=[Key("product")], between=("c", "a"))
    assert (two.differences.first.tolist(), two.differences.second.tolist()) == (["c"], ["a"])
    np.testing.assert_allclose(two.differences.estimate, base.differences.estimate[:1], atol=0.2)


def test_small_periods_are_no_part_of_trend_and_change(quantifier):
    four = months(quantifier)
    kept = np.r_[0:5, 120:480]  # 5 instances in the first month
    few = GroupedInputs(four.instances.take(kept), four.codes[kept], four.groups, {}, None)
    found = compare_groups(quantifier, few, keys=[Key("date", "month")])
    assert found.small == ("2023-11",)
    assert found.changes.first.tolist() == ["2023-12"]
    assert found.trends[""].periods == 3
    assert len(found.differences) == 3


def test_files_are_joined_as_groups(quantifier):
    parts = [reading(quantifier, [()], (p,), seed=seed, weights=np.ones(120)) for seed, p in ((1, 0.2), (2, 0.5))]
    both = join_readings(parts, ["2016", "2017"])
    assert both.groups == [("2016",), ("2017",)]
    assert both.skipped == {"no text": 6}
    assert both.weights.shape == (240,)
    found = compare_groups(quantifier, both)
    assert found.over_time
    assert found.differences.estimate[0, 1] == pytest.approx(0.3, abs=0.12)


def test_files_must_not_overlap(quantifier):
    whole = reading(quantifier, [()], (0.3,))
    part = GroupedInputs(whole.instances.take(np.arange(60)), np.zeros(60, dtype=int), [()], {}, None)
    with pytest.raises(InvalidData, match=r"All rows of part\.csv also occur in whole\.csv"):
        join_readings([whole, part], ["whole.csv", "part.csv"])
    other = reading(quantifier, [()], (0.3,), seed=9)
    values = np.vstack([part.instances.values, other.instances.values[:20]])
    mixed = GroupedInputs(Inputs(values), np.zeros(80, dtype=int), [()], {}, None)
    with pytest.warns(match=r"75 % of the rows of b also occur in a"):
        join_readings([GroupedInputs(Inputs(whole.instances.values), whole.codes, [()], {}, None), mixed], ["a", "b"])
    labels = GroupedInputs(Inputs(np.eye(2)[[0, 1] * 30]), np.zeros(60, dtype=int), [()], {}, None)
    assert len(join_readings([labels, labels], ["a", "b"]).instances) == 120  # coarse values are equal by chance


def test_what_cannot_be_compared_says_why(quantifier):
    three = reading(quantifier, [("Kindle",), ("Fire",), ("Echo",)], (0.2, 0.5, 0.5))
    with pytest.raises(InvalidSetting, match=r"Unknown group 'kindel'\. Choose from 'Kindle', .*'Fire'"):
        compare_groups(quantifier, three, keys=[Key("product")], against="kindel")
    with pytest.raises(InvalidSetting, match="Both groups are 'Fire'"):
        compare_groups(quantifier, three, keys=[Key("product")], between=("Fire", "Fire"))
    one = reading(quantifier, [("Kindle",)], (0.2,))
    with pytest.raises(InvalidData, match="one group only, 'Kindle'"):
        compare_groups(quantifier, one, keys=[Key("product")])
    single = reading(quantifier, [("a", "2024-01"), ("b", "2024-02")], (0.2, 0.3))
    with pytest.raises(InvalidData, match="No group has two periods"):
        compare_groups(quantifier, single, keys=[Key("product"), Key("date", "month")])


@pytest.mark.parametrize(
    ("first", "second", "period"),
    [
        ("2023-12-31", "2024-01-01", "day"),
        ("2020-W53", "2021-W01", "week"),
        ("2023-12", "2024-01", "month"),
        ("2023-Q4", "2024-Q1", "quarter"),
        ("2023", "2024", "year"),
    ],
)
def test_consecutive_periods_differ_by_one(first, second, period):
    assert period_number(second, period) - period_number(first, period) == 1
    assert period_number("(empty)", period) is None
