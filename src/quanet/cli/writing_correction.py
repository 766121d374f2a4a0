"""How corrected rates are written: for the terminal, as rows, as plain data."""

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from quanet.answers.correction import Correction


def shown_correction(found: "Correction", at: int) -> list[Any]:
    """What a person sees: the sentence, the table of groups and classes, and how the judge errs."""
    names = [str(label) for label in found.classes.tolist()]
    parts: list[Any] = [f"[bold]{escape(found.sentence(at))}[/]"]
    if found.keys or len(names) > 2:
        parts += [_table(found, [at] if len(names) == 2 else [at, *(c for c in range(len(names)) if c != at)])]
    if found.rates is not None:
        parts += [_confusion(found, names)]
    return parts


def _table(found: "Correction", places: Any) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for key in found.keys:
        table.add_column(escape(str(key)))
    for title in ("n", "class", "judged", "corrected", "interval"):
        table.add_column(title, justify="left" if title == "class" else "right", no_wrap=True)
    if found.keys:
        table.add_column("labels used", no_wrap=True)
    table.add_column("")
    names = [str(label) for label in found.classes.tolist()]
    for g, group in enumerate(found.groups):
        for c in places:
            judged = found.judged[g, c]
            table.add_row(
                *map(escape, group),
                f"{found.sizes[g]:,}",
                escape(names[c]),
                "" if judged != judged else f"{judged:.1%}",
                f"[bold]{found.estimate[g, c]:.1%}[/]",
                f"{found.lower[g, c]:.1%} to {found.upper[g, c]:.1%}",
                *([found.labels_used[g]] if found.keys else []),
                ", ".join(["few"] * bool(found.small[g]) + ["doubtful"] * bool(found.doubtful[g])),
            )
    return table


def _confusion(found: "Correction", names: list[str]) -> Table:
    assert found.rates is not None
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title="What the judge says, by human label",
        title_justify="left",
        title_style="",
    )
    table.add_column("human label")
    for name in names:
        table.add_column(f"judge: {escape(name)}", justify="right")
    for name, row in zip(names, found.rates, strict=True):
        table.add_row(escape(name), *(f"{share:.1%}" for share in row))
    return table


def correction_rows(found: "Correction") -> list[dict[str, Any]]:
    """One row for every group and class."""
    rows = []
    for g, group in enumerate(found.groups):
        values = dict(zip((str(key.column) for key in found.keys), group, strict=True))
        for c, label in enumerate(found.classes.tolist()):
            rows.append(
                values
                | {
                    "n": int(found.sizes[g]),
                    "class": label,
                    "judged": found.judged[g, c],
                    "estimate": found.estimate[g, c],
                    "lower": found.lower[g, c],
                    "upper": found.upper[g, c],
                    "small": bool(found.small[g]),
                    "labels_used": found.labels_used[g],
                }
            )
    return rows


def plain_correction(found: "Correction", at: int) -> dict[str, Any]:
    """The answer as plain data."""
    names = [str(label) for label in found.classes.tolist()]
    total = dict(zip(("estimate", "lower", "upper", "judged"), found.total, strict=True))
    return {
        "answer": found.sentence(at),
        "class": found.classes.tolist()[at],
        "source": found.source,
        "classes": found.classes,
        "level": found.level,
        "labelled": found.labelled,
        "calibration": found.calibration,
        "errors": _errors(found),
        "total": {name: {key: one[c] for key, one in total.items()} for c, name in enumerate(names)},
        "groups": correction_rows(found) if found.keys else [],
        "rates": found.rates,
        "skipped": found.skipped,
    }


def _errors(found: "Correction") -> dict[str, Any] | None:
    """Whether the judge errs differently by group, and what was assumed; None without groups."""
    if not found.keys:
        return None
    test = found.errors
    return {
        "p_value": None if test is None or not test.tested else test.p_value,
        "differ": None if test is None or not test.tested else test.differ,
        "assumptions": found.assumptions(),
    }
