"""The code blocks of a page, and the commands in them."""

import re
from dataclasses import dataclass

FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*(\S*)")
NOT_RUN = re.compile(r"\s*<!--\s*not run\b:?\s*(.*?)\s*-->\s*$")
FIRST = "<!-- run first -->"
BEGINS_IN = re.compile(r"^<!-- begins in: (\S+) -->$", re.MULTILINE)
LIST_ITEM = re.compile(r"\s*([-*+]|\d+[.)])\s")
PROMPT = "$ "
INDENTED = "(indented)"


@dataclass(frozen=True)
class Block:
    """A code block: the line of the page on which its code begins, its language, and when it runs.

    `not_run` is the reason why it does not, if so; `first`, whether it runs before those above it.
    """

    line: int
    language: str
    code: str
    not_run: str | None = None
    first: bool = False

    @property
    def is_doctest(self):
        return self.language == "python" and any(line.lstrip().startswith(">>> ") for line in self.code.splitlines())


@dataclass(frozen=True)
class Command:
    """A command after a prompt, its line, and the output that the page shows."""

    line: int
    words: str
    shown: tuple[str, ...]


def blocks_of(text):
    """All code blocks of a page, fenced or indented, in order."""
    found, lines, in_list, at = [], text.splitlines(), False, 0
    while at < len(lines):
        line, before = lines[at], lines[at - 1] if at else ""
        fence = FENCE.match(line)
        is_code = line.startswith("    ") and line.strip() and not before.strip() and not in_list
        if fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == fence[2]), len(lines))
            code = [one.removeprefix(fence[1]) for one in lines[at + 1 : end]]
            reason = NOT_RUN.match(before)
            found.append(Block(at + 2, fence[3], "\n".join([*code, ""]), reason and reason[1], before.strip() == FIRST))
            at = end
        elif is_code:
            end = next((n for n in range(at, len(lines)) if not lines[n].startswith("    ")), len(lines))
            found.append(Block(at + 1, INDENTED, "\n".join([*lines[at:end], ""])))
            at = end - 1
        elif line and not line[0].isspace():
            in_list = bool(LIST_ITEM.match(line))
        at += 1
    return found


def outside_blocks(text):
    """A page without its fenced blocks."""
    return re.sub(r"^\s*(`{3,}|~{3,}).*?^\s*\1\s*$", "", text, flags=re.DOTALL | re.MULTILINE)


def commands_of(block):
    """The commands of a block, each with the output below it; a backslash continues a command on the next line."""
    found, lines = [], block.code.splitlines()
    while lines and not lines[0].startswith(PROMPT):
        lines.pop(0)
    line = block.line + len(block.code.splitlines()) - len(lines)
    while lines:
        taken = 1
        while lines[taken - 1].endswith("\\") and taken < len(lines):
            taken += 1
        words = " ".join(one.removesuffix("\\").strip() for one in lines[:taken]).removeprefix(PROMPT)
        end = next((n for n in range(taken, len(lines)) if lines[n].startswith(PROMPT)), len(lines))
        found.append(Command(line, words, tuple(lines[taken:end])))
        lines, line = lines[end:], line + end
    return found
