"""Pictures of a report draw what they were given, in both widths."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from quanet.report.chart_data import Grid, IntervalRows, Line, Panel
from quanet.report.charts import groups_figure, save_figure, trend_figure
from quanet.report.charts.canvas import NARROW, WIDTH, date_ticks, page_svg, share_ends, spread
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.charts.lines import lines_figure
from quanet.report.palette import LIGHT
from tests.report.made_answers import by_product, made_shares, monthly, monthly_by_product

DAYS = np.array(["2024-01-01", "2024-02-01", "2024-06-01", "2024-07-01"], dtype="datetime64[D]")


def line(**options):
    y = np.array([0.2, 0.3, 0.4, 0.5])
    return Line("a", DAYS, y, y - 0.1, y + 0.1, **options)


def drawn(ax, colour="blue"):
    return [one for one in ax.lines if one.get_color() == LIGHT[colour] and one.get_linestyle() == "-"]


def test_a_line_breaks_where_months_are_missing():
    [ax] = lines_figure(Grid((Panel((line(),)),), "date", gap=31.5)).axes
    assert [len(part.get_xdata()) for part in drawn(ax)] == [2, 2]
    [whole] = lines_figure(Grid((Panel((line(),)),), "date")).axes
    assert [len(part.get_xdata()) for part in drawn(whole)] == [4]


def test_a_point_alone_has_its_interval_as_a_line():
    [ax] = lines_figure(Grid((Panel((line(),)),), "date", gap=30)).axes
    assert len(ax.collections) == 3  # the band of June and July, and two single months
    np.testing.assert_allclose(ax.collections[0].get_segments()[0][:, 1], [0.1, 0.3])


def test_small_groups_are_hollow():
    [ax] = lines_figure(Grid((Panel((line(faint=np.array([True, False, False, False])),)),), "date")).axes
    hollow = [one for one in ax.lines if one.get_markerfacecolor() == LIGHT["paper"] and one.get_marker() == "o"]
    assert [len(one.get_xdata()) for one in hollow] == [1]


@pytest.mark.parametrize("width", [WIDTH, NARROW])
@pytest.mark.parametrize("lines", [2, 6])
def test_names_at_the_ends_of_lines_do_not_overlap(width, lines):
    x = np.linspace(0, 0.5, 5)
    same = tuple(Line(f"method {i}", x, np.full(5, 0.01 + i / 1e4), colour="blue") for i in range(lines))
    figure = lines_figure(Grid((Panel(same),), "share", "points", mark=(0.011, "limit")), width=width)
    figure.draw_without_rendering()
    [ax] = figure.axes
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == lines + 1
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_no_word_leaves_the_picture(width):
    shares = monthly_by_product(6, classes=("a class with a name that is far too long", "b", "c"))
    groups = by_product(8, classes=("a class with a name that is far too long", "b", "c"))
    for figure in (trend_figure(shares, width=width), groups_figure(groups, width=width)):
        figure.draw_without_rendering()
        edge = figure.bbox.padded(2)
        for text in figure.findobj(Text):
            if text.get_text() and not re.fullmatch(r"-?[\d.]+ %", text.get_text()):  # ticks outside are not drawn
                box = text.get_window_extent()
                assert edge.x0 <= box.x0
                assert box.x1 <= edge.x1


def test_a_trend_without_dates_is_a_chart_of_groups():
    labels = [text.get_text() for text in trend_figure(by_product(4)).axes[0].get_yticklabels()]
    assert sorted(labels) == [f"product {i}" for i in range(4)]
    classes = [text.get_text() for text in trend_figure(made_shares()).axes[0].get_yticklabels()]
    assert sorted(classes) == ["negative", "positive"]


def test_what_is_far_beyond_the_others_is_an_arrow():
    values = np.array([[0.01], [0.3]])
    rows = IntervalRows(("a", "b"), ("",), values, values - 0.005, values + 0.005, "error", unit="points", top=0.05)
    [ax] = rows_figure(rows).axes
    assert ax.get_xlim() == (0.0, 0.05)
    [arrow] = [one for one in ax.lines if one.get_marker() == ">"]
    np.testing.assert_allclose(arrow.get_xydata(), [[0.05, 0]])


def test_a_picture_is_written_the_same_every_time(tmp_path):
    for name in ("a.svg", "b.svg"):
        save_figure(trend_figure(monthly(6)), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_label_is_neither_mathematics_nor_markup():
    shares = by_product(2, classes=("$x^2$", '<b id="x">&1.23456'))
    svg = page_svg(groups_figure(shares, focus="$x^2$"), name="one", alt='"quoted" <b>')
    assert "share of $x^2$" in svg
    assert 'aria-label="&quot;quoted&quot; &lt;b&gt;"' in svg
    other = page_svg(groups_figure(shares), name="two", alt="")
    assert '&lt;b id="x"&gt;&amp;1.23456' in other


def test_letters_that_no_font_here_has_are_left_to_the_reader():
    svg = page_svg(groups_figure(by_product(2, classes=("否定", "肯定"))), name="one", alt="")
    assert "肯定" in svg


@pytest.mark.parametrize(
    ("first", "last", "most", "labels"),
    [
        ("2024-03-04", "2024-03-08", 6, ["4\nMar 2024", "5", "6", "7", "8"]),
        ("2024-01-01", "2024-12-01", 4, ["Jan\n2024", "Apr", "Jul", "Oct"]),
        ("2015-01-01", "2024-01-01", 5, ["2016", "2018", "2020", "2022", "2024"]),
        ("2024-05-17", "2024-05-17", 5, ["17\nMay 2024"]),
    ],
)
def test_dates_have_round_ticks(first, last, most, labels):
    assert date_ticks(np.datetime64(first), np.datetime64(last), most)[1] == labels


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.12))
def test_labels_never_overlap_nor_leave_nor_change_their_order(values, gap):
    places = np.array(spread(values, gap, low=0.0, high=1.0))
    order = np.argsort(values, kind="stable")
    assert (np.diff(places[order]) >= gap - 1e-9).all()
    assert places.min() >= -1e-9
    assert places.max() <= 1 + 1e-9


def test_labels_keep_their_distance_and_stay_inside():
    places = spread([0.0, 0.0, 1.0, 1.0], 0.2, low=0.0, high=1.0)
    assert places == pytest.approx([0.0, 0.2, 0.8, 1.0])


def test_an_axis_begins_at_zero_where_values_come_near_it():
    assert share_ends(0.02, 0.6)[0] == 0
    assert share_ends(0.6, 0.8) == (0.6, 0.8)
    assert share_ends(0.9, 1.0)[1] == 1.0
