"""Progress of long computations: they report it here, and a listener such as a progress bar displays it."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from quanet.errors import QuanetWarning

Listener = Callable[[str, float], None]
# Shares of the time that the parts of training on texts take, measured on IMDB with the default method on 2 cores. They
# differ with data and method, so that no time left is computed from them.
TRAINING_PARTS = {"counting": 0.12, "words": 0.11, "weighted words": 0.23, "characters": 0.43, "network": 0.11}
TITLES = {
    "counting": "Counting words",
    "words": "Learning words",
    "weighted words": "Weighting words",
    "characters": "Learning characters",
    "network": "Training the network",
    "lstm": "Training the LSTM classifier",
    "calibration": "Calibrating intervals",
}
ENDING_EARLY = ("network", "lstm")  # parts that stop when nothing improves any more, mostly before their end
MEASURED = 1.0  # seconds after which the speed of a computation is known
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


class Pace:
    """The pace of a computation of many equal steps: reports what is done, and warns if the whole will take long.

    The speed is measured from the second step on, because the first one compiles and allocates.

    Parameters
    ----------
    part : what is reported, such as "network".
    most : number of steps.
    least : number of steps after which it may end; None for all of them.
    long : seconds from which the time is worth a warning.
    advice : what would be faster.

    Examples
    --------
    >>> pace = Pace("network", 200)
    >>> with listening(lambda what, done: print(f"{what}: {done:.0%}")):
    ...     pace.step()
    ...     pace.step(3)
    network: 0%
    network: 2%
    """

    def __init__(
        self, part: str, most: float, *, least: float | None = None, long: float = 60, advice: str = ""
    ) -> None:
        self.part, self.most, self.least, self.long, self.advice = part, most, least, long, advice
        self.done, self.first, self.started = 0.0, 0.0, 0.0
        self.is_known = False

    def step(self, steps: float = 1) -> None:
        """So many more steps are done."""
        now = time.perf_counter()
        self.done += steps
        if not self.first:
            self.first, self.started = self.done, now
        elif not self.is_known and now - self.started >= MEASURED:
            self.is_known = True
            self._warn((now - self.started) / (self.done - self.first))
        report(self.part, min(self.done / self.most, 1.0))

    def _warn(self, each: float) -> None:
        if each * self.most < self.long:
            return
        time_needed = f"about {duration(each * self.most)}"
        if self.least is not None and self.least < self.most:
            time_needed = f"{duration(each * self.least)} to {duration(each * self.most)}"
        sentence = f"{TITLES.get(self.part, self.part)} will take {time_needed}, at the speed of the first steps."
        warnings.warn(f"{sentence} {self.advice}".strip(), QuanetWarning, stacklevel=5)
