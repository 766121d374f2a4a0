"""`quanet correct`: what a judge's labels say once its errors are known."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from quanet.cli.writing_correction import correction_rows, plain_correction, shown_correction

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
        shown=lambda: shown_correction(found, at),
        rows=lambda: correction_rows(found),
        plain=lambda: plain_correction(found, at),
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
