"""Corrected rates: worked examples, laws, coverage by simulation, and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet import correct_rate
from quanet.errors import InvalidData, InvalidSetting
from quanet.labels.judges import correct_counts


def made(tpr, fpr, m):
    """Human labels and a judge's on them, m of each class."""
    right, wrong = round(tpr * m), round(fpr * m)
    return [1] * m + [0] * m, [1] * right + [0] * (m - right) + [1] * wrong + [0] * (m - wrong)


def test_rogan_and_gladen_by_hand():
    human, judge = made(0.9, 0.2, 1000)
    found = correct_rate([1] * 480 + [0] * 520, human, judge)
    assert found.estimate[1] == pytest.approx((0.48 - 0.2) / (0.9 - 0.2), abs=1e-12)
    # The delta method: the judged share's variance and those of the rates, over (tpr - fpr)^2.
    variance = (0.48 * 0.52 / 1000 + 0.16 * 0.09 / 1000 + 0.36 * 0.16 / 1000) / 0.49
    assert found.upper[1] - found.lower[1] == pytest.approx(2 * 1.96 * variance**0.5, rel=0.05)
    np.testing.assert_allclose(found.estimate.sum(), 1)
    np.testing.assert_allclose(found.lower, 1 - found.upper[::-1])


def test_a_judge_who_guesses_leaves_everything_open():
    found = correct_rate([1] * 500 + [0] * 500, *made(0.5, 0.5, 50))
    np.testing.assert_allclose([found.lower[1], found.upper[1]], [0, 1])


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_ends_are_reached_and_never_passed(share):
    found = correct_rate([int(share)] * 400, *made(0.9, 0.1, 40))
    assert found.estimate[1] == pytest.approx(share, abs=1e-6)
    assert found.lower[1] >= 0
    assert found.upper[1] <= 1
    assert {0.0: found.lower[1], 1.0: found.upper[1]}[share] == share
    assert 0.005 < found.upper[1] - found.lower[1] < 0.2


@settings(max_examples=10)
@given(
    st.integers(0, 300),
    st.integers(0, 30),
    st.integers(0, 30),
    st.sampled_from(["apart", "part"]),
    st.floats(0.5, 0.99),
)
def test_intervals_hold_their_estimate_within_the_simplex(positive, right, wrong, calibration, level):
    human = [1] * 30 + [0] * 30
    judge = [1] * right + [0] * (30 - right) + [1] * wrong + [0] * (30 - wrong)
    judged = [1] * positive + [0] * (300 - positive)
    found = correct_rate(judged, human, judge, level=level, calibration=calibration)
    assert (found.lower >= 0).all()
    assert (found.upper <= 1).all()
    assert (found.lower <= found.estimate + 1e-6).all()
    assert (found.estimate <= found.upper + 1e-6).all()
    wider = correct_rate(judged, human, judge, level=(1 + level) / 2, calibration=calibration)
    assert (wider.upper - wider.lower >= found.upper - found.lower - 1e-6).all()


def test_human_labels_of_the_same_source_count_as_well():
    human, judge = made(0.7, 0.3, 100)
    apart = correct_rate([1] * 500 + [0] * 500, human, judge)
    part = correct_rate([1] * 500 + [0] * 500, human, judge, calibration="part")
    assert part.upper[1] - part.lower[1] < apart.upper[1] - apart.lower[1]


@given(st.integers(0, 400), st.integers(0, 30), st.integers(0, 40))
@settings(max_examples=20)
def test_the_estimate_is_the_formula_of_rogan_and_gladen_clipped(positive, right, wrong):
    tpr, fpr = right / 30, wrong / 40
    if tpr == fpr:
        return
    human, judge = [1] * 30 + [0] * 40, [1] * right + [0] * (30 - right) + [1] * wrong + [0] * (40 - wrong)
    found = correct_rate([1] * positive + [0] * (400 - positive), human, judge)
    assert found.estimate[1] == pytest.approx(np.clip((positive / 400 - fpr) / (tpr - fpr), 0, 1), abs=1e-6)


def test_a_judge_that_was_always_right_is_believed_and_its_interval_knows_how_few_labels_say_so():
    few, many = (correct_rate([1] * 20 + [0] * 980, [0, 1] * m, [0, 1] * m) for m in (20, 2000))
    assert [few.estimate[1], many.estimate[1]] == pytest.approx([0.02, 0.02])
    assert few.lower[1] == 0  # 20 false positives are possible for a judge seen on 20 negatives
    assert 0.01 < many.lower[1] < 0.02 < many.upper[1] < 0.035


def test_the_estimate_of_more_classes_solves_the_judges_rates():
    rates = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.0, 0.2, 0.8]])
    p = np.array([0.2, 0.3, 0.5])
    bag, table = np.round(10_000 * p @ rates).astype(int), np.round(100 * rates).astype(int)
    estimate, lower, upper = correct_counts(bag[None], table[None], np.zeros((1, 3), dtype=int), level=0.95)
    np.testing.assert_allclose(estimate[0], p, atol=1e-9)
    assert ((lower < p) & (p < upper)).all()


def covered(p, rates, m, *, trials, n=1000):
    """How often each class's interval covers its share: (k,)."""
    rng = np.random.default_rng(0)
    p, rates = np.array(p), np.array(rates)
    tables = np.stack([rng.multinomial(m, row, size=trials) for row in rates], axis=1)
    bags = rng.multinomial(n, p @ rates, size=trials)
    _, lower, upper = correct_counts(bags, tables, np.zeros((trials, len(p)), dtype=int), level=0.95)
    return ((lower <= p + 1e-6) & (p - 1e-6 <= upper)).mean(axis=0)


@pytest.mark.parametrize(("tpr", "fpr", "m", "p"), [(0.8, 0.1, 30, 0.3), (0.95, 0.02, 50, 0.02), (0.7, 0.3, 50, 0.9)])
def test_the_interval_covers_as_often_as_it_says(tpr, fpr, m, p):
    assert 0.92 <= covered([1 - p, p], [[1 - fpr, fpr], [1 - tpr, tpr]], m, trials=300)[1] <= 1


@pytest.mark.no_cover
@pytest.mark.parametrize("p", [[0.2, 0.3, 0.5], [0.01, 0.04, 0.95]])
def test_three_classes_are_covered_too_though_one_dominates(p):
    rates = [[0.8, 0.1, 0.1], [0.15, 0.7, 0.15], [0.05, 0.15, 0.8]]
    assert covered(p, rates, 60, trials=100).min() >= 0.9


def test_a_problem_never_depends_on_its_neighbours():
    bags, tables = np.array([[50, 30, 20], [0, 5, 95]]), np.array([np.eye(3, dtype=int) * 20 + 2] * 2)
    own = np.array([[0, 0, 0], [1, 2, 3]])
    together = correct_counts(bags, tables, own, level=0.9)
    for at in range(2):
        alone = correct_counts(bags[at : at + 1], tables[at : at + 1], own[at : at + 1], level=0.9)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], other[at], atol=1e-9)


def test_many_classes_with_labels_of_any_type():
    human = ["a", "b", "c"] * 20
    found = correct_rate(["a"] * 50 + ["b"] * 30 + ["c"] * 20, human, human, calibration="part")
    assert found.classes.tolist() == ["a", "b", "c"]
    assert (found.lower <= found.estimate).all()
    assert (found.estimate <= found.upper).all()
    assert "a: " in str(found)
    assert "judged 50.0 %" in str(found)


def test_scores_say_more_than_labels_cut_from_them():
    rng = np.random.default_rng(0)
    human = np.repeat([0, 1], 200)
    scores = rng.normal(size=400) + human
    truth = rng.random(2000) < 0.3
    judged = rng.normal(size=2000) + truth
    by_score = correct_rate(judged, human, scores, scores=True)
    by_label = correct_rate((judged > 0.5).astype(int), human, (scores > 0.5).astype(int))
    assert by_score.lower[1] <= 0.3 <= by_score.upper[1]
    assert by_score.upper[1] - by_score.lower[1] < by_label.upper[1] - by_label.lower[1]
    assert "judged" not in str(by_score)


HUMAN, JUDGE = made(0.9, 0.1, 20)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"level": 1.5}, InvalidSetting, "level must be a number from 0"),
        ({"calibration": "some"}, InvalidSetting, "'apart' or 'part'"),
        ({"human": [1] * 40}, InvalidData, "all 40 human labels are 1|Label 0 is not one of the classes"),
        ({"human": [1] * 37 + [0] * 3}, InvalidData, "class 0 has 3 human labels"),
        ({"judge_on_human": JUDGE[1:]}, InvalidData, "human has 40 labels but judge_on_human has 39"),
        ({"judged": []}, InvalidData, "at least one"),
        ({"judged": [0, 7]}, InvalidData, "Label 7"),
        ({"judged": [0.5, np.nan], "scores": True}, InvalidData, "NaN"),
        ({"human": ["a", "b", "c", "d"] * 10, "scores": True}, InvalidData, "scores need two classes"),
    ],
)
def test_bad_input_is_named(change, error, words):
    given_ = {"judged": [0, 1] * 50, "human": HUMAN, "judge_on_human": JUDGE} | change
    with pytest.raises(error, match=words):
        correct_rate(given_.pop("judged"), given_.pop("human"), given_.pop("judge_on_human"), **given_)


def test_one_class_alone_is_refused():
    with pytest.raises(InvalidData, match=r"all 20 human labels are 1\. Add labels of another class"):
        correct_rate([1, 1], [1] * 20, [1] * 20)
