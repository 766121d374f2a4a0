"""What `quanet monitor` found, as tables on the screen, as rows of CSV and as plain data."""

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from quanet.answers.following import Followed

CSV = (
    *("batch", "date", "n", "class", "estimate", "smoothed", "lower", "upper", "weighted"),
    *("evidence", "alarm", "since"),
)


def shown_changes(found: "Followed", at: int) -> list[Table]:
    """Every change with the level before and after it, where there are several."""
    if len(found.course.changes) < 2:
        return []
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("changed since", "from", "to", "found with"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in found.course.changes:
        ends = (f"{one.before[at]:.1%}", f"{one.after[at]:.1%}")
        table.add_row(found.told(one.date), *ends, found.told(one.found))
    return [table]


def shown_readings(found: "Followed", at: int) -> Table:
    """What the monitor said after every batch, about the class at a position."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("batch", no_wrap=True)
    name = escape(str(found.course.classes.tolist()[at]))
    for title in ("n", name, "smoothed", "interval", "evidence"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for batch, reading in zip(found.batches, found.readings, strict=True):
        table.add_row(
            escape(batch),
            f"{reading.n:,}",
            f"{reading.estimate[at]:.1%}",
            f"[bold]{reading.windowed[at]:.1%}[/]",
            f"{reading.lower[at]:.1%} to {reading.upper[at]:.1%}",
            f"{reading.evidence:.3g}",
            "[bold red]change found[/]" if reading.found else "",
        )
    return table


def reading_rows(found: "Followed") -> list[dict[str, Any]]:
    """A row for every batch and class."""
    rows = []
    for batch, reading in zip(found.batches, found.readings, strict=True):
        for c, label in enumerate(found.course.classes.tolist()):
            rows.append(
                {
                    "batch": batch,
                    "date": found.told(reading.date),
                    "n": reading.n,
                    "class": label,
                    "estimate": reading.estimate[c],
                    "smoothed": reading.windowed[c],
                    "lower": reading.lower[c],
                    "upper": reading.upper[c],
                    "weighted": reading.weighted[c],
                    "evidence": reading.evidence,
                    "alarm": reading.alarm,
                    "since": None if reading.since is None else found.told(reading.since),
                }
            )
    return rows


def plain_course(found: "Followed", at: int) -> dict[str, Any]:
    """The answer as plain data, about the class at a position first."""
    since = found.course.since
    return {
        "answer": found.sentence(at),
        "class": found.course.classes.tolist()[at],
        "alarm": since is not None,
        "since": None if since is None else found.told(since),
        "threshold": found.threshold,
        "classes": found.course.classes,
        "before": found.before,
        "after": found.after,
        "changes": [
            {"since": found.told(one.date), "found": found.told(one.found), "before": one.before, "after": one.after}
            for one in found.course.changes
        ],
        "earlier_batches": found.earlier,
        "readings": reading_rows(found),
    }
