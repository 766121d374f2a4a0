"""The commands of quanet: run one in this process, or say what it has that does not exist."""

import io
import os
import re
import shlex
import sys
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[2]
SHELL = {"|", "||", "&&", ";", "&", "<", ">", ">>", "2>"}
SETTING = re.compile(r"[A-Z_]+=")
LOADED = {}  # models by their files, with all that is learned from them once
PLACEHOLDER = re.compile(r"[A-Z]+|\.\.\.")


@cache
def all_commands():
    """The group of all commands; to build it takes longer than many commands."""
    import typer

    from quanet.cli import main

    return typer.main.get_command(main.app)


@contextmanager
def terminal(width=120):
    """Inside, commands print as they do on a terminal, without colours, and load equal models once."""
    from quanet.cli import main
    from quanet.cli.console import console, details, notes, problems
    from quanet.persist.load import load

    def load_once(folder, **how):
        files = sorted(Path(folder).glob("*"))
        key = tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
        if not files or how:
            return load(folder, **how)
        if key not in LOADED:
            LOADED[key] = load(folder)
        return LOADED[key]

    with ExitStack() as stack:
        stack.enter_context(patch.object(main, "app", all_commands()))
        stack.enter_context(patch("quanet.persist.load.load", load_once))
        for one in (console, details, notes, problems):
            for name, value in {"_width": width, "_height": 50, "_color_system": None}.items():
                stack.enter_context(patch.object(one, name, value))
        stack.enter_context(patch.object(console, "_force_terminal", True))
        yield


def split(command):
    """The words of a command, without comment; those before it that set variables as a dictionary."""
    words = shlex.split(command, comments=True)
    settings = {}
    while words and SETTING.match(words[0]):
        name, _, settings[name] = words.pop(0).partition("=")
    return words, settings


def run_command(command):
    """Run a command of quanet in the current folder: its exit code, and what it prints."""
    from quanet.cli import main

    words, settings = split(command)
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with (
        patch.object(sys, "argv", words),
        patch.dict(os.environ, settings),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        try:
            main.run()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
    return code, printed.buffer.getvalue().decode(errors="replace")


def mistakes_in(line):
    """What the commands in a line of a shell name that does not exist: of quanet, of make, or a script."""
    words = re.split(r"\s+", line) if line.count("'") % 2 or line.count('"') % 2 else split(line)[0]
    parts, found = [[]], []
    for word in words:
        if word in SHELL:
            parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        start = next(
            (n for n, word in enumerate(part) if (word == "quanet" and n == 0) or word.endswith("/bin/quanet")), None
        )
        if start is not None:
            found.append(_unknown(part[start + 1 :]))
        elif part[:1] == ["make"]:
            found += [_no_target(word) for word in part[1:] if "=" not in word]
        elif part[:1] == ["python"] and part[1:] and part[1].endswith(".py"):
            found.append(_wrong_script(*part[1:]))
    return [one for one in found if one]


def _unknown(words):
    command, path = all_commands(), "quanet"
    for word in words:
        if PLACEHOLDER.fullmatch(word):
            if hasattr(command, "commands"):
                return None
        elif re.match(r"--?[a-z]", word):
            if word.partition("=")[0] not in _options(command):
                return f"{path} has no option {word}"
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"{path} has no command {word}"
            command, path = command.commands[word], f"{path} {word}"
    return None


@cache
def options_of_any():
    """The options of all commands."""

    def walk(command):
        inner = getattr(command, "commands", {}).values()
        return _options(command).union(*map(walk, inner))

    return walk(all_commands())


def _options(command):
    params = command.get_params(command.context_class(command))
    return {name for param in params for name in (*param.opts, *param.secondary_opts)}


def _no_target(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return None if re.search(rf"^{re.escape(name)}:", makefile, re.MULTILINE) else f"no make target {name}"


def _wrong_script(path, *words):
    if not (ROOT / path).exists():
        return f"no file {path}"
    source = (ROOT / path).read_text(encoding="utf-8")
    unknown = [word for word in words if word.startswith("--") and f'"{word.partition("=")[0]}"' not in source]
    return f"{path} has no option {unknown[0]}" if unknown else None
