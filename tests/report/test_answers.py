"""What reports say of evaluations, comparisons, corrections and courses."""

from dataclasses import replace

import numpy as np
import pytest

from quanet.report.bagged import coverage_chart
from quanet.report.comparison import summarize_comparison
from quanet.report.corrections import summarize_correction
from quanet.report.course import summarize_course
from quanet.report.evaluation import _coverage, summarize_evaluation
from tests.report.made_answers import (
    made_comparison,
    made_correction,
    made_course,
    made_evaluation,
    made_results,
)


def points(results):
    error = 100 * results.error().mean()
    return f"{error:.1f}" if error >= 0.95 else f"{error:.2f}"


def test_an_evaluation_says_how_far_off_beside_a_plain_count():
    evaluation = made_evaluation()
    summary = summarize_evaluation(evaluation)
    own, counted = evaluation.results["EMQ"], evaluation.results["CC"]
    factor = counted.error().mean() / own.error().mean()
    assert summary.answer == (
        f"EMQ errs by {points(own)} percentage points on average over 88 bags from test.csv; a plain count of "
        f"predicted labels errs by {points(counted)} points, {factor:.1f} times as much."
    )
    facts = dict(summary.facts)
    assert facts["bags of 500"] == "88"
    assert facts["least error of an unbiased method"] == "0.80 points"
    assert facts["of the 95 % intervals hold the truth"] == f"{100 * evaluation.covered.mean():.1f} %"
    assert [section.title for section in summary.sections][:3] == [
        "Estimates against the truth",
        "Error by shift",
        "Do the intervals hold the truth?",
    ]
    [errors] = summary.sections[1].tables
    assert errors.rows[0][1][0].text == f"{own.error().mean():.4f}"
    assert errors.rows[0][1][0].best


def test_a_plain_count_has_nothing_beside_it():
    evaluation = made_evaluation()
    counted = replace(evaluation, results={"CC": evaluation.results["CC"]}, limit=None, source="")
    answer = summarize_evaluation(counted).answer
    assert answer.startswith("CC errs by ")
    assert answer.endswith(" over 88 bags.")


def test_coverage_is_counted_by_the_true_share():
    results = made_results(1.0, 0.01)
    covered = np.ones_like(results.truth)
    covered[results.truth[:, 1] < 0.1] = 0.0  # the eight bags at .01
    table = coverage_chart(results, covered, 0.95).table
    found = {name: (entries[0].text, entries[1].text) for name, entries in table.rows}
    assert found["0 to 10"] == ("0.0", "8")
    assert found["10 to 20"] == ("100.0", "8")
    assert [name for name, _ in table.rows][-1] == "90 to 100"


@pytest.mark.parametrize(
    ("covered", "words"),
    [(0.8, "they promise more than they keep"), (0.95, "hold the truth."), (0.999, "wider than they need be")],
)
def test_coverage_is_judged_in_words(covered, words):
    assert words in _coverage(covered, 0.95)


def test_a_comparison_names_the_best_and_those_as_good():
    comparison = made_comparison(methods=5)
    summary = summarize_comparison(comparison)
    best, counted = comparison.results["QuaNet"], comparison.results["CC"]
    assert summary.answer == (
        f"QuaNet is the best of 5 methods: it errs by {points(best)} percentage points on average, a plain count by "
        f"{points(counted)} points; EMQ may be as good."
    )
    assert summary.sections[0].paragraphs[0].startswith("No significant difference from QuaNet: EMQ (paired test of AE")
    assert "SVMQ could not run on these data: it is for two classes." in summary.sections[0].paragraphs
    table = summary.sections[0].charts[0].table
    assert [name for name, _ in table.rows] == list(comparison.results)
    assert [entries[1].text for _, entries in table.rows] == ["--", ".400", "< .001", "< .001", "< .001"]
    assert summary.data["p_values"]["ae"]["EMQ"] == 0.4


def test_of_many_classes_the_first_methods_estimates_are_shown():
    summary = summarize_comparison(made_comparison(k=3, classes=("a", "b", "c"), methods=3))
    [chart] = summary.sections[-1].charts
    assert chart.caption.startswith("Mean estimate of QuaNet at every true share of a class")
    assert "for classes, by QuaNet" in chart.alt


def test_a_comparison_without_equals_says_so():
    comparison = made_comparison(methods=3)
    worse = replace(comparison, p_values={"ae": np.array([np.nan, 0.01, 0.01])}, failed={}, limit=None)
    summary = summarize_comparison(worse)
    assert summary.sections[0].paragraphs[0].startswith("All others are significantly worse than QuaNet")
    assert "may be as good" not in summary.answer


def test_a_correction_stands_beside_the_judge():
    summary = summarize_correction(made_correction())
    assert summary.answer == (
        "good 67.5 % (65.5 to 69.5 %) of 3,000 instances in judged.csv, corrected by 200 human labels; "
        "the judge alone says 64.0 %."
    )
    whole, groups, rates = summary.sections
    assert whole.paragraphs == (
        "The judge says 36.0 % bad: 3.5 points more than the corrected rate.",
        "Human labels only tell how the judge errs, which is taken to be the same everywhere.",
    )
    assert groups.title == "By model"
    assert [name for name, _ in groups.charts[0].table.rows] == [f"model {i}" for i in range(5)]
    assert [[entry.text for entry in entries] for _, entries in rates.tables[0].rows] == [
        ["90.0", "10.0"],
        ["15.0", "85.0"],
    ]


def test_scores_have_no_rates_and_no_judge_beside():
    summary = summarize_correction(made_correction(groups=1, scores=True))
    assert [section.title for section in summary.sections] == ["All together"]
    assert "judge alone" not in summary.answer
    assert [entries[1].text for _, entries in summary.sections[0].charts[0].table.rows] == ["--", "--"]


def test_many_groups_of_a_correction_are_in_the_table_alone():
    summary = summarize_correction(made_correction(groups=40))
    assert summary.sections[1].paragraphs == ("Shown: the 30 largest of 40 groups; the table has all.",)
    assert len(summary.sections[1].charts[0].table.rows) == 40


def test_a_course_says_since_when():
    course = made_course(since=np.datetime64("2026-03-14"))
    before = np.asarray(course.dates) < course.since
    was = course.sizes[before] @ course.estimate[before, 1] / course.sizes[before].sum()
    summary = summarize_course(course)
    assert summary.answer.endswith(f"at 2026-03-30; it has changed since 2026-03-14, from {100 * was:.1f} %.")
    assert [finding.severity for finding in summary.cautions] == ["alarm"]
    quiet = summarize_course(made_course(), focus="no")
    assert quiet.answer.startswith("no ")
    assert quiet.answer.endswith("no change was found in 30 batches.")
    assert not quiet.cautions
    assert quiet.sections[-1].findings[0].severity == "ok"


def test_batches_without_dates_and_many_classes_have_a_course_too():
    course = made_course(days=6)
    three = np.repeat(course.estimate[:, :1], 3, axis=1) / 3
    parts = dict.fromkeys(("estimate", "windowed", "lower", "upper", "weighted"), three)
    summary = summarize_course(replace(course, classes=np.array(list("abc")), dates=np.arange(6), **parts))
    assert [name for name, _ in summary.sections[0].charts[0].table.rows] == [str(i) for i in range(6)]
    assert summary.data["dates"] == [str(i) for i in range(6)]
