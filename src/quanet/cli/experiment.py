"""`quanet experiment`: run a plan, see how far it is, pack its results."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from quanet.cli.console import console, ended_by_signals, note, notes, problems, warnings_as_lines

if TYPE_CHECKING:
    from quanet.evaluation.cells import Cell
    from quanet.experiments.runner import Fact

app = typer.Typer(help="Run experiments from a plan, and show what came of them.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(help="The experiment's folder.")]


@app.command()
def run(
    plan: Annotated[Path, typer.Argument(help="A TOML file; docs/how-to/experiments.md says what is in it.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The experiment's folder; by default the plan's name.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Pieces of work at a time; by default one for each core.")
    ] = None,
    engine: Annotated[str, typer.Option(help="joblib, on this machine, or ray, on a cluster.")] = "joblib",
    only: Annotated[str, typer.Option(help="Some cells: dataset=NAME,method=NAME,run=N; a key may come again.")] = "",
    device: Annotated[str | None, typer.Option(help="Of networks, where the plan leaves it open: cpu, cuda.")] = None,
) -> None:
    """Run the cells of PLAN that are missing. What is finished stays; the same command goes on where it was stopped.

    Example: quanet experiment run benchmarks/paper.toml --only dataset=imdb,run=0
    """
    from quanet.experiments.engines import engine_of
    from quanet.experiments.reader import read_plan
    from quanet.experiments.runner import Selection
    from quanet.experiments.runner import run as run_cells

    checked = read_plan(plan)
    chosen = Selection.parse(only, checked)
    folder = output or Path(plan.stem)
    failed: dict[Cell, str] = {}
    goes_on = f"Stopped. Finished cells are in {folder}; the same command goes on from there."
    with warnings_as_lines(), ended_by_signals(goes_on), engine_of(engine, jobs) as made:
        facts = run_cells(checked, folder, made, only=chosen, device=device)
        with closing(facts), _progress() as show:
            for fact in facts:
                show(fact)
                if fact.error:
                    failed[fact.work] = fact.error  # type: ignore[index]
    for cell, error in failed.items():
        problems.print(f"[bold red]Failed:[/] {escape(_title(cell))}: {escape(error)}", highlight=False, soft_wrap=True)
    note(f"{fact.done - len(failed)} of {fact.total} cells are in {folder}")
    if failed:
        raise typer.Exit(1)


@app.command()
def show(folder: Folder) -> None:
    """Show which cells are done, missing or failed.

    Example: quanet experiment show paper
    """
    from quanet.experiments.runner import state_of

    with warnings_as_lines():
        found = state_of(folder)
    states = found.cells
    methods = dict.fromkeys(cell.method for cell in states)
    datasets = dict.fromkeys(cell.dataset for cell in states)
    table = Table(title=f"Finished runs in {escape(str(folder))}", box=None, padding=(0, 2, 0, 0))
    table.add_column("method")
    for dataset in datasets:
        table.add_column(escape(dataset), justify="right")
    for method in methods:
        counts = []
        for dataset in datasets:
            here = [state for cell, state in states.items() if cell[:2] == (dataset, method)]
            bad = sum(state not in ("done", "missing") for state in here)
            counts.append(f"{here.count('done')}/{len(here)}" + (f" [red]{bad} failed[/]" if bad else ""))
        table.add_row(escape(method), *counts)
    console.print(table)
    for cell, state in states.items():
        if state not in ("done", "missing"):
            console.print(f"[red]failed[/] {escape(_title(cell))}: {escape(state)}", highlight=False, soft_wrap=True)
    for dataset, number, classifier in found.unlike:
        told = f"{dataset}, run {number}: methods have read different rows of {classifier}"
        console.print(f"[yellow]unlike[/] {escape(told)}")
    counted = list(states.values())
    done, left = counted.count("done"), counted.count("missing")
    spent = ", ".join(f"{kind} {seconds:.0f} s" for kind, seconds in found.seconds.items())
    console.print(f"{done} done, {left} missing, {len(counted) - done - left} failed; {spent}", highlight=False)


@app.command()
def pack(
    folder: Folder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to: a folder of a few small files.")],
) -> None:
    """Write the finished cells compactly, one file for every dataset and method, to keep beside the plan.

    Example: quanet experiment pack paper -o benchmarks/results/paper
    """
    from quanet.experiments.pack import pack as write_packed

    files = write_packed(folder, output)
    size = sum(file.stat().st_size for file in files)
    largest = max(file.stat().st_size for file in files)
    sizes = f"{size / 1e6:.2f} MB, the largest {largest / 1e6:.2f} MB"
    console.print(f"{len(files)} files, {sizes}: {escape(str(output))}", soft_wrap=True)


def _title(work: object) -> str:
    from quanet.evaluation.cells import Cell

    if isinstance(work, Cell):
        return f"{work.dataset}, {work.method}, run {work.run}"
    return f"{work.dataset}, rows of {work.classifier}, run {work.run}"  # type: ignore[attr-defined]


@contextmanager
def _progress() -> Iterator[Callable[["Fact"], None]]:
    """A bar on a terminal; elsewhere one line for every piece of work."""
    if not notes.is_terminal:

        def line(fact: "Fact") -> None:
            ended = "failed" if fact.error else f"{fact.seconds:.1f} s"
            said = f"{_title(fact.work)}: {ended}{_left(fact)}" if fact.work else "cells are there"
            note(f"{fact.done}/{fact.total} {said}")

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[left]}"), console=notes) as bar:
        task = bar.add_task("cells", total=None, left="")

        def move(fact: "Fact") -> None:
            what = escape(_title(fact.work)) if fact.work else "cells"
            bar.update(task, completed=fact.done, total=fact.total, description=what, left=_left(fact))

        yield move


def _left(fact: "Fact") -> str:
    if fact.left is None or fact.done == fact.total:
        return ""
    minutes = fact.left / 60
    return f", about {minutes:.0f} min left" if minutes >= 1.5 else f", about {fact.left:.0f} s left"
