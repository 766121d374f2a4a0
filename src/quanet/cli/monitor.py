"""`quanet monitor`: prevalence in time, and an alarm when it has changed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from quanet.cli.console import note, warnings_as_lines
from quanet.cli.moving import moving
from quanet.cli.opening import inputs_for, open_model, settings
from quanet.cli.options import (
    COLUMNS,
    HOW,
    OUTPUT,
    DateFormat,
    Encoding,
    Files,
    Force,
    ModelFolder,
    Report,
    Text,
    check_level,
)
from quanet.cli.protocol import keys_of
from quanet.cli.writing import AnswerFormat, Format, Output, check_outputs, choose_format, write_answer, write_summary
from quanet.cli.writing_course import CSV, plain_course, reading_rows, shown_changes, shown_readings

if TYPE_CHECKING:
    from quanet.answers.following import Followed
    from quanet.answers.shares import Key
    from quanet.base import Quantifier
    from quanet.data.streams import Source
    from quanet.monitoring import Monitor

SMOOTHED = "Days, or the unit of the column, that estimates are smoothed over; by default about four batches."


def monitor(
    model: ModelFolder,
    files: Files,
    by: Annotated[
        str,
        typer.Option(
            metavar="COLUMN[:PERIOD]",
            help="Column of dates and the length of a batch: date:day, week, month, quarter, year; or of numbers.",
            rich_help_panel=COLUMNS,
        ),
    ],
    text: Text = None,
    level: Annotated[
        float | None,
        typer.Option(help="1 - the chance of a false alarm over all time; 0.95 by default.", rich_help_panel=HOW),
    ] = None,
    window: Annotated[float | None, typer.Option(help=SMOOTHED, rich_help_panel=HOW)] = None,
    half_life: Annotated[
        float | None, typer.Option(help="Age at which a batch counts half; as the window.", rich_help_panel=HOW)
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Deviation between batches that is no change, as 0.01.", rich_help_panel=HOW),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="LABEL",
            help="The class shown; by default the one that has changed most.",
            rich_help_panel=HOW,
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep what the monitor knows here, and go on from there with the next file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Discard data from before the newest change and re-arm the alarm.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw estimates with their band: .png, .svg or .pdf.", rich_help_panel=OUTPUT
        ),
    ] = None,
    date_format: DateFormat = None,
    encoding: Encoding = "utf-8",
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Follow a prevalence through batches in time, and report every change: when, from what level, to what level.

    Look at the alarm after every batch: while nothing changes, it is raised with probability 1 - level at most.

    Late batches are fine: what counts is their date. With --state the next file goes on where this one ended.

    [bold]Examples[/]

    quanet monitor model/ stream.csv --by date:week

    quanet monitor model/ july.csv --by date:day --state watch/ --plot band.png

    quanet monitor model/ stream.csv --by date:week --format csv | tail -1
    """
    from quanet.answers.following import follow
    from quanet.data.streams import Source

    (key,) = keys_of([by])
    check_level(0.95 if level is None else level)
    form = choose_format(form, output)
    check_outputs(output, plot, report=report, force=force)
    if plot is not None:
        from quanet.report.plots import check_suffix

        check_suffix(plot)
    asked = {"level": level, "window": window, "half_life": half_life, "tolerance": tolerance}
    with warnings_as_lines():
        quantifier, facts = open_model(model)
        watch = _monitor(quantifier, asked, key, state, model)
        if restart:
            _restart(watch)
        wanted = _place(quantifier, show)
        read, batches = _batches(quantifier, facts, Source(files, encoding=encoding), key, text, date_format)
        with moving(f"Following {len(batches):,} batches"):
            found = follow(watch, read, batches)
        if state is not None:
            _keep(watch, state, model)
    _say(found, state)
    at = found.changed_most if wanted is None else wanted
    if form is not Format.table or output is not None:
        note(found.sentence(at))
    if plot is not None:
        from quanet.report.plots import monitor_figure, save_figure

        save_figure(monitor_figure(found.course, label=found.course.classes.tolist()[at]), plot)
        note(f"Picture: {plot}")

    def summary() -> Any:
        from quanet.report.course import summarize_course

        return summarize_course(found.course, settings=settings(), focus=found.course.classes.tolist()[at])

    write_summary(report, summary)
    write_answer(
        form,
        output,
        shown=lambda: [f"[bold]{escape(found.sentence(at))}[/]", *shown_changes(found, at), shown_readings(found, at)],
        rows=lambda: reading_rows(found),
        plain=lambda: plain_course(found, at),
        columns=CSV,
    )


def _place(quantifier: "Quantifier", show: str | None) -> int | None:
    names = [str(label) for label in quantifier.classes_.tolist()]
    if show is None:
        return None
    if show not in names:
        raise typer.BadParameter(f"{show!r} is none of {', '.join(names)}.", param_hint="--class")
    return names.index(show)


def _monitor(
    quantifier: "Quantifier", asked: dict[str, float | None], key: "Key", state: Path | None, model: Path
) -> "Monitor":
    """A new monitor, or the one that was kept."""
    from quanet.answers.following import SMOOTHED_OVER, resume
    from quanet.monitoring import Monitor
    from quanet.persist.place import free_place

    given = {name: value for name, value in asked.items() if value is not None}
    if state is not None:
        free_place(state)  # what cannot be replaced at the end is told now
        if state.is_dir() and any(state.iterdir()):
            return resume(state, quantifier, given, model=str(model))
    smoothed = SMOOTHED_OVER.get(key.period, 7.0)
    return Monitor(quantifier, **{"window": smoothed, "half_life": given.get("window", smoothed)} | given)  # type: ignore[arg-type]


def _restart(watch: "Monitor") -> None:
    from quanet.errors import InvalidSetting

    try:
        watch.restart()
    except InvalidSetting:
        note("No change had been found before, so there is nothing to restart from.")


def _batches(
    quantifier: "Quantifier",
    facts: dict[str, Any],
    source: "Source",
    key: "Key",
    text: str | None,
    date_format: str | None,
) -> Any:
    """The files' instances, read by the model, and which of them belong to which batch."""
    from quanet.answers.following import make_batches
    from quanet.answers.reading import read_source

    source.check([key.column])
    inputs = inputs_for(source, facts, text, besides=[key.column])
    with moving(f"Reading {source.name}", source.size) as move:
        source.follow = move
        reading = read_source(quantifier, source, inputs, keys=[key.as_required()], form=date_format)
    told = {"no group": "no date"}
    left_out = ", ".join(f"{number:,} left out ({told.get(why, why)})" for why, number in reading.skipped.items())
    note(f"{len(reading.instances):,} of {source.rows:,} rows{': ' + left_out if left_out else ''}")
    batches, messages = make_batches(key, reading.groups, reading.codes)
    for message in messages:
        note(message)
    return reading.instances, batches


def _keep(watch: "Monitor", state: Path, model: Path) -> None:
    from quanet.persist.folder import save

    save(watch, state, data=f"Batches followed with the model {model}.")
    note(f"State: {state}")


def _say(found: "Followed", state: Path | None) -> None:
    if found.repeated:
        few = ", ".join(found.repeated[:3]) + (" and more" if len(found.repeated) > 3 else "")
        note(f"Known already, and not taken in again: {len(found.repeated)} batches ({few}).")
    if found.earlier:
        note(f"{found.earlier} batches were in {state} before; {len(found.batches)} are new.")
