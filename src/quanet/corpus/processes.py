"""Processes that work for another one: one core each; they end with it."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def cores() -> int:
    """Cores that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def environment() -> dict[str, str]:
    """Variables of processes that a cluster starts: one core, and the modules that this process finds."""
    return ONE_CORE | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def one_core() -> Iterator[None]:
    """Within the block, libraries use one core: the last digits of their sums depend on the number of cores."""
    from threadpoolctl import threadpool_limits

    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        if "torch" in sys.modules:
            from quanet.nn.device import one_thread

            stack.enter_context(one_thread())
        yield


def return_memory() -> None:
    """Return memory that is not used to the system: libraries keep much of it after work on large arrays."""
    import ctypes

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
