"""What findings say, by hand-made numbers: nothing that looks the same, no 0.0 %, no exponent; weights and copies."""

import numpy as np
import pytest

from quanet import EMQ, Bags, Gaussians, diagnose
from quanet.arrays import Merged
from quanet.evaluation.contents import training_overlap_findings, unknown_words_finding
from quanet.evaluation.findings import (
    Evidence,
    bag_size,
    carriers_of_half,
    classifier,
    confidence,
    is_dominated,
    prevalence,
    prior_shift,
    weights_findings,
)
from quanet.evaluation.prior_shift import MixtureFit

CODES = np.repeat([0, 1], 50)


def evidence(**changes):
    """500 instances; a classifier with posteriors of .9 and .1."""
    held_out = np.where(CODES[:, None] == np.arange(2), 0.9, 0.1)
    facts = {
        "names": ["1", "5"],
        "estimate": np.array([0.9999, 0.0001]),
        "prior": np.array([0.4, 0.6]),
        "bag": np.tile([0.9, 0.1], (500, 1)),
        "held_out": held_out,
        "codes": CODES,
        "alpha": 0.05,
        "half_width": 0.03,
    }
    return Evidence(**facts | changes)


def fit(low, high, *, surplus=0.124, p=0.001):
    return MixtureFit(p, 1.0, np.array([0.5, 0.5]), (1, low, high), surplus, 0.05)


def test_a_range_of_posteriors_whose_ends_look_the_same_is_one_number():
    assert (
        "posterior of '5' near 0.99 is 12.4 points higher than expected"
        in prior_shift(evidence(), fit(0.9871, 0.9912)).sentence
    )
    assert (
        "posterior of '5' between 0.50 and 0.99 is 12.4 points lower than expected"
        in prior_shift(evidence(), fit(0.5, 0.99, surplus=-0.124)).sentence
    )


def test_p_values_have_no_exponent():
    assert "(p < .001)" in prior_shift(evidence(), fit(0.2, 0.3, p=3e-17)).sentence
    assert prior_shift(evidence(), fit(0.2, 0.3, p=0.2)).sentence.endswith("(p = .200).")


def test_half_widths_are_in_points():
    assert prior_shift(evidence(half_width=0.08), fit(0.2, 0.3)).advice == (
        "The interval (±8.0 points) includes an error of this size."
    )
    assert "exceed the interval (less than ±0.01 points)" in prior_shift(evidence(half_width=0.0), fit(0.2, 0.3)).advice


def test_a_share_that_is_not_zero_is_not_shown_as_zero():
    sentence = prevalence(evidence()).sentence
    assert "'5': below 0.1 % here, 60.0 % in the training data; p" in sentence


def test_a_classifier_is_compared_with_guessing():
    found = classifier(evidence(), np.array([0.02, 0.02]))
    assert "(balanced accuracy 100.0 %, by guessing 50.0 %)" in found.sentence
    assert found.numbers["condition"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("deviation", "unit", "sentence"),
    [
        (1e-6, "instance", "500 instances are enough."),
        (0.01, "instance", "500 instances are enough: the margin of error is at least ±2.0 points at 95 % confidence."),
        (
            *(0.04, "effective instance"),
            "500 effective instances are too few: the margin of error is at least ±7.8 points at 95 % confidence.",
        ),
    ],
)
def test_a_margin_of_error_is_named_if_there_is_one(deviation, unit, sentence):
    assert bag_size(evidence(unit=unit), np.full(2, deviation)).sentence == sentence


def test_one_instance_is_too_few():
    found = bag_size(evidence(bag=np.array([[0.9, 0.1]])), np.full(2, 0.4))
    assert found.sentence.startswith("1 instance is too few: ")


def test_entropies_that_look_the_same_are_compared_in_percent():
    sharp = np.where(CODES[:, None] == np.arange(2), 0.99, 0.01)
    found = confidence(evidence(held_out=sharp, bag=np.tile([0.9885, 0.0115], (500, 1))), np.array([1.0, 0.0]))
    assert found.name == "confidence"
    assert "the entropy of its posteriors is 112 % of what was expected (p < .001)." in found.sentence


def test_so_few_training_texts_that_they_hardly_matter_need_no_advice():
    [one] = training_overlap_findings(1, 3000)
    assert str(one) == "note: 1 of the 3,000 texts is a training text. So few hardly change the shares."
    [some] = training_overlap_findings(1, 80)
    assert str(some) == (
        "warning: 1 of the 80 texts (1.2 %) is a training text. The model was fitted to its label, so it is more "
        "confident about it than about new texts. Leave it out, and add its label to the result."
    )
    [many] = training_overlap_findings(40, 80)
    assert many.sentence == "40 of the 80 texts (50.0 %) are training texts."
    assert many.advice.endswith("Leave them out, and add their labels to the result.")
    assert training_overlap_findings(0, 80) == []


def test_unknown_words_are_below_the_last_digit():
    assert "below 0.1 % of the words are unknown" in unknown_words_finding(0.0002).sentence


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
