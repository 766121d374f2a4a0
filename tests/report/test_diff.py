"""What a report says of differences, by hand-made numbers."""

from dataclasses import replace

import numpy as np
import pytest

from quanet.data.periods import Key
from quanet.report.change_sentences import change_sentence, trend_sentence
from quanet.report.charts import differences_figure
from quanet.report.diff import summarize_differences
from quanet.report.render import render
from quanet.uncertainty.differences import Differences, Trend
from quanet.workflows.diff import GroupDifferences

CLASSES = np.array(["negative", "positive"])


def made(first, second, estimates, p, **more):
    """Differences of the first of two classes, with intervals of 2 points to each side."""
    estimate = np.column_stack([estimates, -np.asarray(estimates)])
    ends = {"first_estimate": np.full(estimate.shape, 0.5), "second_estimate": 0.5 + estimate}
    p = np.column_stack([p, p])
    return Differences.of(
        first, second, estimate, estimate - 0.022, estimate + 0.022, p, level=0.95, classes=CLASSES, **ends, **more
    )


def slope(value, p):
    parts = np.array([[value, -value], [value - 0.005, -value - 0.005], [value + 0.005, -value + 0.005], [p, p]])
    return Trend(*parts, 0.95, CLASSES, "2016", "2018", 3)


def two_files():
    return GroupDifferences(CLASSES, made(["2016"], ["2017"], [0.041], [0.001]), "previous", source="2016 and 2017")


def years():
    differences = made(["2016", "2017"], ["2017", "2018"], [0.041, -0.01], [0.001, 0.3])
    return GroupDifferences(
        CLASSES,
        differences,
        "previous",
        keys=(Key("date", "year"),),
        changes=made(["2016"], ["2018"], [0.031], [0.004]),
        trends={"": slope(0.016, 0.001)},
        period="year",
        small=("2015",),
    )


def products():
    notes = np.array(["", "b: far from the training data", "c: one instance: any share is possible"], dtype=object)
    differences = made(
        ["the rest"] * 3,
        ["a", "b", "c"],
        [0.2, -0.1, 0.01],
        [1e-6, 0.001, 0.5],
        notes=notes,
        drift=np.full((3, 2), 0.012),
        relative_width=np.full((3, 2), 0.8),
    )
    return GroupDifferences(CLASSES, differences, "rest", keys=(Key("product"),))


def test_the_answer_is_the_sentence_that_was_asked_for():
    summary = summarize_differences(two_files(), focus="negative")
    assert summary.answer == "negative rose by 4.1 points (1.9 to 6.3) from 2016 to 2017."
    assert summarize_differences(two_files()).answer == "positive fell by 4.1 points (1.9 to 6.3) from 2016 to 2017."


def test_several_periods_have_a_change_and_a_trend():
    summary = summarize_differences(years(), focus="negative")
    assert summary.answer == "negative rose by 3.1 points (0.9 to 5.3) from 2016 to 2018."
    said = " ".join(summary.sections[0].paragraphs)
    assert "Trend: negative rose by 1.6 points per year (1.1 to 2.1)." in said
    assert "fewer than 20 instances: 2015." in said
    assert "corrected for 2 differences" in said


def test_groups_are_named_if_their_difference_is_clear():
    summary = summarize_differences(products(), focus="negative")
    assert summary.answer == (
        "negative is 20.0 points (17.8 to 22.2) higher in a than in the rest; "
        "negative is 10.0 points (7.8 to 12.2) lower in b than in the rest."
    )
    said = " ".join(summary.sections[0].paragraphs)
    assert "20 % narrower" in said
    assert "b: far from the training data; c: one instance" in said
    table = summary.tables[0]
    assert [column.title for column in table.columns] == ["rest, %", "group, %", "difference", "p", "p, Holm", "drift"]
    assert [entry.text for entry in table.rows[0][1]] == ["50.0", "70.0", "+20.0", "< .001", "< .001", "1.2"]
    assert table.rows[0][1][2].mark == "*"
    assert table.rows[2][1][2].mark == ""


def test_nothing_clear_is_said_so():
    found = replace(products(), differences=made(["x"] * 2, ["a", "b"], [0.01, 0.0], [0.4, 1.0]), against="baseline")
    assert summarize_differences(found).answer == "None of 2 differences is clear at 95 % after Holm's correction."
    sentence = change_sentence(found.differences, 0, 0, over_time=False)
    assert sentence == "negative: no clear difference between a and x (+1.0 points, -1.2 to +3.2)."
    assert trend_sentence(slope(0.001, 0.6), 0, "month", "lamp") == (
        "Trend of lamp: negative shows no clear trend (+0.10 points per month, -0.40 to +0.60)."
    )


def test_three_classes_have_a_row_and_a_panel_each():
    estimate = np.array([[0.1, -0.1, 0.0]])
    sides = {"first_estimate": np.full((1, 3), 0.3), "second_estimate": 0.3 + estimate}
    three = Differences.of(
        ["May"], ["June"], estimate, estimate - 0.03, estimate + 0.03, [[0.001, 0.002, 0.9]], level=0.95,
        classes=list("xyz"), **sides,
    )  # fmt: skip
    found = GroupDifferences(np.array(list("xyz")), three, "previous")
    summary = summarize_differences(found)
    assert summary.answer == "x rose by 10.0 points (7.0 to 13.0) from May to June."
    assert [entries[0].text for _, entries in summary.tables[0].rows] == ["x", "y", "z"]
    # Alone, a class needs no correction for the others.
    alone = summarize_differences(found, focus="y").data()["comparisons"][0]["classes"]
    assert alone == {
        "y": {
            "first_estimate": 0.3,
            "second_estimate": 0.2,
            "difference": -0.1,
            "lower": -0.13,
            "upper": -0.07,
            "p": 0.002,
            "adjusted": 0.002,
            "drift": None,
        }
    }


@pytest.mark.parametrize("found", [two_files(), years(), products()], ids=["files", "years", "products"])
@pytest.mark.parametrize("form", ["csv", "json", "md", "html", "table"])
def test_every_format_shows_the_difference(found, form):
    text = render(summarize_differences(found, focus="negative"), form).decode()
    assert "negative" in text
    if form == "csv":
        assert text.splitlines()[0].startswith("first,second,class,first_estimate,second_estimate,difference")


def test_the_chart_has_a_line_at_zero_and_signs():
    figure = differences_figure(products(), focus="negative")
    ax = figure.axes[0]
    low, high = ax.get_xlim()
    assert low < -0.1 < 0.2 < high
    assert any(line.get_xdata()[0] == 0.0 for line in ax.lines)
    figure.canvas.draw()
    assert {"0", "+10"} <= {tick.get_text() for tick in ax.get_xticklabels()}
