"""Where the command line writes: answers to standard output; notes, progress and problems to standard error."""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # breaks a line, or cannot be written


class _Output(Console):
    """A console that leaves a closed pipe to its caller, where rich would end the process with 1."""

    def on_broken_pipe(self) -> None:
        """Nobody reads any more: the answer ends here; notes and problems are dropped, and the work goes on."""
        if not self.stderr:
            raise BrokenPipeError
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


# Without emoji: `by:date:month` and labels that people write, such as `:smile:`, are to stay as they are.
console = _Output(emoji=False)  # answers
problems = _Output(stderr=True, emoji=False)  # errors and warnings, which nothing silences
notes = _Output(stderr=True, emoji=False)  # what was done and how far it is; silenced by --quiet
details = _Output(stderr=True, emoji=False, quiet=True)  # what only --verbose shows


def set_up(*, quiet: bool | None = None, verbose: bool | None = None, color: bool | None = None) -> None:
    """Say more, less, or without colour; None leaves it as it is."""
    if quiet is not None:
        notes.quiet = quiet
    if verbose is not None:
        details.quiet = not verbose
    if color is not None:
        for one in (console, problems, notes, details):
            one.no_color = not color


def one_line(message: str) -> str:
    r"""A message with line breaks and other control characters as their escapes, as file names may have them.

    Examples
    --------
    >>> one_line("there is no file a\nb.csv")
    'there is no file a\\nb.csv'
    """
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), message)


def note(message: str) -> None:
    """A line about what was done."""
    notes.print(escape(one_line(message)), highlight=False, soft_wrap=True)


def detail(message: str) -> None:
    """A line for who wants to know more."""
    details.print(escape(one_line(message)), style="dim", highlight=False, soft_wrap=True)


def complain(message: str) -> None:
    """An error, as one line."""
    problems.print(f"[bold red]Error:[/] {escape(one_line(message))}", highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """A warning, as one line."""
    problems.print(f"[yellow]Warning:[/] {escape(one_line(message))}", highlight=False, soft_wrap=True)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Inside, a warning is one line, as an error is, and said once."""
    import warnings

    from quanet.errors import QuanetWarning

    said: set[str] = set()

    def line(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", QuanetWarning)
        warnings.showwarning = line
        yield


@contextmanager
def ended_by_signals(last_words: str = "Stopped.") -> Iterator[None]:
    """Inside, Ctrl-C and SIGTERM end the work at once: a training must not take them for its own early end."""

    def end(number: int, _: object) -> None:
        problems.print(escape(one_line(last_words)), soft_wrap=True, highlight=False)
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
