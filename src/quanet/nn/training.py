"""What surrounds the training loop: its settings, checkpoints, the progress line, and Ctrl-C."""

import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.base import clone

from quanet.errors import InvalidSetting, QuanetWarning
from quanet.nn.bag_pools import BagPool
from quanet.nn.checkpoints import Checkpoint
from quanet.nn.loop import FORWARD, Epoch
from quanet.progress import Pace, report

LONG = 600  # seconds of training at most, from which they are worth a warning


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is trained: bags in a batch, their sizes, batches in an epoch, learning rate.

    `stop_batches` of bags of `stop_sizes` decide when to stop.
    """

    bags: int
    sizes: tuple[int, int]
    batches: int
    stop_sizes: tuple[int, int]
    stop_batches: int
    lr: float


def classifier_to_fit(quantifier: Any) -> Any:
    """The classifier of a quantifier, with the quantifier's checkpoint folder if it takes one and has none."""
    classifier = quantifier.classifier
    settings: dict[str, Any] = {} if isinstance(classifier, str) else getattr(classifier, "get_params", dict)()
    if quantifier.checkpoint is None or settings.get("checkpoint", "") is not None:
        return classifier
    return clone(classifier).set_params(checkpoint=quantifier.checkpoint)


def check_checkpoint(estimator: Any) -> None:
    """Raise `InvalidSetting` if an estimator has a checkpoint folder but no seed, by which a checkpoint is found."""
    if estimator.checkpoint is not None and not isinstance(estimator.random_state, (int, np.integer)):
        raise InvalidSetting(
            f"{type(estimator).__name__}: checkpoint needs a seed, by which the checkpoint is found; "
            f"random_state is {estimator.random_state!r}. Set random_state to a whole number."
        )


def checkpoint_of(
    quantifier: Any, facts: tuple[Any, ...], pools: tuple[BagPool, ...], rng: np.random.Generator
) -> Checkpoint | None:
    """Where a quantifier's training is kept: its checkpoint folder, if it has one."""
    if quantifier.checkpoint is None:
        return None
    arrays = [array for pool in pools for array in (pool.rows, pool.codes)]
    name = type(quantifier).__name__.lower()
    return Checkpoint(quantifier.checkpoint, name, *facts, *arrays, rng=rng)


def pace_of(part: str, steps: int, checks: int, epochs: int, patience: int, advice: str) -> Pace:
    """The pace of a training of so many steps and validation batches an epoch, which ends after `patience` bad ones."""
    each = steps + FORWARD * checks
    return Pace(part, each * epochs, least=each * min(patience + 1, epochs), long=LONG, advice=advice)


def follow(epochs: Generator[Epoch, None, None], title: str, most: int, *, visible: bool) -> list[Epoch]:
    """Let a training run, showing it if asked; the epochs it took. Ctrl-C ends it with the best weights so far."""
    history: list[Epoch] = []
    try:
        with closing(epochs), progress_line(title, most, visible=visible) as show:
            for epoch in epochs:
                history.append(epoch)
                show(epoch)
                report("network", len(history) / most)
    except KeyboardInterrupt:
        warnings.warn(
            f"training was interrupted after {len(history)} epochs; the best weights so far are kept.",
            QuanetWarning,
            stacklevel=5,
        )
    return history


@contextmanager
def progress_line(title: str, total: int, *, visible: bool) -> Iterator[Callable[[Epoch], None]]:
    """A line on standard error; the yielded function shows an epoch in it. Nothing is printed if it is not visible.

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
