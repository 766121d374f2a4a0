"""`quanet monitor`: monitor shares over time, with an alarm when they change."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quanet.cli.console import command_settings, note, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.fail_over import Bound, FailBound, FailOver, check_bound
from quanet.cli.model_folder import load_model, read_files
from quanet.cli.options import (
    OUTPUT,
    AnswerFormat,
    Engine,
    EngineName,
    Files,
    Force,
    ModelFolder,
    Output,
    OutputFormat,
    Report,
    SaveState,
    Workers,
    check_class,
    check_outputs,
    check_state_file,
    choose_engine,
    choose_format,
    parse_one_key,
)
from quanet.data.settings import COLUMNS, Alarm, BadFiles, FileColumns, Naming

if TYPE_CHECKING:
    from quanet.evaluation.monitor import Monitor
    from quanet.workflows.monitor import MonitorRun


def monitor(
    model: ModelFolder,
    files: Files,
    by: Annotated[
        str,
        typer.Option(
            metavar="COLUMN[:PERIOD]",
            help="Date column and length of a batch (date:day, week, month, quarter, year), or a numeric column.",
            rich_help_panel=COLUMNS,
        ),
    ],
    inputs: FileColumns,
    bad_files: BadFiles,
    naming: Naming,
    alarm: Alarm,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Save the monitor here, and resume it with the next file.", rich_help_panel=OUTPUT
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
        typer.Option(metavar="FILE", help="Draw shares over time: .png, .svg or .pdf.", rich_help_panel=OUTPUT),
    ] = None,
    fail_over: FailOver = None,
    fail_bound: FailBound = Bound.UPPER,
    engine: Engine = EngineName.local,
    workers: Workers = None,
    form: AnswerFormat = None,
    output: Output = None,
    save_state: SaveState = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Monitor shares over batches in time and report every change: when, from what level, to what level.

    The alarm may be checked after every batch: while nothing changes, its probability is at most 1 - level in total.

    Batches may arrive late. With --state, the next file continues where this one ended.

    [bold]Examples[/]

    quanet monitor model/ stream.csv --by date:week

    quanet monitor model/ july.csv --by date:day --state watch/ --plot band.png

    quanet monitor model/ stream.csv --by date:week --format csv | tail -1

    quanet monitor model/ stream.csv --by date:week --class negative --fail-over 0.3
    """
    from quanet.corpus.group_files import open_files
    from quanet.report.monitor import summarize_monitor
    from quanet.workflows.monitor import monitor_batches, open_monitor, read_batches

    key = parse_one_key(by, "--by")
    choice = choose_engine(model, engine, workers)
    form = choose_format(form, output)
    check_state_file(save_state)
    check_outputs(output, save_state, plot=plot, report=report, force=force)
    with warnings_as_lines():
        quantifier, facts = load_model(model, naming)
        classes = facts["class_names"]
        # The state keeps the labels of the model, so that other names can be given with the next file.
        watch = open_monitor(classes.with_labels(quantifier), key, state, model=str(model), **asdict(alarm))
        if restart:
            _restart(watch)
        show = check_class(naming, classes)
        data = open_files(
            quantifier,
            facts,
            files,
            inputs,
            keys=[key.as_required()],
            skip_bad=bad_files.skip_bad_files,
        )
        reading = read_files(data, missing="no date", engine=choice, save=save_state)
        batches, messages = read_batches(key, reading)
        for message in messages:
            note(message)
        with progress(f"Monitoring {len(batches):,} batches"):
            weights, merged = reading.row_weights, reading.merged
            run = monitor_batches(
                watch, reading.instances, batches, weights=weights, merged=merged, weight=reading.weight
            )
            run = run.with_classes(classes.names)
        if state is not None:
            _save(watch, state, model)
    _print_batches(run, state)
    summary = summarize_monitor(run, settings=command_settings(), focus=show).with_bad_files(data.bad_files)
    if form is not OutputFormat.table or output is not None:
        note(summary.answer)
    if plot is not None:
        _draw(run, show, plot)
    write_report(summary, report)
    write_answer(summary, form, output)
    check_bound(*_newest(run, show), fail_over, fail_bound)


def _restart(watch: "Monitor") -> None:
    from quanet.errors import InvalidSetting

    try:
        watch.restart()
    except InvalidSetting:
        note("No change had been detected before, so there is nothing to restart from.")


def _save(watch: "Monitor", state: Path, model: Path) -> None:
    from quanet.persist.save import save

    save(watch, state, data=f"Batches followed with the model {model}.", overwrite=True)
    note(f"State: {state}")


def _print_batches(run: "MonitorRun", state: Path | None) -> None:
    if run.repeated:
        few = ", ".join(run.repeated[:3]) + (" and more" if len(run.repeated) > 3 else "")
        note(f"Skipped {len(run.repeated)} batches that the monitor already contains ({few}).")
    if run.earlier:
        note(f"{state} contained {run.earlier} batches; {len(run.batches)} are new.")


def _shown(run: "MonitorRun", show: str | None) -> int:
    """Position of the class to show: the one asked for, or the one that changed most."""
    names = [str(name) for name in run.history.classes.tolist()]
    return run.changed_most if show is None else names.index(show)


def _newest(run: "MonitorRun", show: str | None) -> tuple[str, list[tuple[str, float, float, float]]]:
    """The class to show, and its share in the newest window with its interval."""
    history, c = run.history, _shown(run, show)
    newest, lower, upper = (float(one[-1, c]) for one in (history.windowed, history.lower, history.upper))
    return str(history.classes[c]), [(str(history.dates[-1]), newest, lower, upper)]


def _draw(run: "MonitorRun", show: str | None, plot: Path) -> None:
    from quanet.report.charts import monitor_figure, save_figure

    label = run.history.classes.tolist()[_shown(run, show)]
    save_figure(monitor_figure(run.history, label=label), plot)
    note(f"Chart: {plot}")
