"""`quanet experiment`: run experiments defined in a plan file, and show their results."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from quanet.cli.console import exit_on_signals, note, notes, print_error, warnings_as_lines, write_answer
from quanet.cli.options import Output, OutputFormat, choose_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quanet.evaluation.evaluate import Cell, CellOutcome
    from quanet.lab.runner import Fact

app = typer.Typer(
    name="experiment", help="Run experiments defined in a plan file, and show their results.", no_args_is_help=True
)


class Kind(StrEnum):
    """What a figure shows."""

    estimates = "estimates"
    shift = "shift"
    bias = "bias"
    error = "error"
    ranks = "ranks"


class Blocks(StrEnum):
    """What methods are ranked over."""

    runs = "runs"
    datasets = "datasets"


Folder = Annotated[Path, typer.Argument(help="Folder of the experiment.", show_default=False)]
Aside = Annotated[
    list[str] | None,
    typer.Option(help="Method to show without ranking it, because it has seen test data. Repeatable."),
]
RankOver = Annotated[Blocks, typer.Option(help="Rank methods over runs or over datasets.")]


@app.command()
def run(
    plan: Annotated[Path, typer.Argument(help="Plan file (TOML), see docs/how-to/experiments.md.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the experiment; default: the plan's name.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of parallel jobs; default: one per core.")] = None,
    engine: Annotated[str, typer.Option(help="joblib (this machine) or ray (a cluster).")] = "joblib",
    only: Annotated[str, typer.Option(help="Run only some cells: dataset=NAME,method=NAME,run=N; repeat keys.")] = "",
    device: Annotated[
        str | None, typer.Option(help="Device for networks if the plan does not name one: cpu, cuda.")
    ] = None,
) -> None:
    """Run the missing cells of PLAN. Finished cells are kept; the same command resumes after an interruption.

    Example: quanet experiment run benchmarks/paper.toml --only dataset=imdb,run=0
    """
    from quanet.lab.parallel import engine_of
    from quanet.lab.plan import read_plan
    from quanet.lab.runner import Selection
    from quanet.lab.runner import run as run_cells

    checked = read_plan(plan)
    chosen = Selection.parse(only, checked)
    folder = output or Path(plan.stem)
    failed: dict[Cell, str] = {}
    stopped = f"Stopped. Finished cells are in {folder}; the same command resumes from there."
    with warnings_as_lines(), exit_on_signals(stopped), engine_of(engine, jobs) as workers:
        facts = run_cells(checked, folder, workers, only=chosen, device=device)
        with closing(facts), _cell_progress() as show_fact:
            for fact in facts:
                show_fact(fact)
                if fact.error:
                    failed[fact.work] = fact.error  # type: ignore[index]
    note(f"{fact.done - len(failed)} of {fact.total} cells are in {folder}")
    for cell, error in failed.items():
        print_error(f"{_title(cell)} failed: {error}")
    if failed:
        raise typer.Exit(1)


@app.command()
def show(folder: Folder) -> None:
    """Show which cells are done, missing or failed.

    Example: quanet experiment show paper
    """
    from quanet.lab.runner import state_of
    from quanet.report.experiment_progress import summarize_progress

    with warnings_as_lines():
        state = state_of(folder)
    write_answer(summarize_progress(state, str(folder)), OutputFormat.table, None)


@app.command()
def pack(
    folder: Folder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the packed files.")],
) -> None:
    """Write the finished cells compactly, one file per dataset and method, to keep next to the plan.

    Example: quanet experiment pack paper -o benchmarks/results/paper
    """
    from quanet.lab.store import pack as write_packed

    sizes = [file.stat().st_size for file in write_packed(folder, output)]
    typer.echo(f"{len(sizes)} files, {sum(sizes) / 1e6:.2f} MB, the largest {max(sizes) / 1e6:.2f} MB: {output}")


@app.command()
def table(
    folder: Folder,
    metric: Annotated[
        list[str] | None, typer.Option(help="Error: ae, rae, kld, ... Repeatable. Default: the plan's metrics.")
    ] = None,
    form: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="Output format; default: by the ending of --output, otherwise a table."),
    ] = None,
    output: Output = None,
    tests: Annotated[bool, typer.Option("--tests", help="Add ranks: Wilcoxon, Friedman, Nemenyi.")] = False,
    against_paper: Annotated[
        bool, typer.Option("--against-paper", help="Add the paper's published errors and the difference.")
    ] = False,
    blocks: RankOver = Blocks.runs,
    aside: Aside = None,
) -> None:
    """Print the errors of an experiment in the layout of the paper's Table 1.

    Example: quanet experiment table results/paper --tests --against-paper -o table.tex
    """
    from quanet.evaluation.scores import score
    from quanet.files import check_writable
    from quanet.report.experiment import summarize_experiment

    form = OutputFormat.table if form is None and output is None else choose_format(form, output)
    if output is not None:
        check_writable(output)
    found = _read(folder, aside)
    scores = score(
        found.cells,
        metric or found.metrics,
        expected=found.expected,
        aside=found.aside,
        stand_ins=found.stand_ins,
    )
    summary = summarize_experiment(scores, against_paper=against_paper, tests=tests, blocks=blocks)
    write_answer(summary, form, output)


@app.command()
def figure(
    folder: Folder,
    kind: Annotated[Kind, typer.Option(help="What to draw.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="File: .svg, .png or .pdf.", show_default=False)],
    metric: Annotated[str, typer.Option(help="Error for shift, error and ranks.")] = "ae",
    limits: Annotated[
        Path | None,
        typer.Option(help="Cramér-Rao bounds for the error figure, in JSON; default: bounds of the cells."),
    ] = None,
    blocks: RankOver = Blocks.runs,
    aside: Aside = None,
) -> None:
    """Draw estimates by true share (the paper's Figure 2), errors by shift, bias, errors by prevalence, or ranks.

    Example: quanet experiment figure results/paper --kind estimates -o estimates.svg
    """
    from quanet.evaluation.limits import read_limits
    from quanet.files import check_writable
    from quanet.lab.bounds import bounds_of
    from quanet.report.charts import check_suffix, save_figure
    from quanet.report.charts.experiment_figures import experiment_figure

    check_suffix(output)
    check_writable(output)
    bounds = read_limits(limits) if limits else bounds_of(folder)
    found = _read(folder, aside)
    drawn = experiment_figure(
        found.cells,
        kind,
        metric=metric,
        limits=bounds,
        blocks=blocks,
        aside=found.aside,
        stand_ins=found.stand_ins,
    )
    save_figure(drawn, output)
    note(f"Figure: {output}")


class _Experiment(NamedTuple):
    """Finished cells, planned cells, and facts in the experiment's folder."""

    cells: "Mapping[Cell, CellOutcome]"
    expected: "tuple[Cell, ...]"
    metrics: tuple[str, ...]
    aside: tuple[str, ...]
    stand_ins: dict[str, str]


def _read(folder: Path, aside: list[str] | None) -> _Experiment:
    from quanet.lab.store import asked_cells, read_cells, read_manifest

    manifest = read_manifest(folder)
    datasets = manifest.get("datasets", {}).items()
    return _Experiment(
        read_cells(folder),
        tuple(asked_cells(manifest)),
        tuple(manifest.get("metrics", ("ae", "rae", "kld"))),
        tuple(dict.fromkeys([*manifest.get("aside", ()), *(aside or ())])),
        {name: about["stand_in"] for name, about in datasets if about.get("stand_in")},
    )


def _title(work: object) -> str:
    from quanet.evaluation.evaluate import Cell

    if isinstance(work, Cell):
        return f"{work.dataset}, {work.method}, run {work.run}"
    return f"{work.dataset}, rows of {work.classifier}, run {work.run}"  # type: ignore[attr-defined]


@contextmanager
def _cell_progress() -> Iterator[Callable[["Fact"], None]]:
    """A progress bar on a terminal; otherwise one line for every piece of work."""
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    if not notes.is_terminal:

        def print_line(fact: "Fact") -> None:
            result = "failed" if fact.error else f"{fact.seconds:.1f} s"
            what = f"{_title(fact.work)}: {result}{_time_left(fact)}" if fact.work else "cells already exist"
            note(f"{fact.done}/{fact.total} {what}")

        yield print_line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=notes) as bar:
        task = bar.add_task("cells", total=None, left="")

        def move_bar(fact: "Fact") -> None:
            what = escape(_title(fact.work)) if fact.work else "cells"
            bar.update(task, completed=fact.done, total=fact.total, description=what, left=_time_left(fact))

        yield move_bar


def _time_left(fact: "Fact") -> str:
    if fact.left is None or fact.done == fact.total:
        return ""
    minutes = fact.left / 60
    return f", about {minutes:.0f} min left" if minutes >= 1.5 else f", about {fact.left:.0f} s left"
