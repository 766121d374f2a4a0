"""How far a long piece of work is, for whoever wants to know: work says it here, and need not know who listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(what: str, done: float) -> None:
    """Say which share of a piece of work is done; nothing happens where nobody listens.

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
    """Inside, a listener hears what is reported."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
