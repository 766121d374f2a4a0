"""How all verbs behave: options that every one has, defaults from a file and the environment, and how they end."""

import io
import os
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quanet.cli.config import read_config
from quanet.cli.console import complain, one_line, problems, set_up
from quanet.errors import QuanetError

EVERYWHERE = "Everywhere"


def _be_quiet(wanted: bool) -> None:
    if wanted:
        set_up(quiet=True)


def _be_verbose(wanted: bool) -> None:
    if wanted:
        set_up(verbose=True)


def _be_plain(wanted: bool) -> None:
    if wanted:
        set_up(color=False)


def everywhere(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", callback=_be_quiet, help="Only answers, warnings and errors.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", callback=_be_verbose, help="Also what takes how long.")
    ] = False,
    no_color: Annotated[bool, typer.Option("--no-color", callback=_be_plain, help="Without colours.")] = False,
) -> None:
    """Options that every command takes, wherever they stand in the line."""


class Verbs(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for command in self.commands.values():
            _complete(command)
        self.params += [*_shared()]
        _hide_variables(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands before the verb, with the defaults of `quanet.toml`."""
        _hide_variables(self)  # of completion too, which has come since
        set_up(quiet=False, verbose=False, color="NO_COLOR" not in os.environ)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # names of files can hold what no encoding can write
                stream.reconfigure(errors="backslashreplace")
        if not ctx.resilient_parsing:  # as shell completion does, which must not fail
            try:
                ctx.default_map = read_config(Path.cwd(), self)
            except ValueError as error:
                ctx.fail(one_line(str(error)))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command. However it ends, the exit code says how and standard error why, in a line."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except QuanetError as error:
            complain(str(error))
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            problems.print("Stopped.")
            raise typer.Exit(130) from error
        except BrokenPipeError as error:  # whoever reads has read enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to write goes nowhere
            raise typer.Exit(0) from error
        except OSError as error:
            complain(f"{error.filename or 'a file'}: {error.strerror or error}.")
            raise typer.Exit(1) from error
        except MemoryError as error:
            complain("there is not enough memory. Use fewer rows, smaller --bag-size or --repeats, or another method.")
            raise typer.Exit(1) from error


def _complete(command: Any) -> None:
    """Add the options that all commands have, once; leave environment variables out of its help, which they crowd."""
    for inner in getattr(command, "commands", {}).values():
        _complete(inner)
    if not hasattr(command, "commands"):
        names = {param.name for param in command.params}
        command.params += [param for param in _shared() if param.name not in names]
    _hide_variables(command)


def _hide_variables(command: Any) -> None:
    for param in command.params:
        param.show_envvar = False


@cache
def _shared() -> tuple[Any, ...]:
    """The options that all commands have; made once, as making them takes a third of the start."""
    app = typer.Typer(add_completion=False)
    app.command()(everywhere)
    params: tuple[Any, ...] = tuple(typer.main.get_command(app).params)
    for param in params:
        param.expose_value = False
        param.rich_help_panel = EVERYWHERE
    return params
