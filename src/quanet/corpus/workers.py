"""Workers: processes that work for another one, on one core each, until it ends; here, or in a cluster.

From a cluster comes a state or the error of bad input, if its workers have the same quanet.
"""

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

import quanet
from quanet import errors
from quanet.errors import EngineFailed, QuanetError

if TYPE_CHECKING:
    import pyarrow as pa

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
ATTEMPTS = 3  # of a partition whose worker was killed
WAITING = 2  # partitions per worker that are read ahead
COLUMNS = ("state", "error", "message")  # of what comes from a cluster
Work = Callable[[Any], bytes]
_work: Work | None = None  # of this worker process


def cores() -> int:
    """Cores that this process may use."""
    return int(cpu_count())


def environment() -> dict[str, str]:
    """Variables of processes that a cluster starts: one core, and the modules that this process finds."""
    return ONE_CORE | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def one_core() -> Iterator[None]:
    """Within the block, libraries use one core: the last digits of their sums depend on the number of cores."""
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if "torch" in sys.modules:
            from quanet.nn.device import one_thread

            stack.enter_context(one_thread())
        yield


def return_memory() -> None:
    """Return memory that is not used to the system: libraries keep much of it after work on large arrays."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # only the GNU C library has it
        return


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that works for the user; it reaches all processes of a terminal."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def exit_with(parent: int) -> None:
    """Exit this process when its parent has ended for any reason."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def silent_start() -> Iterator[None]:
    """Within the block, programs that start do not write to standard error, where clusters print much."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


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
        name = getattr(partition, "id", partition)
        raise EngineFailed(
            f"A worker process was killed {attempts} times while it read {name}, most likely because memory ran out. "
            "Finished partitions are kept: run again with fewer --workers."
        )
    return partition, attempts + 1


def _pool(work: Work, workers: int) -> Any:
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


def attempt(function: Callable[..., bytes], *arguments: Any) -> tuple[bytes, str, str]:
    """The result of a function on one core, or the class and message of its error.

    A cluster would repeat an error that the user has to fix, and bury its message.

    Examples
    --------
    >>> def refuse():
    ...     raise errors.InvalidData("no such column")
    >>> attempt(refuse)
    (b'', 'InvalidData', 'no such column')
    """
    try:
        with one_core():
            return function(*arguments), "", ""
    except QuanetError as error:
        return b"", type(error).__name__, str(error)


def as_table(results: list[tuple[bytes, str, str]]) -> "pa.Table":
    """Results as a table. Its binary column is not limited to 2 GB."""
    import pyarrow as pa

    states, names, messages = zip(*results, strict=True)
    arrays = [pa.array(states, pa.large_binary()), pa.array(names), pa.array(messages)]
    return pa.table(dict(zip(COLUMNS, arrays, strict=True)))


def states_of(table: "pa.Table | pa.RecordBatch") -> Iterator[bytes]:
    """The states in a table of results. Raises the first error that it contains."""
    for row in table.to_pylist():
        if row["error"]:
            raise getattr(errors, row["error"], QuanetError)(row["message"])
        yield bytes(row["state"])


def version_probe() -> Callable[[], str]:
    """A function that returns the version of quanet where it runs, "" if there is none.

    It is local, so that it is sent as code: a worker without quanet can call it.
    """

    def probe() -> str:
        try:
            import quanet
        except ImportError:
            return ""
        return str(quanet.__version__)

    return probe


def check_versions(found: Iterable[str], cluster: str) -> None:
    """Raise `EngineFailed` if workers have no quanet, or not the version that runs here."""
    here = quanet.__version__
    for version in sorted(set(found)):
        if not version:
            raise EngineFailed(
                f"The workers of {cluster} do not have quanet, and this process has version {here}. Install it there: "
                f"pip install quanet=={here}"
            )
        if version != here:
            raise EngineFailed(
                f"The workers of {cluster} have quanet {version}, and this process has {here}. Install the same "
                f"version on both: pip install quanet=={here}"
            )
