"""Where the command line writes: answers to standard output; notes, progress and problems to standard error."""

import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from quanet.data.storage import without_credentials
from quanet.progress import ENDING_EARLY, TITLES, duration

if TYPE_CHECKING:
    from quanet.report.summary import Summary

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # breaks a line, or cannot be written


class _Output(Console):
    """A console that raises an error when a pipe is closed, where rich would end the process with 1."""

    def on_broken_pipe(self) -> None:
        """Nobody reads any more: stop writing the answer; drop notes and problems, and continue."""
        if not self.stderr:
            raise BrokenPipeError
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


# Without emoji: `by:date:month` and labels such as `:smile:` are printed as they are.
console = _Output(emoji=False)  # answers
problems = _Output(stderr=True, emoji=False)  # errors and warnings, always printed
notes = _Output(stderr=True, emoji=False)  # what was done, and progress; silenced by --quiet
details = _Output(stderr=True, emoji=False, quiet=True)  # printed only with --verbose


def configure(*, quiet: bool | None = None, verbose: bool | None = None, color: bool | None = None) -> None:
    """Print more, less, or without colour; None leaves a setting unchanged."""
    if quiet is not None:
        notes.quiet = quiet
    if verbose is not None:
        details.quiet = not verbose
    if color is not None:
        for output in (console, problems, notes, details):
            output.no_color = not color


def one_line(message: str) -> str:
    r"""A message with line breaks and other control characters escaped, since file names may contain them.

    Addresses have no credentials.

    Examples
    --------
    >>> one_line("no file a\nb.csv")
    'no file a\\nb.csv'
    """
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), without_credentials(message))


def note(message: str) -> None:
    """Print a line about what was done."""
    notes.print(escape(one_line(message)), highlight=False, soft_wrap=True)


def detail(message: str) -> None:
    """Print a line that only --verbose shows."""
    details.print(escape(one_line(message)), style="dim", highlight=False, soft_wrap=True)


def print_error(message: str) -> None:
    """Print an error as one line."""
    problems.print(f"[bold red]Error:[/] {escape(one_line(message))}", highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning as one line."""
    problems.print(f"[yellow]Warning:[/] {escape(one_line(message))}", highlight=False, soft_wrap=True)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Inside, each warning is printed once, as one line; what was detected in the data, as a note."""
    import warnings

    from quanet.errors import Detected, QuanetWarning

    if getattr(warnings.showwarning, "prints_lines", False):  # already inside
        yield
        return
    printed: set[str] = set()

    def print_once(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            (note if isinstance(message, Detected) else warn)(str(message))

    print_once.prints_lines = True  # type: ignore[attr-defined]

    with warnings.catch_warnings():
        warnings.simplefilter("always", QuanetWarning)
        warnings.showwarning = print_once
        yield


@contextmanager
def exit_on_signals(message: str = "Stopped.") -> Iterator[None]:
    """Inside, Ctrl-C and SIGTERM end the process at once; training would treat Ctrl-C as early stopping."""

    def end(number: int, _: object) -> None:
        problems.print(escape(one_line(message)), soft_wrap=True, highlight=False)
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


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar with the time left, on terminals only.

    The function it gives moves it: ``update(done, "what is being done")``. Without a total it shows activity only. The
    time left is that of what is being done: how long other steps will take is not known.
    """
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        max_refresh = 0.5

        def render(self, _: Any) -> Text:
            return Text(step.text(time.perf_counter()), style="dim")

    started = time.perf_counter()
    step = _Step(started)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeLeft())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(title, total=total)

        def update(
            done: float | None = None, what: str | None = None, *, of: float | None = None, part: str = ""
        ) -> None:
            bar.update(task, completed=done, description=what, total=of)
            if done is not None and bar.tasks[0].total:
                step.move(time.perf_counter(), done / bar.tasks[0].total, part)

        yield update
    detail(f"{title}: {duration(time.perf_counter() - started)}")


class _Step:
    """How long what is being done may still take: as long as the work left takes at the speed of this step so far."""

    def __init__(self, now: float) -> None:
        self.begun = self.started = now
        self.part, self.first, self.done = "", 0.0, 0.0

    def move(self, now: float, done: float, part: str) -> None:
        """Note how much of a part is done, from 0 to 1. Another part, or the same again, is a new step."""
        if part != self.part or done < self.done:
            self.part, self.started, self.first = part, now, done
        self.done = done

    def text(self, now: float) -> str:
        """The time since the beginning, and the time left for this step if it is known."""
        elapsed, moved = now - self.started, self.done - self.first
        shown = duration(now - self.begun)
        if moved <= 0.02 or elapsed <= 2 or self.done >= 1:
            return shown
        left = (
            f"{'at most' if self.part in ENDING_EARLY else 'about'} {duration(elapsed / moved * (1 - self.done))} left"
        )
        return f"{shown}, {left}{' in this step' if self.part else ''}"


def training_progress(update: Callable[..., None]) -> Callable[[str, float], None]:
    """A listener that moves a progress bar during training, from start to end in each of its steps."""
    started: set[str] = set()

    def listener(what: str, done: float) -> None:
        if what not in TITLES:
            return
        if what not in started:
            started.add(what)
            detail(f"{TITLES[what]} ...")
        update(done, TITLES[what], of=1.0, part=what)

    return listener


def write_answer(summary: "Summary", form: str, output: Path | None) -> None:
    """Write an answer to a file, or to standard output.

    Call it last: whoever reads a pipe may stop reading.
    """
    if form == "table" and output is None:
        from quanet.report.terminal import print_summary

        print_summary(summary, console, verbose=not details.quiet)
        return
    from quanet.report.render import render

    content = render(summary, form)
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        _write_file(output, content, "Written")


def write_report(summary: "Summary", path: Path | None) -> None:
    """Write a report, if one is wanted."""
    if path is not None:
        from quanet.report import render

        render.write_report(summary, path)
        note(f"Report: {path}")


def write_table(rows: Any, path: Path | None, title: str) -> None:
    """Write a data frame as CSV, or as a workbook if the file ends in .xlsx, if it is wanted."""
    if path is None:
        return
    if path.suffix.lower() == ".xlsx":
        from quanet.data.workbooks import to_workbook

        _write_file(path, to_workbook(rows, title), title)
    else:
        from quanet.files import as_utf8

        _write_file(path, as_utf8(rows.to_csv(index=False)), title)


def _write_file(path: Path, content: bytes, title: str) -> None:
    from quanet.files import write_whole

    write_whole(path, content)
    note(f"{title}: {path}")


def command_settings() -> list[tuple[str, str]]:
    """Settings that reproduce the answer: the command."""
    return [("command", command_line())]


def command_line() -> str:
    """The command, quoted for a shell, without credentials."""
    return shlex.join(["quanet", *map(without_credentials, sys.argv[1:])])
