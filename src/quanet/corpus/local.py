"""The local engine: this process, or a pool of processes on this machine."""

import gc
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import chain
from typing import Any

from quanet.corpus.processes import ONE_CORE, exit_with, ignore_interrupts, one_core
from quanet.errors import EngineFailed

ATTEMPTS = 3  # of a partition whose worker was killed
WAITING = 2  # partitions per worker that are read ahead

Work = Callable[[Any], bytes]
_work: Work | None = None  # of this worker process


def run_local(work: Work, partitions: Iterable[Any], *, workers: int) -> Iterator[bytes]:
    """The results of all partitions, as they are finished. One worker is this process.

    Parameters
    ----------
    work : can be pickled; every process gets it once.
    partitions : can be pickled, with an `id`. Only a few are taken before they are needed.
    workers : processes, each on one core.

    Examples
    --------
    >>> list(run_local(lambda number: str(number).encode(), [1, 2], workers=1))
    [b'1', b'2']
    """
    if workers > 1:
        yield from _in_processes(work, iter(partitions), workers)
        return
    for partition in partitions:
        with one_core():
            state = work(partition)
        yield state


def _in_processes(work: Work, partitions: Iterator[Any], workers: int) -> Iterator[bytes]:
    """A killed process breaks its pool; a new one repeats the partitions that were under way."""
    from joblib.externals.loky.process_executor import BrokenProcessPool

    pool = _pool(work, workers)
    running: dict[Future[bytes], tuple[Any, int]] = {}  # partition, attempts
    states: list[bytes] = []
    lost: deque[tuple[Any, int]] = deque()
    try:
        while True:
            tasks = chain(_drained(lost), ((partition, 1) for partition in partitions))
            while len(running) < WAITING * workers and (task := next(tasks, None)) is not None:
                running[pool.submit(_run, task[0])] = task
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                try:
                    states.append(future.result())
                except BrokenProcessPool:
                    lost.append(task)
            del future
            while states:
                yield states.pop()  # without a reference to it, because it may be large
            if lost:
                lost.extend(running.values())
                running.clear()
                pool.shutdown(wait=True, kill_workers=True)
                lost = deque(_next_attempt(task) for task in lost)
                pool = _pool(work, workers)
    finally:
        pool.shutdown(wait=False, kill_workers=True)


def _drained(tasks: deque[tuple[Any, int]]) -> Iterator[tuple[Any, int]]:
    while tasks:
        yield tasks.popleft()


def _next_attempt(task: tuple[Any, int]) -> tuple[Any, int]:
    partition, attempts = task
    if attempts >= ATTEMPTS:
        raise EngineFailed(
            f"A worker process was killed {attempts} times while it read {name_of(partition)}, most likely because "
            "memory ran out. Finished partitions are kept: run again with fewer --workers."
        )
    return partition, attempts + 1


def name_of(partition: Any) -> str:
    """The name of a partition, for messages."""
    return str(getattr(partition, "id", partition))


def _pool(work: Work, workers: int) -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(workers, env=ONE_CORE, initializer=_start, initargs=(work, os.getpid()))


def _start(work: Work, parent: int) -> None:
    global _work
    ignore_interrupts()
    exit_with(parent)
    _work = work


def _run(partition: Any) -> bytes:
    assert _work is not None
    with one_core():
        result = _work(partition)
    if not gc.get_freeze_count():  # the pool looks for garbage every second: not in modules and the model
        gc.collect()
        gc.freeze()
    return result
