"""Ray Data: actors that load a model once and turn blocks of a dataset into states."""

import logging
import os
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from quanet.corpus.workers import as_table, attempt, check_versions, environment, silent_start, states_of, version_probe
from quanet.errors import EngineFailed, MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

RETRIES = 3  # of a block whose actor was lost
MOST_BLOCKS = 1000  # partitions of a run; with more, a block holds several
WAIT = 10  # seconds for an answer of a cluster
CLUSTER = "the Ray cluster"


def import_ray() -> Any:
    """The module. Raises `MissingExtra` if it is not installed."""
    try:
        import ray
    except ImportError:
        raise MissingExtra("The engine ray is not installed. Install it: pip install 'quanet[ray]'") from None
    return ray


@contextmanager
def connected(workers: int | None = None) -> Iterator[Any]:
    """Ray, connected: to what this process uses already, to RAY_ADDRESS, or to a local one that ends with the block."""
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    start_ray(ray, workers)
    try:
        yield ray
    finally:
        ray.shutdown()


def start_ray(ray: Any, workers: int | None = None) -> None:
    """Connect to the cluster at RAY_ADDRESS, or start one on this machine with this many cores."""
    address = os.environ.get("RAY_ADDRESS")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors are raised here
    cluster: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
    try:
        _check_answer(address)
        with silent_start():
            ray.init(
                log_to_driver=False,
                logging_level="error",
                runtime_env={"env_vars": environment()},
                **cluster,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"No Ray cluster answers at RAY_ADDRESS={address}" if address else "Ray does not start on this machine"
        reason = " ".join(str(error).split())[:200]
        raise EngineFailed(f"{where}: {reason} Start one with `ray start --head`, or use --engine local.") from None


def _check_answer(address: str | None) -> None:
    """Raise `ConnectionError` if nothing listens at an address, where Ray would wait for minutes."""
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=WAIT).close()
        except OSError as error:
            raise ConnectionError(f"{error.strerror or error}.") from None


def run_ray(work: Callable[[Any], bytes], partitions: Sequence[Any], *, workers: int | None = None) -> Iterator[bytes]:
    """The results of all partitions, as they are finished, computed by actors.

    Parameters
    ----------
    work : can be pickled; every actor gets it once.
    partitions : can be pickled; the workers read them.
    workers : actors; None: one per core of the cluster.
    """
    with connected(workers) as ray:
        _check_cluster(ray)
        numbers = [{"number": number} for number in range(len(partitions))]
        dataset = _quiet(ray.data.from_items(numbers, override_num_blocks=min(len(partitions), MOST_BLOCKS)))
        pool = {"size": min(_slots(ray, workers), len(partitions))}
        yield from _states(ray, dataset, _PartitionActor, (work, list(partitions)), pool, batch_size=1)


def read_dataset(work: Any, dataset: Any, *, workers: int | None = None) -> Iterator[bytes]:
    """A state for every block of a dataset, which stays where it is.

    Parameters
    ----------
    work : `work.of_tables(tables) -> bytes` reads `work.columns`.
    dataset : `ray.data.Dataset`.
    workers : at most this many actors; None: one per core of the cluster.
    """
    with connected(workers) as ray:
        _check_cluster(ray)
        # The tasks that read the dataset need cores, too: the pool grows where some are free.
        pool = {"min_size": 1, "max_size": _slots(ray, workers)}
        columns = _quiet(dataset.select_columns(work.columns))
        yield from _states(ray, columns, _BlockActor, (work,), pool, batch_size=None)


def column_names(dataset: Any) -> list[str]:
    """The columns of a dataset."""
    with connected():
        schema = _quiet(dataset).schema()
    return [] if schema is None else list(schema.names)


def first_rows(dataset: Any, number: int, columns: Sequence[str]) -> "pa.Table":
    """The first rows of a dataset."""
    with connected():
        return _quiet(dataset.select_columns(list(columns)).limit(number)).take_batch(number, batch_format="pyarrow")


class _PartitionActor:
    """Reads partitions with a model that it loads once."""

    def __init__(self, work: Callable[[Any], bytes], partitions: list[Any]) -> None:
        self.work, self.partitions = work, partitions

    def __call__(self, batch: "pa.Table") -> "pa.Table":
        return as_table([attempt(self.work, self.partitions[row]) for row in batch["number"].to_pylist()])


class _BlockActor:
    """Reads blocks of a dataset with a model that it loads once."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __call__(self, block: "pa.Table") -> "pa.Table":
        return as_table([attempt(self.work.of_tables, [block])])


def _states(
    ray: Any, dataset: Any, actor: type, arguments: tuple[Any, ...], pool: dict[str, int], *, batch_size: int | None
) -> Iterator[bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no named parameter limits the number of retries
        results = dataset.map_batches(
            actor,
            batch_size=batch_size,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(**pool),
            fn_constructor_args=arguments,
            num_cpus=1,
            max_restarts=-1,
            max_task_retries=RETRIES,
        )
    try:
        for table in results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            yield from states_of(table)
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from error
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())[:200]
        raise EngineFailed(
            f"Ray lost an actor {RETRIES + 1} times, most likely because memory ran out: {reason} Use fewer --workers."
        ) from error


def _quiet(dataset: Any) -> Any:
    """The same dataset, without progress bars: the caller reports progress."""
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    dataset.context.enable_progress_bars = False
    dataset.context.enable_operator_progress_bars = False
    dataset.context.print_on_execution_start = False
    return dataset


def _slots(ray: Any, workers: int | None) -> int:
    return max(1, min(workers or sys.maxsize, int(ray.cluster_resources().get("CPU", 1))))


def _check_cluster(ray: Any) -> None:
    """Ask one worker for its version, before anything large is sent."""
    check_versions([ray.get(ray.remote(max_retries=0)(version_probe()).remote())], CLUSTER)
