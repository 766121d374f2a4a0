"""What a report says of shares, by hand-made numbers."""

from dataclasses import replace

import numpy as np
import pytest

from quanet.data.periods import Key
from quanet.errors import InvalidSetting
from quanet.evaluation.findings import Diagnosis
from quanet.report.charts import trend_figure
from quanet.report.groups import class_rows, group_rows, shares_table, trend_grid, trend_note
from quanet.report.phrases import share_entry
from quanet.report.predict import group_section, summarize_shares, trend_section
from quanet.report.time_series import start_of, time_key, time_series
from tests.report.made_answers import by_product, interval, made_shares, monthly, monthly_by_product

CLASSES = np.array(["negative", "positive"])


def three():
    """Three groups with shares that are easy to see."""
    positive, sizes = np.array([0.2, 0.5, 0.9]), np.array([400, 400, 400])
    return replace(
        by_product(3),
        groups=(("camera",), ("phone",), ("watch",)),
        sizes=sizes,
        interval=interval(np.column_stack([1 - positive, positive]), sizes, classes=CLASSES),
        counted=np.column_stack([1 - positive, positive]) * 0.8 + 0.1,
        total=interval(np.array([0.47, 0.53]), 1200, classes=CLASSES),
        total_counted=np.array([0.5, 0.5]),
        small=np.array([False, False, False]),
    )


def test_the_answer_names_shares_intervals_and_where():
    shares = made_shares()
    low, high = 100 * shares.total.lower[1], 100 * shares.total.upper[1]
    assert summarize_shares(shares).answer.startswith(
        f"positive {100 * shares.total.estimate[1]:.1f} % ({low:.1f} to {high:.1f} %) and negative "
    )
    assert summarize_shares(shares).answer.endswith("of 2,431 instances in new.csv.")
    assert summarize_shares(shares, focus="negative").answer.startswith("negative ")
    assert "positive" not in summarize_shares(shares, focus="negative").answer
    many = summarize_shares(made_shares(classes=tuple("abcdefgh"))).answer
    assert "and 5 more classes of 2,431 instances" in many


def test_an_unknown_class_is_named():
    with pytest.raises(InvalidSetting, match=r"Unknown class 'maybe'\. Choose from 'negative', 'positive'"):
        summarize_shares(made_shares(), focus="maybe")


def test_groups_are_told_apart_by_their_intervals():
    # Half a width is 1.2 / sqrt(400) = 0.06.
    section = group_section(three())
    assert section.title == "By product"
    assert section.paragraphs[0] == (
        "positive: highest in watch with 90.0 % (84.0 to 96.0 %), lowest in camera with 20.0 % (14.0 to 26.0 %); "
        "their intervals do not overlap."
    )
    assert section.paragraphs[1] == ("2 of 3 groups differ clearly from the total share of positive, 53.0 %.")


def test_the_plain_count_stands_beside_the_estimate():
    sections = {section.title: section for section in summarize_shares(three()).sections}
    assert sections["Total"].paragraphs == (
        "A plain count of predicted labels gives 50.0 % for negative: 3.0 points more than the corrected estimate.",
    )


def test_a_table_has_every_group_and_marks_small_ones():
    shares = monthly(6)
    table = shares_table(shares, truth=shares.interval.estimate)
    assert [name for name, _ in table.rows] == [group[0] for group in shares.groups]
    assert [entries[-1].text for _, entries in table.rows] == ["few" if small else "" for small in shares.small]
    assert table.corner == "date (month)"
    assert [column.title for column in table.columns] == [
        "n",
        "negative",
        "positive",
        "positive, counted",
        "true positive",
        "note",
    ]
    for _, entries in table.rows:
        assert entries[2].text == entries[4].text


@pytest.mark.parametrize(
    ("text", "period", "start"),
    [
        ("2024-02-29", "day", "2024-02-29"),
        ("2020-W53", "week", "2020-12-28"),
        ("2024-12", "month", "2024-12-01"),
        ("2024-Q4", "quarter", "2024-10-01"),
        ("1999", "year", "1999-01-01"),
        ("unknown", "month", "None"),
        ("2024-13", "month", "None"),
    ],
)
def test_a_period_starts_where_the_calendar_says(text, period, start):
    assert str(start_of(text, period)) == start


def test_panels_are_for_what_is_not_time_largest_first():
    shares = monthly_by_product(6)
    assert time_key(shares) == 1
    grid = trend_grid(shares)
    found = time_series(shares)
    sizes = [int(shares.sizes[series.positions].sum()) for series in found]
    assert sizes == sorted(sizes, reverse=True)
    assert [panel.title for panel in grid.panels] == [series.title for series in found]
    for panel, series in zip(grid.panels, found, strict=True):
        line, counted = panel.lines
        np.testing.assert_allclose(line.y, shares.interval.estimate[series.positions, 1])
        np.testing.assert_allclose(counted.y, shares.counted[series.positions, 1])
        assert (np.diff(line.x) > np.timedelta64(0)).all()
    assert grid.mark is not None
    assert grid.mark[0] == pytest.approx(shares.total.estimate[1])


def test_several_classes_without_other_keys_have_a_panel_each():
    shares = monthly(5, classes=tuple("abc"))
    order = np.argsort(-shares.total.estimate)
    assert [panel.title for panel in trend_grid(shares).panels] == [str(shares.classes[c]) for c in order]
    assert len(trend_grid(shares, focus="a").panels) == 1
    assert trend_note(shares) == ""


def test_what_is_too_much_for_panels_is_said():
    shares = monthly_by_product(2, products=[f"p{i}" for i in range(20)], classes=tuple("abcdef"))
    assert len(trend_grid(shares).panels) == 12
    assert trend_note(shares) == (
        "Shown: the 12 largest of 20 groups and the 4 most common of 6 classes; the table has all."
    )


def test_a_chart_has_no_more_points_than_a_page_should_carry():
    days = [str(np.datetime64("2020-01-01") + day) for day in range(1500)]
    one = made_shares(keys=[("date", "day")], groups=[(day,) for day in days], classes=tuple("abc"))
    assert len(trend_grid(one).panels) == 2
    assert trend_note(one) == "Shown: the 2 most common of 3 classes; the table has all."
    both = made_shares(
        keys=[("shop",), ("date", "day")], groups=[(s, day) for s in "xyz" for day in days], classes=tuple("abc")
    )
    assert [len(panel.lines) for panel in trend_grid(both).panels] == [1, 1]
    assert trend_note(both) == "Shown: the 2 largest of 3 groups and the most common of 3 classes; the table has all."


def test_dates_that_are_none_leave_a_chart_of_groups():
    shares = replace(monthly(3), groups=(("early",), ("late",), ("later",)))
    assert summarize_shares(shares).sections[0].title == "By date (month)"
    assert len(trend_figure(shares).axes[0].get_yticklabels()) == 3


def test_the_truth_stands_beside_where_it_is_known():
    shares = monthly(4)
    [panel] = trend_grid(shares, truth=shares.counted).panels
    assert [line.name for line in panel.lines] == ["estimate", "plain count", "truth"]
    np.testing.assert_allclose(panel.lines[2].y, shares.counted[:, 1])
    section = trend_section(shares, truth=shares.counted)
    assert section.charts[0].table.columns[-2].title == "true positive"


def test_what_is_not_known_is_left_out():
    shares = replace(three(), diagnosis=Diagnosis([]))
    summary = summarize_shares(shares)
    assert "Can it be believed?" not in [section.title for section in summary.sections]
    assert "gravest finding" not in dict(summary.facts)
    assert share_entry(np.nan, np.nan, np.nan).text == "--"


def test_rows_are_ordered_by_share():
    rows = group_rows(three(), marks={"truth": three().counted})
    assert rows.labels == ("watch", "phone", "camera")
    assert rows.asides[0] == "n = 400"
    np.testing.assert_allclose(rows.marks["truth"][:, 0], [0.82, 0.5, 0.26])
    classes = class_rows(three())
    assert classes.labels == ("positive", "negative")


def test_groups_whose_dates_are_none_are_in_the_table_alone():
    shares = replace(monthly(3), keys=(Key("date", "month"),), groups=(("2024-01",), ("2024-02",), ("not a month",)))
    [panel] = trend_grid(shares).panels
    assert len(panel.lines[0].y) == 2
    assert len(shares_table(shares).rows) == 3


def alike(share):
    """Three groups with the same share of positive as the total, and as the plain count."""
    both = np.array([1 - share, share])
    sizes = np.array([400, 400, 400])
    return replace(
        three(),
        interval=interval(np.tile(both, (3, 1)), sizes, classes=CLASSES),
        counted=np.tile(both, (3, 1)),
        total=interval(both, 1200, classes=CLASSES),
        total_counted=both + np.array([1e-5, -1e-5]),
    )


@pytest.mark.parametrize("share", [0.0, 0.00002, 0.3, 1.0])
def test_nothing_is_said_of_groups_that_look_alike(share):
    shares = alike(share)
    assert group_section(shares).paragraphs == ()
    [total] = [section for section in summarize_shares(shares).sections if section.title == "Total"]
    assert total.paragraphs == ()


def test_groups_that_differ_by_chance_are_counted_and_those_expected_if_there_are_any():
    def differing(number, groups):
        positive = np.where(np.arange(groups) < number, 0.9, 0.5) + 0.001 * (np.arange(groups) % 2)
        sizes = np.full(groups, 400)
        shares = replace(
            by_product(groups),
            interval=interval(np.column_stack([1 - positive, positive]), sizes, classes=CLASSES),
            total=interval(np.array([0.5, 0.5]), 400 * groups, classes=CLASSES),
            small=np.zeros(groups, dtype=bool),
        )
        return group_section(shares).paragraphs[1]

    total = "clearly from the total share of positive, 50.0 %"
    assert differing(0, 5) == f"None of 5 groups differs {total}."
    assert differing(1, 5) == f"1 of 5 groups differs {total}."
    assert differing(5, 5) == f"All 5 groups differ {total}."
    assert differing(2, 14) == f"2 of 14 groups differ {total}; by chance alone, about 1 would."


def test_a_class_that_is_a_number_does_not_follow_a_number():
    shares = three()
    numbers = np.array(["1", "5"])
    totals = replace(shares.total, classes=numbers)
    shares = replace(shares, classes=numbers, interval=replace(shares.interval, classes=numbers), total=totals)
    summary = summarize_shares(shares)
    assert summary.answer.startswith("class 5: 53.0 % (")
    sentences = " ".join(sentence for section in summary.sections for sentence in section.paragraphs)
    assert "gives 50.0 % for class 1: 3.0 points more" in sentences
    assert "class 5: highest in watch" in sentences


def test_a_method_that_counts_no_labels_says_nothing_of_a_plain_count():
    [total] = [
        section
        for section in summarize_shares(replace(three(), total_counted=np.full(2, np.nan))).sections
        if section.title == "Total"
    ]
    assert total.paragraphs == ()


def test_a_sum_of_weights_has_no_exponent():
    effective = np.array([300, 300, 300])
    shares = three()
    weighted = replace(
        shares,
        weight="Views",
        totals=np.array([2_000_000.0, 700_000.0, 10_600.0]),
        interval=replace(shares.interval, effective_sizes=effective),
        total=replace(shares.total, effective_sizes=np.array(900)),
    )
    assert dict(summarize_shares(weighted).facts)["Views"] == "2.7 million"


def test_one_group_is_not_called_groups():
    one = replace(
        three(),
        groups=(("camera",),),
        sizes=np.array([400]),
        interval=interval(np.array([[0.4, 0.6]]), np.array([400]), classes=CLASSES),
        counted=np.array([[0.4, 0.6]]),
        small=np.array([True]),
    )
    assert ("group by product", "1") in summarize_shares(one).facts
    everything = replace(three(), small=np.ones(3, dtype=bool))
    assert ("groups by product, all of them small", "3") in summarize_shares(everything).facts
