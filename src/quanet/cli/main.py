"""`quanet`: the commands, their shared options, defaults from `quanet.toml` and the environment, and exit codes."""

import io
import json
import os
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quanet import __version__
from quanet.cli import datasets, experiment, label, token
from quanet.cli.check import check
from quanet.cli.compare import compare
from quanet.cli.console import configure, console, print_error, problems, warnings_as_lines
from quanet.cli.correct import correct
from quanet.cli.demo import demo
from quanet.cli.diagnose import diagnose
from quanet.cli.diff import diff
from quanet.cli.evaluate import evaluate
from quanet.cli.fit import fit
from quanet.cli.info import info
from quanet.cli.merge import merge
from quanet.cli.methods import methods
from quanet.cli.monitor import monitor
from quanet.cli.options import command as as_command
from quanet.cli.predict import predict
from quanet.cli.refine import refine
from quanet.cli.serve import serve
from quanet.cli.worker import worker
from quanet.errors import QuanetError
from quanet.files import parse_toml

CONFIG = "quanet.toml"
LESS_MEMORY = {
    "--bag-size": "a smaller --bag-size",
    "--repeats": "fewer --repeats",
    "--method": "another --method",
    "--methods": "fewer --methods",
    "--workers": "fewer --workers",
}
PANEL = "General"
USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # of the click that typer brings


def _be_quiet(wanted: bool) -> None:
    if wanted:
        configure(quiet=True)


def _be_verbose(wanted: bool) -> None:
    if wanted:
        configure(verbose=True)


def _use_no_color(wanted: bool) -> None:
    if wanted:
        configure(color=False)


def general(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", callback=_be_quiet, help="Print only answers, warnings and errors.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", callback=_be_verbose, help="Print details and timings.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", callback=_use_no_color, help="Print without colours.")
    ] = False,
) -> None:
    """Options of every command, at any place in the command line."""


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, command in self.commands.items():
            _add_general_options(command, f"QUANET_{name}")
        self.params += [*_general_options()]
        _hide_variables(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what precedes the command, with the defaults of `quanet.toml`."""
        _hide_variables(self)  # also of completion, which typer adds late
        configure(quiet=False, verbose=False, color="NO_COLOR" not in os.environ)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # file names may contain what no encoding can write
                stream.reconfigure(errors="backslashreplace")
        if not ctx.resilient_parsing:  # shell completion must not fail
            try:
                ctx.default_map = read_config(Path.cwd(), self)
            except ValueError as error:
                _end_with_usage_error(str(error), ctx)
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            _explain(error, ctx)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run a command; turn errors into one line on standard error and an exit code."""
        try:
            with warnings_as_lines():
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except USAGE_ERROR as error:
            _explain(error, ctx)
            raise
        except QuanetError as error:
            print_error(str(error))
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            problems.print("Stopped.")
            raise typer.Exit(130) from error
        except BrokenPipeError as error:  # the reader has stopped reading
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # drop the rest of the output
            raise typer.Exit(0) from error
        except OSError as error:
            print_error(f"{error.filename or 'a file'}: {error.strerror or error}.")
            raise typer.Exit(1) from error
        except MemoryError as error:
            print_error(f"Not enough memory. Use {_less_memory(self.commands.get(ctx.invoked_subcommand))}.")
            raise typer.Exit(1) from error


def _less_memory(command: Any) -> str:
    """What needs less memory, of the options that a command has.

    Examples
    --------
    >>> _less_memory(None)
    'fewer rows'
    """
    options = {option for param in getattr(command, "params", ()) for option in param.opts}
    *ways, last = ["fewer rows", *(way for option, way in LESS_MEMORY.items() if option in options)]
    return f"{', '.join(ways)} or {last}" if ways else last


def _explain(error: Any, ctx: Any) -> None:
    """End with a usage error in one line; return if it only asks for the help."""
    if error.format_message() and not type(error).__name__.startswith("NoArgs") and not ctx.resilient_parsing:
        _end_with_usage_error(error.format_message(), error.ctx or ctx)


def _end_with_usage_error(message: str, ctx: Any) -> None:
    end = "" if message.endswith((".", "?")) else "."
    print_error(f"{message}{end} See {ctx.command_path} --help.")
    raise typer.Exit(2)


def _add_general_options(command: Any, path: str) -> None:
    for name, inner in getattr(command, "commands", {}).items():
        _add_general_options(inner, f"{path}_{name}")
    for param in command.params:  # as the option is called, not its parameter: QUANET_PREDICT_FORMAT
        option = param.opts[0].lstrip("-")
        if param.envvar is None and option.replace("-", "_") != param.name:
            param.envvar = f"{path}_{option}".replace("-", "_").upper()
    if not hasattr(command, "commands"):
        names = {param.name for param in command.params}
        command.params += [param for param in _general_options() if param.name not in names]
    _hide_variables(command)


def _hide_variables(command: Any) -> None:
    """Leave environment variables out of the help, which they would crowd."""
    for param in command.params:
        param.show_envvar = False


@cache
def _general_options() -> tuple[Any, ...]:
    """The options of every command; built once, since this takes a third of the start-up time."""
    built = typer.Typer(add_completion=False)
    built.command()(general)
    params: tuple[Any, ...] = tuple(typer.main.get_command(built).params)
    for param in params:
        param.expose_value = False
        param.rich_help_panel = PANEL
    return params


def read_config(folder: Path, command: Any) -> dict[str, Any]:
    """Defaults of options from `quanet.toml` in a folder, by parameter name; empty if the file does not exist.

    The file has a table for every command, with the options as keys: ``[predict]``, ``by = ["product", "date:month"]``.
    The command line takes precedence, then the environment (``QUANET_PREDICT_LEVEL``), then this file.
    A ValueError explains what is wrong with the file.
    """
    try:
        tables = parse_toml((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{CONFIG} cannot be read: {error}") from error
    return _defaults(tables, command, "")


def _defaults(table: Mapping[str, Any], command: Any, path: str) -> dict[str, Any]:
    commands: Mapping[str, Any] = getattr(command, "commands", {})
    options = {name: param for param in command.params for name in _config_names(param)}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in commands and isinstance(value, Mapping):
            found[key] = _defaults(value, commands[key], f"{path}{key}.")
        elif key.replace("_", "-") in options:
            param = options[key.replace("_", "-")]
            found[param.name] = _config_value(value, param)
        else:
            known = [*commands, *options]
            close = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            inside = f"[{path.rstrip('.')}]" if path else "the file"
            raise ValueError(
                f"{CONFIG}: unknown key {f'{path}{key}'!r}.{hint} {inside.capitalize()} accepts {', '.join(known)}."
            )
    return found


def _config_names(param: Any) -> list[str]:
    """Names of an option in the file: its long names without dashes; for an argument, its name."""
    long = [option.removeprefix("--") for option in param.opts if option.startswith("--")]
    return [name for name in long if name not in {"help", "version", "install-completion", "show-completion"}] or (
        [] if long else [param.name.replace("_", "-")]
    )


def _config_value(value: Any, param: Any) -> Any:
    several = getattr(param, "multiple", False) or param.nargs == -1
    if several and isinstance(value, Mapping):  # [fit.set]
        return [f"{key}={one if isinstance(one, str) else json.dumps(one, default=str)}" for key, one in value.items()]
    return [value] if several and not isinstance(value, list) else value


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"auto_envvar_prefix": "QUANET"},
)
# Commands by goal, in the order of the help; a new command is added to its goal.
GOALS: dict[str, tuple[Any, ...]] = {
    "Estimate": (fit, predict, diff, merge),
    "Check and trust": (check, diagnose, evaluate),
    "Labels and judges": (label.app, refine, correct),
    "Watch": (monitor,),
    "Serve": (serve, worker, token.app),
    "Research": (compare, experiment.app, methods, datasets.app),
    "More": (info, demo),
}
for goal, commands in GOALS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=goal)
        else:
            app.command(rich_help_panel=goal)(as_command(command))


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
    """Estimate the share of each class in sets of unlabelled items: how many, not which.

    [bold]From files to an answer in two commands:[/]

    quanet fit reviews.csv --text review --label sentiment -o model

    quanet predict model new.csv --by product --by date:month --plot trend.png

    Set defaults of options in quanet.toml, a table per command, or in the environment: QUANET_PREDICT_LEVEL=0.9.
    """


def run() -> None:
    """Run the command line.

    Exit codes: 0, success; 1, data or a model cannot be used; 2, usage error; 3, a bound of --fail-over is
    crossed; 130, stopped by Ctrl-C.
    """
    app(prog_name="quanet")
