"""Where the work of an experiment is done: in this process, on the cores of this machine, or on a Ray cluster.

An engine takes work one piece at a time and gives back what is done first. Pieces have seeds of their own and compute
on one core each, so numbers do not depend on the engine, on how many pieces run at a time, or on their order.
"""

import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from quanet.errors import InvalidExperiment, InvalidSetting, MissingExtra

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
ENGINES = ("joblib", "ray")


class Engine(ABC):
    """Does work; `slots` pieces at a time."""

    slots: int

    @abstractmethod
    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Hand over a piece of work."""

    @abstractmethod
    def next(self) -> tuple[Any, Any]:
        """Wait for a piece of work to be done; its name, and what its function gave."""

    @abstractmethod
    def close(self) -> None:
        """Stop what is still being done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def engine_of(name: str, jobs: int | None) -> Engine:
    """The engine of a name, for so many jobs at a time; None for as many as there are cores."""
    if jobs is not None and jobs < 1:
        raise InvalidSetting(f"jobs is 1 or more; got {jobs}.")
    if name == "ray":
        return Ray(jobs)
    if name != "joblib":
        raise InvalidSetting(f"there is no engine {name!r}; there are {', '.join(ENGINES)}.")
    count = jobs or _cores()
    return Here() if count == 1 else Joblib(count)


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


class Here(Engine):
    """Does the work in this process, when it is asked for."""

    slots = 1

    def __init__(self) -> None:
        self._work: deque[tuple[Any, Callable[..., Any], tuple[Any, ...]]] = deque()

    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Remember a piece of work."""
        self._work.append((name, function, arguments))

    def next(self) -> tuple[Any, Any]:
        """Do the first piece."""
        name, function, arguments = self._work.popleft()
        with one_core():
            return name, function(*arguments)

    def close(self) -> None:
        """Forget what is not done yet."""
        self._work.clear()


class Joblib(Engine):
    """Does the work in processes of this machine, by joblib's pool."""

    def __init__(self, jobs: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        self.slots = jobs
        self._pool = ProcessPoolExecutor(jobs, env=ONE_CORE, initializer=_end_with, initargs=(os.getpid(),))
        self._names: dict[Any, Any] = {}

    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Hand a piece of work to the pool."""
        self._names[self._pool.submit(_alone, function, arguments)] = name

    def next(self) -> tuple[Any, Any]:
        """Wait for the first of the pieces."""
        from joblib.externals.loky.process_executor import BrokenProcessPool

        done, _ = wait(self._names, return_when=FIRST_COMPLETED)
        future = next(iter(done))
        try:
            return self._names.pop(future), future.result()
        except BrokenProcessPool as error:
            raise InvalidExperiment(
                "a worker process was ended from outside, most likely because memory ran out. Finished cells are kept; "
                "run again with fewer --jobs."
            ) from error

    def close(self) -> None:
        """End the pool's processes."""
        # The pool's own thread stumbles over work that it has been given but has not yet looked at.
        for _ in range(100):
            if all(future.running() or future.done() for future in self._names):
                break
            time.sleep(0.01)
        self._pool.shutdown(wait=False, kill_workers=True)


class Ray(Engine):
    """Does the work on a Ray cluster: the one that RAY_ADDRESS names, or a local one. All must see the same folder."""

    def __init__(self, jobs: int | None) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtra("the engine ray is not installed. Install it: pip install 'quanet[ray]'") from None
        self._ray = ray
        self._mine = not ray.is_initialized()
        if self._mine:
            there = os.environ.get("RAY_ADDRESS")
            cluster: dict[str, Any] = {} if there else {"num_cpus": jobs, "include_dashboard": False}
            paths = os.pathsep.join(path for path in sys.path if path)
            ray.init(
                log_to_driver=False,
                logging_level="error",
                runtime_env={"env_vars": ONE_CORE | {"PYTHONPATH": paths}},
                **cluster,
            )
        resources = ray.cluster_resources()
        self.slots = min(jobs or sys.maxsize, max(1, int(resources.get("CPU", 1))))
        # Work that asks for no share of a GPU would not see one.
        share = resources.get("GPU", 0) / self.slots
        self._work = ray.remote(num_cpus=1, num_gpus=min(share, 1), max_retries=0)(_alone)
        self._names: dict[Any, Any] = {}

    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Hand a piece of work to the cluster."""
        self._names[self._work.remote(function, arguments)] = name

    def next(self) -> tuple[Any, Any]:
        """Wait for the first of the pieces."""
        (done, *_), _ = self._ray.wait(list(self._names), num_returns=1)
        name = self._names.pop(done)
        try:
            return name, self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from error
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            raise InvalidExperiment(
                f"Ray lost a piece of work: {reason} Finished cells are kept; run again."
            ) from error

    def close(self) -> None:
        """Give up what is still being done, and end a local cluster."""
        for piece in self._names:
            self._ray.cancel(piece, force=True)
        if self._mine:
            self._ray.shutdown()


def _alone(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Do a piece of work in a process of an engine."""
    if threading.current_thread() is threading.main_thread():
        # Ctrl-C reaches all processes of a terminal. Here it would end a training early, as if it were done.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with one_core():
        return function(*arguments)


def _end_with(runner: int) -> None:
    """End this process when the runner is gone, however that went."""

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def one_core() -> Iterator[None]:
    """Inside, libraries compute on one core: the order of their sums, and so the last digits, depends on how many."""
    from threadpoolctl import threadpool_limits

    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if "torch" in sys.modules:
            from quanet.nn.device import one_thread

            stack.enter_context(one_thread())
        yield
