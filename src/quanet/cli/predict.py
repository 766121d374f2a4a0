"""`quanet predict`: the shares of classes in new files."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quanet.cli.console import console, details, note, warn, warnings_as_lines
from quanet.cli.moving import moving
from quanet.cli.opening import about_model, inputs_for, open_model, settings
from quanet.cli.options import (
    COLUMNS,
    OUTPUT,
    By,
    DateFormat,
    Encoding,
    Files,
    Force,
    Level,
    ModelFolder,
    Report,
    Seed,
    Text,
    check_level,
    check_new,
)
from quanet.cli.protocol import keys_of
from quanet.cli.writing import write_out
from quanet.errors import brief
from quanet.files import as_utf8

if TYPE_CHECKING:
    from quanet.answers.reading import Reading
    from quanet.answers.shares import Shares
    from quanet.base import Quantifier
    from quanet.data.streams import Source


class Format(StrEnum):
    """How the answer is written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    html = "html"
    md = "md"


def predict(
    model: ModelFolder,
    files: Files,
    by: By = None,
    text: Text = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Columns of numbers, if the model does not say which.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    date_format: DateFormat = None,
    encoding: Encoding = "utf-8",
    level: Level = 0.95,
    seed: Seed = 0,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            envvar="QUANET_PREDICT_FORMAT",
            help="[dim]default: by the ending of the output; a table on a terminal, JSON in a pipe[/]",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead.", rich_help_panel=OUTPUT),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw it: .png, .svg or .pdf; over time if by a date.", rich_help_panel=OUTPUT
        ),
    ] = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Estimate the share of every class in FILES, all together or by group, with intervals.

    A note tells groups with few instances, and those that are unlike what the model has learnt from.

    [bold]Examples[/]

    quanet predict model new.csv

    quanet predict model 'reviews-*.csv.gz' --by product --by date:month --plot trend.png --report report.html

    zcat new.jsonl.gz | quanet predict model - --format csv > shares.csv
    """
    from quanet.answers.estimating import estimate_shares
    from quanet.answers.reading import read_source
    from quanet.data.streams import Source

    check_level(level)
    chosen = _format(form, output)
    for path in (output, plot, report):
        check_new(path, force=force)
    _check_endings(plot, report)
    keys = keys_of(by or [])
    with warnings_as_lines():
        quantifier, facts = open_model(model)
        source = Source(files, encoding=encoding)
        source.check([key.column for key in keys])
        inputs = inputs_for(source, facts, text, features, besides=[key.column for key in keys])
        label = facts.get("label")
        with moving(f"Reading {source.name}", source.size) as move:
            source.follow = move
            reading = read_source(
                quantifier,
                source,
                inputs,
                keys=keys,
                form=date_format,
                label=label if label in source.columns else None,
            )
        _tell(reading, source, quantifier, label)
        with moving("Estimating") as move:
            shares = estimate_shares(
                quantifier,
                reading,
                keys=keys,
                level=level,
                seed=seed,
                source=source.name,
                model=about_model(model, facts, quantifier),
                progress=lambda what: move(None, f"Estimating: {what}"),
            )
    if plot is not None:
        from quanet.report.plots import save_figure
        from quanet.report.plots.answers import trend_figure

        save_figure(trend_figure(shares), plot)
        note(f"Picture: {plot}")
    if report is not None:
        _report(shares, report)
        note(f"Report: {report}")
    _write(shares, chosen, output)


def _format(form: Format | None, output: Path | None) -> Format:
    if form is None:
        if output is None:
            form = Format.table if console.is_terminal else Format.json
        else:
            endings = {f".{one}": one for one in Format if one is not Format.table} | {".txt": Format.table}
            found = endings.get(output.suffix.lower())
            if found is None:
                raise typer.BadParameter(
                    f"{output} ends in none of {', '.join(endings)}. Say what to write: --format.",
                    param_hint="--output",
                )
            form = found
    if form is Format.parquet and output is None and console.is_terminal:
        raise typer.BadParameter("parquet is no text: give a file with --output.", param_hint="--format")
    return form


def _check_endings(plot: Path | None, report: Path | None) -> None:
    """What would fail at the end is said at the beginning."""
    if plot is not None:
        from quanet.report.plots import check_suffix

        check_suffix(plot)
    if report is not None:
        from quanet.report.page import check_report

        check_report(report)


def _tell(reading: "Reading", source: "Source", quantifier: "Quantifier", label: str | None) -> None:
    from quanet.data.columns import label_name, nearest_first

    left_out = ", ".join(f"{number:,} left out ({reason})" for reason, number in reading.skipped.items())
    groups = f" in {len(reading.groups):,} groups" if reading.groups[0] else ""
    note(f"{len(reading.instances):,} of {source.rows:,} rows{groups}{': ' + left_out if left_out else ''}")
    known = [label_name(one) for one in quantifier.classes_.tolist()]
    unknown = {name: number for name, number in reading.labels.items() if name not in known}
    if unknown:
        name = max(unknown, key=lambda one: unknown[one])
        there = ", ".join(map(repr, nearest_first(name, known)))
        warn(
            f"column {label!r} has {sum(unknown.values()):,} rows of labels that the model does not know, such as "
            f"{brief(name)}; they are counted as one of {there}."
        )


def _write(shares: "Shares", form: Format, output: Path | None) -> None:
    from quanet.cli.writing_shares import as_bytes, print_table

    if form is Format.table and output is None:
        print_table(shares, everything=not details.quiet)
        return
    content = _report_bytes(shares, form) if form in {Format.html, Format.md} else as_bytes(shares, form)
    if output is None:
        write_out(content)
        return
    from quanet.report.files import write_whole

    write_whole(output, content)
    note(f"Written: {output}")


def _report(shares: "Shares", path: Path) -> None:
    from quanet.report.page import write_report
    from quanet.report.shares import summarize_shares

    write_report(summarize_shares(shares, settings=settings()), path)


def _report_bytes(shares: "Shares", form: Format) -> bytes:
    from quanet.report.page import to_html, to_markdown
    from quanet.report.shares import summarize_shares

    summary = summarize_shares(shares, settings=settings())
    return as_utf8((to_html if form is Format.html else to_markdown)(summary))
