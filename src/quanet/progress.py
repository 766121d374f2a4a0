"""Progress of long computations: they report it here, and a listener such as a progress bar displays it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]
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
