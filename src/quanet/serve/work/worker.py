"""A worker: takes jobs from the store, computes, and stores results together with the end of the job.

Nothing heavy is imported before a job needs it. A worker that is killed loses nothing: its job is repeated by another,
and only who holds the job can store its result.
"""

import logging
import os
import secrets
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from quanet.errors import QuanetError
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import JobRow, claim, finish, release_dead
from quanet.serve.store.projects import project
from quanet.serve.store.removal import collect
from quanet.serve.store.store_errors import LeaseLost, NotFound, StoreError
from quanet.serve.work.heartbeat import LEASE, Heartbeat, give_up
from quanet.serve.work.inbox import Inbox
from quanet.serve.work.job_context import MOST_ROWS, Finish, JobContext, NotYet

log = logging.getLogger("quanet.worker")
MODULES = {
    "check": "checking",
    "train": "model_training",
    "predict": "predicting",
    "overview": "overview",
    "difference": "differing",
    "plan": "planning",
    "refine": "refining",
    "monitor": "watching",
    "webhook": "webhooks",
    "demo": "demo_project",
}
LANES = ("quick", "long")
HOST = socket.gethostname()[:30]
IDLE = 0.2  # seconds between looks for a job
SECONDS = 3600.0  # of a job
NICE = 5  # added to the priority of the process: pages come first
ATTEMPTS = 3  # of a job that fails for an unknown reason
MAX_CRASHES = 20  # give up on a job that has crashed this many workers
CLEANING = 600.0  # seconds between removals of content that nothing names
MOST_MEMORY = 700  # MB, above which a worker ends after some jobs, so that a fresh one takes its place
FEWEST_JOBS = 100  # before that


def run_worker(
    data: Path,
    lane: str,
    *,
    database: str | None = None,
    once: bool = False,
    stop: threading.Event | None = None,
    seconds: float = SECONDS,
    rows: int = MOST_ROWS,
) -> None:
    """Do the jobs of a lane until told to stop.

    Parameters
    ----------
    data, database : the data folder, and the address of the database, see `ServiceStore.open`.
    lane : "quick", or "long" for training; the worker of the long lane ends after a job, so that its memory returns.
    once : end when no job waits.
    stop : set to end the worker; SIGTERM and SIGINT set it, too, if this is the main thread.
    seconds : that a job may take; rows : that a file may have.
    """
    stop = stop or threading.Event()
    if not once:
        with suppress(OSError, AttributeError):
            os.nice(NICE)
    with _signals(stop):
        store = ServiceStore.open(data, database)
        try:
            Worker(store, lane, stop, seconds=seconds, most_rows=rows).run(once=once)
        finally:
            store.close()


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Worker:
    """Does jobs of a lane, one after the other."""

    def __init__(
        self,
        store: ServiceStore,
        lane: str,
        stop: threading.Event,
        *,
        seconds: float = SECONDS,
        most_rows: int = MOST_ROWS,
        end: Callable[[int], Any] = os._exit,
    ) -> None:
        self.store = store
        self.lane = lane
        self.name = f"{HOST}:{os.getpid()}:{secrets.token_hex(4)}"
        self._stop = stop
        self._seconds = seconds
        self._most_rows = most_rows
        self._memory: dict[str, Any] = {}
        self._end = end
        self._cleaned = time.monotonic()
        self._done = 0  # jobs

    def run(self, *, once: bool = False) -> None:
        """Do jobs until told to stop; with `once`, until none waits."""
        inbox = Inbox(self.store)
        release_dead(self.store, is_dead)
        while not self._stop.is_set():
            try:
                if self.lane == "quick":
                    inbox.look()
                    self._clean()
                job = claim(self.store, self.name, self.lane, LEASE)
            except StoreError as error:  # such as a database that is restarted
                log.warning("%s", error)
                job = None
                if once:
                    raise
            if job is None:
                if once:
                    return
                self._stop.wait(IDLE)
                continue
            self.do(job)
            if self._is_used_up(job):
                return

    def _clean(self) -> None:
        if time.monotonic() - self._cleaned > CLEANING:
            self._cleaned = time.monotonic()
            collect(self.store)

    def _is_used_up(self, job: JobRow) -> bool:
        """Whether the process should end, so that its memory returns."""
        self._done += 1
        return job.kind == "train" or (self._done >= FEWEST_JOBS and memory_used() > MOST_MEMORY)

    def do(self, job: JobRow) -> None:
        """Do a job and store its result, or why it failed."""
        log.info("job %d: %s", job.id, job.kind, extra={"job": job.id, "kind": job.kind, "project": job.project})
        started = time.monotonic()
        with Heartbeat(self.store, job, self._stop, self._limit(job), self._end) as heart:
            context = JobContext(self.store, job, self._memory, heart.report, self._most_rows)
            try:
                self._perform(context)
            except LeaseLost as error:
                log.warning("%s", error)
            except NotFound as error:  # deleted in the meantime
                self._fail(job, str(error))
            except NotYet as later:
                self._fail(job, str(later), retry_at=time.time() + later.seconds)
            except StoreError as error:  # a full disk, a database that does not answer: it may recover
                log.warning("job %d: %s", job.id, error)
                self._retry(job, str(error))
            except QuanetError as error:
                self._fail(job, str(error))
            except Exception:
                log.exception("job %d (%s) failed", job.id, job.kind)
                self._retry(job, "Internal error; the log of the service has the details.")
        log.info("job %d ended after %.2f s", job.id, time.monotonic() - started)

    def _limit(self, job: JobRow) -> float:
        """Seconds that a job may take: at most those of its project."""
        if job.project is None:
            return self._seconds
        try:
            with self.store.read() as connection:
                limits = project(connection, job.project).settings.get("limits") or {}
        except StoreError:
            limits = {}
        return min(self._seconds, float(limits.get("seconds") or self._seconds))

    def _perform(self, context: JobContext) -> None:
        job = context.job
        if job.lost >= MAX_CRASHES:
            self._fail(job, "It has stopped its worker several times, and was given up.")
            return
        perform: Callable[[JobContext], Finish] = import_module(f"quanet.serve.work.{MODULES[job.kind]}").perform
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store_result = perform(context)
        with self.store.write() as connection:
            finish(connection, job)  # raises if another worker has the job: then nothing is stored
            store_result(connection)

    def _retry(self, job: JobRow, error: str) -> None:
        """Queue a job again, with growing pauses; after some attempts it has failed."""
        failures = job.attempts - job.lost
        if failures >= ATTEMPTS:
            self._fail(job, error)
        else:
            self._fail(job, error, retry_at=time.time() + 2.0 * 3 ** (failures - 1))

    def _fail(self, job: JobRow, error: str, retry_at: float | None = None) -> None:
        try:
            give_up(self.store, job, error, retry_at)
        except StoreError as problem:  # the lease ends, and another worker tries
            log.warning("job %d: %s", job.id, problem)


def memory_used() -> float:
    """The memory of this process in MB; 0 where it is unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError):
        return 0.0


def is_dead(worker: str) -> bool:
    """Whether the process of a worker of this machine has ended."""
    host, _, rest = worker.partition(":")
    number = rest.partition(":")[0]
    if host != HOST or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
