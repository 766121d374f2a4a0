"""`quanet compare`: which method does best on one's own data."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from quanet.cli.console import ended_by_signals, note, notes, warnings_as_lines
from quanet.cli.labels import labelled_pools
from quanet.cli.moving import PARTS, learning, moving, spoken
from quanet.cli.opening import settings
from quanet.cli.options import HOW, DateFormat, Encoding, Force, Label, NormalizeLabels, Report, Seed, Text
from quanet.cli.protocol import BagSize, ProtocolName, Repeats, check_metric, drawing_of
from quanet.cli.writing import AnswerFormat, Output, check_outputs, choose_format, write_answer, write_summary

if TYPE_CHECKING:
    from quanet.answers.comparing import Outcome, Shared
    from quanet.answers.drawing import Drawing, Drawn
    from quanet.answers.evaluation import Comparison
    from quanet.answers.fitting import Labelled
    from quanet.answers.labelled import Pool

SIGNIFICANT = 0.05


def compare(
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="Labelled instances to learn from.", show_default=False)
    ],
    test: Annotated[
        str, typer.Argument(metavar="TEST", help="Labelled instances to draw bags from.", show_default=False)
    ],
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="cc,emq,quanet,... in any case; quick: all that read posteriors and take seconds; or all.",
            rich_help_panel=HOW,
        ),
    ] = "quick",
    text: Text = None,
    label: Label = None,
    normalize_labels: NormalizeLabels = False,
    metric: Annotated[str, typer.Option(help="Error to rank by: ae, rae, kld, ...", rich_help_panel=HOW)] = "ae",
    protocol: ProtocolName = "app",
    bag_size: BagSize = None,
    repeats: Repeats = None,
    seed: Seed = 0,
    date_format: DateFormat = None,
    encoding: Encoding = "utf-8",
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Compare methods on the same bags of a labelled file, best first, with significance.

    One classifier is fitted, out of fold too, and serves all methods that read posteriors.

    A method that cannot run on these data is listed with the reason. Ctrl-C shows what is finished.

    [bold]Examples[/]

    quanet compare train.csv test.csv --text review --label sentiment

    quanet compare train.csv test.csv --methods cc,emq,quanet --report methods.html

    quanet compare train.csv test.csv --methods all --protocol by:product
    """
    from quanet.answers.labelled import choose_columns
    from quanet.data.streams import Source

    chosen = _chosen(methods)
    check_metric(metric)
    drawing = drawing_of(protocol, bag_size, repeats)
    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    with warnings_as_lines():
        sources = Source([train], encoding=encoding), Source([test], encoding=encoding)
        columns = choose_columns(sources[0], text, label)
        learn, tried = labelled_pools(*sources, columns, drawing.key, date_format, normalize=normalize_labels)
        shared, drawn = _prepared(learn, tried, drawing, test, seed)
        outcomes, stopped = _run(chosen, shared, drawn, seed)
    if stopped and not any(one.results for one in outcomes):
        raise typer.Exit(stopped)

    from quanet.answers.comparing import rank_methods

    found = rank_methods(outcomes, shared, drawn, metric=metric, train=train, test=test)
    if stopped:
        note(f"Stopped: {len(outcomes)} of {len(chosen)} methods are finished.")

    def summary() -> Any:
        from quanet.report.comparison import summarize_comparison

        return summarize_comparison(found, settings=settings())

    write_summary(report, summary)
    write_answer(
        form,
        output,
        shown=lambda: _shown(found, metric.lower()),
        rows=lambda: _rows(found),
        plain=lambda: _plain(found, metric.lower()),
    )
    if stopped:
        raise typer.Exit(stopped)


def _chosen(methods: str) -> list[str]:
    from quanet.answers.comparing import choose_methods
    from quanet.errors import InvalidSetting

    asked = [name for name in methods.replace(",", " ").split() if name]
    if not asked:
        raise typer.BadParameter("name at least one method, or say quick or all.", param_hint="--methods")
    try:
        return choose_methods(asked)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--methods") from None


def _prepared(learn: "Labelled", tried: "Pool", drawing: "Drawing", test: str, seed: int) -> "tuple[Shared, Drawn]":
    """Both pools read by one classifier, and bags of the second."""
    from quanet.answers.comparing import share_classifier
    from quanet.answers.drawing import draw_bags
    from quanet.data.columns import match_labels
    from quanet.progress import listening
    from quanet.simplex import classes_of

    classes = classes_of(learn.y)
    test_labels = match_labels(tried.names, classes, source=test)
    drawn = draw_bags(drawing, test_labels, classes, groups=tried.groups, rng=seed)
    for message in drawn.notes:
        note(message)
    note(f"{len(learn.y):,} instances to learn from, {len(test_labels):,} to draw from; {drawn.protocol}.")
    parts = {name: PARTS[name] for name in ("words", "weighted words", "characters")}
    with moving("Fitting the classifier that all methods share") as move, listening(learning(move, parts)):
        shared = share_classifier(learn.X, learn.y, tried.X, test_labels)
    note(f"Classifier fitted and both files read in {shared.seconds:.1f} s.")
    return shared, drawn


def _run(names: list[str], shared: "Shared", drawn: "Drawn", seed: int) -> "tuple[list[Outcome], int]":
    """What has become of the methods, and the exit code if they were stopped before the last, else 0."""
    from quanet.answers.comparing import run_methods
    from quanet.progress import listening

    outcomes: list[Outcome] = []
    try:
        with ended_by_signals("Stopping ..."), _progress(names) as (move, hear), listening(hear):
            for outcome in run_methods(names, shared, drawn.bags, rng=seed):
                outcomes.append(outcome)
                move(outcome)
    except SystemExit as stop:
        return outcomes, int(stop.code or 0)
    return outcomes, 0


@contextlib.contextmanager
def _progress(names: list[str]) -> Iterator[tuple[Any, Any]]:
    """A bar over methods: what moves it after each, and what it hears of a training within one."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(names[0], total=len(names), left="")
        begun = time.perf_counter()

        def move(outcome: "Outcome") -> None:
            nonlocal begun
            begun = time.perf_counter()
            after = min(names.index(outcome.method) + 1, len(names) - 1)
            left = f"about {spoken(outcome.left)} left" if outcome.left > 1 else ""
            bar.update(task, advance=1, description=names[after], left=left)

        def hear(what: str, done: float) -> None:
            if what == "network" and done > 0:
                rest = (time.perf_counter() - begun) * (1 - done) / done
                bar.update(task, left=f"its training: about {spoken(rest)} left")

        yield move, hear


def _shown(found: "Comparison", metric: str) -> list[Any]:
    names = list(found.results)
    bags = len(next(iter(found.results.values())))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right", style="dim")
    table.add_column("method", no_wrap=True)
    for name in found.errors:
        table.add_column(name.upper(), justify="right", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    least = {name: errors.min() for name, errors in found.errors.items()}
    for i, name in enumerate(names):
        p = found.p_values[metric][i]
        errors = (
            f"[bold green]{errors[i]:.4f}[/]" if errors[i] == least[key] else f"{errors[i]:.4f}"
            for key, errors in found.errors.items()
        )
        table.add_row(str(i + 1), f"[bold]{escape(name)}[/]", *errors, _probability(p, i), f"{found.seconds[i]:.2f}")
    alike = [name for i, name in enumerate(names) if i and not found.p_values[metric][i] < SIGNIFICANT]
    parts: list[Any] = [_sentence(found, metric, alike), table]
    if found.limit is not None:
        parts.append(
            f"Least AE that the classifier's posteriors allow (Cramér-Rao), averaged over prevalences: "
            f"{found.limit.errors.mean():.4f}."
        )
    parts.append(
        f"[dim]{escape(found.protocol)}: {bags:,} bags. p: paired t-test over bags against the first by "
        f"{metric.upper()}, Holm's correction; seconds without the classifier's.[/]"
    )
    if found.failed:
        refused = Table(
            box=None,
            padding=(0, 2, 0, 0),
            title="\nNot run",
            title_justify="left",
            title_style="bold",
            show_header=False,
        )
        refused.add_column("method", no_wrap=True)
        for reason, which in _by_reason(found).items():
            refused.add_row(escape(", ".join(which)), escape(reason))
        parts.append(refused)
    return parts


def _sentence(found: "Comparison", metric: str, alike: list[str]) -> str:
    names = list(found.results)
    best = f"[bold]{escape(names[0])}[/] has the least {metric.upper()}, {found.errors[metric][0]:.4f}"
    if len(names) == 1:
        return f"{best}."
    if all(p != p for p in found.p_values[metric]):
        return f"{best}. Differences are not tested: a paired test needs at least two bags."
    if not alike:
        return f"{best}, and every other method does significantly worse."
    few = ", ".join(alike[:3]) + (f" and {len(alike) - 3} more" if len(alike) > 3 else "")
    return f"{best}; not significantly worse: {escape(few)}."


def _by_reason(found: "Comparison") -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for method, reason in found.failed.items():
        reasons.setdefault(reason, []).append(method)
    return reasons


def _probability(p: float, at: int) -> str:
    if p != p:
        return "best" if at == 0 else ""
    return "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def _rows(found: "Comparison") -> list[dict[str, Any]]:
    rows = []
    for i, (name, results) in enumerate(found.results.items()):
        row: dict[str, Any] = {"rank": i + 1, "method": name}
        for key, errors in found.errors.items():
            by_bag = results.error(key)
            row |= {key: errors[i], f"{key}_sd": by_bag.std(), f"{key}_p": found.p_values[key][i]}
        rows.append(row | {"bags": len(results), "seconds": found.seconds[i]})
    return rows


def _plain(found: "Comparison", metric: str) -> dict[str, Any]:
    return {
        "train": found.train,
        "test": found.test,
        "protocol": found.protocol,
        "metric": metric,
        "classes": found.classes,
        "prior": found.prior,
        "counts": found.counts,
        "methods": _rows(found),
        "not_run": found.failed,
        "limit": None if found.limit is None else float(found.limit.errors.mean()),
    }
