"""Run the tasks of an experiment in this process, on the cores of this machine, or on a Ray cluster.

An engine accepts tasks and returns their results as they finish. Each task has its own seed and uses one core, so the
results do not depend on the engine, on the number of parallel tasks, or on their order.
"""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from typing import Any, Self

from quanet.corpus.ray_data import import_ray, start_ray
from quanet.corpus.workers import ONE_CORE, cores, exit_with, ignore_interrupts, one_core
from quanet.errors import InvalidExperiment, InvalidSetting

ENGINES = ("joblib", "ray")


class Engine(ABC):
    """Runs tasks; `slots` at a time."""

    slots: int

    @abstractmethod
    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Submit a task."""

    @abstractmethod
    def next(self) -> tuple[Any, Any]:
        """Wait for a task to finish. Returns its name and the result of its function."""

    @abstractmethod
    def close(self) -> None:
        """Stop unfinished tasks."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def engine_of(name: str, jobs: int | None) -> Engine:
    """The engine with this name, for this many parallel jobs; None: one per core."""
    if jobs is not None and jobs < 1:
        raise InvalidSetting(f"jobs must be at least 1; got {jobs}.")
    if name == "ray":
        return Ray(jobs)
    if name != "joblib":
        raise InvalidSetting(f"Unknown engine {name!r}. Choose from {', '.join(ENGINES)}.")
    count = jobs or cores()
    return Serial() if count == 1 else Joblib(count)


class Serial(Engine):
    """Runs tasks in this process, when their results are requested."""

    slots = 1

    def __init__(self) -> None:
        self._work: deque[tuple[Any, Callable[..., Any], tuple[Any, ...]]] = deque()

    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task to the queue."""
        self._work.append((name, function, arguments))

    def next(self) -> tuple[Any, Any]:
        """Run the first task."""
        name, function, arguments = self._work.popleft()
        with one_core():
            return name, function(*arguments)

    def close(self) -> None:
        """Clear the queue."""
        self._work.clear()


class Joblib(Engine):
    """Runs tasks in processes on this machine, with the process pool of joblib."""

    def __init__(self, jobs: int) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        self.slots = jobs
        self._pool = ProcessPoolExecutor(jobs, env=ONE_CORE, initializer=exit_with, initargs=(os.getpid(),))
        self._names: dict[Any, Any] = {}

    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Submit a task to the pool."""
        self._names[self._pool.submit(_run_task, function, arguments)] = name

    def next(self) -> tuple[Any, Any]:
        """Wait for the first task to finish."""
        from joblib.externals.loky.process_executor import BrokenProcessPool

        done, _ = wait(self._names, return_when=FIRST_COMPLETED)
        future = next(iter(done))
        try:
            return self._names.pop(future), future.result()
        except BrokenProcessPool as error:
            raise InvalidExperiment(
                "A worker process was killed, most likely because memory ran out. Finished cells are kept. Run again "
                "with fewer --jobs."
            ) from error

    def close(self) -> None:
        """Stop the processes of the pool."""
        # The thread of the pool fails on tasks that it has received but not yet processed.
        for _ in range(100):
            if all(future.running() or future.done() for future in self._names):
                break
            time.sleep(0.01)
        self._pool.shutdown(wait=False, kill_workers=True)


class Ray(Engine):
    """Runs tasks on a Ray cluster: RAY_ADDRESS, or a local one. All nodes must share the experiment folder."""

    def __init__(self, jobs: int | None) -> None:
        self._ray = ray = import_ray()
        self._own_cluster = not ray.is_initialized()
        if self._own_cluster:
            start_ray(ray, jobs)
        resources = ray.cluster_resources()
        self.slots = min(jobs or sys.maxsize, max(1, int(resources.get("CPU", 1))))
        # Tasks that request no share of a GPU cannot use it.
        share = resources.get("GPU", 0) / self.slots
        self._work = ray.remote(num_cpus=1, num_gpus=min(share, 1), max_retries=0)(_run_task)
        self._names: dict[Any, Any] = {}

    def submit(self, name: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Submit a task to the cluster."""
        self._names[self._work.remote(function, arguments)] = name

    def next(self) -> tuple[Any, Any]:
        """Wait for the first task to finish."""
        (done, *_), _ = self._ray.wait(list(self._names), num_returns=1)
        name = self._names.pop(done)
        try:
            return name, self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from error
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            raise InvalidExperiment(f"Ray lost a task: {reason} Finished cells are kept. Run again.") from error

    def close(self) -> None:
        """Cancel unfinished tasks, and stop a local cluster."""
        for task in self._names:
            self._ray.cancel(task, force=True)
        if self._own_cluster:
            self._ray.shutdown()


def _run_task(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Run a task in a process of an engine."""
    ignore_interrupts()  # Ctrl-C would stop a training early, as if it had converged
    with one_core():
        return function(*arguments)
