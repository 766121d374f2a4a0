r"""Tables as text: for the terminal, in Markdown, LaTeX (needs ``\usepackage{booktabs}``) and HTML."""

import html
import io
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console, Group
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from quanet.errors import InvalidSetting
from quanet.files import as_utf8
from quanet.report.files import write_whole
from quanet.report.tables import Entry, Table


def to_terminal(tables: Sequence[Table], console: Console) -> Group:
    """Tables for a Rich console; one that is too wide comes in parts, groups of columns together where they fit."""
    shown: list[RichTable | Text] = []
    for table in tables:
        shown += [_rich(part) for part in _fitting(table, console)]
        shown += [*(Text(note, style="dim") for note in table.notes), Text()]
    return Group(*shown)


def _fitting(table: Table, console: Console) -> list[Table]:
    endless = console.options.update(max_width=100_000)

    def fits(part: Table) -> bool:
        return Measurement.get(console, endless, _rich(part)).maximum <= console.width

    if fits(table):
        return [table]
    packs: list[list[int]] = []
    for group in table.groups:
        for unit in [group] if fits(table.part(group)) else [[i] for i in group]:
            if packs and fits(table.part([*packs[-1], *unit])):
                packs[-1] += unit
            else:
                packs.append(list(unit))
    return [table.part(pack) for pack in packs]


def to_plain(tables: Sequence[Table], *, width: int = 160) -> str:
    """What the terminal shows, without colours, for a file."""
    console = Console(width=width, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(to_terminal(tables, console))
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _rich(table: Table) -> RichTable:
    rich = RichTable(
        title=escape(table.title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    heads = _heads(table)
    rich.add_column(Text("\n" * heads[0].count("\n") + table.corner), no_wrap=True)
    for head in heads:
        rich.add_column(Text(head, justify="right"), no_wrap=True)
    widths = []
    for head, entries in zip(heads, zip(*(entries for _, entries in table.rows), strict=True), strict=True):
        mark, detail = max(len(e.mark) for e in entries), max(len(e.detail) for e in entries)
        beside = mark + detail + bool(detail)
        widths.append(
            (max(*(len(e.text) for e in entries), *(len(line) - beside for line in head.split("\n"))), mark, detail)
        )
    for name, entries in table.rows:
        cells = [_rich_entry(entry, *sizes) for entry, sizes in zip(entries, widths, strict=True)]
        rich.add_row(Text(name), *cells)
    return rich


def _heads(table: Table) -> list[str]:
    """Titles of columns, below the group's where a new one starts, all of the same number of lines."""
    if not _grouped(table):
        return [column.title for column in table.columns]
    tall = max(column.group.count(" (") for column in table.columns)
    heads, previous = [], ""
    for column in table.columns:
        over = column.group.replace(" (", "\n(") if column.group != previous else ""
        heads.append("\n" * (tall - over.count("\n")) + f"{over}\n{column.title}")
        previous = column.group
    return heads


def _rich_entry(entry: Entry, text: int, mark: int, detail: int) -> Text:
    shown = Text(entry.text.rjust(text), style="bold green" if entry.best else "")
    shown.append(entry.mark.ljust(mark), style="not bold")
    return shown.append(f" {entry.detail.rjust(detail)}" if detail else "", style="dim not bold")


def to_markdown(tables: Sequence[Table]) -> str:
    """Tables in GitHub's Markdown; a column's group stands in its title."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    def clean(text: str) -> str:
        return re.sub(r"([\\|*_\[\]]|<(?=[a-zA-Z/!]))", r"\\\1", " ".join(text.split()))

    def cell(entry: Entry) -> str:
        value = f"**{clean(entry.text)}**" if entry.best else clean(entry.text)
        return f"{value}{entry.mark}" + (f" ({entry.detail})" if entry.detail else "")

    titles = [clean(" ".join(filter(None, (column.group, column.title)))) for column in table.columns]
    lines = [
        f"| {' | '.join([clean(table.corner), *titles])} |",
        f"|---|{'---:|' * len(titles)}",
        *(f"| {' | '.join([clean(name), *map(cell, entries)])} |" for name, entries in table.rows),
    ]
    notes = "".join(f"\n{clean(note)}\n" for note in table.notes)
    return f"**{clean(table.title)}**\n\n" + "\n".join(lines) + f"\n{notes}"


TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "[": "{[}",  # at a row's start it would be read as the distance to the row above
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "=": "$=$",
    "†": r"$\dagger$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
}


def to_latex(tables: Sequence[Table]) -> str:
    r"""Tables for LaTeX documents that have ``\usepackage{booktabs}`` and ``\usepackage{graphicx}``."""
    return "\n".join(_latex(table) for table in tables)


def _tex(text: str) -> str:
    return "".join(TEX.get(letter, letter) for letter in text)


def _latex(table: Table) -> str:
    details = [
        any(entry.detail for entry in entries) for entries in zip(*(entries for _, entries in table.rows), strict=True)
    ]
    wide = [1 + detail for detail in details]
    groups = [
        (name, [i for i, _ in members])
        for name, members in groupby(enumerate(table.columns), key=lambda indexed: indexed[1].group)
    ]
    # Daggers hang out to the right, so that the digits stay below each other.
    shape = "l" + "".join("r@{\\hspace{1.1em}}" + ("r" if detail else "") for detail in details)
    # Many columns go across a page of two columns, and very many are shrunk to it; a small table would be blown up.
    star = "*" if sum(wide) > 4 else ""
    opened, closed = ("\\resizebox{\\textwidth}{!}{%", "}") if sum(wide) > 8 else ("", "")
    lines = [rf"\begin{{table{star}}}", r"\centering", opened, rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    if _grouped(table):
        spans = [sum(wide[i] for i in members) for _, members in groups]
        heads = [rf"\multicolumn{{{n}}}{{c}}{{{_tex(name)}}}" for (name, _), n in zip(groups, spans, strict=True)]
        lines.append(" & ".join(["", *heads]) + r" \\")
        ends = [1 + sum(spans[: i + 1]) for i in range(len(spans))]
        lines.append("".join(rf"\cmidrule(lr){{{e - n + 1}-{e}}}" for e, n in zip(ends, spans, strict=True)))
    titles = [rf"\multicolumn{{{n}}}{{c}}{{{_tex(c.title)}}}" for c, n in zip(table.columns, wide, strict=True)]
    lines += [" & ".join([_tex(table.corner), *titles]) + r" \\", r"\midrule"]
    for name, entries in table.rows:
        cells = [_tex(name)]
        for entry, detail in zip(entries, details, strict=True):
            value = rf"\textbf{{{_figure(entry.text)}}}" if entry.best else _figure(entry.text)
            cells.append(value + (rf"\rlap{{$^{{{_marks(entry.mark)}}}$}}" if entry.mark else ""))
            if detail:
                cells.append(_figure(entry.detail))
        lines.append(" & ".join(cells) + r" \\")
    caption = " ".join(_tex(text) for text in (f"{table.title}.", *table.notes))
    lines += [r"\bottomrule", r"\end{tabular}%", closed, rf"\caption{{{caption}}}", rf"\end{{table{star}}}"]
    return "\n".join(filter(None, lines)) + "\n"


def _marks(mark: str) -> str:
    return mark.replace("†", r"\dagger")


def _figure(text: str) -> str:
    """A figure with a sign of full width, and its unit close by."""
    signed = re.fullmatch(r"([+-])(\d.*)", text)
    return f"${signed[1]}${_tex(signed[2])}".replace(" ", r"\,") if signed else _tex(text)


STYLE = """\
body{font:15px/1.45 system-ui,sans-serif;color:#1a1a1a;margin:2rem auto;max-width:82rem;padding:0 1rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0}
caption{text-align:left;font-weight:600;padding:.4rem 0}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap}
th:first-child{text-align:left;font-weight:400}
thead th{border-bottom:1px solid #888;font-weight:600}
thead tr.groups th{border-bottom:0;text-align:center}
tbody tr:nth-child(even){background:#f5f6f7}
tbody th{font-weight:400}
td small{color:#666;display:inline-block;min-width:4.2em}
td sup{display:inline-block;min-width:1.2em;text-align:left;line-height:0}
p.note{color:#444;font-size:.9em;margin:.2em 0;max-width:66em}
@media print{body{margin:0;font-size:9px}.wide{overflow:visible}}"""


def to_html(tables: Sequence[Table], *, title: str = "Experiment") -> str:
    """Tables as one self-contained page."""
    body = "\n".join(html_table(table) for table in tables)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{html.escape(title)}</title>\n'
        f"<style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{html.escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def html_table(table: Table) -> str:
    """One table with its notes, to stand in a page."""
    details, marks = (
        [any(getattr(e, part) for e in entries) for entries in zip(*(e for _, e in table.rows), strict=True)]
        for part in ("detail", "mark")
    )

    def cell(entry: Entry, detail: bool, mark: bool) -> str:
        value = f"<b>{html.escape(entry.text)}</b>" if entry.best else html.escape(entry.text)
        value += f"<sup>{html.escape(entry.mark)}</sup>" if mark else ""
        return f"<td>{value}{f'<small>{html.escape(entry.detail)}</small>' if detail else ''}</td>"

    heads = [f'<th scope="col">{html.escape(text)}</th>' for text in (table.corner, *(c.title for c in table.columns))]
    # What scrolls sideways can be reached and moved by keys too.
    region = f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(table.title)}">'
    lines = [region, "<table>", f"<caption>{html.escape(table.title)}</caption>", "<thead>"]
    if _grouped(table):
        spans = [(name, len(list(members))) for name, members in groupby(table.columns, key=lambda c: c.group)]
        over = "".join(f'<th colspan="{n}" scope="colgroup">{html.escape(name)}</th>' for name, n in spans)
        lines.append(f'<tr class="groups"><td></td>{over}</tr>')
    lines += [f"<tr>{''.join(heads)}</tr>", "</thead>", "<tbody>"]
    for name, entries in table.rows:
        cells = "".join(cell(*parts) for parts in zip(entries, details, marks, strict=True))
        lines.append(f'<tr><th scope="row">{html.escape(name)}</th>{cells}</tr>')
    lines += ["</tbody>", "</table>", "</div>"]
    lines += [f'<p class="note">{html.escape(note)}</p>' for note in table.notes]
    return "\n".join(lines)


def _grouped(table: Table) -> bool:
    return any(column.group for column in table.columns)


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "terminal": to_plain,
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
}
SUFFIXES = {".md": "markdown", ".tex": "latex", ".html": "html", ".txt": "terminal"}


def choose_format(wanted: str | None, output: Path | None) -> str:
    """The format that is wanted, else that of the file's ending, else the terminal's.

    Examples
    --------
    >>> choose_format(None, Path("table.tex")), choose_format("html", None), choose_format(None, None)
    ('latex', 'html', 'terminal')
    """
    if wanted is not None:
        return str(wanted)
    if output is None:
        return "terminal"
    if output.suffix.lower() not in SUFFIXES:
        raise InvalidSetting(
            f"a table's file ends in {', '.join(SUFFIXES)}; {output.name!r} does not. Name the format, or one of these."
        )
    return SUFFIXES[output.suffix.lower()]


def write_tables(tables: Sequence[Table], form: str, output: Path | None) -> str:
    """Write tables to a file, whole or not at all; without a file, return their text."""
    text = FORMATS[form](tables)
    if output is None:
        return text
    write_whole(output, as_utf8(text))
    return ""
