"""Figures in the tables and texts of benchmarks/results/, and whether a page quotes them.

Where a figure was measured:

- `file`; `table`, the beginning of the heading above it; `row`, cells of the row, in order; `column`, its header, or
  several with `pick`; `nth`, of columns of the same name;
- or `file` and `prose`, a text of the file, with {} for the figure and {any} for other numbers;
- `number`: which number of the cell, from 1; `pick`: "least", "greatest" or "mean" of several cells;
- `times`: a factor, such as 100 from shares to points; `digits`: how many significant digits the page shows;
- `over`: divided by another field; `below`: how many percent lower than another field.
"""

import math
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = "benchmarks/results/"
PICKS = {"least": min, "greatest": max, "mean": lambda values: sum(values) / len(values)}
FIGURE = r"(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?"
SIGNED = rf"(?:(?<![\w.)\]])[-+])?(?<![\w.,]){FIGURE}"
NUMBER = re.compile(rf"{SIGNED}(?=(?:st|nd|rd|th)\b|(?!\w|\.\d|,\d))")


class Table(NamedTuple):
    """A table of a results file: the heading above it, the header and the rows, without bold and code marks."""

    heading: str
    header: list[str]
    rows: list[list[str]]


class Missing(LookupError):
    """What an entry refers to does not exist."""


def literal(text: str) -> str:
    """A pattern for a text, whose lines may break elsewhere."""
    return r"\s+".join(re.escape(word) for word in text.split())


@cache
def read(path: Path) -> str:
    """The text of a page or results file."""
    if not path.is_file():
        raise Missing(f"{path.name} does not exist")
    return path.read_text()


@cache
def tables(path: Path) -> list[Table]:
    """All tables of a results file."""
    found: list[Table] = []
    heading, inside = "", False
    for line in read(path).splitlines():
        if title := re.match(r"#+ (.*)|\*\*(.*)\*\*$", line):
            heading = title[1] or title[2]
        cells = [re.sub(r"[*`]", "", cell).strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not line.startswith("|"):
            inside = False
        elif not inside:
            found.append(Table(heading, cells, []))
            inside = True
        elif not re.fullmatch(r"[|\s:-]+", line):
            found[-1].rows.append(cells)
    return found


def has_cells(row: list[str], wanted: list[str]) -> bool:
    """Whether the row has the wanted cells, in this order."""
    rest = iter(row)
    return all(cell in rest for cell in wanted)


def name_of(where: dict[str, Any]) -> str:
    """The source of a figure, for a message."""
    file = posixpath.normpath(RESULTS + where["file"])
    if "prose" in where:
        return f"{file}, {where['prose']!r}"
    parts = (where.get("table"), " | ".join(where.get("row", [])), where.get("pick"), where.get("column"))
    return ", ".join([file, *(str(part) for part in parts if part)])


def cells(root: Path, where: dict[str, Any]) -> list[str]:
    """The cells that a field refers to: one, or several for a field with `pick`."""
    if "file" not in where or not {"column", "prose"} & set(where):
        raise Missing(f"{where} has no file, or neither column nor prose")
    path = root / RESULTS / where["file"]
    if "prose" in where:
        pattern = literal(where["prose"]).replace(r"\{\}", f"({FIGURE})").replace(r"\{any\}", FIGURE)
        found = [match[1] for match in re.finditer(pattern, read(path))]
    else:
        wanted = where["column"] if isinstance(where["column"], list) else [where["column"]]
        found = []
        for table in tables(path):
            columns = [at for at, title in enumerate(table.header) if title in wanted]
            columns = columns[where["nth"] - 1 : where["nth"]] if "nth" in where else columns
            if table.heading.startswith(where.get("table", "")):
                rows = [row for row in table.rows if has_cells(row, where.get("row", []))]
                found += [row[at] for row in rows for at in columns if at < len(row)]
    if len(found) != 1 and not (found and "pick" in where):
        raise Missing(f"{name_of(where)}: {len(found)} found, one is needed")
    return found


def value(figure: str) -> float:
    """The number that a figure shows."""
    return float(figure.replace(",", ""))


def measured(root: Path, where: dict[str, Any]) -> float | None:
    """What was measured; None where the cell has no number."""
    texts = cells(root, where)
    numbers = [NUMBER.findall(text) for text in texts]
    at = where.get("number", 1)
    if not any(numbers):
        return None
    if any(len(found) < at for found in numbers if found):
        raise Missing(f"{name_of(where)}: {texts[0]!r} has no number {at}")
    values = [value(found[at - 1]) for found in numbers if found]
    result = PICKS[where["pick"]](values) if "pick" in where else values[0]
    for key in {"over", "below"} & set(where):
        other = measured(root, {**{name: item for name, item in where.items() if name != key}, **where[key]})
        if not other:
            raise Missing(f"{name_of(where)}: nothing to divide by")
        result = result / other if key == "over" else 100 * (1 - result / other)
    return result * where.get("times", 1)


def agree(quoted: str, figure: float, digits: int | None = None) -> bool:
    """Whether the quoted text is the figure, rounded to the decimals (or significant digits) that are shown.

    >>> agree(".0145", 0.01449), agree("9,735", 9734.6), agree("4e-6", 3.6e-6), agree("500", 529)
    (True, True, True, False)
    >>> agree("500", 529, digits=1)
    True
    """
    mantissa, _, exponent = quoted.lower().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    if digits and figure:
        unit = max(unit, 10.0 ** (math.floor(math.log10(abs(figure))) + 1 - digits))
    return abs(value(quoted) - figure) <= unit / 2 * (1 + 1e-6)
