"""`quanet`: the verbs."""

from typing import Annotated

import typer

from quanet import __version__
from quanet.cli import datasets, experiment, experiment_show
from quanet.cli.compare import compare
from quanet.cli.console import console
from quanet.cli.correct import correct
from quanet.cli.demo import demo
from quanet.cli.evaluate import evaluate
from quanet.cli.fit import fit
from quanet.cli.info import info
from quanet.cli.methods import methods
from quanet.cli.monitor import monitor
from quanet.cli.predict import predict
from quanet.cli.verbs import Verbs

app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"auto_envvar_prefix": "QUANET"},
)
for verb in (fit, predict, evaluate, compare, correct, monitor, info, methods, demo):
    app.command()(verb)
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
    """How many, not which: estimate the share of each class in sets of unlabelled items.

    [bold]Two commands from files to an answer:[/]

    quanet fit reviews.csv --text review --label sentiment -o model

    quanet predict model new.csv --by product --by date:month --plot trend.png

    Options may also stand in quanet.toml, a table for every command, or in the environment: QUANET_PREDICT_LEVEL=0.9.
    """


def run() -> None:
    """Run the command line.

    Exit codes: 0; 1, data or a model that cannot be used; 2, a wrong call; 130, stopped by Ctrl-C.
    """
    app(prog_name="quanet")
