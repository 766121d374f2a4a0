"""Draw docs/explanation/methods-map.svg from the table of families in docs/explanation/methods-map.md.

python docs/make_map.py
"""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

from quanet.report.palette import LIGHT

PAGE = Path(__file__).parent / "explanation" / "methods-map.md"
MAP = PAGE.with_suffix(".svg")
WIDTH, MARGIN, GAP = 1040, 24, 38
TITLE, TEXT, LINE, PAD = 15, 12.5, 17, 10  # font sizes, height of a line, space around text
CHARACTER = 6.9  # width of a character of TEXT, at most on average
IDEA_HEIGHT, CAPTION_HEIGHT = 84, 34

# Family, what it compares, colour; one row of boxes each. The methods come from the page.
ROWS = (
    (
        ("Counting", "labels, uncorrected", "vermilion"),
        ("Adjusted counting", "k numbers: counts, means", "ochre"),
        ("Matching", "whole distributions", "green"),
        ("Likelihood", "every instance", "blue"),
    ),
    (
        ("SVMs", "a classifier whose errors cancel", "vermilion"),
        ("Thresholds", "counts at other thresholds", "ochre"),
        ("Kernel densities", "distributions without bins", "green"),
        ("Networks", "learned from bags", "blue"),
    ),
    (
        ("Features", "matching without a classifier", "teal"),
        ("Ordered classes", "with smooth prevalences", "teal"),
        ("Combinations", "of any of them", "teal"),
    ),
)
CAPTIONS = ("More and more of what the classifier says is compared:", "", "The same equation elsewhere:")
IDEA = (
    "A bag is a mixture of the classes",
    "what the classifier says in the bag  =  sum over classes of  prevalence times what it says in the class",
    "The bag shows the left side, held-out instances show the classes. Find the prevalences.",
)


def families(page: str) -> dict[str, list[str]]:
    """The methods of each family, from the table of the page."""
    rows = re.findall(r"^\| ([A-Z][\w ]*) \| (`.*?) \|", page, re.MULTILINE)
    return {family: re.findall(r"`(\w+)`", methods) for family, methods in rows}


def tag(name: str, content: str = "", **attributes: Any) -> str:
    """An element; underscores in names of attributes become hyphens, numbers are short."""
    values = {key: f"{value:g}" if isinstance(value, float) else value for key, value in attributes.items()}
    inside = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in values.items())
    return f"<{name}{inside}>{content}</{name}>"


def words(x: float, y: float, text: str, *, colour: str = "ink", size: float = TEXT, **attributes: Any) -> str:
    """One line of text."""
    return tag("text", escape(text), x=x, y=y, font_size=size, fill=LIGHT[colour], **attributes)


def frame(x: float, y: float, width: float, height: float, colour: str) -> str:
    """A frame with a coloured edge on its left."""
    place = {"x": x, "y": y, "height": height}
    whole = tag("rect", **place, width=width, rx=4, fill=LIGHT["raised"], stroke=LIGHT["rule"])
    return whole + tag("rect", **place, width=5, fill=LIGHT[colour])


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """A line with a head."""
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return tag("line", **ends, stroke=LIGHT["muted"], stroke_width=1.6, marker_end="url(#head)")


def family_text(x: float, y: float, family: tuple[str, str, str], lines: list[str]) -> Iterator[str]:
    """Name, what is compared, and methods, from the upper left corner of a frame."""
    name, compares, colour = family
    x, y = x + PAD + 5, y + PAD + TITLE
    yield words(x, y - 2, name, size=TITLE, font_weight="bold", colour=colour)
    yield words(x, y + LINE, compares, colour="muted")
    for at, line in enumerate(lines):
        yield words(x, y + (at + 2) * LINE + 3, line)


def idea() -> Iterator[str]:
    """The frame on top."""
    yield frame(MARGIN, MARGIN, WIDTH - 2 * MARGIN, IDEA_HEIGHT, "ink")
    styles = ({"size": TITLE + 3, "font_weight": "bold"}, {"size": TEXT + 1}, {"size": TEXT + 1, "colour": "muted"})
    for at, (line, style) in enumerate(zip(IDEA, styles, strict=True)):
        yield words(WIDTH / 2, MARGIN + 27 + 22 * at, line, text_anchor="middle", **style)


def draw(methods: dict[str, list[str]]) -> str:
    """The map, as SVG."""
    parts, y = list(idea()), MARGIN + IDEA_HEIGHT + 16.0
    for number, (row, caption) in enumerate(zip(ROWS, CAPTIONS, strict=True)):
        if caption:
            parts.append(words(MARGIN, y + 22, caption, colour="muted", font_weight="bold"))
            y += CAPTION_HEIGHT
        width = (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row)
        lines = [wrap(", ".join(methods[name]), int((width - 2 * PAD - 5) / CHARACTER)) for name, *_ in row]
        height = 2.0 * PAD + TITLE + LINE * (1 + max(map(len, lines))) + 2
        for at, (family, of_family) in enumerate(zip(row, lines, strict=True)):
            x = MARGIN + at * (width + GAP)
            parts += [frame(x, y, width, height, family[2]), *family_text(x, y, family, of_family)]
            if at and number == 0:
                parts.append(arrow(x - GAP + 4, y + height / 2, x - 4, y + height / 2))
            if number == 1:
                parts.append(arrow(x + width / 2, y - GAP + 4, x + width / 2, y - 4))
            if family[0] == "Kernel densities":  # a likelihood, too
                parts.append(arrow(x + width + 3, y - 3, x + width + GAP - 3, y - GAP + 3))
        y += height + (GAP if number == 0 else 10)
    y += MARGIN - 10
    point = tag("path", d="M0 0L8 4L0 8z", fill=LIGHT["muted"])
    box = {"refX": 7, "refY": 4, "markerWidth": 7, "markerHeight": 7}
    head = tag("defs", tag("marker", point, id="head", viewBox="0 0 8 8", orient="auto", **box))
    ground = tag("rect", width=WIDTH, height=y, fill=LIGHT["paper"])
    size = {"viewBox": f"0 0 {WIDTH} {y:g}", "width": WIDTH, "font_family": "Helvetica, Arial, sans-serif"}
    return tag("svg", "\n".join(["", head, ground, *parts, ""]), xmlns="http://www.w3.org/2000/svg", **size) + "\n"


if __name__ == "__main__":
    MAP.write_text(draw(families(PAGE.read_text())))
