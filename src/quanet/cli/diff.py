"""`quanet diff`: differences between files, groups or periods."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli.console import command_settings, note, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.model_folder import load_model, read_grouped
from quanet.cli.options import (
    OUTPUT,
    AnswerFormat,
    ComparisonTarget,
    Files,
    Force,
    ModelFolder,
    Output,
    Report,
    Target,
    check_class,
    check_outputs,
    choose_format,
)
from quanet.data.settings import METHOD, ClusteredReading, Estimation, Naming

if TYPE_CHECKING:
    from quanet.base import Quantifier
    from quanet.corpus.grouped_inputs import GroupedInputs
    from quanet.data.periods import Key

ENDINGS = {".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".gz", ".xlsx"}


def diff(
    model: ModelFolder,
    files: Files,
    reading: ClusteredReading,
    estimation: Estimation,
    naming: Naming,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="rest|previous|GROUP",
            help="Compare every group with all others, with the one before it, or with this one. "
            "[dim]default: previous for dates and two files, else rest[/]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="GROUP GROUP", help="Compare two groups only.", rich_help_panel=METHOD),
    ] = None,
    target: ComparisonTarget = Target.source,
    form: AnswerFormat = None,
    output: Output = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw a chart of the differences: .png, .svg or .pdf.", rich_help_panel=OUTPUT
        ),
    ] = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Estimate by how much the shares of classes differ between files, groups or periods, with intervals and p-values.

    Without --by, every file (or quoted pattern) is one side: two files are compared with each other. With --by, all
    files together are grouped. Intervals account for what both sides share, such as the errors of the model. p-values
    have Holm's correction over all comparisons. Dates also get the trend.

    [bold]Examples[/]

    quanet diff model 2016.csv 2017.csv

    quanet diff model reviews.csv --by date:year --class negative --report changes.html

    quanet diff model reviews.csv --by product --against Kindle

    quanet diff model reviews.csv --by product --between Kindle Fire
    """
    from quanet.corpus.model_inputs import describe_model
    from quanet.report.diff import summarize_differences
    from quanet.workflows.diff import compare_groups

    form = choose_format(form, output)
    check_outputs(output, plot=plot, report=report, force=force)
    keys = reading.keys
    _check_sides(files, keys, against, between)
    with warnings_as_lines():
        quantifier, facts = load_model(model, naming)
        show = check_class(naming, facts["class_names"])
        instances, name = _read(quantifier, facts, files, reading)
        with progress("Comparing"):
            found = compare_groups(
                quantifier,
                instances,
                keys=keys,
                against=against,
                between=between,
                **asdict(estimation),
                target=target.value,
                source=name,
                model=describe_model(model, facts, quantifier),
            )
    if plot is not None:
        from quanet.report.charts import differences_figure, save_figure

        save_figure(differences_figure(found, focus=show), plot)
        note(f"Chart: {plot}")
    summary = summarize_differences(found, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)


def _check_sides(
    files: Sequence[str], keys: "Sequence[Key]", against: str | None, between: tuple[str, str] | None
) -> None:
    """Usage errors that need no data."""
    if against is not None and between is not None:
        raise typer.BadParameter("Choose --against or --between, not both.", param_hint="--between")
    if not keys and len(files) == 1:
        raise typer.BadParameter(
            "One file has only one side. Give two files, or group its rows with --by.", param_hint="FILES"
        )
    from quanet.data.file_names import identity_of

    known = list(map(identity_of, files))
    twice = next((one for one, path in zip(files, known, strict=True) if known.count(path) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"{twice} is given twice. Give different files.", param_hint="FILES")


def _read(
    quantifier: "Quantifier", facts: dict[str, Any], files: list[str], reading: ClusteredReading
) -> tuple["GroupedInputs", str]:
    """The instances with their groups, and the name of the data: one source if grouped, else one for every file."""
    from quanet.corpus.model_inputs import find_inputs
    from quanet.data.streams import TableSource
    from quanet.workflows.diff import join_readings

    readings, keys, cluster = [], reading.keys, reading.cluster
    for part in [files] if keys else [[one] for one in files]:
        source = TableSource(part, **reading.table_options)
        others = [*(key.column for key in keys), *(name for name in (reading.weight, cluster) if name)]
        source.check(others)
        inputs = find_inputs(source, facts, reading.text, reading.features, exclude=others)
        readings.append(read_grouped(quantifier, source, inputs, reading, cluster=cluster, named=not keys))
    if keys:
        return readings[0], source.name
    sides = side_names(files)
    return join_readings(readings, sides), " and ".join(sides) if len(sides) == 2 else f"{len(sides)} files"


def side_names(files: Sequence[str]) -> list[str]:
    """Short names of the sides: file names without folder and ending, if they differ.

    Examples
    --------
    >>> side_names(["data/2016.csv.gz", "data/2017.csv"]), side_names(["a/new.csv", "b/new.csv"])
    (['2016', '2017'], ['a/new.csv', 'b/new.csv'])
    """
    from quanet.data.storage import without_credentials

    short, names = [], list(map(without_credentials, files))
    for one in names:
        path = Path(one)
        while path.suffix.lower() in ENDINGS:
            path = path.with_suffix("")
        short.append("standard input" if one == "-" else path.name)
    return short if len(set(short)) == len(short) else names
