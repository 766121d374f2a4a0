"""Reading files once: as a bounded state for estimates of groups, or with every row in order."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.base import Quantifier
from quanet.corpus.batch_reader import BatchReader, BatchRows
from quanet.corpus.grouped_inputs import GroupedInputs, reading_of
from quanet.corpus.reading_run import EngineChoice, read_with_engine
from quanet.corpus.state import Accumulator, State
from quanet.data.instances import InputColumns, Inputs
from quanet.data.periods import Key
from quanet.errors import InvalidData

if TYPE_CHECKING:
    from quanet.data.streams import TableSource

WORKERS = 2  # reading threads; more would wait for each other


def read_state(
    reader: BatchReader,
    source: "TableSource",
    *,
    engine: EngineChoice | None = None,
    follow: Callable[[int, int], None] | None = None,
) -> State:
    """The state of all rows of a source.

    Parameters
    ----------
    reader : reads batches with the model.
    source : the files.
    engine : which processes read them; None: this one, chunk by chunk.
    follow : called with the bytes and rows read so far.
    """
    if engine is not None and engine.is_needed(source):
        return read_with_engine(engine, reader, source, follow=follow)
    if follow is not None:
        source.follow = lambda position: follow(position, source.rows)
    found = Accumulator()
    for _, state in _read(reader, source):
        found.add(state)
    merged = found.state()
    if merged is None:
        raise InvalidData(f"{source.name} has no rows.")
    return merged


def read_source(
    quantifier: Quantifier,
    source: "TableSource",
    inputs: InputColumns,
    *,
    keys: Sequence[Key] = (),
    form: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    cluster: str | None = None,
) -> GroupedInputs:
    """Read a source once, chunk by chunk, and keep every row in order, for work that needs each of them.

    Parameters
    ----------
    quantifier : fitted.
    source : the files.
    inputs : input columns.
    keys, form : columns to group by, and the format of dates.
    label : a column whose values are counted.
    weight : a column of weights, such as views. The weight of every row that is used must be a number from 0 up.
    cluster : a column of clusters, such as authors. Every row that is used must have one.
    """
    reader = BatchReader(quantifier, inputs, keys=keys, form=form, label=label, weight=weight, cluster=cluster)
    found, parts = Accumulator(), []
    for rows, state in _read(reader, source):
        parts.append(replace(rows, instances=None))  # texts need much memory
        found.add(state)
    merged = found.state()
    if merged is None:
        raise InvalidData(f"{source.name} has no rows.")
    reading = reading_of(merged, quantifier, source.name)
    numbers = {group: at for at, group in enumerate(reading.groups)}
    codes = [np.array([numbers[group] for group in part.groups], dtype=np.int32)[part.codes] for part in parts]
    reading.codes = np.concatenate(codes)
    reading.left_out = np.concatenate([part.left_out for part in parts])
    reading.reasons = ("", inputs.lacking, "no group")
    if weight:
        reading.weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    if cluster:
        reading.clusters = np.concatenate([part.clusters for part in parts if part.clusters is not None])
        reading.cluster = cluster
    reading.instances = Inputs.joined([part.inputs for part in parts if len(part.codes)])
    reading.merged = reading.all_rows = None
    return reading


def _read(reader: BatchReader, source: "TableSource") -> Iterator[tuple[BatchRows, State]]:
    """The rows of each chunk, and their state."""

    def read(numbered: tuple[int, BatchRows]) -> tuple[BatchRows, State]:
        number, prepared = numbered
        rows = reader.read(prepared)
        return rows, reader.state(rows, str(number))

    chunks: Any = source.chunks(reader.columns)
    with closing(chunks):
        yield from in_threads(read, ((at, reader.prepare(table, source)) for at, table in enumerate(chunks)))


def in_threads(function: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """Results in order, computed by a few threads, with few items waiting."""
    workers = min(WORKERS, os.cpu_count() or 1)
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(copy_context().run, function, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
