"""Answers to the screen, to a pipe or to a file, as a table, CSV or JSON."""

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType

from quanet.cli.console import console, note
from quanet.cli.options import OUTPUT, check_new
from quanet.files import as_utf8

if TYPE_CHECKING:
    from quanet.report.summary import Summary

TEXT_WIDTH = 120  # of a table in a file


class Format(StrEnum):
    """How an answer is written."""

    table = "table"
    csv = "csv"
    json = "json"


AnswerFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="[dim]default: by the ending of the output; a table on a terminal, JSON in a pipe[/]",
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the answer to a file.", rich_help_panel=OUTPUT),
]


def choose_format(form: Format | None, output: Path | None) -> Format:
    """The format asked for, or the one that the file's ending says; a table on a terminal, JSON in a pipe."""
    if form is not None:
        return form
    if output is None:
        return Format.table if console.is_terminal else Format.json
    endings = {".csv": Format.csv, ".json": Format.json, ".txt": Format.table}
    found = endings.get(output.suffix.lower())
    if found is None:
        raise typer.BadParameter(
            f"{output} ends in none of {', '.join(endings)}. Say what to write: --format.", param_hint="--output"
        )
    return found


def write_answer(
    form: Format,
    output: Path | None,
    *,
    shown: Callable[[], Sequence[RenderableType]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
    plain: Callable[[], Any],
    columns: Sequence[str] | None = None,
) -> None:
    """Write an answer in one piece: the last thing a command does, as whoever reads a pipe may have read enough.

    Parameters
    ----------
    form : how.
    output : where to; None is standard output.
    shown, rows, plain : make it for a table, for CSV and for JSON.
    columns : of the CSV, where there may be no row to tell.
    """
    if form is Format.table and output is None:
        for part in shown():
            console.print(part, highlight=False)
        return
    text = _as_text(form, shown, rows, plain, columns)
    if output is None:
        write_out(as_utf8(text))
        return
    from quanet.report.files import write_whole

    write_whole(output, as_utf8(text))
    note(f"Written: {output}")


def write_out(content: bytes) -> None:
    """Write to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def check_outputs(*paths: Path | None, report: Path | None = None, force: bool) -> None:
    """What would fail at the end is said at the beginning: files that are there, reports that cannot be made."""
    for path in (*paths, report):
        check_new(path, force=force)
    if report is not None:
        from quanet.report.page import check_report

        check_report(report)


def write_summary(path: Path | None, make: Callable[[], "Summary"]) -> None:
    """Write a report, if one is asked for."""
    if path is None:
        return
    from quanet.report.page import write_report

    write_report(make(), path)
    note(f"Report: {path}")


def _as_text(
    form: Format,
    shown: Callable[[], Sequence[RenderableType]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
    plain: Callable[[], Any],
    columns: Sequence[str] | None,
) -> str:
    if form is Format.json:
        return json.dumps(without_nan(plain()), indent=1, ensure_ascii=False) + "\n"
    if form is Format.csv:
        import pandas as pd

        named = None if columns is None else pd.Index(columns)
        return pd.DataFrame(list(rows()), columns=named).to_csv(index=False)
    paper = Console(file=StringIO(), width=TEXT_WIDTH, color_system=None, emoji=False)
    for part in shown():
        paper.print(part, highlight=False)
    written = paper.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in written.splitlines()) + "\n"


def without_nan(value: Any) -> Any:
    """Plain data for JSON: arrays as lists, what is not a number as null.

    Examples
    --------
    >>> without_nan({"p": [0.5, float("nan")]})
    {'p': [0.5, None]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
