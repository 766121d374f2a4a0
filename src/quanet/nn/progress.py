"""Progress of a training, for whoever asked to see it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from quanet.nn.loop import Epoch


@contextmanager
def progress_line(title: str, total: int, *, visible: bool) -> Iterator[Callable[[Epoch], None]]:
    """A line on standard error that moves on with every epoch given to the yielded function; nothing if not visible.

    Examples
    --------
    >>> with progress_line("training", 2, visible=False) as show:
    ...     show(Epoch(number=0, train_loss=0.3, valid_loss=0.2, best=True))
    """
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as bar:
        task = bar.add_task(title, total=total)
        best = float("inf")

        def show(epoch: Epoch) -> None:
            nonlocal best
            best = min(best, epoch.valid_loss)
            losses = f"loss {epoch.train_loss:.4f}, held out {epoch.valid_loss:.4f}, best {best:.4f}"
            bar.update(task, completed=epoch.number + 1, description=f"{title}: {losses}")

        yield show
