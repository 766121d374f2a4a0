"""`quanet compare`: compare methods on your own data."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quanet.cli.console import (
    command_settings,
    exit_on_signals,
    note,
    notes,
    progress,
    training_progress,
    warnings_as_lines,
    write_answer,
    write_report,
)
from quanet.cli.labels import labelled_pools
from quanet.cli.options import (
    AnswerFormat,
    Force,
    Output,
    Report,
    check_class,
    check_outputs,
    choose_format,
    name_classes,
)
from quanet.cli.protocol import BagSize, ProtocolName, Repeats, check_metric, parse_protocol
from quanet.data.settings import METHOD, LabelledColumns, Naming, Seed, split_names
from quanet.progress import duration

if TYPE_CHECKING:
    from quanet.workflows.compare import MethodOutcome, SharedData
    from quanet.workflows.drawing import Drawing, LabelledBags
    from quanet.workflows.labelled import Labelled, LabelledPool


def compare(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Labelled training instances.", show_default=False)],
    test: Annotated[
        str, typer.Argument(metavar="TEST", help="Labelled instances to draw bags from.", show_default=False)
    ],
    columns: LabelledColumns,
    seed: Seed,
    naming: Naming,
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Names such as cc,emq,quanet; quick: fast methods that use posteriors; or all.",
            rich_help_panel=METHOD,
        ),
    ] = "quick",
    metric: Annotated[str, typer.Option(help="Error to rank by: ae, rae, kld, ...", rich_help_panel=METHOD)] = "ae",
    protocol: ProtocolName = "app",
    bag_size: BagSize = None,
    repeats: Repeats = None,
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Compare methods on the same bags of a labelled file: best first, with significance.

    All methods that use posteriors share one cross-fitted classifier.

    Methods that cannot run on these data are listed with the reason. Ctrl-C shows the finished methods.

    [bold]Examples[/]

    quanet compare train.csv test.csv --text review --label sentiment

    quanet compare train.csv test.csv --methods cc,emq,quanet --report methods.html

    quanet compare train.csv test.csv --methods all --protocol by:product
    """
    from quanet.data.storage import without_credentials
    from quanet.data.streams import TableSource
    from quanet.report.compare import summarize_comparison
    from quanet.simplex import classes_of
    from quanet.workflows.compare import rank_methods
    from quanet.workflows.labelled import choose_columns

    chosen = _choose(methods)
    given = naming.by_label
    check_metric(metric)
    drawing = parse_protocol(protocol, bag_size, repeats)
    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    with warnings_as_lines():
        sources = (
            TableSource([train], **columns.table_options),
            TableSource([test], **columns.table_options),
        )
        train, test = map(without_credentials, (train, test))
        found = choose_columns(sources[0], columns.text, columns.label)
        training, pool = labelled_pools(
            *sources, found, drawing.key, columns.date_format, normalize=columns.normalize_labels, given=given
        )
        classes = name_classes(classes_of(training.y), given)
        show = check_class(naming, classes)
        shared, drawn = _prepare(training, pool, drawing, test, seed.seed)
        outcomes, stopped = _run(chosen, shared, drawn, seed.seed)
    if stopped and not any(one.results for one in outcomes):
        raise typer.Exit(stopped)
    comparison = rank_methods(outcomes, shared, drawn, metric=metric, train=train, test=test).with_classes(
        classes.names
    )
    if stopped:
        note(f"Stopped: {len(outcomes)} of {len(chosen)} methods are finished.")
    summary = summarize_comparison(comparison, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)
    if stopped:
        raise typer.Exit(stopped)


def _choose(methods: str) -> list[str]:
    from quanet.errors import InvalidSetting
    from quanet.workflows.method_choice import choose_methods

    asked = split_names(methods.split())
    if not asked:
        raise typer.BadParameter("Name at least one method, or use quick or all.", param_hint="--methods")
    try:
        return choose_methods(asked)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--methods") from None


def _prepare(
    training: "Labelled", pool: "LabelledPool", drawing: "Drawing", test: str, seed: int
) -> "tuple[SharedData, LabelledBags]":
    """Both files read by one classifier, and bags of the test file."""
    from quanet.data.columns import match_labels
    from quanet.progress import listening
    from quanet.simplex import classes_of
    from quanet.workflows.compare import share_classifier
    from quanet.workflows.drawing import draw_bags

    classes = classes_of(training.y)
    test_labels = match_labels(pool.names, classes, source=test)
    drawn = draw_bags(drawing, test_labels, classes, groups=pool.groups, rng=seed)
    for message in drawn.notes:
        note(message)
    note(f"{len(training.y):,} training instances, {len(test_labels):,} test instances; {drawn.protocol}.")
    with progress("Fitting the shared classifier") as update, listening(training_progress(update)):
        shared = share_classifier(training.X, training.y, pool.X, test_labels)
    note(f"Classifier fitted and both files read in {shared.seconds:.1f} s.")
    return shared, drawn


def _run(names: list[str], shared: "SharedData", drawn: "LabelledBags", seed: int) -> "tuple[list[MethodOutcome], int]":
    """Outcomes of the methods, and the exit code if the user stopped them, else 0."""
    from quanet.progress import listening
    from quanet.workflows.compare import run_methods

    outcomes: list[MethodOutcome] = []
    try:
        with exit_on_signals("Stopping ..."), _method_progress(names) as (advance, listener), listening(listener):
            for outcome in run_methods(names, shared, drawn.bags, rng=seed):
                outcomes.append(outcome)
                advance(outcome)
    except SystemExit as stop:
        return outcomes, int(stop.code or 0)
    return outcomes, 0


@contextlib.contextmanager
def _method_progress(names: list[str]) -> Iterator[tuple[Any, Any]]:
    """A progress bar over methods: a function to call after each, and a listener for training within a method."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(names[0], total=len(names), left="")
        started = time.perf_counter()

        def advance(outcome: "MethodOutcome") -> None:
            nonlocal started
            started = time.perf_counter()
            after = min(names.index(outcome.method) + 1, len(names) - 1)
            left = f"about {duration(outcome.left)} left" if outcome.left > 1 else ""
            bar.update(task, advance=1, description=names[after], left=left)

        def listener(what: str, done: float) -> None:
            if what == "network" and done > 0:
                rest = (time.perf_counter() - started) * (1 - done) / done
                bar.update(task, left=f"training: at most {duration(rest)} left")

        yield advance, listener
