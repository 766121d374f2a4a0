"""`quanet`: the verbs, and how errors end."""

import sys
from typing import Annotated

import typer
from rich.markup import escape

from quanet import __version__
from quanet.cli import datasets, experiment, experiment_show
from quanet.cli.compare import compare
from quanet.cli.console import console, problems
from quanet.cli.correct import correct
from quanet.cli.demo import demo
from quanet.cli.evaluate import evaluate
from quanet.cli.info import info
from quanet.cli.methods import methods
from quanet.cli.monitor import monitor
from quanet.errors import QuanetError

app = typer.Typer(
    help="How many, not which: estimate the share of each class in sets of unlabelled items.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(evaluate)
app.command()(compare)
app.command()(correct)
app.command()(monitor)
app.command()(info)
app.command()(methods)
app.command()(demo)
app.add_typer(datasets.app, name="datasets")
experiment_show.register(experiment.app)
app.add_typer(experiment.app, name="experiment")


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"quanet {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """How many, not which: estimate the share of each class in sets of unlabelled items."""


def run() -> None:
    """Run the command line; an error is one line and exit code 1 (a wrong call is 2, an interruption 130, by Typer)."""
    try:
        app()
    except QuanetError as error:
        problems.print(f"[bold red]Error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)
