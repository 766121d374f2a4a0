"""Rate limits: a token bucket for each visitor."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MAX_VISITORS = 10_000  # remembered; the one seen longest ago is forgotten first


class RateLimit:
    """At most `per_minute` requests of each visitor, `burst` of them at once.

    Examples
    --------
    >>> limit = RateLimit(60, burst=2, clock=lambda: 0.0)
    >>> limit.wait("ann"), limit.wait("ann"), limit.wait("ann"), limit.wait("bob")
    (0.0, 0.0, 1.0, 0.0)
    """

    def __init__(
        self, per_minute: float, *, burst: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate = per_minute / 60
        self.burst = burst or max(per_minute / 6, 1.0)
        self.clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, visitor: str, cost: float = 1.0) -> float:
        """Seconds until a request of the visitor is accepted; 0 if it is now, which uses up `cost` tokens."""
        with self._lock:
            now = self.clock()
            left, at = self._buckets.pop(visitor, (self.burst, now))
            left = min(self.burst, left + (now - at) * self.rate)
            accepted = left >= max(cost, 1.0)
            self._buckets[visitor] = (left - cost if accepted else left, now)
            if len(self._buckets) > MAX_VISITORS:
                self._buckets.popitem(last=False)
            return 0.0 if accepted else (1.0 - left) / self.rate
