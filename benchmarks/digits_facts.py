"""Facts for `digits.py`: values of any kind as JSON that is the same whenever the numbers are."""

import dataclasses
import datetime as dt
import hashlib
import math
import re
import warnings
from collections.abc import Callable, Mapping
from html import unescape
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd

import quanet

LISTED = 120  # arrays with more values are summarised
NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
VARIES = {"seconds", "saved", "versions", "bytes"}  # and sizes of the files of a model
SIZES = (".md", ".json", ".safetensors")
TIMES = re.compile(
    r"\d[\d.,]*\s?(?:ms|s|seconds?|minutes?|min|bytes|[kMG]i?B)\b|\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:[+-]\d\d:?\d\d)?"
)
ATTRIBUTES = re.compile(r'\s(?:d|x|y|x1|x2|y1|y2|cx|cy|r|width|height|points|transform)="([^"]*)"')


def plain(text: str, home: str = "") -> str:
    """A text without what varies: the folder it was made in, today, versions, times."""
    text = text.replace(home, "HOME") if home else text
    for day in (dt.datetime.now(dt.UTC).date(), dt.datetime.now().date()):
        text = text.replace(str(day), "TODAY").replace(f"{day:%d %B %Y}".lstrip("0"), "TODAY")
    text = re.sub(r"\b\d+\.\d+\.\d+\S*", "VERSION", text.replace(quanet.__version__, "VERSION"))
    return TIMES.sub("TIME", text)


def numbers(text: str) -> list[str]:
    """The numbers within a text, as they are written."""
    return NUMBER.findall(text)


def sentence(text: str, home: str = "") -> dict[str, Any]:
    """A text, of which only the numbers are compared."""
    kept = " ".join(plain(text, home).split())
    return {"sentence": kept[:2000], "numbers": numbers(kept)}


def said(text: str, home: str = "") -> Any:
    """A name as it is, and anything with a space as a sentence."""
    kept = plain(text, home)
    return sentence(text, home) if " " in kept.strip() else kept


def facts(value: Any, home: str = "") -> Any:
    """Any value as JSON; arrays of many values as exact sums and a digest."""
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return said(str(value), home)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) + 0.0 if math.isfinite(value) else str(float(value))
    if isinstance(value, pd.DataFrame):
        return facts({str(name): value[name].tolist() for name in value}, home)
    if isinstance(value, Mapping):
        shown = _sorted(value) | (
            {"rows": _timeless(value["rows"])} if _last(value.get("columns")) == "seconds" else {}
        )
        return {key: "varies" if _varies(key, one) else facts(one, home) for key, one in shown.items()}
    if dataclasses.is_dataclass(value):
        shown = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.name[0] != "_"}
        return facts(shown, home)
    if isinstance(value, np.ndarray):
        return _array(value, home)
    if isinstance(value, list | tuple | set | frozenset):
        return [facts(one, home) for one in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return said(str(value), home)


def _sorted(value: Mapping[Any, Any]) -> dict[str, Any]:
    return dict(sorted((str(key), one) for key, one in value.items()))


def _last(values: Any) -> Any:
    return values[-1] if isinstance(values, list) and values else None


def _timeless(rows: list[Any]) -> list[Any]:
    """Rows of a table without their last cell, where that is of seconds."""
    return [row[:-1] for row in rows]


def _varies(key: str, value: Any) -> bool:
    return key in VARIES or (key.endswith(SIZES) and isinstance(value, int))


def _array(value: Any, home: str) -> Any:
    if value.size <= LISTED or value.dtype.kind not in "fiub":
        return facts(value.tolist(), home)
    exact = np.ascontiguousarray(value, dtype=np.float64).ravel() + 0.0
    kept = np.where(np.isfinite(exact), exact, 0.0)
    return {
        "shape": list(value.shape),
        "sum": math.fsum(kept),
        "squares": math.fsum(kept**2),
        "by place": math.fsum(kept * np.arange(kept.size)),
        "first": facts(exact[:5].tolist()),
        "last": facts(exact[-5:].tolist()),
        "digest": hashlib.sha256(exact.tobytes()).hexdigest()[:16],
    }


def tried(call: Callable[[], Any], home: str = "") -> Any:
    """What a call gives, with the kinds of its warnings; or the kind of its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            given = facts(call(), home)
        except Exception as error:  # noqa: BLE001
            return {"raises": type(error).__name__, "message": sentence(str(error), home)}
    told = [one for one in caught if issubclass(one.category, quanet.QuanetWarning)]
    if not told:
        return given
    return {"gives": given, "warns": [[one.category.__name__, sentence(str(one.message), home)] for one in told]}


def rows_of(lines: list[str], home: str = "") -> list[list[str]]:
    """Numbers in the rows of tables; of a table whose last column is seconds, without that."""
    found, timed = [], False
    for line in lines:
        words = line.replace("|", " ").split()
        timed = (timed and bool(words)) or _last(words) == "seconds"
        row = numbers(plain(line, home))
        if row and words[0] != "seconds":
            found.append(row[:-1] if timed else row)
    return found


def printed(text: str, home: str = "") -> dict[str, Any]:
    """What a terminal shows: numbers in rows of a table, and sentences."""
    lines = text.splitlines()
    cells = [bool(re.search(r"[│┃|]|\S\s{2,}\S", line)) for line in lines]
    rows = rows_of([line if cell else "─" * bool(line.strip()) for line, cell in zip(lines, cells, strict=True)], home)
    rest = "\n".join(line for line, cell in zip(lines, cells, strict=True) if not cell)
    return {"cells": rows, "text": sentence(rest, home)}


def of_html(text: str, home: str = "") -> dict[str, Any]:
    """Numbers of a page: cells of tables, drawings, and what is said besides."""
    text = re.sub(r"<(style|script|metadata|head)\b.*?</\1>", " ", text, flags=re.DOTALL)
    text = re.sub(r"<\?xml.*?\?>|<!.*?>", " ", text, flags=re.DOTALL)
    places = [one for tag in re.findall(r"<[^>]+>", text) for one in ATTRIBUTES.findall(tag)]
    drawing = [number for place in places for number in numbers(place)]
    cells = [cell for table in re.findall(r"<table\b.*?</table>", text, flags=re.DOTALL) for cell in _cells(table)]
    rest = re.sub(r"<table\b.*?</table>", " ", text, flags=re.DOTALL)
    labels = re.findall(r"<text\b[^>]*>(.*?)</text>", rest, flags=re.DOTALL)
    rest = re.sub(r"<[^>]+>", " ", re.sub(r"<text\b.*?</text>", " ", rest, flags=re.DOTALL))
    return {
        "cells": [found for cell in cells if (found := numbers(plain(cell, home)))],
        "drawing": facts(np.array([float(one.replace(",", "").replace("\u2212", "-")) for one in drawing])),
        "labels": [found for label in labels if (found := numbers(plain(unescape(label), home)))],
        "text": sentence(unescape(rest), home),
    }


def _cells(table: str) -> list[str]:
    """Texts of all cells of a table, without its last column if that is of seconds."""
    rows = []
    for row in re.findall(r"<tr\b.*?</tr>", table, flags=re.DOTALL):
        cells = re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL)
        rows.append([unescape(re.sub(r"<[^>]+>", " ", cell)).strip() for cell in cells])
    timed = any(_last(row) == "seconds" for row in rows)
    return [cell for row in (_timeless(rows) if timed else rows) for cell in row]


def of_markdown(text: str, home: str = "") -> dict[str, Any]:
    """Numbers of a Markdown page: rows of tables, and what is said besides; drawings within it as those of a page."""
    drawn = of_html("\n".join(re.findall(r"<svg\b.*?</svg>", text, flags=re.DOTALL)), home)
    lines = re.sub(r"<svg\b.*?</svg>", "", text, flags=re.DOTALL).splitlines()
    rows = rows_of([line if line.startswith("|") else "" for line in lines], home)
    rest = "\n".join(line for line in lines if not line.startswith("|"))
    return {"cells": rows, "drawing": drawn["drawing"], "text": sentence(rest, home)}


def of_csv(text: str, home: str = "") -> Any:
    """A table's columns."""
    return facts(pd.read_csv(StringIO(text), keep_default_na=False), home)
