"""Answers on a terminal, and in text files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from math import isfinite

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from quanet.evaluation.findings import Finding
from quanet.report.phrases import short
from quanet.report.summary import Section, Summary, Table, TableEntry

STYLES = {"ok": "green", "note": "cyan", "warning": "yellow", "alarm": "bold red"}
SIGNS = {"ok": "✓", "note": "·", "warning": "!", "alarm": "✗"}
STRIP = 21  # characters from 0 to 100 %, 5 points each
MOST_ROWS = 200  # of a table
TEXT_WIDTH = 120  # of a text file
GAP = 2  # spaces before a detail
EXAMPLE = 80  # characters of an example
WRAPPED = 24  # characters of a name; longer names may be wrapped


def print_summary(summary: Summary, console: Console, *, verbose: bool = False) -> None:
    """Print an answer: sentence, cautions, facts, then sections; details and settings only if `verbose`."""
    for part in _parts(summary, console, verbose=verbose):
        console.print(part, highlight=False)


def to_text(summary: Summary, *, width: int = TEXT_WIDTH) -> str:
    """The whole answer as the terminal shows it, without colours, for a file."""
    page = Console(file=StringIO(), width=width, color_system=None, emoji=False)
    with page.capture() as capture:
        print_summary(summary, page, verbose=True)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _parts(summary: Summary, console: Console, *, verbose: bool) -> Iterator[RenderableType]:
    if summary.answer:
        yield Text(summary.answer, style="bold")
    yield from map(_finding, summary.cautions)
    if summary.facts:
        yield Text(" · ".join(_fact(name, value) for name, value in summary.facts), style="dim")
    for section in summary.sections:
        if verbose or not section.detail:
            yield from _section(section, console, summary.findings_of(section), verbose=verbose)
    if verbose and summary.settings:
        yield Text("\nTo reproduce this", style="bold")
        yield from (Text(f"{name}: {value}", style="dim") for name, value in summary.settings)


def _fact(name: str, value: str) -> str:
    """A number before its name, as in "18 groups"; a word after it."""
    return f"{value} {name}" if value[:1].isdigit() else f"{name}: {value}"


def _section(
    section: Section, console: Console, findings: Sequence[Finding], *, verbose: bool
) -> Iterator[RenderableType]:
    if section.findings and not (findings or section.charts or section.tables):
        return
    if section.title:
        yield Text(f"\n{section.title}", style="bold")
    yield from map(Text, section.paragraphs)
    yield from findings_lines(findings, verbose=verbose)
    for table in (*(chart.table for chart in section.charts), *section.tables):
        yield from _table(table, console)


def findings_lines(findings: Sequence[Finding], *, verbose: bool) -> Iterator[RenderableType]:
    """Findings, a line each; unless `verbose`, one line lists the checks without problems."""
    yield from (_finding(finding) for finding in findings if verbose or finding.severity != "ok")
    passed = ", ".join(finding.name for finding in findings if finding.severity == "ok")
    if passed and not verbose:
        yield Text.assemble((f"{SIGNS['ok']} ", STYLES["ok"]), (f"Checked, no problems: {passed}.", "dim"))


def _finding(finding: Finding) -> RenderableType:
    advice = f" {finding.advice}" if finding.advice else ""
    example = f' Example: "{short(finding.examples[0], EXAMPLE)}"' if finding.examples else ""
    sign = (f"{SIGNS[finding.severity]} ", STYLES[finding.severity])
    return Text.assemble(sign, finding.sentence, (f"{advice}{example}", "dim"))


def _table(table: Table, console: Console) -> Iterator[RenderableType]:
    """A table; one that is too wide loses its strips, then its spare columns, and at last is split into parts."""
    for part in _fitting(replace(table, rows=table.rows[:MOST_ROWS], strips=table.strips[:MOST_ROWS]), console):
        yield _rich(part)
    if len(table.rows) > MOST_ROWS:
        more = len(table.rows) - MOST_ROWS
        yield Text(f"{more:,} more rows are not shown. Write all of them to a file: --output FILE.csv.", style="dim")
    yield from (Text(note, style="dim") for note in table.notes)


def _fitting(table: Table, console: Console) -> list[Table]:
    endless = console.options.update(max_width=100_000)

    def fits(part: Table) -> bool:
        return Measurement.get(console, endless, _rich(part)).minimum <= console.width

    for candidate in (table, replace(table, strips=())):
        if fits(candidate):
            return [candidate]
    needed = table.needed
    for candidate in (needed, replace(needed, strips=())):
        if fits(candidate):
            return [candidate]
    return _split_columns(needed, fits) or [needed]


def _split_columns(table: Table, fits: Callable[[Table], bool]) -> list[Table]:
    """Parts of a table with some of its numbers each; texts, which name a row or are notes on it, are in all parts."""
    texts = [i for i, column in enumerate(table.columns) if column.left]

    def part(columns: Sequence[int]) -> Table:
        return table.part(sorted({*texts, *columns}))

    packs: list[list[int]] = []
    for group in table.groups:
        numbers = [i for i in group if i not in texts]
        for unit in [numbers] if fits(part(numbers)) else [[i] for i in numbers]:
            if packs and fits(part([*packs[-1], *unit])):
                packs[-1] += unit
            elif unit:
                packs.append(list(unit))
    return [part(pack) for pack in packs]


def _rich(table: Table) -> RichTable:
    rich = RichTable(
        title=Text(table.title) if table.title else None,
        title_justify="left",
        title_style="dim",
        show_header=bool(table.corner or any(column.title for column in table.columns)),
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    heads = _headings(table)
    widths = _widths(table, heads)
    names = [name for name, _ in table.rows]
    corner = Text("\n" * (heads[0].count("\n") if heads else 0) + table.corner)
    rich.add_column(corner, overflow="fold", min_width=_least_width([*names, table.corner]))
    for at, (head, column) in enumerate(zip(heads, table.columns, strict=True)):
        if column.left:
            texts = [entries[at].text for _, entries in table.rows]
            rich.add_column(Text(head), overflow="fold", min_width=_least_width([*texts, *head.split("\n")]))
        else:
            text, mark, detail = widths[at]
            rich.add_column(
                Text(head, justify="right"), no_wrap=True, min_width=text + mark + detail + GAP * bool(detail)
            )
    if table.strips:
        rich.add_column("", min_width=STRIP)
    for at, (name, entries) in enumerate(table.rows):
        cells = [
            Text(entry.text, style="bold" if entry.best else "") if column.left else _cell(entry, *sizes)
            for entry, column, sizes in zip(entries, table.columns, widths, strict=True)
        ]
        rich.add_row(Text(name), *cells, *([_strip(*table.strips[at])] if table.strips else []))
    return rich


def _least_width(texts: Sequence[str]) -> int:
    """Width that a column of texts needs at least; longer texts are wrapped."""
    return min(WRAPPED, max(map(cell_len, texts), default=0))


def _headings(table: Table) -> list[str]:
    """Titles of columns, below their group's title where a new group starts, all of the same number of lines."""
    if not table.grouped:
        return [column.title for column in table.columns]
    tall = max(column.group.count(" (") for column in table.columns)
    heads, previous = [], ""
    for column in table.columns:
        over = column.group.replace(" (", "\n(") if column.group != previous else ""
        heads.append("\n" * (tall - over.count("\n")) + f"{over}\n{column.title}")
        previous = column.group
    return heads


def _widths(table: Table, heads: list[str]) -> list[tuple[int, int, int]]:
    """Characters of texts, marks and details, by column, so that digits are aligned."""
    widths = []
    for at, head in enumerate(heads):
        entries = [entries[at] for _, entries in table.rows] or [TableEntry("")]
        mark, detail = max(len(e.mark) for e in entries), max(len(e.detail) for e in entries)
        added = mark + detail + GAP * bool(detail)
        text = max(*(len(e.text) for e in entries), *(len(line) - added for line in head.split("\n")))
        widths.append((text, mark, detail))
    return widths


def _cell(entry: TableEntry, text: int, mark: int, detail: int) -> Text:
    shown = Text(entry.text.rjust(text), style="bold green" if entry.best else "")
    shown.append(entry.mark.ljust(mark), style="not bold")
    return shown.append(f"{' ' * GAP}{entry.detail.rjust(detail)}" if detail else "", style="dim not bold")


def _strip(estimate: float, lower: float, upper: float) -> Text:
    """An interval on a line from 0 to 100 %, with the estimate on it."""
    if not all(isfinite(value) for value in (estimate, lower, upper)):
        return Text("")
    start, end, at = (round(value * (STRIP - 1)) for value in (lower, upper, estimate))
    line = ["·"] * STRIP
    line[start : end + 1] = "─" * (end - start + 1)
    line[at] = "●"
    parts = ("".join(line[:start]), "".join(line[start : end + 1]), "".join(line[end + 1 :]))
    return Text.assemble((parts[0], "dim"), (parts[1], "blue"), (parts[2], "dim"))
