"""Progress on standard error: a bar with the time left on a terminal, nothing elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
from rich.text import Text

from quanet.cli.console import detail, notes

if TYPE_CHECKING:
    from rich.progress import Task

# What parts of learning from texts take of the whole, measured on IMDB with the default method on 2 cores.
PARTS = {"counting": 0.12, "words": 0.11, "weighted words": 0.23, "characters": 0.43, "network": 0.11}
TITLES = {
    "counting": "Counting words",
    "words": "Learning words",
    "weighted words": "Weighing words",
    "characters": "Learning characters",
    "network": "Training the network",
}


class _Left(ProgressColumn):
    """Time that has gone, and about how much is left."""

    max_refresh = 0.5

    def render(self, task: "Task") -> Text:
        gone = task.elapsed or 0.0
        share = task.completed / task.total if task.total else 0.0
        left = f", about {spoken(gone / share * (1 - share))} left" if share > 0.02 and gone > 2 else ""
        return Text(f"{spoken(gone)}{left}", style="dim")


def spoken(seconds: float) -> str:
    """A duration in words.

    Examples
    --------
    >>> spoken(4.2), spoken(95), spoken(4000)
    ('4 s', '1 min 35 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def moving(title: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """A bar; the function given moves it: ``move(done, "what is done")``. Without a total it only turns."""
    started = time.perf_counter()
    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), _Left()]
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(title, total=total)

        def move(done: float | None = None, what: str | None = None, *, of: float | None = None) -> None:
            bar.update(task, completed=done, description=what, total=of)

        yield move
    detail(f"{title}: {spoken(time.perf_counter() - started)}")


def learning(move: Callable[..., None], parts: dict[str, float] = PARTS) -> Callable[[str, float], None]:
    """A listener that moves a bar by what learning reports, each part by what it takes of the whole."""
    names = list(parts)
    before = {name: sum(parts[other] for other in names[: names.index(name)]) for name in names}
    whole = sum(parts.values())
    seen: dict[str, float] = {}

    def listener(what: str, done: float) -> None:
        if what not in parts:
            return
        if what not in seen:
            detail(f"{TITLES.get(what, what)} ...")
        seen[what] = done
        move((before[what] + parts[what] * done) / whole, TITLES.get(what, what), of=1.0)

    return listener
