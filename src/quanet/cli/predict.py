"""`quanet predict`: estimate the shares of classes in new files."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quanet.cli.console import (
    command_settings,
    note,
    progress,
    training_progress,
    warn,
    warnings_as_lines,
    write_answer,
    write_report,
)
from quanet.cli.model_folder import load_model, read_files, read_grouped
from quanet.cli.options import (
    OUTPUT,
    AnswerFormat,
    Engine,
    EngineName,
    Files,
    Force,
    ModelFolder,
    Output,
    Report,
    SaveState,
    Workers,
    check_class,
    check_outputs,
    check_state_file,
    choose_engine,
    choose_format,
)
from quanet.data.settings import BadFiles, ClusteredReading, Estimation, Naming, split_names
from quanet.errors import brief

if TYPE_CHECKING:
    from quanet.corpus.group_files import GroupFiles
    from quanet.corpus.grouped_inputs import GroupedInputs
    from quanet.corpus.reading import EngineChoice
    from quanet.data.columns import ClassNames


def predict(
    model: ModelFolder,
    files: Files,
    reading: ClusteredReading,
    bad_files: BadFiles,
    estimation: Estimation,
    naming: Naming,
    engine: Engine = EngineName.local,
    workers: Workers = None,
    form: AnswerFormat = None,
    output: Output = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw a chart: .png, .svg or .pdf; over time if grouped by a date.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write every row with its adjusted posteriors: .parquet, .csv, .jsonl, .xlsx.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column to copy to --items, such as id. Repeatable.", rich_help_panel=OUTPUT
        ),
    ] = None,
    save_state: SaveState = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Estimate the share of every class in FILES, overall or by group, with confidence intervals.

    Intervals include drift: how much it may cost that the instances differ from the training data. Every group is
    trusted, of too few rows, widened (its interval includes drift) or refused (with the number of rows to label).

    [bold]Examples[/]

    quanet predict model new.csv

    quanet predict model 'reviews-*.csv.gz' --by product --by date:month --plot trend.png --report report.html

    quanet predict model posts.csv --by date:month --weight views

    quanet predict model reviews.csv --cluster author

    quanet predict model new.csv --by product --items items.parquet --keep id

    quanet predict model 's3://bucket/reviews/*.parquet' --by date:month --engine ray

    zcat new.jsonl.gz | quanet predict model - --format csv > shares.csv

    quanet predict model days.arrow today.csv --by date:day --save-state days.arrow --force
    """
    from quanet.corpus.group_files import open_files
    from quanet.corpus.model_inputs import describe_model
    from quanet.corpus.workers import return_memory
    from quanet.progress import listening
    from quanet.report.predict import summarize_shares
    from quanet.workflows.items import check_items, write_items
    from quanet.workflows.predict import estimate_shares

    form = choose_format(form, output)
    check_state_file(save_state)
    check_outputs(output, items, save_state, plot=plot, report=report, force=force)
    kept = split_names(keep)
    if reading.cluster is not None:
        _check_cluster(engine, workers, save_state)
    choice = choose_engine(model, engine, workers)
    if items is not None:
        _check_items(items)
    elif kept:
        raise typer.BadParameter("Columns are kept in the file of --items. Add --items FILE.", param_hint="--keep")
    with warnings_as_lines():
        quantifier, facts = load_model(model, naming)
        show = check_class(naming, facts["class_names"])
        data = open_files(
            quantifier,
            facts,
            files,
            reading,
            cluster=reading.cluster,
            skip_bad=bad_files.skip_bad_files,
        )
        if items is not None:
            check_items(data.tables("--items"), kept, [key.column for key in reading.keys], quantifier.classes_)
        instances = _read(data, choice, save_state, reading)
        _warn_of_labels(instances, facts["class_names"], facts.get("label"))
        with progress("Estimating") as update, listening(training_progress(update)):
            shares = estimate_shares(
                quantifier,
                instances,
                keys=reading.keys,
                **asdict(estimation),
                source=data.name,
                model=describe_model(model, facts, quantifier),
                progress=lambda what: update(None, f"Estimating: {what}"),
            )
    if items is not None:
        source = data.tables("--items")
        with progress(f"Writing {items}", source.size) as update:
            source.follow = update
            number = write_items(items, data.reader, source, instances, shares, keep=kept)
        note(f"Items: {items} ({number:,} rows)")
    del instances
    return_memory()
    if plot is not None:
        from quanet.report.charts import save_figure, trend_figure

        save_figure(trend_figure(shares, focus=show), plot)
        note(f"Chart: {plot}")
    summary = summarize_shares(shares, settings=command_settings(), focus=show).with_bad_files(data.bad_files)
    write_report(summary, report)
    write_answer(summary, form, output)


def _check_cluster(engine: EngineName, workers: int | None, save_state: Path | None) -> None:
    """Clusters need all rows at once: neither engines nor states keep them."""
    several = {"--engine": engine is not EngineName.local, "--workers": workers is not None}
    for option in [name for name, given in (several | {"--save-state": save_state is not None}).items() if given]:
        raise typer.BadParameter(
            f"--cluster reads all rows in this process. Leave out {option}.", param_hint="--cluster"
        )


def _read(data: "GroupFiles", engine: "EngineChoice", save: Path | None, reading: ClusteredReading) -> "GroupedInputs":
    """The instances by group: from a state, or with every row if they have clusters."""
    reader = data.reader
    if reader.cluster is None:
        return read_files(data, engine=engine, save=save)
    return read_grouped(
        reader.quantifier,
        data.tables("--cluster"),
        reader.inputs,
        reading,
        label=reader.label,
        cluster=reading.cluster,
    )


def _check_items(path: Path) -> None:
    from quanet.data.table_files import check_rows_file
    from quanet.errors import InvalidSetting

    try:
        check_rows_file(path)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--items") from None


def _warn_of_labels(reading: "GroupedInputs", names: "ClassNames", label: str | None) -> None:
    """Warn if the file has labels that the model does not know."""
    from quanet.data.columns import label_name, nearest_first

    known = [label_name(one) for one in names.names.tolist()]
    written = zip(names.shown(reading.labels), reading.labels.items(), strict=True)
    unknown = {name: number for shown, (name, number) in written if shown not in known}
    if unknown:
        name = max(unknown, key=lambda one: unknown[one])
        classes = ", ".join(map(repr, nearest_first(name, known)))
        warn(
            f"Column {label!r} has {sum(unknown.values()):,} rows with labels that the model does not know, such as "
            f"{brief(name)}. They are counted as one of {classes}."
        )
