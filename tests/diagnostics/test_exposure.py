"""A few instances with most of the weight are reported."""

import numpy as np

from quanet import EMQ, Bags, Gaussians, diagnose
from quanet.arrays import Merged
from quanet.diagnostics.exposure import carriers_of_half, is_dominated, weights_findings


def test_who_carries_half_of_the_weight_by_hand():
    bags = Bags([[0, 1, 2, 3], [3, 4], [4, 5, 6]], weights=[4, 3, 2, 1, 1, 1, 1])
    assert carriers_of_half(bags).tolist() == [2, 1, 2]


def test_a_few_dominating_instances_are_a_warning_that_names_groups():
    weights = np.ones(3000)
    weights[:12] = 300.0
    whole = Bags([np.arange(3000)], weights=weights)
    groups = Bags(np.arange(3000).reshape(3, 1000), labels=["May", "June", "July"], weights=weights)
    [found] = weights_findings(whole, groups, weight="views")
    assert found.severity == "warning"
    assert found.sentence == (
        "11 of 3,000 instances carry half of the views: the effective size is 40. In 1 of 3 groups, fewer than 20 "
        "instances do (May)."
    )
    assert is_dominated(groups).tolist() == [True, False, False]


def test_other_weights_are_no_problem():
    assert weights_findings(Bags([np.arange(30)])) == []
    [equal] = weights_findings(Bags([np.arange(30)], weights=[2.0] * 29 + [0.0]))
    assert equal.severity == "ok"
    assert "1 instance has no weight; such instances do not count." in equal.sentence
    [uneven] = weights_findings(Bags([np.arange(1000)], weights=np.repeat([1.0, 30.0], [950, 50])))
    assert uneven.severity == "note"


def test_a_diagnosis_is_about_shares_of_the_weight():
    fitted = EMQ().fit(*Gaussians().draw([0.5, 0.5], 600, rng=0))
    pool, codes = Gaussians().draw([0.5, 0.5], 600, rng=1)
    found = diagnose(fitted, pool, weights=np.where(codes == 1, 5.0, 1.0), resamples=49)
    assert found["prevalence"].severity == "note"
    assert abs(found["prevalence"].numbers["estimate"] - 5 / 6) < 0.08 or found["prevalence"].numbers["estimate"] < 0.25
    assert found["weights"].numbers["n"] == 600
    assert diagnose(fitted, pool, resamples=49)["prevalence"].severity == "ok"


def test_rows_that_stand_for_several_instances_count_as_these():
    weights = np.repeat([1.0, 30.0, 1.0], [900, 50, 40])
    counts, sums, squares = np.array([900, 50, 40]), np.array([900.0, 1500, 40]), np.array([900.0, 45000, 40])
    merged = Bags([[0, 1, 2]], weights=sums, merged=Merged(counts, squares, np.zeros(3)))
    [found], [expected] = weights_findings(merged), weights_findings(Bags([np.arange(990)], weights=weights))
    assert str(found) == str(expected)
    alike = Merged(counts, counts.astype(float), np.zeros(3))
    [found] = weights_findings(Bags([[0, 1, 2]], weights=counts, merged=alike))
    assert found.severity == "ok"
