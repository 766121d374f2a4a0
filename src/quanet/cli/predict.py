"""`quanet predict`: estimate the shares of classes in new files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quanet.cli.console import command_settings, note, progress, warn, warnings_as_lines, write_answer, write_report
from quanet.cli.model_folder import describe_model, find_inputs, load_model
from quanet.cli.options import (
    COLUMNS,
    OUTPUT,
    AnswerFormat,
    By,
    DateFormat,
    Encoding,
    Files,
    Force,
    Level,
    ModelFolder,
    NoDrift,
    Output,
    Report,
    Seed,
    Text,
    check_level,
    check_outputs,
    choose_format,
    parse_keys,
)
from quanet.errors import brief

if TYPE_CHECKING:
    from quanet.base import Quantifier
    from quanet.data.streams import TableSource
    from quanet.workflows.reading import GroupedInputs


def predict(
    model: ModelFolder,
    files: Files,
    by: By = None,
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
    encoding: Encoding = "utf-8",
    level: Level = 0.95,
    seed: Seed = 0,
    no_drift: NoDrift = False,
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
    report: Report = None,
    force: Force = False,
) -> None:
    """Estimate the share of every class in FILES, overall or by group, with confidence intervals.

    Intervals include drift: how much it may cost that the instances differ from the training data. Every group is
    trusted, widened (its interval includes drift) or refused (with the number of labels that would settle it).

    [bold]Examples[/]

    quanet predict model new.csv

    quanet predict model 'reviews-*.csv.gz' --by product --by date:month --plot trend.png --report report.html

    zcat new.jsonl.gz | quanet predict model - --format csv > shares.csv
    """
    from quanet.data.streams import TableSource
    from quanet.report.predict import summarize_shares
    from quanet.workflows.predict import estimate_shares
    from quanet.workflows.reading import read_source

    check_level(level)
    form = choose_format(form, output)
    check_outputs(output, plot=plot, report=report, force=force)
    keys = parse_keys(by or [])
    with warnings_as_lines():
        quantifier, facts = load_model(model)
        source = TableSource(files, encoding=encoding)
        source.check([key.column for key in keys])
        inputs = find_inputs(source, facts, text, features, exclude=[key.column for key in keys])
        label = facts.get("label") if facts.get("label") in source.columns else None
        with progress(f"Reading {source.name}", source.size) as update:
            source.follow = update
            reading = read_source(quantifier, source, inputs, keys=keys, form=date_format, label=label)
        _print_rows(reading, source)
        _warn_of_labels(reading, quantifier, label)
        with progress("Estimating") as update:
            shares = estimate_shares(
                quantifier,
                reading,
                keys=keys,
                level=level,
                seed=seed,
                drift=not no_drift,
                source=source.name,
                model=describe_model(model, facts, quantifier),
                progress=lambda what: update(None, f"Estimating: {what}"),
            )
    if plot is not None:
        from quanet.report.charts import save_figure, trend_figure

        save_figure(trend_figure(shares), plot)
        note(f"Chart: {plot}")
    summary = summarize_shares(shares, settings=command_settings())
    write_report(summary, report)
    write_answer(summary, form, output)


def _print_rows(reading: "GroupedInputs", source: "TableSource") -> None:
    skipped = ", ".join(f"{number:,} skipped ({reason})" for reason, number in reading.skipped.items())
    groups = f" in {len(reading.groups):,} groups" if reading.groups[0] else ""
    note(f"{len(reading.instances):,} of {source.rows:,} rows{groups}{': ' + skipped if skipped else ''}")


def _warn_of_labels(reading: "GroupedInputs", quantifier: "Quantifier", label: str | None) -> None:
    """Warn if the file has labels that the model does not know."""
    from quanet.data.columns import label_name, nearest_first

    known = [label_name(one) for one in quantifier.classes_.tolist()]
    unknown = {name: number for name, number in reading.labels.items() if name not in known}
    if unknown:
        name = max(unknown, key=lambda one: unknown[one])
        classes = ", ".join(map(repr, nearest_first(name, known)))
        warn(
            f"Column {label!r} has {sum(unknown.values()):,} rows with labels that the model does not know, such as "
            f"{brief(name)}. They are counted as one of {classes}."
        )
