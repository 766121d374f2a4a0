"""`quanet correct`: correct a judge's rates with human labels."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli.console import command_settings, note, warn, warnings_as_lines, write_answer, write_report
from quanet.cli.fail_over import Bound, FailBound, FailOver, check_bound
from quanet.cli.judge_files import JudgeColumns, JudgedTable, read_judged, settle_tables
from quanet.cli.options import (
    AnswerFormat,
    Files,
    Force,
    NormalizeLabels,
    Output,
    Report,
    check_class,
    check_outputs,
    choose_format,
    name_classes,
)
from quanet.data.settings import COLUMNS, METHOD, Grouping, Level, Naming, TableFormat

if TYPE_CHECKING:
    from quanet.data.streams import TableSource
    from quanet.workflows.correct import Correction


def correct(
    files: Files,
    human: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Column of human labels, empty for other rows.", rich_help_panel=COLUMNS),
    ],
    judge: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN",
            help="Column of the judge's labels or scores. Repeat it for several judges.",
            rich_help_panel=COLUMNS,
        ),
    ],
    grouping: Grouping,
    level: Level,
    naming: Naming,
    table_format: TableFormat,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Rows with the same value, such as a conversation, are not independent: wider intervals.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    normalize_labels: NormalizeLabels = False,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="The judge gives scores: a higher score means that the last class is more likely.",
            rich_help_panel=METHOD,
        ),
    ] = False,
    calibration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Use the human labels of another file that the judge has labelled too.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    anchor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Test whether the judge still errs as on the human-labelled rows: a file with the same columns.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    chosen: Annotated[
        bool,
        typer.Option(
            "--chosen",
            help="The human-labelled rows are not a random part: use them only for the judge's errors.",
            rich_help_panel=METHOD,
        ),
    ] = False,
    same_errors: Annotated[
        bool,
        typer.Option(
            "--same-errors",
            help="Assume the same errors in all groups: narrower intervals, wrong if errors differ.",
            rich_help_panel=METHOD,
        ),
    ] = False,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="GROUP GROUP", help="Difference between two groups of --by.", rich_help_panel=METHOD),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="rest|previous|GROUP",
            help="Difference of each group of --by from all others, from the one before it, or from this one.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    fail_over: FailOver = None,
    fail_bound: FailBound = Bound.UPPER,
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

    quanet correct log.json --calibration labelled.csv --human human --judge score --scores

    quanet correct judged.csv --human human --judge a --judge b --cluster conversation --by system --against rest

    quanet correct judged.csv --human human --judge llm --class unsafe --fail-over 0.05
    """
    from quanet.data.periods import group_codes
    from quanet.data.streams import TableSource
    from quanet.report.correct import summarize_correction
    from quanet.workflows.audit import audit_judges

    given, keys = naming.by_label, grouping.keys
    _check_options(judge, keys, scores=scores, compared=(between, against))
    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    columns = JudgeColumns(judge, human, cluster, scores)
    source = TableSource(files, **table_format.table_options)
    other, anchored = (
        None if one is None else TableSource(one, **table_format.table_options) for one in (calibration, anchor)
    )
    with warnings_as_lines():
        table = source.read([*columns.names(with_human=other is None), *(key.column for key in keys)])
        groups, owner = group_codes(table, keys, source=source, form=table_format.date_format)
        first, labelled, checked = settle_tables(
            [
                read_judged(table, source, columns, with_human=other is None),
                _read(other, columns),
                _read(anchored, replace(columns, cluster=_cluster_of(anchored, cluster))),
            ],
            normalize=normalize_labels,
            given=given,
        )
        assert first is not None
        correction = audit_judges(
            dict(zip(judge, first.judges, strict=True)),
            first.human,
            keys=keys,
            groups=groups,
            owner=owner,
            calibration=None if labelled is None else labelled.pairs(),
            at_random=not chosen,
            scores=scores,
            same_errors=same_errors,
            clusters=first.clusters,
            anchor=None if checked is None or anchored is None else (anchored.name, *checked.pairs()),
            joint=between is not None or against is not None,
            level=level.level,
            source=source.name,
        )
    classes = name_classes(correction.classes, given)
    show = check_class(naming, classes)
    correction = replace(correction, classes=classes.names)
    if between is not None or against is not None:
        correction = _compared(correction, between, against)
    _print_rows(correction, source, other)
    summary = summarize_correction(correction, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)
    c = len(correction.classes) - 1 if show is None else correction.classes.tolist().index(show)
    check_bound(str(correction.classes[c]), correction.intervals(c), fail_over, fail_bound)


def _check_options(judges: list[str], keys: Any, *, scores: bool, compared: tuple[Any, Any]) -> None:
    if len(set(judges)) < len(judges):
        raise typer.BadParameter("Name each judge once.", param_hint="--judge")
    if scores and len(judges) > 1:
        raise typer.BadParameter("Scores of several judges cannot be combined. Use one judge, or labels.")
    hint = "--between" if compared[0] is not None else "--against"
    if all(one is not None for one in compared):
        raise typer.BadParameter("Use either --between or --against.", param_hint=hint)
    if any(one is not None for one in compared) and not keys:
        raise typer.BadParameter("Differences are between groups. Add --by COLUMN.", param_hint=hint)


def _read(source: "TableSource | None", columns: JudgeColumns) -> JudgedTable | None:
    return None if source is None else read_judged(source.read(columns.names()), source, columns)


def _cluster_of(source: "TableSource | None", cluster: str | None) -> str | None:
    """The column of clusters, if the anchor set has it."""
    if source is None or cluster is None or cluster in source.columns:
        return cluster
    note(f"{source.name} has no column {cluster!r}: its rows count as independent.")
    return None


def _compared(correction: "Correction", between: tuple[str, str] | None, against: str | None) -> "Correction":
    from quanet.report.groups import group_name
    from quanet.workflows.judge_differences import compare_rates

    names = [group_name(group) for group in correction.groups]
    return replace(correction, differences=compare_rates(correction, names, between=between, against=against))


def _print_rows(correction: "Correction", source: "TableSource", other: "TableSource | None") -> None:
    from quanet.report.judge_errors import cluster_sentences

    rows = int(correction.sizes.sum()) + correction.skipped.get("no group", 0)
    if other is not None:
        note(f"{source.name}: {rows:,} judged rows. {other.name}: {correction.labelled:,} human labels.")
    else:
        note(f"{rows:,} judged rows, {correction.labelled:,} of them with a human label.")
    if correction.calibration == "part":
        note("The human-labelled rows count as a random part of all rows. If people chose them, use --chosen.")
    for sentence in cluster_sentences(correction):
        note(sentence)
    if correction.clusters is not None and correction.clusters.few[-1] and correction.clusters.largest > 1:
        warn("There are few clusters, so the intervals are rough. Judge and label more of them.")
    for reason, number in correction.skipped.items():
        note(f"Skipped: {number:,} rows with {reason}.")
