"""`quanet correct`: correct a judge's rates with human labels."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli.console import command_settings, note, warnings_as_lines, write_answer, write_report
from quanet.cli.labels import settle_judgements
from quanet.cli.options import (
    COLUMNS,
    HOW,
    AnswerFormat,
    By,
    DateFormat,
    Encoding,
    Files,
    Force,
    Level,
    NormalizeLabels,
    Output,
    Report,
    check_class,
    check_level,
    check_outputs,
    choose_format,
    parse_keys,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.data.streams import TableSource
    from quanet.workflows.correct import Correction


def correct(
    files: Files,
    human: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Column of human labels, empty for other rows.", rich_help_panel=COLUMNS),
    ],
    judge: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the judge's labels or scores.", rich_help_panel=COLUMNS)
    ],
    by: By = None,
    normalize_labels: NormalizeLabels = False,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="The judge gives scores: a higher score means that the last class is more likely.",
            rich_help_panel=HOW,
        ),
    ] = False,
    calibration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Use the human labels of another file that the judge has labelled too.",
            rich_help_panel=HOW,
        ),
    ] = None,
    chosen: Annotated[
        bool,
        typer.Option(
            "--chosen",
            help="The human-labelled rows are not a random part: use them only for the judge's errors.",
            rich_help_panel=HOW,
        ),
    ] = False,
    same_errors: Annotated[
        bool,
        typer.Option(
            "--same-errors",
            help="Assume the same errors in all groups: narrower intervals, wrong if errors differ.",
            rich_help_panel=HOW,
        ),
    ] = False,
    show: Annotated[
        str | None,
        typer.Option("--class", metavar="LABEL", help="Class to show first; default: the last.", rich_help_panel=HOW),
    ] = None,
    level: Level = 0.95,
    date_format: DateFormat = None,
    encoding: Encoding = "utf-8",
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Correct the rates of a judge (a classifier, a crowd, a language model) with human labels of some rows.

    The rows with both labels show how the judge errs. The correction uses these errors, for all rows or by group.

    [bold]Examples[/]

    quanet correct judged.csv --human human_label --judge judge_label

    quanet correct judged.csv --human human --judge llm --by product --by date:month -o rates.csv

    quanet correct judged.csv --calibration labelled.csv --human human --judge score --scores
    """
    from quanet.data.periods import group_codes
    from quanet.data.streams import TableSource
    from quanet.report.correct import summarize_correction
    from quanet.workflows.correct import correct_groups

    check_level(level)
    keys = parse_keys(by or [])
    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    source = TableSource(files, encoding=encoding)
    other = None if calibration is None else TableSource(calibration, encoding=encoding)
    with warnings_as_lines():
        columns = [judge, *(key.column for key in keys), *([human] if other is None else [])]
        table = source.read(columns)
        groups, owner = group_codes(table, keys, source=source, form=date_format)
        judged, labels, pairs = settle_judgements(
            _judgements(table[judge], source, scores=scores),
            _labels(table[human], source) if other is None else [None] * len(table),
            None if other is None else _label_pairs(other, human, judge, scores=scores),
            normalize=normalize_labels,
        )
        correction = correct_groups(
            judged,
            labels,
            keys=keys,
            groups=groups,
            owner=owner,
            calibration=pairs,
            at_random=not chosen,
            scores=scores,
            same_errors=same_errors,
            level=level,
            source=source.name,
        )
    check_class(show, correction.classes)
    _print_rows(correction, source, other)
    summary = summarize_correction(correction, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)


def _label_pairs(
    source: "TableSource", human: str, judge: str, *, scores: bool
) -> "tuple[Sequence[Any], Sequence[Any]]":
    """Human labels of a file, and the judge's labels or scores of the same rows."""
    table = source.read([human, judge])
    return _labels(table[human], source), _judgements(table[judge], source, scores=scores)


def _labels(cells: Any, source: "TableSource") -> list[str | None]:
    from quanet.data.columns import label_names

    return [name or None for name in label_names(cells, source)]


def _judgements(cells: Any, source: "TableSource", *, scores: bool) -> "Sequence[Any]":
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
                "If the column contains labels, omit --scores."
            )
    return numbers


def _print_rows(correction: "Correction", source: "TableSource", other: "TableSource | None") -> None:
    rows = int(correction.sizes.sum()) + correction.skipped.get("no group", 0)
    if other is not None:
        note(f"{source.name}: {rows:,} judged rows. {other.name}: {correction.labelled:,} human labels.")
    else:
        note(f"{rows:,} judged rows, {correction.labelled:,} of them with a human label.")
    if correction.calibration == "part":
        note("The human-labelled rows count as a random part of all rows. If people chose them, use --chosen.")
    for reason, number in correction.skipped.items():
        note(f"Skipped: {number:,} rows with {reason}.")
