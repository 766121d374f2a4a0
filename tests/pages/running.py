"""Run a page in the current folder, block by block."""

import traceback
from pathlib import Path

from tests.pages.blocks import blocks_of, commands_of
from tests.pages.commands import run_command, terminal
from tests.pages.printed import missing_line
from tests.pages.problems import EXIT_CODE, file_name


def run_page(name, text, show=lambda command, printed: None):
    """Run the blocks of a page. An AssertionError names the page, the line and what went wrong.

    `show` is called with each command and what it printed.
    """
    names = {"__name__": "page"}
    with terminal():
        for block in sorted(blocks_of(text), key=lambda block: not block.first):
            if block.not_run is not None or block.is_doctest:
                continue
            if name_of_file := file_name(block):
                path = Path(name_of_file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.code.partition("\n")[2], encoding="utf-8")
            if block.language == "python":
                _run_python(name, block, names)
            elif block.language == "console":
                _run_console(name, block, show)


def _run_python(name, block, names):
    code = compile("\n" * (block.line - 1) + block.code, name, "exec")
    try:
        exec(code, names)  # noqa: S102
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
        what = "".join(traceback.format_exception_only(error)).strip()
        raise AssertionError(f"{name}, line {lines[-1] if lines else block.line}, python: {what}") from error


def _run_console(name, block, show):
    commands = commands_of(block)
    code, printed = 0, ""
    for number, command in enumerate(commands):
        where = f"{name}, line {command.line}, console: {command.words}"
        if command.words == EXIT_CODE:
            assert [str(code)] == [one.strip() for one in command.shown if one.strip()], f"{where}\nis {code}"
            continue
        code, printed = run_command(command.words)
        show(command.words, printed)
        shows_failure = any(line.startswith("Error: ") for line in command.shown)
        shows_failure |= [one.words for one in commands[number + 1 : number + 2]] == [EXIT_CODE]
        assert shows_failure or code == 0, f"{where}\nends with exit code {code}:\n{printed}"
        assert code or not shows_failure, f"{where}\nends with exit code 0, but the page shows an error:\n{printed}"
        line = missing_line(command.shown, printed)
        assert line is None, f"{where}\ndoes not print, in this order,\n{line}\nbut:\n{printed}"
