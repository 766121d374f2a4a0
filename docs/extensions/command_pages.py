"""The page of all commands and options, written before the build from the commands themselves."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from quanet.cli.main import GOALS, PANEL
from quanet.cli.main import app as commands

PAGE = Path(__file__).parents[1] / "reference" / "command-line.md"  # ignored by git

EXAMPLE = re.compile(r"(?m)^ *((?:quanet|z?cat) .*)$")

HEAD = """# Command line: all commands and options

This page is generated from the commands, as `quanet COMMAND --help` is.
[From files to shares](../how-to/command-line.md) explains how they work together.
Every command also has the general options `--quiet`, `--verbose` and `--no-color`.
Defaults can be set in `quanet.toml` or as environment variables, such as `QUANET_PREDICT_LEVEL=0.9`.
"""


def markdown(help_text: str | None) -> str:
    """Help as Markdown: without the markup of the terminal."""
    text = re.sub(r"\[/?(bold|dim|italic|cyan|green)?/?\]", "", help_text or "")
    return text.replace("\b", "").strip()


def cell(text: str) -> str:
    """Text for a cell of a table."""
    line = re.sub(r"\bdefault: (.+)$", r"Default: \1.", " ".join(markdown(text).split()))
    return line.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def row(option: Any) -> str:
    """A row of the table of options."""
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if option.param_type_name == "argument":
        names = f"`{option.metavar or option.name.upper()}`"
    default = option.default
    shown = "" if default in (None, False, (), [], "") or callable(default) else f" Default: `{default}`."
    needed = " Required." if option.required and option.param_type_name == "option" else ""
    return f"| {names} | {cell(getattr(option, 'help', '') or '')}{needed}{shown} |"


def section(name: str, command: Any, depth: int) -> Iterator[str]:
    """The section of a command, and of its own commands."""
    yield f"{'#' * depth} `quanet {name}`\n"
    examples = EXAMPLE.sub(r"```console\n\1\n```", markdown(command.help))
    yield examples.replace("```\n\n```console\n", "") + "\n"
    if getattr(command, "commands", None):
        for own, part in command.commands.items():
            yield from section(f"{name} {own}", part, depth + 1)
        return
    options = [
        option
        for option in command.params
        if not getattr(option, "hidden", False)
        and getattr(option, "rich_help_panel", None) != PANEL
        and option.name != "help"
    ]
    if options:
        yield "| | |\n|---|---|"
        yield from map(row, options)
        yield ""


def page() -> str:
    """The whole page."""
    group = typer.main.get_command(commands)
    lines = [HEAD]
    for goal, members in GOALS.items():
        lines.append(f"## {goal}\n")
        for member in members:
            name = member.info.name if isinstance(member, typer.Typer) else member.__name__
            lines += section(name, group.commands[name], 3)
    return "\n".join(lines) + "\n"


def write_page(app: Any) -> None:
    """Write the page if it has changed."""
    content = page()
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != content:
        PAGE.write_text(content, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
