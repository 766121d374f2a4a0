"""Answers as parts of pages of the service."""

import re

import pytest

from quanet.report.fragment import MOST_BYTES, to_fragment
from quanet.report.predict import summarize_shares
from quanet.report.render import draw_charts, to_html
from tests.report.made_answers import by_product, monthly


@pytest.fixture(scope="module")
def months():
    summary = summarize_shares(monthly())
    return summary, draw_charts(summary)


def test_it_has_the_sections_of_the_report_without_styles(months):
    summary, pictures = months
    part, page = to_fragment(summary, pictures), to_html(summary, pictures)
    assert not re.search(r"\sstyle=|<style|<script|\son\w+=", part)
    assert re.findall(r"<h2>.*?</h2>", part) == re.findall(r"<h2>.*?</h2>", page)[:-1]  # all but "To reproduce this"
    assert part.count("wide-picture") == part.count('class="narrow"') == len(pictures)
    assert 'stroke="var(--blue)"' in part


def test_a_table_of_a_report_that_is_long_is_left_out_of_a_page():
    summary = summarize_shares(by_product(100))
    pictures = {key: {"wide-picture": "<svg></svg>", "narrow": "<svg></svg>"} for key in draw_names(summary)}
    assert "product 99" in to_html(summary, pictures)
    assert "product 99" not in to_fragment(summary, pictures)


@pytest.mark.parametrize(
    ("size", "kinds"), [(20_000, ["wide-picture", "narrow"]), (30_000, ["any-picture"]), (60_000, [])]
)
def test_pictures_that_are_too_large_are_left_out(months, size, kinds):
    summary, _ = months
    picture = f"<svg>{'.' * size}</svg>"
    names = draw_names(summary)
    part = to_fragment(summary, {key: {"wide-picture": picture, "narrow": picture} for key in names})
    assert len(part) <= MOST_BYTES
    assert [kind for kind in ("wide-picture", "narrow", "any-picture") if f'class="{kind}"' in part] == kinds


def draw_names(summary):
    return [chart.name for section in summary.sections for chart in section.charts]
