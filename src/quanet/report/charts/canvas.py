"""Figures for reports: their size and style, and how they become files and parts of a page. No global state."""

from __future__ import annotations

import io
import math
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.errors import InvalidSetting, MissingExtra
from quanet.files import write_whole
from quanet.report.palette import LIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# By ending: metadata that would contain the date of creation.
FORMATS = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
WIDTH = 7.2  # inches: a page's text, or both columns of a paper
NARROW = 3.4  # a phone's screen
SMALL, TINY = 7.5, 6.5  # points, of titles and of figures
TEXT, TICK = 8.0, 7.5  # points
NAMES = {value: name for name, value in LIGHT.items()}


def new_figure(panels: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure with panels side by side, outside of any global state."""
    figure = sized_figure(5.2 * panels, 5.0)
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def wide_figure(height: float) -> tuple[Figure, Axes]:
    """A figure with one panel, as wide as a page."""
    figure = sized_figure(WIDTH, height)
    return figure, figure.subplots()


def check_suffix(path: Path) -> None:
    """Raise a `QuanetError` if no figure can be drawn, or written to a file of this name; before any work."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidSetting(f"Cannot write a chart to {path.name!r}. Use a name ending in {', '.join(FORMATS)}.")
    sized_figure(1, 1)  # raises without matplotlib


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's ending, in one step; the same figure gives the same bytes.

    Parameters
    ----------
    figure : of `trend_figure`, `monitor_figure` or `Interval.plot`.
    path : a file that ends in .png, .svg or .pdf.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from matplotlib.figure import Figure
    >>> with tempfile.TemporaryDirectory() as home:
    ...     save_figure(Figure(figsize=(1, 1)), Path(home, "empty.svg"))
    ...     print(*(path.name for path in Path(home).iterdir()))
    empty.svg
    """
    from matplotlib import rc_context

    check_suffix(path)
    as_plain_text(figure)
    suffix = path.suffix.lower()
    page = io.BytesIO()
    # The salt makes identifiers in SVG reproducible; 42 keeps text in PDF as text.
    with rc_context({"svg.hashsalt": "quanet", "pdf.fonttype": 42}):
        figure.savefig(page, format=suffix.lstrip("."), metadata=FORMATS[suffix])
    write_whole(path, page.getvalue())


def as_plain_text(figure: Figure) -> None:
    """Show all text literally: a label such as $5 is not a formula."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)


def sized_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("Charts need matplotlib. Install it: pip install 'quanet[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def page_svg(figure: Figure, *, name: str, alt: str) -> str:
    """SVG for an HTML page that defines the palette as custom properties (``--blue``); reproducible.

    Parameters
    ----------
    figure : drawn in the colours of `LIGHT`.
    name : unique on the page; the identifiers of its parts contain it.
    alt : description of the figure.
    """
    from matplotlib import rc_context

    page = io.BytesIO()
    with rc_context({"svg.hashsalt": f"quanet {name}", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the reader's fonts may have them
        as_plain_text(figure)
        figure.savefig(page, format="svg", transparent=True, metadata={"Date": None})
    return _clean(page.getvalue().decode(), alt)


def _clean(text: str, alt: str) -> str:
    box = re.search(r'viewBox="([^"]+)"', text)
    assert box is not None
    body = text[text.index(">", text.index("<svg")) + 1 :]
    for pattern in (r"<metadata>.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        body = re.sub(pattern, "", body, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    body = re.sub(r"<[^>]*>", lambda tag: _clean_tag(tag[0], used), body)  # text between tags stays unchanged
    body = re.sub(r'<path d="[^"]*" style="fill: none"/>|<g/>|<defs>\s*</defs>', "", body)
    for _ in range(3):  # nested groups that are empty now
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


def colour(name: str) -> str:
    """A colour of the light palette; the page replaces it by its own."""
    return LIGHT[name]


def tidy(ax: Axes, *, grid: str) -> None:
    """Keep only the grid of one axis or of both, and the base line."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set(color=colour("muted"), linewidth=0.7)
    ax.grid(axis=grid, color=colour("rule"), linewidth=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=TICK, labelcolor=colour("muted"), pad=3)
    ax.set_facecolor("none")


def scale(axis: Any, low: float, high: float, *, unit: str, most: int = 5) -> None:
    """Ticks at round values, in percent, or in points, which have a sign if they are differences."""
    from matplotlib.ticker import MaxNLocator

    step = max(high - low, 1e-9)
    # Labels without digits have no ticks at 2.5 points.
    steps = [1, 2, 5, 10] if 0.04 <= step < 0.25 else [1, 2, 2.5, 5, 10]
    axis.set_major_locator(MaxNLocator(nbins=most, steps=steps))
    digits = 0 if step >= 0.04 else 1 if step >= 0.004 else 2
    tail = " %" if unit == "share" else ""
    sign = "+" if unit == "difference" else ""
    axis.set_major_formatter(lambda value, _: f"{100 * value:{sign if abs(value) > 1e-9 else ''}.{digits}f}{tail}")


def share_ends(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis of shares: round values, and 0 if values are near it.

    Examples
    --------
    >>> share_ends(0.12, 0.41), share_ends(0.71, 0.93), share_ends(0.002, 0.013)
    ((0.0, 0.45), (0.7, 0.95), (0.0, 0.014))
    """
    step = next((one for one in (0.001, 0.002, 0.005, 0.01, 0.02) if one >= (high - low) / 8), 0.05)
    bottom = 0.0 if low < max(0.15, 0.5 * (high - low)) else math.floor(low / step + 1e-9) * step
    top = min(math.ceil(high / step - 1e-9) * step, 1.0)
    return round(bottom, 6), round(max(top, bottom + step), 6)


def spread(values: Sequence[float], gap: float, *, low: float, high: float) -> list[float]:
    """Positions of labels near their values, with a minimum gap, between two ends if they fit.

    Examples
    --------
    >>> [round(place, 2) for place in spread([0.5, 0.52, 0.1], 0.1, low=0, high=1)]
    [0.46, 0.56, 0.1]
    """
    order = np.argsort(values, kind="stable")
    places: list[list[float]] = []  # blocks of adjacent labels: mean position, number of labels
    for value in np.asarray(values, dtype=float)[order]:
        places.append([float(value), 1])
        while len(places) > 1 and places[-1][0] - places[-2][0] < gap * (places[-1][1] + places[-2][1]) / 2:
            (mean, n), (other, m) = places.pop(), places.pop()
            places.append([(mean * n + other * m) / (n + m), n + m])
    found = np.concatenate([mean + gap * (np.arange(n) - (n - 1) / 2) for mean, n in places])
    found = np.minimum(found, high - gap * np.arange(len(found))[::-1])
    found = np.maximum.accumulate(np.maximum(found, low + gap * np.arange(len(found))))
    result = np.empty(len(found))
    result[order] = found
    return result.tolist()


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
STEPS = ((1, "D"), (2, "D"), (7, "D"), (14, "D"), (1, "M"), (2, "M"), (3, "M"), (6, "M"), (1, "Y"), (2, "Y"), (5, "Y"))


def date_ticks(first: Any, last: Any, most: int) -> tuple[Any, list[str]]:
    r"""Round dates between two days, as many as fit, and their labels; the year is shown where it changes.

    Examples
    --------
    >>> date_ticks(np.datetime64("2023-11-01"), np.datetime64("2024-02-01"), 6)[1]
    ['Nov\n2023', 'Dec', 'Jan\n2024', 'Feb']
    """
    found: Any = np.array([first])
    for step, unit in (*STEPS, *((10 * n, "Y") for n in (1, 2, 5, 10))):
        start, end = (int(day.astype(f"datetime64[{unit}]").astype(int)) for day in (first, last))
        numbers = np.arange(-(-start // step) * step, end + 1, step)
        found = numbers.astype(f"datetime64[{unit}]").astype("datetime64[D]")
        found = found[found >= first]
        if len(found) <= most:
            break
    if not len(found):
        found, unit = np.array([first]), "D"
    labels, before = [], ""
    for day in found:
        year, month, number = str(day).split("-")
        name = MONTHS[int(month) - 1]
        top, below = {"D": (str(int(number)), f"{name} {year}"), "M": (name, year), "Y": (year, "")}[unit]
        labels.append(top if below == before or not below else f"{top}\n{below}")
        before = below
    return found, labels
