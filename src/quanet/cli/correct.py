"""`quanet correct`: what a judge's labels say once its errors are known."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from quanet.cli.console import note, warnings_as_lines
from quanet.cli.labels import settle_judgements
from quanet.cli.opening import settings
from quanet.cli.options import (
    COLUMNS,
    HOW,
    By,
    DateFormat,
    Encoding,
    Files,
    Force,
    Level,
    NormalizeLabels,
    Report,
    check_level,
)
from quanet.cli.protocol import keys_of
from quanet.cli.writing import AnswerFormat, Output, check_outputs, choose_format, write_answer, write_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.answers.correction import Correction
    from quanet.data.streams import Source


def correct(
    files: Files,
    human: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help="Column of human labels, empty where there is none.", rich_help_panel=COLUMNS
        ),
    ],
    judge: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the judge's labels or scores.", rich_help_panel=COLUMNS)
    ],
    by: By = None,
    normalize_labels: NormalizeLabels = False,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores", help="The judge gives scores: higher, the likelier the last class.", rich_help_panel=HOW
        ),
    ] = False,
    calibration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Take the human labels from another file that the judge has judged too.",
            rich_help_panel=HOW,
        ),
    ] = None,
    chosen: Annotated[
        bool,
        typer.Option(
            "--chosen",
            help="People did not label rows at random: their labels only tell how the judge errs.",
            rich_help_panel=HOW,
        ),
    ] = False,
    same_errors: Annotated[
        bool,
        typer.Option(
            "--same-errors",
            help="Assume that the judge errs alike in all groups: narrower intervals, wrong if it does not.",
            rich_help_panel=HOW,
        ),
    ] = False,
    show: Annotated[
        str | None,
        typer.Option(
            "--class", metavar="LABEL", help="The class shown first; by default the last.", rich_help_panel=HOW
        ),
    ] = None,
    level: Level = 0.95,
    date_format: DateFormat = None,
    encoding: Encoding = "utf-8",
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Correct a judge's rates (those of a classifier, a crowd, a language model) by human labels of a few rows.

    People have labelled some of the rows too; how the judge errs on these says what its rates are worth, by group.

    [bold]Examples[/]

    quanet correct judged.csv --human human_label --judge judge_label

    quanet correct judged.csv --human human --judge llm --by product --by date:month -o rates.csv

    quanet correct judged.csv --calibration labelled.csv --human human --judge score --scores
    """
    from quanet.answers.correction import correct_groups
    from quanet.answers.groups import group_codes
    from quanet.data.streams import Source

    check_level(level)
    keys = keys_of(by or [])
    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    source = Source(files, encoding=encoding)
    aside = None if calibration is None else Source(calibration, encoding=encoding)
    with warnings_as_lines():
        columns = [judge, *(key.column for key in keys), *([human] if aside is None else [])]
        table = source.read(columns)
        groups, owner = group_codes(table, keys, source=source, form=date_format)
        judged, labels, apart = settle_judgements(
            _judgements(table[judge], source, scores=scores),
            _labels(table[human], source) if aside is None else [None] * len(table),
            None if aside is None else _elsewhere(aside, human, judge, scores=scores),
            normalize=normalize_labels,
        )
        found = correct_groups(
            judged,
            labels,
            keys=keys,
            groups=groups,
            owner=owner,
            aside=apart,
            at_random=not chosen,
            scores=scores,
            same_errors=same_errors,
            level=level,
            source=source.name,
        )
    at = _place(found, show)
    _say_how(found, source, aside)

    def summary() -> Any:
        from quanet.report.corrections import summarize_correction

        return summarize_correction(found, settings=settings(), focus=show)

    write_summary(report, summary)
    write_answer(
        form,
        output,
        shown=lambda: _shown(found, at),
        rows=lambda: _rows(found),
        plain=lambda: _plain(found, at),
    )


def _elsewhere(aside: "Source", human: str, judge: str, *, scores: bool) -> "tuple[Sequence[Any], Sequence[Any]]":
    """Human labels of another file, and what the judge says of the same rows."""
    table = aside.read([human, judge])
    return _labels(table[human], aside), _judgements(table[judge], aside, scores=scores)


def _labels(cells: Any, source: "Source") -> list[str | None]:
    from quanet.data.columns import names_of

    return [name or None for name in names_of(cells, source)]


def _judgements(cells: Any, source: "Source", *, scores: bool) -> "Sequence[Any]":
    from quanet.data.columns import as_number
    from quanet.errors import InvalidData, brief

    if not scores:
        return _labels(cells, source)
    numbers = []
    for row, cell in zip(cells.index, cells, strict=True):
        numbers.append(None if cell is None else as_number(cell))
        if cell is not None and (numbers[-1] is None or not math.isfinite(numbers[-1])):
            raise InvalidData(
                f"{source.place(row)}: {brief(cell)} in column {cells.name!r} is not a score. "
                "For labels, leave out --scores."
            )
    return numbers


def _place(found: "Correction", show: str | None) -> int:
    names = [str(label) for label in found.classes.tolist()]
    if show is None:
        return len(names) - 1
    if show not in names:
        raise typer.BadParameter(f"{show!r} is none of {', '.join(names)}.", param_hint="--class")
    return names.index(show)


def _say_how(found: "Correction", source: "Source", aside: "Source | None") -> None:
    rows = int(found.sizes.sum()) + found.skipped.get("no group", 0)
    if aside is not None:
        note(
            f"{source.name}: {rows:,} judged rows. {aside.name}: {found.labelled:,} human labels, which only tell how "
            "the judge errs."
        )
    elif found.calibration == "part":
        note(
            f"{rows:,} judged rows, {found.labelled:,} of them with a human label. They are taken as a random part, so "
            "that they count by themselves and tell how the judge errs; say --chosen if people picked them."
        )
    else:
        note(
            f"{rows:,} judged rows, {found.labelled:,} of them with a human label, which only tells how the judge errs."
        )
    for sentence in found.assumptions():
        note(sentence)
    for reason, number in found.skipped.items():
        note(f"Left out: {number:,} rows with {reason}.")
    if found.keys and found.small.any():
        small = f"{int(found.small.sum())} of {len(found.groups)} groups"
        note(f"few: {small} whose interval is wider than 20 points.")


def _shown(found: "Correction", at: int) -> list[Any]:
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


def _rows(found: "Correction") -> list[dict[str, Any]]:
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


def _plain(found: "Correction", at: int) -> dict[str, Any]:
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
        "groups": _rows(found) if found.keys else [],
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
