"""The reports of evaluations, comparisons, corrections and monitors."""

from dataclasses import replace

import numpy as np
import pytest

from quanet.errors import InvalidData
from quanet.evaluation.monitor_batches import Change
from quanet.labels.judge_groups import ErrorTest
from quanet.report.bag_charts import coverage_chart
from quanet.report.compare import summarize_comparison
from quanet.report.correct import summarize_correction
from quanet.report.coverage_section import coverage_sentence
from quanet.report.evaluate import bag_rows, summarize_evaluation
from quanet.report.monitor import summarize_history
from tests.report.made_answers import (
    made_comparison,
    made_correction,
    made_evaluation,
    made_history,
    made_results,
    with_drift,
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
        f"EMQ is off by {points(own)} percentage points on average over 88 bags from test.csv; a plain count of "
        f"predicted labels is off by {points(counted)} points, {factor:.1f} times as much."
    )
    facts = dict(summary.facts)
    assert facts["bags of 500"] == "88"
    assert facts["smallest possible error of an unbiased method"] == "0.80 points"
    assert facts["of the 95 % intervals contain the truth"] == f"{100 * evaluation.covered.mean():.1f} %"
    assert [section.title for section in summary.sections][:4] == [
        "Estimates and true shares",
        "Errors",
        "Error by shift",
        "Do the intervals contain the truth?",
    ]
    [errors] = summary.sections[1].tables
    assert errors.rows[0][1][0].text == f"{own.error().mean():.4f}"
    assert errors.rows[0][1][0].best


def test_an_evaluation_compares_intervals_with_and_without_drift():
    plain = made_evaluation()
    found = with_drift(plain, ["trusted", "widened", "widened", "refused"])
    summary = summarize_evaluation(found)
    [section] = [section for section in summary.sections if section.title == "Drift"]
    assert section.paragraphs[0].startswith(
        "States of the bags: 25 % trusted, 50 % widened, 25 % refused. The cost of drift is estimated from"
    )
    [(_, (coverage, width)), (_, (plain_coverage, plain_width))] = section.tables[0].rows
    assert coverage.text == f"{100 * found.covered.mean():.1f} %"
    assert plain_coverage.text == f"{100 * plain.covered.mean():.1f} %"
    widths = [100 * plain.interval.width.mean() + extra for extra in (4, 0)]
    assert [width.text, plain_width.text] == [f"{value:.1f} points" for value in widths]
    data = summary.data()["drift"]
    assert data["states"] == {"trusted": 0.25, "few rows": 0, "widened": 0.5, "refused": 0.25, "unknown": 0}
    assert data["with"]["coverage"] >= data["without"]["coverage"]
    assert {"drift", "state"} <= set(bag_rows(found).columns)


def test_intervals_with_drift_are_not_called_too_wide():
    covered = np.ones((400, 2))
    assert "wider than necessary" in coverage_sentence(covered, 0.95)
    assert coverage_sentence(covered, 0.95, with_drift=True) == (
        "100.0 % of the 95 % intervals contain the truth. All bags share the bias of this file, so that this may "
        "exceed 95 % by far."
    )


def test_an_evaluation_without_drift_does_not_mention_it_and_unknown_drift_is_explained():
    summary = summarize_evaluation(made_evaluation())
    assert "Drift" not in [section.title for section in summary.sections]
    assert summary.data()["drift"] is None
    unknown = summarize_evaluation(with_drift(made_evaluation(), ["unknown"], "the model is old"))
    [section] = [section for section in unknown.sections if section.title == "Drift"]
    assert section.paragraphs == ("Unknown, so that intervals do not include it: the model is old.",)
    assert not section.tables


def test_a_plain_count_has_nothing_beside_it():
    evaluation = made_evaluation()
    counted = replace(evaluation, results={"CC": evaluation.results["CC"]}, limit=None, source="")
    answer = summarize_evaluation(counted).answer
    assert answer.startswith("CC is off by ")
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
    ("inside", "bags", "words"),
    [
        (160, 200, "80.0 % of the 95 % intervals contain the truth, fewer than expected (exact binomial test over 200"),
        (190, 200, "does not differ significantly from 95 % (exact binomial test over 200 bags, p = 1.000)."),
        (200, 200, "more than expected (exact binomial test over 200 bags, p < .001): the intervals are wider"),
        (11, 11, "p = 1.000). So few bags cannot show whether intervals are too wide."),
        (9, 11, "does not differ significantly"),
        (6, 11, "fewer than expected"),
    ],
)
def test_coverage_is_judged_only_where_a_test_says_more_than_chance(inside, bags, words):
    covered = np.repeat(np.arange(bags)[:, None] < inside, 2, axis=1).astype(float)
    assert words in coverage_sentence(covered, 0.95)


def test_a_comparison_names_the_best_and_those_as_good():
    comparison = made_comparison(methods=5)
    summary = summarize_comparison(comparison)
    best, counted = comparison.results["QuaNet"], comparison.results["CC"]
    assert summary.answer == (
        f"QuaNet has the smallest AE of 5 methods ({comparison.errors['ae'][0]:.4f}): it is off by {points(best)} "
        f"percentage points on average, a plain count by {points(counted)} points; EMQ may be as good."
    )
    assert (
        summary.sections[0].paragraphs[0].startswith("No significant difference from QuaNet: EMQ (paired t-test of AE")
    )
    assert summary.sections[1].paragraphs == ("SVMQ: it is for two classes.",)
    table = summary.sections[0].charts[0].table
    assert [name for name, _ in table.rows] == list(comparison.results)
    assert [entries[1].text for _, entries in table.rows] == ["--", ".400", "< .001", "< .001", "< .001"]
    assert summary.figures()["p_values"]["ae"]["EMQ"] == 0.4


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


def test_one_bag_is_no_test():
    comparison = made_comparison(methods=3)
    alone = replace(comparison, p_values={"ae": np.full(3, np.nan)}, failed={}, limit=None)
    summary = summarize_comparison(alone)
    assert summary.sections[0].paragraphs[0] == "Differences are not tested: a paired test needs at least two bags."
    assert "significantly" not in summary.answer


def test_a_correction_stands_beside_the_judge():
    summary = summarize_correction(made_correction())
    assert summary.answer == (
        "good: 67.5 % (65.5 to 69.5 %) of 3,000 instances in judged.csv, corrected with 200 human labels; "
        "the judge's uncorrected rate is 64.0 %."
    )
    whole, groups, rates = summary.sections
    assert whole.paragraphs == (
        "The judge's rate of bad is 36.0 %: 3.5 points above the corrected rate.",
        "The human labels only show how the judge errs.",
    )
    assert groups.title == "By model"
    assert [name for name, _ in groups.charts[0].table.rows] == [f"model {i}" for i in range(5)]
    assert [[entry.text for entry in entries] for _, entries in rates.tables[0].rows] == [
        ["90.0", "10.0"],
        ["15.0", "85.0"],
    ]


def test_a_correction_headlines_the_class_asked_for_and_says_what_is_assumed():
    summary = summarize_correction(made_correction(), focus="bad")
    assert summary.answer.startswith("bad: 32.5 % ")
    assert summary.figures()["class"] == summary.data()["class"] == "bad"
    groups = summary.sections[1]
    assert "Highest rate of bad: " in groups.charts[0].alt
    assert "Corrected by their own human labels: 4 of 5 groups." in groups.paragraphs
    assert [entries[1].text for _, entries in groups.charts[0].table.rows] == ["all", *["own"] * 4]
    assert not summary.cautions
    differing = replace(made_correction(), errors=ErrorTest(0.001, np.linspace(0.001, 1, 5)))
    assert "model 0" in summarize_correction(differing).cautions[0].sentence


def test_scores_have_no_rates_and_no_judge_beside():
    summary = summarize_correction(made_correction(groups=1, scores=True))
    assert [section.title for section in summary.sections] == ["All together"]
    assert "uncorrected" not in summary.answer
    assert [entries[1].text for _, entries in summary.sections[0].charts[0].table.rows] == ["--", "--"]


def test_many_groups_of_a_correction_are_in_the_table_alone():
    summary = summarize_correction(made_correction(groups=40))
    assert summary.sections[1].paragraphs[-1] == "The chart shows the 30 largest of 40 groups; the table shows all."
    assert len(summary.sections[1].charts[0].table.rows) == 40


def test_a_history_gives_the_date_and_the_levels_before_and_after():
    history = made_history(since=np.datetime64("2026-03-14"))
    summary = summarize_history(history)
    assert summary.answer.startswith("Alarm: yes changed from 20.0 % to 35.0 % at 2026-03-14; the newest estimate is ")
    assert summary.cautions[0].severity == "alarm"
    no = summarize_history(history, focus="no")
    assert no.answer.startswith("Alarm: no changed from 80.0 % to 65.0 %")
    assert no.figures()["class"] == "no"
    first = Change(np.datetime64("2026-03-05"), np.datetime64("2026-03-06"), np.array([0.7, 0.3]), np.array([0.8, 0.2]))
    both = summarize_history(replace(history, changes=(first, *history.changes)))
    assert "2 changes. yes changed from 30.0 % to 20.0 % at 2026-03-05 and to 35.0 % at 2026-03-14" in both.answer
    assert [name for name, _ in both.sections[1].tables[0].rows] == ["2026-03-05", "2026-03-14"]
    assert "2 changes, the last since 2026-03-14" in both.cautions[0].sentence


def test_a_change_that_drift_may_explain_is_a_note():
    history = made_history(since=np.datetime64("2026-03-14"))  # from 20 to 35 %
    [change] = history.changes
    large, small = (replace(history, changes=(replace(change, cost=np.full(2, cost)),)) for cost in (0.2, 0.1))
    summary = summarize_history(large)
    [finding] = [one for one in summary.cautions if one.name == "drift"]
    assert finding.severity == "note"
    assert finding.sentence == (
        "The change since 2026-03-14 may be drift: no changed by 15.0 points, and drift may cost up to 20.0 points."
    )
    assert summary.sections[1].tables[0].rows[0][1][-1].text == "20.0 points"
    assert summary.figures()["changes"][0]["may_be_drift"]
    for other in (small, history):
        assert not [one for one in summarize_history(other).cautions if one.name == "drift"]
    assert summarize_history(history).sections[1].tables[0].rows[0][1][-1].text == "unknown"


def test_batches_that_vary_by_more_than_chance_are_reported():
    history = made_history()
    assert not summarize_history(history).cautions
    narrow = replace(history, batch_lower=history.baseline - 0.001, batch_upper=history.baseline + 0.001)
    [caution] = summarize_history(narrow).cautions
    assert "of 30 batches are outside the range that chance explains, instead of about 2" in caution.sentence
    assert "set a tolerance of about 0.016" in caution.advice


def test_a_history_without_batches_cannot_be_reported():
    history = made_history()
    with pytest.raises(InvalidData, match="no batches"):
        summarize_history(replace(history, dates=history.dates[:0]))


def test_a_history_without_changes_gives_the_newest_share():
    quiet = summarize_history(made_history(), focus="no")
    assert quiet.answer.startswith("No change in 30 batches: no is at ")
    assert not quiet.cautions
    assert quiet.sections[-1].findings[0].severity == "ok"


def test_batches_without_dates_and_many_classes_have_a_history_too():
    history = made_history(days=6)
    three = np.repeat(history.estimate[:, :1], 3, axis=1) / 3
    names = ("estimate", "windowed", "lower", "upper", "weighted", "baseline", "batch_lower", "batch_upper")
    parts = dict.fromkeys(names, three)
    summary = summarize_history(replace(history, classes=np.array(list("abc")), dates=np.arange(6), **parts))
    assert [name for name, _ in summary.sections[0].charts[0].table.rows] == [str(i) for i in range(6)]
    assert summary.figures()["dates"] == [str(i) for i in range(6)]
