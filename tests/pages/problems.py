"""What is wrong with the blocks of a page before anything runs."""

import re

from tests.pages.blocks import INDENTED, NOT_RUN, blocks_of, commands_of, outside_blocks
from tests.pages.commands import SHELL, mistakes_in, options_of_any, split

FILES = ("toml", "json", "csv", "nginx")
LANGUAGES = ("python", "console", "text", *FILES)
FILE_NAME = re.compile(r"(?:#|//) (\S+\.\w+)$")
INLINE = re.compile(r"(?<!`)`((?:quanet|make|python) [^`]+)`(?!`)")
OPTION = re.compile(r"(?<!`)`(--[a-z][\w-]*)[^`]*`(?!`)")
OTHER_TOOLS = {"--log_samples"}  # of lm-evaluation-harness
RECORDS = ("docs/experiments/", "docs/decisions/", "benchmarks/")  # of scripts, whose options they name
EXIT_CODE = "echo $?"


def problems_of(name, text):
    """What is wrong with a page, each in one line that names the page and the line."""
    found = []
    for block in blocks_of(text):
        found += [f"{name}, line {block.line}, {block.language or 'block'}: {one}" for one in _of_block(name, block)]
    reasons = sum(bool(NOT_RUN.match(line)) for line in text.splitlines())
    if reasons != sum(block.not_run is not None for block in blocks_of(text)):
        found.append(f"{name}: 'not run' belongs on the line before a block.")
    prose = re.sub(r"\n(?!\n)", " ", outside_blocks(text))
    for code in INLINE.findall(prose):
        found += [f"{name}, in `{code}`: {one}." for one in mistakes_in(code)]
    if not name.startswith(RECORDS):
        unknown = set(OPTION.findall(prose)) - options_of_any() - OTHER_TOOLS
        found += [f"{name}: no command has the option {one}." for one in sorted(unknown)]
    return found


def _of_block(name, block):
    if block.language == INDENTED:
        return ["an indented block. Put it between fences with a language."]
    if block.language.startswith("{"):
        return [] if name.endswith("index.md") else ["a directive, which GitHub does not know."]
    if block.language not in LANGUAGES:
        return [f"{'unknown' if block.language else 'no'} language. Choose from {', '.join(LANGUAGES)}."]
    if block.not_run is not None and block.language not in {"console", "python"}:
        return ["only console and python run, so 'not run' says nothing here."]
    if block.not_run == "":
        return ["not run, but without a reason: <!-- not run: REASON -->."]
    if block.language == "python":
        return _of_python(name, block)
    if block.language in FILES:
        return [] if file_name(block) else ["no name. Begin with a comment, such as # plan.toml, or use text."]
    found = [f"{one}." for command in commands_of(block) for one in mistakes_in(command.words)]
    return [*found, *(_of_console(block) if block.language == "console" and block.not_run is None else [])]


def _of_python(name, block):
    if block.is_doctest:
        collected = name.startswith("docs/") or name == "README.md"
        return [] if collected else ["pytest collects doctests from docs and README alone."]
    try:
        compile(block.code, name, "exec")
    except SyntaxError as error:
        return [f"{error.msg} (line {block.line + (error.lineno or 1) - 1})."]
    return []


def _of_console(block):
    commands = commands_of(block)
    if not commands or commands[0].line != block.line:
        return ["begin with a command: $ quanet ..."]
    found = []
    for command in commands:
        words = split(command.words)[0]
        if command.words != EXIT_CODE and (words[:1] != ["quanet"] or SHELL & set(words)):
            found.append(f"{command.words!r} cannot run in a test. Use quanet alone, or <!-- not run: REASON -->.")
    return found


def file_name(block):
    """The name of the file that a block contains; None if it has none."""
    named = FILE_NAME.match(block.code.partition("\n")[0]) if block.language in {*FILES, "python"} else None
    return named and named[1]
