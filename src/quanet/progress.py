"""Progress of long computations: they report it here, and a listener such as a progress bar displays it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]
# Shares of the time that the parts of training on texts take, measured on IMDB with the default method on 2 cores.
TRAINING_PARTS = {"counting": 0.12, "words": 0.11, "weighted words": 0.23, "characters": 0.43, "network": 0.11}
TITLES = {
    "counting": "Counting words",
    "words": "Learning words",
    "weighted words": "Weighting words",
    "characters": "Learning characters",
    "network": "Training the network",
}
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(what: str, done: float) -> None:
    """Report the fraction of a computation that is done. Without a listener, nothing happens.

    Examples
    --------
    >>> with listening(lambda what, done: print(f"{what}: {done:.0%}")):
    ...     report("words", 0.5)
    words: 50%
    """
    listener = _listener.get()
    if listener is not None:
        listener(what, done)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within the block, reports go to this listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def part_done(what: str, done: float, parts: Mapping[str, float] = TRAINING_PARTS) -> float:
    """The fraction of a computation that is done, given that of one of its parts, which follow each other.

    Examples
    --------
    >>> part_done("characters", 0.5, {"words": 1.0, "characters": 3.0})
    0.625
    """
    names = list(parts)
    before = sum(parts[name] for name in names[: names.index(what)])
    return (before + parts[what] * done) / sum(parts.values())
