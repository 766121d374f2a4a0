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

from quanet.data.addresses import without_credentials
from quanet.progress import TITLES, TRAINING_PARTS, part_done

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


def duration(seconds: float) -> str:
    """A duration for people.

    Examples
    --------
    >>> duration(4.2), duration(95), duration(4000)
    ('4 s', '1 min 35 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def progress(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar with the time left, on terminals only.

    The function it gives moves it: ``update(done, "what is being done")``. Without a total it shows activity only.
    """
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Any) -> Text:
            return Text(_time_left(task), style="dim")

    started = time.perf_counter()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeLeft())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(title, total=total)

        def update(done: float | None = None, what: str | None = None, *, of: float | None = None) -> None:
            bar.update(task, completed=done, description=what, total=of)

        yield update
    detail(f"{title}: {duration(time.perf_counter() - started)}")


def _time_left(task: Any) -> str:
    elapsed = task.elapsed or 0.0
    done = task.completed / task.total if task.total else 0.0
    left = f", about {duration(elapsed / done * (1 - done))} left" if done > 0.02 and elapsed > 2 else ""
    return f"{duration(elapsed)}{left}"


def training_progress(
    update: Callable[..., None], parts: dict[str, float] = TRAINING_PARTS
) -> Callable[[str, float], None]:
    """A listener that moves a progress bar during training, each part by its share of the time."""
    started: set[str] = set()

    def listener(what: str, done: float) -> None:
        if what not in parts:
            return
        if what not in started:
            started.add(what)
            detail(f"{TITLES.get(what, what)} ...")
        update(part_done(what, done, parts), TITLES.get(what, what), of=1.0)

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
