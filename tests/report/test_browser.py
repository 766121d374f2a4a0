"""Reports in a real browser: nothing wider than the screen, no error, no request, light and dark."""

import os

import numpy as np
import pytest

from quanet.report.evaluate import summarize_evaluation
from quanet.report.palette import DARK, LIGHT
from quanet.report.predict import summarize_shares
from quanet.report.render import write_report
from tests.report.browser import CHROMIUM, browser
from tests.report.made_answers import ALARM, by_product, made_evaluation

if CHROMIUM is None and os.environ.get("QUANET_BROWSER") != "required":
    pytest.skip("Chromium is not installed", allow_module_level=True)

WIDE = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.wide') && !one.closest('svg')
  && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName + ' ' + one.className)"""
SMALLEST = """Math.min(...[...document.querySelectorAll('figure svg text')]
  .filter(one => one.getBoundingClientRect().height > 0).map(one => one.getBoundingClientRect().height))"""
CROSSING = """[...document.querySelectorAll('figure svg')].filter(one => one.getBoundingClientRect().height > 0)
  .flatMap(svg => [...svg.querySelectorAll('text')].filter(one => {
    const inner = one.getBoundingClientRect(), outer = svg.getBoundingClientRect();
    return inner.left < outer.left - 2 || inner.right > outer.right + 2
      || inner.top < outer.top - 2 || inner.bottom > outer.bottom + 2; }).map(one => one.textContent))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    long = "a label that is far longer than any screen of a telephone is wide, " * 3
    classes = ("negative", long, "neutral", "mixed")
    summaries = {
        "shares": summarize_shares(by_product(40, classes=classes, diagnosis=ALARM, names="x" * 200)),
        "evaluation": summarize_evaluation(made_evaluation()),
    }
    for name, summary in summaries.items():
        write_report(summary, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in summaries}


@pytest.fixture(scope="module")
def chromium():
    with browser() as opened:
        yield opened


def colour(code):
    return "rgb({}, {}, {})".format(*(int(code[at : at + 2], 16) for at in (1, 3, 5)))


@pytest.mark.parametrize("name", ["shares", "evaluation"])
@pytest.mark.parametrize(("width", "dark"), [(360, True), (1280, False)])
def test_a_report_fits_every_screen(pages, chromium, name, width, dark):
    chromium.open(pages[name], width=width, dark=dark)
    assert chromium.ask("innerWidth") == width
    for opened in (False, True):
        chromium.ask(f"document.querySelectorAll('details').forEach(one => one.open = {str(opened).lower()})")
        assert chromium.ask("document.documentElement.scrollWidth") <= width
        assert chromium.ask(WIDE) == []
    assert chromium.ask(CROSSING) == []
    assert chromium.ask(SMALLEST) >= 10  # words in pictures stay readable
    palette = DARK if dark else LIGHT
    assert chromium.ask("getComputedStyle(document.body).backgroundColor") == colour(palette["paper"])
    assert chromium.ask("getComputedStyle(document.body).color") == colour(palette["ink"])
    narrow = chromium.ask("getComputedStyle(document.querySelector('.narrow')).display")
    assert (narrow == "block") == (width < 500)
    troubles = chromium.named("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    assert troubles == []
    requests = [event["params"]["request"]["url"] for event in chromium.named("Network.requestWillBeSent")]
    assert requests == [pages[name].as_uri()]


def test_on_a_phone_three_classes_have_three_panels_and_tables_fit(chromium, tmp_path):
    three = ("negative", "neutral", "positive")
    summaries = {
        "shares": summarize_shares(by_product(8, classes=three)),
        "evaluation": summarize_evaluation(made_evaluation(k=3, classes=three)),
    }
    for name, summary in summaries.items():
        write_report(summary, tmp_path / f"{name}.html")
        chromium.open(tmp_path / f"{name}.html", width=390)
        chromium.ask("document.querySelectorAll('details').forEach(one => one.open = true)")
        words = chromium.ask(
            "[...document.querySelector('.narrow svg').querySelectorAll('text')].map(t => t.textContent)"
        )
        assert set(three) <= set(words)
        hidden = "[...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth).length"
        assert chromium.ask(hidden) == 0
        assert chromium.ask(CROSSING) == []


def test_on_paper_a_dark_screens_report_is_light_and_shows_its_tables(pages, chromium):
    chromium.open(pages["evaluation"], width=720, dark=True)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    chromium.call("Emulation.setEmulatedMedia", media="print", features=features)
    assert chromium.ask("getComputedStyle(document.body).backgroundColor") == colour(LIGHT["paper"])
    heights = chromium.ask("[...document.querySelectorAll('details table')].map(one => one.offsetHeight)")
    assert np.min(heights) > 0
    assert chromium.pdf().startswith(b"%PDF")
    chromium.call("Emulation.setEmulatedMedia", media="")
