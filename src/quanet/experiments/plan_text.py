"""The text of a plan, with the line of each value."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quanet.errors import InvalidPlan
from quanet.files import parse_toml

Keys = Sequence[str]


class PlanText:
    r"""A TOML file as data, with the line of each value.

    Parameters
    ----------
    text : content of the file.
    name : used in messages.

    Examples
    --------
    >>> source = PlanText('runs = 3\n[methods.CC]\nclassifier = "lstm"\n', "plan.toml")
    >>> source.line(("methods", "CC", "classifier"))
    3
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        try:
            self.data = parse_toml(text)
        except ValueError as error:
            raise InvalidPlan(f"{name} is not valid TOML: {error}") from error

    @classmethod
    def read(cls, path: Path) -> "PlanText":
        """Read a file."""
        try:
            return cls(path.read_text(encoding="utf-8"), str(path))
        except UnicodeDecodeError as error:
            raise InvalidPlan(f"{path} is not a plan: it is not UTF-8 text ({error.reason}).") from error
        except OSError as error:
            raise InvalidPlan(f"The plan {path} cannot be read: {error.strerror}.") from error

    def line(self, keys: Keys, word: str = "") -> int:
        """The line, counted from 1, of the value at these keys, and of the word in it."""
        lines = self.text.splitlines()
        start = 0  # of the current statement, which may span several lines
        for end in range(1, len(lines) + 1):
            try:
                found = parse_toml("\n".join(lines[:end]))
            except ValueError:
                continue
            if _exists(found, keys):
                return start + 1 + _within(lines[start:end], [word, *reversed(keys)])
            start = end
        return self.line(keys[:-1], word) if keys else 1

    def wrong(self, keys: Keys, message: str, word: str = "") -> InvalidPlan:
        """The error to raise about the value at these keys."""
        return InvalidPlan(f"{self.name}, line {self.line(keys, word)}: {message}")


def _exists(data: Any, keys: Keys) -> bool:
    for key in keys:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _within(lines: list[str], words: list[str]) -> int:
    """The first line of a statement that contains one of the words, in order of preference."""
    code = [line.split("#")[0] for line in lines]
    found = (at for word in words if word for at, line in enumerate(code) if word in line)
    return next(found, len(lines) - 1)
