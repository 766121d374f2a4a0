"""A figure as SVG inside a page: words as words, colours by name, so that the page says what they are."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING

from quanet.report.palette import LIGHT
from quanet.report.plots.canvas import NARROW, WIDTH
from quanet.report.summary import Chart

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from quanet.report.tables import Table

NAMES = {value: name for name, value in LIGHT.items()}


def page_svg(figure: Figure, *, name: str, alt: str) -> str:
    """SVG to stand in an HTML page that has the palette as custom properties (``--blue``); the same every time.

    Parameters
    ----------
    figure : drawn in the colours of `LIGHT`.
    name : of the picture, unlike that of any other on the page: its parts are called by it.
    alt : what one sees in it.
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    page = io.BytesIO()
    with rc_context({"svg.hashsalt": f"quanet {name}", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the reader's fonts are not those here
        for text in figure.findobj(Text):
            text.set_parse_math(False)  # a dollar sign in a label is a dollar sign
        figure.savefig(page, format="svg", transparent=True, metadata={"Date": None})
    return _clean(page.getvalue().decode(), alt)


def _clean(text: str, alt: str) -> str:
    box = re.search(r'viewBox="([^"]+)"', text)
    assert box is not None
    body = text[text.index(">", text.index("<svg")) + 1 :]
    for pattern in (r"<metadata>.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        body = re.sub(pattern, "", body, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    body = re.sub(r"<[^>]*>", lambda tag: _clean_tag(tag[0], used), body)  # words between tags stay as they are
    body = re.sub(r'<path d="[^"]*" style="fill: none"/>|<g/>|<defs>\s*</defs>', "", body)
    for _ in range(3):  # groups that are left empty, inside each other
        body = re.sub(r"<g>\s*</g>", "", body)
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    return f'<svg viewBox="{box[1]}" role="img" aria-label="{_attribute(alt)}">\n{body}'


def _clean_tag(tag: str, used: set[str]) -> str:
    tag = tag.replace("xlink:href", "href")
    tag = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", tag)
    tag = re.sub(r"#[0-9a-f]{6}\b", lambda found: _named(found[0]), tag)
    tag = re.sub(r"font: (\w+ )?([\d.]+px) [^;\"]*", r"font-weight: \1; font-size: \2", tag)
    tag = re.sub(r"font-weight: ;\s*|font-family: [^;\"]*;?\s*", "", tag)  # the page's own font
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    tag = re.sub(r"\n(?=[A-Za-z\"])", " ", tag).replace(' "', '"')
    return re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), tag)


def _named(value: str) -> str:
    return f"var(--{NAMES[value]})" if value in NAMES else value


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def make_chart(name: str, caption: str, alt: str, table: Table, draw: Callable[[float], Figure]) -> Chart:
    """A picture in both widths with its words and its table; `draw` takes the width in inches."""
    wide, narrow = (page_svg(draw(width), name=f"{name} {width}", alt=alt) for width in (WIDTH, NARROW))
    return Chart(name, caption, alt, wide, narrow, table)
