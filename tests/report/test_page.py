"""A report says the same in every form, stands alone, and is read by everyone."""

import json
import re
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from quanet.errors import InvalidSetting, MissingExtra
from quanet.evaluation.findings import SEVERITIES, Finding
from quanet.report import render as page
from quanet.report.compare import summarize_comparison
from quanet.report.correct import summarize_correction
from quanet.report.evaluate import summarize_evaluation
from quanet.report.markdown import to_markdown
from quanet.report.monitor import summarize_history
from quanet.report.palette import DARK, LIGHT, SERIES, contrast
from quanet.report.predict import summarize_shares
from quanet.report.render import check_report, draw_chart, to_html, to_report_json, write_report
from quanet.report.summary import Section, Summary
from tests.report.made_answers import (
    ALARM,
    by_product,
    made_comparison,
    made_correction,
    made_evaluation,
    made_history,
    made_shares,
    monthly,
    monthly_by_product,
)

HOSTILE = "<script>alert('$1')</script>"
MANY = tuple(f"class {c:02d}" for c in range(28))


MAKERS = {
    "shares": lambda: summarize_shares(made_shares()),
    "months": lambda: summarize_shares(monthly(classes=("a", "b", "c"))),
    "products in months": lambda: summarize_shares(
        monthly_by_product(4, ("camera", "phone"), classes=("a", "b", "c"), diagnosis=ALARM), settings=[("seed", "0")]
    ),
    "many": lambda: summarize_shares(by_product(200, classes=MANY)),
    "evaluation": lambda: summarize_evaluation(made_evaluation()),
    "evaluation of many": lambda: summarize_evaluation(made_evaluation(k=5, classes=MANY[:5])),
    "comparison": lambda: summarize_comparison(made_comparison(methods=5)),
    "correction": lambda: summarize_correction(made_correction()),
    "scores": lambda: summarize_correction(made_correction(groups=1, scores=True)),
    "course": lambda: summarize_history(made_history(since=np.datetime64("2026-03-14"))),
    "quiet course": lambda: summarize_history(made_history()),
    "hostile": lambda: summarize_shares(
        by_product(3, classes=(HOSTILE, "b_*|[x](y)", "c & #0a62a6 \n{{ 7 * 7 }}"), names=HOSTILE)
    ),
}
# Pages of many classes have the lines of the others, often.
KINDS = [pytest.param(kind, marks=pytest.mark.no_cover) if "many" in kind else kind for kind in MAKERS]


class Summaries(dict):
    """Made when first asked for, so that a process makes only what its tests need."""

    def __missing__(self, kind):
        self[kind] = MAKERS[kind]()
        return self[kind]


@cache
def html_of(summary):
    """A page, drawn once for all tests that look at it."""
    return to_html(summary)


@pytest.fixture(scope="module")
def summaries():
    return Summaries()


class Page(HTMLParser):
    """What a page is made of; a tag that is not closed, or closed twice, fails."""

    VOID = ("meta", "use", "path", "circle", "rect", "line")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.headings, self.text = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(summary):
    found = Page()
    found.feed(html_of(summary))
    assert not found.open
    return found


def words(summary):
    return " ".join("".join(read(summary).text).replace("\u00a0", " ").split())


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_has_words_and_numbers(summaries, kind):
    found = read(summaries[kind])
    pictures = [attrs for tag, attrs in found.tags if tag == "svg" and "role" in attrs]
    figures = [attrs for tag, attrs in found.tags if tag == "figure"]
    charts = [chart for section in summaries[kind].sections for chart in section.charts]
    assert len(figures) == len(charts) >= 1
    assert len(pictures) == 2 * len(charts)  # for wide and for narrow screens
    assert [one["aria-label"] for one in pictures[::2]] == [chart.alt for chart in charts]
    assert all(chart.alt and chart.caption and chart.table.rows for chart in charts)
    assert sum(tag == "details" for tag, _ in found.tags) == sum(tag == "figcaption" for tag, _ in found.tags)
    assert sum(tag == "table" for tag, _ in found.tags) >= len(charts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_stands_alone_and_is_in_order(summaries, kind):
    text, found = html_of(summaries[kind]), read(summaries[kind])
    assert "http:" not in text
    assert "https:" not in text
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in found.tags}
    assert "url(" not in re.sub(r"url\(#[^)]+\)", "", text)
    assert dict(found.tags[0][1]) == {"lang": "en"}
    assert found.headings[0] == 1
    assert found.headings.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in zip(found.headings, found.headings[1:], strict=False))
    assert len(found.ids) == len(set(found.ids))
    assert all("scope" in attrs for tag, attrs in found.tags if tag == "th")
    assert sum(tag == "caption" for tag, _ in found.tags) == sum(tag == "table" for tag, _ in found.tags)
    assert len(text) < 500_000


@pytest.mark.parametrize("kind", KINDS)
def test_all_forms_say_the_same(summaries, kind):
    summary = summaries[kind]
    shown, marked, plain = words(summary), to_markdown(summary), json.loads(to_report_json(summary))
    assert " ".join(summary.answer.split()) in shown
    assert plain["answer"] == summary.answer
    unmarked = re.sub(r"\\(.)", r"\1", marked)
    assert " ".join(summary.answer.split()) in unmarked
    tables = [chart.table for section in summary.sections for chart in section.charts]
    tables += [table for section in summary.sections for table in section.tables]
    for table in tables:
        for _, entries in table.rows:
            for entry in entries:
                assert entry.text in shown
                assert entry.text in marked
                assert entry.detail in shown
                assert entry.detail in marked
    in_json = [one["table"] for section in plain["sections"] for one in section["charts"]]
    in_json += [one for section in plain["sections"] for one in section["tables"]]
    assert [len(one["rows"]) for one in sorted(in_json, key=lambda one: one["title"])] == [
        len(table.rows) for table in sorted(tables, key=lambda table: table.title)
    ]
    for name, value in (*summary.facts, *summary.settings):
        assert name in shown
        assert value in shown
        assert value in unmarked
        assert value in {**plain["facts"], **plain["settings"]}.values()


def test_json_has_the_figures_in_full(summaries):
    data = json.loads(to_report_json(summaries["shares"]))["data"]
    shares = made_shares()
    np.testing.assert_allclose(data["total"]["estimate"], shares.total.estimate)
    assert f"{100 * data['total']['estimate'][1]:.1f} %" in summaries["shares"].answer
    assert json.loads(to_report_json(summaries["scores"]))["data"]["judged"] == [[None, None]]


def test_hostile_labels_are_words(summaries):
    text = html_of(summaries["hostile"])
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "{{ 7 * 7 }}" in text
    assert "#0a62a6" in "".join(read(summaries["hostile"]).text)  # a colour's code in a label is no colour
    marked = to_markdown(summaries["hostile"])
    assert not re.search(r"(?<!\\)<script", marked)
    for line in marked.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) >= 3


def test_severity_is_a_word_a_shape_and_a_colour():
    findings = tuple(Finding(f"check {severity}", severity, "So it is.") for severity in SEVERITIES)
    found = read(Summary("t", "a", cautions=findings[3:], sections=(Section("s", findings=findings),)))
    shapes = [attrs["href"] for tag, attrs in found.tags if tag == "use"]
    # The alarm follows the answer, and is not repeated.
    assert shapes == ["#sign-alarm", *(f"#sign-{severity}" for severity in SEVERITIES[:3])]
    assert {shape.lstrip("#") for shape in shapes} <= set(found.ids)
    shown = " ".join(found.text).split()
    assert all(severity in shown for severity in SEVERITIES)


def test_colours_can_be_read_on_their_page():
    for palette in (LIGHT, DARK):
        for name in (*SERIES, "ink", "muted", *SEVERITIES):
            assert contrast(palette[name], palette["paper"]) >= 4.5
            assert contrast(palette[name], palette["raised"]) >= 4.5
    assert list(LIGHT) == list(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)  # a colour in a picture is known by its value


def test_a_picture_has_the_pages_colours_alone(summaries):
    for section in summaries["products in months"].sections:
        for chart in section.charts:
            tags = "".join(re.findall(r"<[^>]*>", "".join(draw_chart(chart).values())))
            assert set(re.findall(r"#[0-9a-f]{6}\b", tags)) == set()
            assert "var(--blue)" in tags
            assert "font-family" not in tags


def test_a_report_is_the_same_bytes_every_time(summaries):
    assert to_html(summarize_shares(made_shares())) == html_of(summaries["shares"])


def test_what_a_chart_leaves_out_is_said(summaries):
    shown = words(summaries["many"])
    assert "the 30 largest of 200 groups and the 4 most common of 28 classes; the table has all" in shown
    [chart] = summaries["many"].sections[0].charts
    assert len(chart.table.rows) == 200
    assert len(chart.table.columns) == 30  # n, classes, note


@pytest.mark.parametrize(("ending", "start"), [(".html", "<!doctype html>"), (".md", "# Shares"), (".json", "{")])
def test_a_report_is_written_by_its_ending_and_whole(tmp_path, summaries, ending, start):
    path = tmp_path / f"report{ending}"
    write_report(summaries["shares"], path)
    assert path.read_text(encoding="utf-8").startswith(start)
    assert list(tmp_path.iterdir()) == [path]


def test_a_wrong_ending_is_told(tmp_path, summaries):
    with pytest.raises(InvalidSetting, match=r"'report\.doc'. Use a name ending in \.html, \.md, \.json"):
        write_report(summaries["shares"], tmp_path / "report.doc")
    with pytest.raises(InvalidSetting, match="cannot be written"):
        write_report(summaries["shares"], tmp_path / "no folder" / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["jinja2", "matplotlib.figure"])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, module):
    page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'quanet\[report\]'"):
        check_report(tmp_path / "report.html")
    page._environment.cache_clear()


def test_an_alarm_stands_below_the_answer(summaries):
    shown = words(summaries["products in months"])
    assert shown.index("Do not rely on it.") < shown.index("Over time")
    assert not summaries["shares"].cautions


def test_settings_come_with_versions():
    given = summarize_shares(made_shares(), settings=[("seed", "7"), ("versions", "as they were")]).settings
    assert given[0] == ("seed", "7")
    assert [value for name, value in given if name == "versions"] == ["as they were"]
    assert replace(summarize_shares(made_shares())).settings[-1][1].startswith("Python 3.")
