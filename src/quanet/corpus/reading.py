"""Read files once, in this process or with an engine: as a bounded state, or with every row in order.

An engine gets partitions and gives states, which are merged as they arrive. What a stopped run has done is kept.
"""

import os
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import quanet
from quanet.base import Quantifier
from quanet.corpus.batch_reader import BatchReader, BatchRows, ReadingWork, bad_file
from quanet.corpus.grouped_inputs import GroupedInputs, reading_of
from quanet.corpus.model_inputs import ModelFiles
from quanet.corpus.ray_data import import_ray, run_ray
from quanet.corpus.spark_sql import import_pyspark, run_spark
from quanet.corpus.state import Accumulator, State
from quanet.corpus.state_files import from_bytes, save_state
from quanet.corpus.workers import cores, return_memory, run_local
from quanet.data.download import cache_folder
from quanet.data.instances import InputColumns, Inputs
from quanet.data.periods import Groups, Key
from quanet.data.streams import Partition, TableSource, partitions_of
from quanet.errors import BadFile, Detected, InvalidData, InvalidSetting, QuanetError, nearest

ENGINES = ("local", "ray", "spark")
SMALL = 2**25  # bytes that processes would hardly read faster, since they have to start
MANY = 100  # files, of which each worker reads its own
THREADS = 2  # that read in this process; more would wait for each other
EVERY = 30.0  # seconds between checkpoints
SHARE = 0.05  # of the time that may be spent on checkpoints
OLDEST = 7 * 86400  # seconds that a checkpoint is kept


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine reads files, and with how many workers.

    Attributes
    ----------
    model : the model folder.
    name : "local", "ray" or "spark".
    workers : processes; None: one per core, but none for small files.
    """

    model: str | Path
    name: str = "local"
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise InvalidSetting(f"Unknown engine {self.name!r}. {nearest(self.name, ENGINES)}")
        if self.workers is not None and self.workers < 1:
            raise InvalidSetting(f"workers must be at least 1; got {self.workers}.")

    def check(self) -> "EngineChoice":
        """The same choice. Raises `MissingExtra` if the engine is not installed."""
        if self.name == "ray":
            import_ray()
        elif self.name == "spark":
            import_pyspark()
        return self

    def is_needed(self, source: TableSource) -> bool:
        """Whether more than this process is wanted, or worth its start."""
        return self.name != "local" or self.workers is not None or (source.size or 0) > SMALL


def read_state(
    reader: BatchReader,
    source: TableSource,
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
    source: TableSource,
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


def _read(reader: BatchReader, source: TableSource) -> Iterator[tuple[BatchRows, State]]:
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
    workers = min(THREADS, os.cpu_count() or 1)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """A chunk of a source as a partition: one process has read it, another one works on it."""

    id: str
    table: pd.DataFrame
    name: str
    first: str  # the place of its first row

    def chunks(self, _: Sequence[str], **__: str) -> Iterator[pd.DataFrame]:
        """The chunk."""
        yield self.table

    def place(self, row: int) -> str:
        """The position of a row for messages."""
        file, _, number = self.first.rpartition(" ")
        return f"{file} {int(number) + row - int(self.table.index[0])}"


def read_with_engine(
    choice: EngineChoice,
    reader: BatchReader,
    source: TableSource,
    *,
    follow: Callable[[int, int], None] | None = None,
) -> State:
    """The state of all rows of a source.

    A run that was stopped continues: the partitions that it had read are not read again, and a warning reports it.

    Parameters
    ----------
    choice : the engine.
    reader : how batches are read.
    source : the files.
    follow : called with the bytes and rows read so far.
    """
    model = ModelFiles.of(choice.model, travel=choice.name != "local")
    model.keep(reader.quantifier)
    partitions = partitions_of(source)
    tables = _by_this_process(choice, partitions, source, reader.columns)
    first, tables = _first_table(reader, source, tables)
    work = ReadingWork.of(
        reader,
        model,
        find_forms(reader, first, source),
        encoding=source.encoding,
        delimiter=source.delimiter,
        commas=find_commas(reader, source),
    )
    ids = [one.id for one in partitions]
    checkpoint = RunCheckpoint(quanet.__version__, work.settings, tables is None, ids)
    start = checkpoint.load()
    done: frozenset[str] = frozenset() if start is None else start.partitions
    if start is not None:
        warnings.warn(Detected(f"Continues a run that was stopped, after {start.rows:,} rows."), stacklevel=2)
    todo = [one for one in partitions if one.id not in done] if tables is None else _chunks(source, tables, ids, done)
    state = collect(
        _run(choice, work, todo),
        start=start,
        checkpoint=checkpoint,
        follow=_Follower(source, partitions, start, by_position=tables is not None, follow=follow),
        skip=source.skip,
    )
    checkpoint.delete()
    if state is None or not state.rows:
        raise InvalidData(f"{source.name} has no rows.")
    source.rows = state.rows
    read = (one.id for one in partitions if one.file in source.files and one.id not in source.bad_partitions)
    return replace(state, partitions=frozenset(read))


def find_forms(reader: BatchReader, first: pd.DataFrame | None, source: Any) -> tuple[str | None, ...]:
    """Formats of the dates of each key, detected in the first rows if unknown: workers must not guess."""
    if first is None or any(reader.forms):
        return tuple(reader.forms)
    groups = Groups(reader.keys)
    groups.codes(first, source)
    return tuple(groups.forms)


def find_commas(reader: BatchReader, source: Any) -> dict[str, str]:
    """What commas mean in the columns of numbers that are written as text: workers must not guess."""
    columns = [*reader.inputs.features, *([reader.weight] if reader.weight else [])]
    if not columns:
        return {}
    first = source.peek()
    written = [name for name in columns if any(isinstance(cell, str) for cell in first[name])]
    return {name: style for name in written if (style := source.comma_style(name))}


def _by_this_process(
    choice: EngineChoice, partitions: Sequence[Partition], source: TableSource, columns: Sequence[str]
) -> Iterator[pd.DataFrame] | None:
    """Chunks that this process reads for its workers; None if each worker reads its own partitions."""
    whole = any(one.row_groups is None for one in partitions)  # a file that only one process can read
    return source.chunks(columns) if choice.name == "local" and whole and len(partitions) < MANY else None


def _first_table(
    reader: BatchReader, source: TableSource, tables: Iterator[pd.DataFrame] | None
) -> tuple[pd.DataFrame | None, Iterator[pd.DataFrame] | None]:
    """The first rows, if they are needed, and all tables."""
    if not any(key.period for key in reader.keys):
        return None, tables
    if tables is None:
        return next(source.chunks([key.column for key in reader.keys])), None
    first = next(tables)
    return first, chain([first], tables)


def _run(choice: EngineChoice, work: ReadingWork, partitions: Any) -> Iterator[bytes]:
    if choice.name == "local":
        return run_local(work, partitions, workers=choice.workers or cores())
    if not partitions:
        return iter(())
    run = run_ray if choice.name == "ray" else run_spark
    return run(work, partitions, workers=choice.workers)


def _chunks(
    source: TableSource, tables: Iterator[pd.DataFrame], ids: list[str], done: frozenset[str]
) -> Iterator[_Chunk]:
    """Chunks of a source, without those that are done."""
    digest = sha256(repr(ids).encode()).hexdigest()[:20]
    for number, table in enumerate(tables):
        name = f"{digest}/{number}"
        if name not in done:
            yield _Chunk(name, table, source.name, source.place(int(table.index[0])))


class _Follower:
    """Reports bytes and rows as states arrive."""

    def __init__(
        self,
        source: TableSource,
        partitions: Sequence[Partition],
        start: State | None,
        *,
        by_position: bool,
        follow: Callable[[int, int], None] | None,
    ) -> None:
        self.source, self.by_position, self.follow = source, by_position, follow
        self.sizes = {one.id: one.size for one in partitions}
        self.bytes = self.rows = 0
        if start is not None:
            self(start)

    def __call__(self, state: State) -> None:
        self.rows += state.rows
        self.bytes += sum(self.sizes.get(one, 0) for one in state.partitions)
        if self.follow is not None:
            self.follow(self.source.position if self.by_position else self.bytes, self.rows)


class RunCheckpoint:
    """The merged state of an unfinished run, in the cache folder.

    Parameters
    ----------
    facts : what the state depends on: the model, the settings, the partitions. Another run has another file.
    """

    def __init__(self, *facts: Any) -> None:
        name = sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()[:32]
        self.path = cache_folder() / "runs" / f"{name}.arrow"
        self.saved = time.monotonic()
        self.cost = 0.0

    def load(self) -> State | None:
        """The state of a run that was killed; None if there is none, or if it cannot be used."""
        self._delete_old()
        try:
            return from_bytes(self.path.read_bytes(), str(self.path))
        except (OSError, QuanetError):
            return None

    @property
    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return time.monotonic() - self.saved >= max(EVERY, self.cost / SHARE)

    def save(self, state: State) -> None:
        """Write the state in one step. A run without a place for it continues."""
        begin = time.monotonic()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save_state(state, self.path, compress=False)
        except (OSError, QuanetError):
            pass
        self.saved = time.monotonic()
        self.cost = self.saved - begin

    def delete(self) -> None:
        """Delete it, since the run is finished."""
        self.path.unlink(missing_ok=True)

    def _delete_old(self) -> None:
        for file in self.path.parent.glob("*.arrow"):
            try:
                if time.time() - file.stat().st_mtime > OLDEST:
                    file.unlink()
            except OSError:  # another process has deleted it
                continue


class BlockNames:
    """Ids of blocks that have none: a digest of the state, and how often it has occurred."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, result: bytes) -> str:
        """The id of the next block."""
        digest = sha256(result).hexdigest()[:20]
        self.seen[digest] += 1
        return f"{digest}.{self.seen[digest]}"


def collect(
    results: Iterable[bytes],
    *,
    start: State | None = None,
    checkpoint: RunCheckpoint | None = None,
    name: Callable[[bytes], str] | None = None,
    follow: Callable[[State], None] | None = None,
    skip: Callable[[str, str, str], None] | None = None,
) -> State | None:
    """The state of all results, in any order and perhaps repeated; None without any.

    Parameters
    ----------
    results : of `ReadingWork`, from an engine.
    start : the state of a run that was killed.
    checkpoint : where the state is kept meanwhile.
    name : gives every state an id, if each arrives exactly once.
    follow : called with every state that arrives.
    skip : called with a file that cannot be read, the reason and the partition.
    """
    found, known = Accumulator(start), set() if start is None else set(start.partitions)
    try:
        for result in results:
            if (bad := bad_file(result)) is not None:
                if skip is None:
                    raise BadFile(bad[1], bad[0], bad[2])
                skip(*bad)
                continue
            state = from_bytes(result)
            if name is not None:
                state = state.named(name(result))
            del result
            if state.partitions <= known:  # a retry
                continue
            known |= state.partitions
            found.add(state)
            if follow is not None:
                follow(state)
            del state
            return_memory()
            if checkpoint is not None and checkpoint.due:
                _keep(found, checkpoint)
                return_memory()
    except BaseException:
        if checkpoint is not None and time.monotonic() - checkpoint.saved > EVERY / 6:
            _keep(found, checkpoint)
        raise
    merged = found.state()
    return_memory()
    return merged


def _keep(found: Accumulator, checkpoint: RunCheckpoint) -> None:
    found.state()
    return_memory()
    state = found.state(in_order=True)  # so that there is no second copy while it is written
    return_memory()
    if state is not None:
        checkpoint.save(state)
