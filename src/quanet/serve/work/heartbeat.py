"""The heart of a job: renews its lease while it is computed, reports progress, and stops what takes too long."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import JobRow, fail, release, renew
from quanet.serve.store.store_errors import NotFound, StoreError
from quanet.serve.store.uploads import fail_batch

log = logging.getLogger("quanet.worker")
LEASE = 60.0  # seconds
BEAT = 1.0  # seconds between reports of progress
GRACE = 10.0  # seconds that a job may take to end when the worker is told to stop


def give_up(store: ServiceStore, job: JobRow, error: str, retry_at: float | None = None) -> None:
    """Store why a job failed; a batch that cannot be read fails with it."""
    with store.write() as connection:
        fail(connection, job, error, retry_at)
        if job.kind == "predict" and retry_at is None:
            with suppress(NotFound):
                fail_batch(connection, int(job.payload["batch"]), error)


class Heartbeat:
    """Renews the lease of a job from a thread, reports its progress, and ends the process if it must not go on.

    Parameters
    ----------
    store, job : what is renewed.
    stop : set when the worker is told to stop. A job that does not end soon is given back.
    seconds : that the job may take.
    end : ends the process.
    """

    def __init__(
        self, store: ServiceStore, job: JobRow, stop: threading.Event, seconds: float, end: Callable[[int], Any]
    ) -> None:
        self._store, self._job, self._stop, self._seconds, self._end = store, job, stop, seconds, end
        self._done = threading.Event()
        self._news: tuple[float | None, str | None] = (None, None)
        self._thread = threading.Thread(target=self._beat, name=f"job {job.id}", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def report(self, done: float | None, what: str) -> None:
        """What a job calls with its progress; it is stored with the next beat."""
        self._news = (done if done is not None else self._news[0], what)

    def _beat(self) -> None:
        started = renewed = time.monotonic()
        told: float | None = None
        sent: tuple[float | None, str | None] = (None, None)
        while not self._done.wait(BEAT):
            moment = time.monotonic()
            if self._stop.is_set():
                told = told or moment
                if moment - told > GRACE:
                    self._give_back()
                    return
            if moment - started > self._seconds:
                self._time_out()
                return
            if self._news != sent or moment - renewed > LEASE / 4:
                sent, renewed = self._news, moment
                if not self._renew(sent):
                    return

    def _renew(self, news: tuple[float | None, str | None]) -> bool:
        """Whether the job is still ours. If not, a long one ends with the process: its result has no use."""
        try:
            if renew(self._store, self._job, LEASE, *news):
                return True
        except StoreError as error:
            log.warning("job %d: %s", self._job.id, error)
            return True
        if self._job.lane == "long" and not self._done.is_set():
            self._end(0)
        return False

    def _give_back(self) -> None:
        release(self._store, self._job)
        self._end(0)

    def _time_out(self) -> None:
        limit = f"{self._seconds:,.0f} s"
        try:
            give_up(self._store, self._job, f"It took longer than {limit}, the limit of a job. Use smaller files.")
        except StoreError as error:
            log.warning("job %d: %s", self._job.id, error)
        self._end(1)
