"""`quanet diff`: differences between files, groups or periods."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli.console import command_settings, note, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.model_folder import load_model, read_grouped
from quanet.cli.options import (
    COLUMNS,
    HOW,
    OUTPUT,
    AnswerFormat,
    By,
    Cluster,
    ComparisonTarget,
    DateFormat,
    Delimiter,
    Encoding,
    Files,
    Force,
    Level,
    ModelFolder,
    Names,
    NoDrift,
    Output,
    Report,
    Seed,
    ShowClass,
    Target,
    Text,
    Weight,
    check_class,
    check_level,
    check_outputs,
    choose_format,
    parse_keys,
    split_names,
)

if TYPE_CHECKING:
    from quanet.base import Quantifier
    from quanet.corpus.grouped_inputs import GroupedInputs
    from quanet.data.periods import Key

ENDINGS = {".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".gz", ".xlsx"}


def diff(
    model: ModelFolder,
    files: Files,
    by: By = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="rest|previous|GROUP",
            help="Compare every group with all others, with the one before it, or with this one. "
            "[dim]default: previous for dates and two files, else rest[/]",
            rich_help_panel=HOW,
        ),
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="GROUP GROUP", help="Compare two groups only.", rich_help_panel=HOW),
    ] = None,
    text: Text = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Numeric columns, if the model does not record which ones it was trained on.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    date_format: DateFormat = None,
    encoding: Encoding = "auto",
    delimiter: Delimiter = "auto",
    weight: Weight = None,
    cluster: Cluster = None,
    level: Level = 0.95,
    seed: Seed = 0,
    target: ComparisonTarget = Target.source,
    no_drift: NoDrift = False,
    show: ShowClass = None,
    names: Names = None,
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

    check_level(level)
    form = choose_format(form, output)
    check_outputs(output, plot=plot, report=report, force=force)
    keys = parse_keys(by or [])
    _check_sides(files, keys, against, between)
    with warnings_as_lines():
        quantifier, facts = load_model(model, names)
        show = check_class(show, facts["class_names"])
        features = split_names(features)
        columns: dict[str, Any] = {"text": text, "features": features, "weight": weight, "cluster": cluster}
        text_form = {"encoding": encoding, "delimiter": delimiter}
        reading, name = _read(quantifier, facts, files, keys, date_format, columns, text_form)
        with progress("Comparing"):
            found = compare_groups(
                quantifier,
                reading,
                keys=keys,
                against=against,
                between=between,
                level=level,
                seed=seed,
                drift=not no_drift,
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
    quantifier: "Quantifier",
    facts: dict[str, Any],
    files: list[str],
    keys: "list[Key]",
    date_format: str | None,
    columns: dict[str, Any],
    text_form: dict[str, Any],
) -> tuple["GroupedInputs", str]:
    """The instances with their groups, and the name of the data: one source if grouped, else one for every file."""
    from quanet.corpus.model_inputs import find_inputs
    from quanet.data.streams import TableSource
    from quanet.workflows.diff import join_readings

    readings = []
    for part in [files] if keys else [[one] for one in files]:
        source = TableSource(part, **text_form)
        weight, cluster = columns["weight"], columns["cluster"]
        others = [*(key.column for key in keys), *(name for name in (weight, cluster) if name)]
        source.check(others)
        inputs = find_inputs(source, facts, columns["text"], columns["features"], exclude=others)
        found = read_grouped(
            quantifier, source, inputs, keys, date_format, weight=weight, cluster=cluster, named=not keys
        )
        readings.append(found)
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
