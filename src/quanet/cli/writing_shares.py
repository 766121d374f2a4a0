"""Shares on the screen, and as data: CSV, JSON, Parquet."""

import io
import json
from typing import TYPE_CHECKING, Any

from quanet.cli.console import console, note
from quanet.cli.tables import MOST, diagnosis_lines, note_of, shares_table
from quanet.files import as_utf8

if TYPE_CHECKING:
    import pandas as pd

    from quanet.answers.shares import Shares

TEXT_WIDTH = 120  # of a table in a file


def print_table(shares: "Shares", *, everything: bool) -> None:
    """The table on standard output, then what was found out about it."""
    console.print(shares_table(shares, console.width))
    if len(shares.groups) > MOST:
        note(f"{len(shares.groups) - MOST:,} more groups are not shown; --output shares.csv writes them all.")
    for line in diagnosis_lines(shares.diagnosis, everything=everything):
        console.print(line, highlight=False)
    if shares.small.any() and shares.keys:
        few = int(shares.small.sum())
        note(f"few: below 20 instances, or an interval wider than 20 points, in {few:,} groups")
    if "alarm" in shares.diagnoses:
        count = shares.diagnoses.count("alarm")
        note(f"drift: unlike training in words or posteriors, {count:,} groups; may be off by more than intervals say")
    if shares.keys and "" in shares.diagnoses:
        note(f"Looked for drift in {len(shares.groups) - shares.diagnoses.count(''):,} groups, the largest")


def as_bytes(shares: "Shares", form: str) -> bytes:
    """The answer as a file."""
    if form == "json":
        return as_utf8(json.dumps(plain(shares), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if form == "table":
        return as_utf8(_as_text(shares))
    table = frame(shares)
    if form == "csv":
        return as_utf8(table.to_csv(index=False, float_format="%.6g"))
    content = io.BytesIO()
    table.to_parquet(content, index=False)
    return content.getvalue()


def frame(shares: "Shares") -> "pd.DataFrame":
    """A row for every group and class."""
    import numpy as np
    import pandas as pd

    k = len(shares.classes)
    names = key_names(shares)
    values = {name: np.repeat([group[at] for group in shares.groups], k) for at, name in enumerate(names)}
    return pd.DataFrame(
        values
        | {
            "class": np.tile(shares.classes, len(shares.groups)),
            "estimate": shares.interval.estimate.ravel(),
            "lower": shares.interval.lower.ravel(),
            "upper": shares.interval.upper.ravel(),
            "n": np.repeat(shares.sizes, k),
            "counted": shares.counted.ravel(),
            "note": np.repeat([_plain_note(shares, g) for g in range(len(shares.groups))], k),
        }
    )


def key_names(shares: "Shares") -> list[str]:
    """Names of the groups' columns; a column that is cut in two ways is told apart by its period."""
    columns = [key.column for key in shares.keys]
    taken = {"class", "estimate", "lower", "upper", "n", "counted", "note"}
    return [
        f"{key.column}:{key.period}" if columns.count(key.column) > 1 or key.column in taken else key.column
        for key in shares.keys
    ]


def plain(shares: "Shares") -> dict[str, Any]:
    """The answer as JSON has it."""
    names = key_names(shares)
    groups = [
        {
            "group": dict(zip(names, values, strict=True)),
            "n": int(shares.sizes[g]),
            "small": bool(shares.small[g]),
            "diagnosis": shares.diagnoses[g],
            "classes": _classes(shares, shares.interval, shares.counted, g),
        }
        for g, values in enumerate(shares.groups)
    ]
    total = {"n": int(shares.sizes.sum()), "classes": _classes(shares, shares.total, shares.total_counted, ())}
    return {
        "source": shares.source,
        "model": shares.model,
        "level": shares.total.level,
        "interval": shares.total.method,
        "total": total,
        **({"groups": groups} if shares.keys else {}),
        "diagnosis": [
            {
                "name": one.name,
                "severity": one.severity,
                "sentence": one.sentence,
                "advice": one.advice,
                "numbers": {name: _number(value) for name, value in one.numbers.items()},
            }
            for one in shares.diagnosis
        ],
        "skipped": shares.skipped,
    }


def _classes(shares: "Shares", interval: Any, counted: Any, g: Any) -> dict[str, dict[str, float | None]]:
    return {
        str(name): {
            "estimate": _number(interval.estimate[g][c]),
            "lower": _number(interval.lower[g][c]),
            "upper": _number(interval.upper[g][c]),
            "counted": _number(counted[g][c]),
        }
        for c, name in enumerate(shares.classes.tolist())
    }


def _number(value: float) -> float | None:
    """Six digits are far more than is known; what is not finite has no place in JSON."""
    return round(float(value), 6) if abs(value) < float("inf") else None


def _plain_note(shares: "Shares", g: int) -> str:
    from rich.text import Text

    return Text.from_markup(note_of(shares, g)).plain


def _as_text(shares: "Shares") -> str:
    from rich.console import Console

    paper = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None, emoji=False)
    paper.print(shares_table(shares, TEXT_WIDTH))
    for line in diagnosis_lines(shares.diagnosis, everything=True):
        paper.print(line, highlight=False)
    written = paper.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in written.splitlines()) + "\n"
