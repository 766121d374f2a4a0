"""Answers as tables for the screen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from quanet.answers.fitting import HeldOut
    from quanet.answers.shares import Shares
    from quanet.diagnostics.findings import Diagnosis

STYLES = {"ok": "green", "note": "cyan", "warning": "yellow", "alarm": "bold red"}
SIGNS = {"ok": "✓", "note": "·", "warning": "!", "alarm": "✗"}
BAR = 24  # characters of a share of 100 %
STRIP = 21  # characters from 0 to 100 %, 5 points each
MOST = 200  # groups on a screen


def counts_table(counts: Mapping[Any, int], most: int) -> Table:
    """Instances of every class, the largest first where there are many."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    total = sum(counts.values())
    shown = list(counts.items())
    if len(shown) > most:
        shown = sorted(shown, key=lambda one: -one[1])[: most - 1]
    for name, number in shown:
        table.add_row("", escape(str(name)), f"{number:,}", f"{number / total:.1%}", _bar(number / total))
    if len(shown) < len(counts):
        rest = total - sum(number for _, number in shown)
        table.add_row("", f"[dim]{len(counts) - len(shown)} others[/]", f"{rest:,}", f"{rest / total:.1%}", "")
    for column in table.columns[2:4]:
        column.justify = "right"
    return table


def errors_table(errors: "HeldOut", name: str) -> Table:
    """Held-out errors beside those of a plain count."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_row("", f"[bold]{escape(name)}[/]", f"[bold]{100 * errors.error:.1f}[/] points")
    if name != "CC":
        table.add_row("", "plain count of labels (CC)", f"{100 * errors.counted:.1f} points")
    table.columns[2].justify = "right"
    return table


def shares_table(shares: "Shares", width: int) -> Table:
    """The answer: a line a class, or a line a group, or, for many classes, a line a group and class."""
    if not shares.keys:
        return _classes_table(shares)
    paper = Console(width=10_000)
    for strips in (True, False) if len(shares.classes) == 2 else (False,):
        table = _groups_table(shares, strips=strips)
        if Measurement.get(paper, paper.options, table).maximum <= width:
            return table
    return _long_table(shares)


def _classes_table(shares: "Shares") -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("class", style="bold", overflow="fold")
    table.add_column("share", justify="right")
    table.add_column(f"{shares.total.level:.0%} interval", justify="right")
    table.add_column("counted", justify="right", style="dim")
    table.add_column("")
    found = shares.total
    for c, name in enumerate(shares.classes.tolist()):
        table.add_row(
            escape(str(name)),
            f"{found.estimate[c]:.1%}",
            f"{100 * found.lower[c]:.1f} to {100 * found.upper[c]:.1f}",
            _percent(shares.total_counted[c]),
            _bar(float(found.estimate[c])),
        )
    return table


def _groups_table(shares: "Shares", *, strips: bool) -> Table:
    """A line a group; of two classes the second says all, and may be drawn."""
    shown = range(1, 2) if len(shares.classes) == 2 else range(len(shares.classes))
    table = _begun(shares)
    for c in shown:
        name = escape(str(shares.classes.tolist()[c]))
        table.add_column(name, justify="right", style="bold", overflow="fold")
        table.add_column(f"{shares.interval.level:.0%} interval", justify="right", no_wrap=True)
    if strips:
        table.add_column("")
    table.add_column("")
    for g, values in enumerate(shares.groups[:MOST]):
        cells = [escape(value) for value in values] + [f"{shares.sizes[g]:,}"]
        for c in shown:
            cells += _cells(shares.interval, g, c)
        if strips:
            cells.append(_strip(shares, g, 1))
        table.add_row(*cells, note_of(shares, g), style="dim" if shares.small[g] else None)
    table.add_section()
    cells = ["[italic]all[/]", *[""] * (len(shares.keys) - 1), f"{int(shares.sizes.sum()):,}"]
    for c in shown:
        cells += _cells(shares.total, (), c)
    table.add_row(*cells)
    return table


def _long_table(shares: "Shares") -> Table:
    table = _begun(shares)
    table.add_column("class", overflow="fold")
    table.add_column("share", justify="right", style="bold")
    table.add_column(f"{shares.interval.level:.0%} interval", justify="right", no_wrap=True)
    table.add_column("")
    k = len(shares.classes)
    for g, values in enumerate(shares.groups[:MOST]):
        for c, name in enumerate(shares.classes.tolist()):
            lead = [*map(escape, values), f"{shares.sizes[g]:,}"] if c == 0 else [""] * (len(values) + 1)
            said = note_of(shares, g) if c == 0 else ""
            table.add_row(
                *lead,
                escape(str(name)),
                *_cells(shares.interval, g, c),
                said,
                end_section=c == k - 1,
                style="dim" if shares.small[g] else None,
            )
    return table


def _begun(shares: "Shares") -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for key in shares.keys:
        table.add_column(escape(str(key)), overflow="fold")
    table.add_column("n", justify="right", style="dim")
    return table


def _cells(interval: Any, g: Any, c: int) -> list[str]:
    lower, upper = interval.lower[g][c], interval.upper[g][c]
    return [f"{interval.estimate[g][c]:.1%}", f"{100 * lower:.1f} to {100 * upper:.1f}"]


def note_of(shares: "Shares", g: int) -> str:
    """What must be known of a group's answer: too few instances, or unlike training."""
    words = ["few"] if shares.small[g] else []
    if shares.diagnoses[g] == "alarm":
        words.append("[red]drift[/]")
    return ", ".join(words)


def diagnosis_lines(diagnosis: "Diagnosis", *, everything: bool) -> list[Text]:
    """Findings, a line each; those that are well are one line unless all are wanted."""
    lines = []
    well = [one for one in diagnosis if one.severity == "ok"]
    for finding in diagnosis:
        if finding.severity != "ok" or everything:
            sign = Text(f"{SIGNS[finding.severity]} ", style=STYLES[finding.severity])
            advice = Text(f" {finding.advice}", style="dim") if finding.advice else Text("")
            lines.append(Text.assemble(sign, finding.sentence, advice))
    if well and not everything:
        names = ", ".join(one.name for one in well)
        lines.append(Text.assemble(Text("✓ ", style="green"), Text(f"Nothing to say against: {names}.", style="dim")))
    return lines


def _percent(value: float) -> str:
    return "" if value != value else f"{value:.1%}"


def _bar(share: float) -> str:
    eighths = round(share * BAR * 8)
    return f"[blue]{'█' * (eighths // 8)}{' ▏▎▍▌▋▊▉'[eighths % 8].strip()}[/]"


def _strip(shares: "Shares", g: int, c: int) -> str:
    """The interval on a line from 0 to 100 %, the estimate on it."""
    places = [round(float(value[g, c]) * (STRIP - 1)) for value in (shares.interval.lower, shares.interval.upper)]
    at = round(float(shares.interval.estimate[g, c]) * (STRIP - 1))
    line = ["·"] * STRIP
    line[places[0] : places[1] + 1] = "─" * (places[1] - places[0] + 1)
    line[at] = "●"
    start, end = places[0], places[1] + 1
    return f"[dim]{''.join(line[:start])}[/][blue]{''.join(line[start:end])}[/][dim]{''.join(line[end:])}[/]"
