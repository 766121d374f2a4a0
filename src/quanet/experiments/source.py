"""The text of a plan: what it says, and on which line."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from quanet.errors import InvalidPlan
from quanet.files import parse_toml

Keys = Sequence[str]


class Source:
    r"""A TOML file as data, with the line of everything in it.

    Parameters
    ----------
    text : of the file.
    name : what messages call it.

    Examples
    --------
    >>> source = Source('runs = 3\n[methods.CC]\nclassifier = "lstm"\n', "plan.toml")
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
    def read(cls, path: Path) -> "Source":
        """The file at a path."""
        try:
            return cls(path.read_text(encoding="utf-8"), str(path))
        except UnicodeDecodeError as error:
            raise InvalidPlan(f"{path} is no text in UTF-8, so it is no plan: {error.reason}.") from error
        except OSError as error:
            raise InvalidPlan(f"the plan {path} cannot be read: {error.strerror}.") from error

    def line(self, keys: Keys, word: str = "") -> int:
        """The line, counted from 1, on which the keys' value is said, and in it the word."""
        lines = self.text.splitlines()
        start = 0  # of the statement that the line belongs to; it may go over several
        for end in range(1, len(lines) + 1):
            try:
                found = parse_toml("\n".join(lines[:end]))
            except ValueError:
                continue
            if _leads_to_something(found, keys):
                return start + 1 + _within(lines[start:end], [word, *reversed(keys)])
            start = end
        return self.line(keys[:-1], word) if keys else 1

    def wrong(self, keys: Keys, message: str, word: str = "") -> InvalidPlan:
        """The error to raise about what the keys lead to."""
        return InvalidPlan(f"{self.name}, line {self.line(keys, word)}: {message}")


def _leads_to_something(data: Any, keys: Keys) -> bool:
    for key in keys:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _within(lines: list[str], words: list[str]) -> int:
    """Of a statement's lines the first that has one of the words, sought one after the other."""
    said = [line.split("#")[0] for line in lines]
    found = (at for word in words if word for at, line in enumerate(said) if word in line)
    return next(found, len(lines) - 1)


def nearest(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name.

    Examples
    --------
    >>> nearest("PAC", ["CC", "ACC", "PACC", "EMQ"])
    "Did you mean 'PACC'? There are CC, ACC, PACC, EMQ."
    """
    names = list(known)
    lowered = {one.lower(): one for one in reversed(names)}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    hint = f"Did you mean {lowered[close[0]]!r}? " if close else ""
    return f"{hint}There are {', '.join(names)}." if names else f"{hint}There are none."
