"""Spark: `mapInArrow` turns batches of rows into states."""

import os
import re
import shutil
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from quanet.corpus.workers import (
    COLUMNS,
    as_table,
    attempt,
    check_versions,
    cores,
    environment,
    silent_start,
    states_of,
    version_probe,
)
from quanet.errors import EngineFailed, MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "state binary, error string, message string"
CHOSEN = ("MASTER", "SPARK_REMOTE", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS")  # the user's settings of a cluster
FAILURES = 4  # attempts of a task: the default of a cluster; Spark on one machine would make one
WAVE = 8  # partitions per core in a job, so that progress is known between jobs
JOBS = 2  # at a time
# Java only passes states on. Its optimising compiler and parallel collector would take cores from the workers.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MERGERS = 8  # tasks that merge the states of a data frame
CLUSTER = "the Spark cluster"


def import_pyspark() -> Any:
    """The module `pyspark.sql`. Raises `MissingExtra` if it is not installed."""
    try:
        import pyspark.sql as sql
    except ImportError:
        raise MissingExtra("The engine spark is not installed. Install it: pip install 'quanet[spark]'") from None
    # They are about pandas, which is not used here.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    return sql


@contextmanager
def session(workers: int | None = None) -> Iterator[Any]:
    """The session that is active, the one that the environment describes, or a local one that ends with the block."""
    sql = import_pyspark()
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    spark = _start(sql, workers)
    try:
        yield spark
    finally:
        spark.stop()


def _start(sql: Any, workers: int | None) -> Any:
    builder = sql.SparkSession.builder.appName("quanet")
    if not os.environ.get("SPARK_REMOTE") and not _has_java():
        raise EngineFailed("Spark needs Java 17 or newer, which was not found. Install it, or set JAVA_HOME.")
    if not any(os.environ.get(name) for name in CHOSEN):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(f"local[{workers or cores()},{FAILURES}]").config(
            map={
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.log.level": "OFF",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.extraJavaOptions": JAVA,
                **{f"spark.executorEnv.{name}": value for name, value in environment().items()},
            }
        )
    try:
        with silent_start():
            return builder.getOrCreate()
    except Exception as error:  # Java, Spark and gRPC raise many kinds
        raise EngineFailed(
            f"No Spark cluster can be reached: {_cause(error)} Check MASTER or SPARK_REMOTE, or use --engine local."
        ) from error


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None) is not None  # noqa: PTH118


def run_spark(
    work: Callable[[Any], bytes], partitions: Sequence[Any], *, workers: int | None = None
) -> Iterator[bytes]:
    """The results of all partitions, as jobs are finished.

    Parameters
    ----------
    work : can be pickled; every task gets it.
    partitions : can be pickled; the workers read them.
    workers : cores of a local Spark; a cluster has its own number.
    """
    with session(workers) as spark:
        _check_cluster(spark)
        parallel = _parallel(spark, workers)
        tag = f"quanet-{uuid4().hex}"

        def run(wave: list[Any]) -> "pa.Table":
            spark.addTag(tag)  # of all jobs of this thread
            return _collect(_wave(spark, work, wave))

        # While the last tasks of a job run, those of the next one use the cores that are free.
        with ThreadPoolExecutor(JOBS) as threads:
            jobs: deque[Future[pa.Table]] = deque()
            try:
                for start in range(0, len(partitions), WAVE * parallel):
                    jobs.append(threads.submit(run, list(partitions[start : start + WAVE * parallel])))
                    if len(jobs) == JOBS:
                        yield from states_of(jobs.popleft().result())
                while jobs:
                    yield from states_of(jobs.popleft().result())
            finally:
                if jobs:  # the run was stopped
                    spark.interruptTag(tag)


def read_data_frame(work: Any, frame: Any) -> Iterator[bytes]:
    """States of all partitions of a data frame, which stays where it is. Workers merge most of them.

    Parameters
    ----------
    work : `work.of_tables(tables, id) -> bytes` reads `work.columns`; `work.merged(states)` merges.
    frame : `pyspark.sql.DataFrame`.
    """
    spark = frame.sparkSession
    _check_cluster(spark)

    def read(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        from pyspark import TaskContext

        task = TaskContext.get()
        name = f"partition {0 if task is None else task.partitionId()}"
        yield from as_table([attempt(work.of_tables, batches, name)]).to_batches()

    def merge(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        states = [state for batch in batches for state in states_of(batch)]
        if states:
            yield from as_table([attempt(work.merged, states)]).to_batches()

    states = frame.select(*work.columns).mapInArrow(read, SCHEMA)
    yield from states_of(_collect(states.repartition(MERGERS).mapInArrow(merge, SCHEMA)))


def first_rows(frame: Any, number: int, columns: Sequence[str]) -> "pa.Table":
    """The first rows of a data frame."""
    return frame.select(*columns).limit(number).toArrow()


def _wave(spark: Any, work: Callable[[Any], bytes], partitions: list[Any]) -> Any:
    """A job that reads partitions, each in a task of its own, so that all cores end at about the same time."""

    def read(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from as_table([attempt(work, partitions[number])]).to_batches()

    return spark.range(0, len(partitions), 1, len(partitions)).mapInArrow(read, SCHEMA)


def _collect(frame: Any) -> "pa.Table":
    try:
        return frame.toArrow().select(COLUMNS)
    except Exception as error:
        raise EngineFailed(
            f"Spark lost a task {FAILURES} times, or stopped: {_cause(error)} If memory ran out, use fewer --workers."
        ) from error


def _cause(error: Exception) -> str:
    """What has failed, of a message with a trace of Java."""
    causes = re.findall(r"(?:Exception|Error): ([^\n]+)", str(error)) or [
        *str(error).splitlines(),
        type(error).__name__,
    ]
    return f"{causes[-1].strip()[:200].removesuffix('.')}."


def _parallel(spark: Any, workers: int | None) -> int:
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - Spark Connect has no context
        return workers or cores()


def _check_cluster(spark: Any) -> None:
    """Ask one worker for its version, before anything large is sent."""
    probe = version_probe()

    def ask(_: Any) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({"version": [probe()]})

    found = spark.range(0, 1, 1, 1).mapInArrow(ask, "version string").toArrow()
    check_versions(found["version"].to_pylist(), CLUSTER)
