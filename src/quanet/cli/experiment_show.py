"""`quanet experiment table` and `quanet experiment figure`: what came of an experiment."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from quanet.cli.console import console, note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quanet.evaluation.cells import Cell, Outcome


class Format(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    markdown = "markdown"
    latex = "latex"
    html = "html"


class Kind(StrEnum):
    """What a figure shows."""

    estimates = "estimates"
    shift = "shift"
    bias = "bias"
    error = "error"
    ranks = "ranks"


class Blocks(StrEnum):
    """What ranks are over."""

    runs = "runs"
    datasets = "datasets"


Aside = Annotated[
    list[str] | None,
    typer.Option(help="A method that is shown but does not compete, as it has seen test data; may be given again."),
]
Folder = Annotated[Path, typer.Argument(help="Folder of an experiment.", show_default=False)]
RankOver = Annotated[Blocks, typer.Option(help="What methods are ranked over.")]


def register(app: typer.Typer) -> None:
    """Add the commands to those of `quanet experiment`."""
    app.command()(table)
    app.command()(figure)


def table(
    folder: Folder,
    metric: Annotated[
        list[str] | None, typer.Option(help="ae, rae, kld, ...; may be given again. Without it, the plan's.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Without it, by the ending of the output: .md, .tex, .html, .txt."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File; the screen if not given.")] = None,
    tests: Annotated[bool, typer.Option("--tests", help="Add ranks: Wilcoxon, Friedman, Nemenyi.")] = False,
    against_paper: Annotated[
        bool, typer.Option("--against-paper", help="Add the paper's published figures and the difference.")
    ] = False,
    blocks: RankOver = Blocks.runs,
    aside: Aside = None,
) -> None:
    """Print the errors of an experiment in the layout of the paper's Table 1.

    Example: quanet experiment table results/paper --tests --against-paper -o table.tex
    """
    from quanet.evaluation.scores import score
    from quanet.report.render import choose_format, to_terminal, write_tables
    from quanet.report.tables import experiment_tables

    chosen = choose_format(form, output)
    found = _read(folder, aside)
    scores = score(
        found.cells,
        metric or found.metrics,
        expected=found.expected,
        aside=found.aside,
        stand_ins=found.stand_ins,
    )
    tables = experiment_tables(scores, against_paper=against_paper, tests=tests, blocks=blocks)
    if output is None and chosen == Format.terminal:
        console.print(to_terminal(tables, console))
    elif text := write_tables(tables, chosen, output):
        typer.echo(text, nl=False)
    else:
        note(f"Table: {output}")


def figure(
    folder: Folder,
    kind: Annotated[Kind, typer.Option(help="What to draw.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Ends in .svg, .png or .pdf.", show_default=False)],
    metric: Annotated[str, typer.Option(help="Error of shift, error and ranks.")] = "ae",
    limits: Annotated[
        Path | None,
        typer.Option(help="Cramér-Rao bounds for the error figure, in JSON; by default those of the cells."),
    ] = None,
    blocks: RankOver = Blocks.runs,
    aside: Aside = None,
) -> None:
    """Draw estimates against truth (the paper's Figure 2), errors by shift, bias, errors by prevalence, or ranks.

    Example: quanet experiment figure results/paper --kind estimates -o estimates.svg
    """
    from quanet.evaluation.limits import read_limits
    from quanet.experiments.bounds import bounds_of
    from quanet.report.plots import check_suffix, save_figure
    from quanet.report.plots.experiment import experiment_figure

    check_suffix(output)
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
    """What is finished, what the plan asks for, and what its folder says of it."""

    cells: "Mapping[Cell, Outcome]"
    expected: "tuple[Cell, ...]"
    metrics: tuple[str, ...]
    aside: tuple[str, ...]
    stand_ins: dict[str, str]


def _read(folder: Path, aside: list[str] | None) -> _Experiment:
    from quanet.experiments.manifest import asked_cells, read_manifest
    from quanet.experiments.store import read_cells

    about = read_manifest(folder)
    datasets = about.get("datasets", {}).items()
    return _Experiment(
        read_cells(folder),
        tuple(asked_cells(about)),
        tuple(about.get("metrics", ("ae", "rae", "kld"))),
        tuple(dict.fromkeys([*about.get("aside", ()), *(aside or ())])),
        {name: said["stand_in"] for name, said in datasets if said.get("stand_in")},
    )
