"""Read files with an engine: partitions to workers, states to one state, progress, and what a stopped run has done."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quanet
from quanet.corpus.batch_reader import ReadingWork
from quanet.corpus.collecting import RunCheckpoint, collect
from quanet.corpus.local import run_local
from quanet.corpus.model_inputs import ModelFiles
from quanet.corpus.processes import cores
from quanet.corpus.ray_data import import_ray, run_ray
from quanet.corpus.spark_sql import import_pyspark, run_spark
from quanet.data.partitions import Partition, partitions_of
from quanet.data.periods import Groups
from quanet.errors import Detected, InvalidData, InvalidSetting, nearest

if TYPE_CHECKING:
    import pandas as pd

    from quanet.corpus.batch_reader import BatchReader
    from quanet.corpus.state import State
    from quanet.data.streams import TableSource

ENGINES = ("local", "ray", "spark")
SMALL = 2**25  # bytes that processes would hardly read faster, since they have to start
MANY = 100  # files, of which each worker reads its own


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

    def is_needed(self, source: "TableSource") -> bool:
        """Whether more than this process is wanted, or worth its start."""
        return self.name != "local" or self.workers is not None or (source.size or 0) > SMALL


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """A chunk of a source as a partition: one process has read it, another one works on it."""

    id: str
    table: "pd.DataFrame"
    name: str
    first: str  # the place of its first row

    def chunks(self, _: Sequence[str], **__: str) -> Iterator["pd.DataFrame"]:
        """The chunk."""
        yield self.table

    def place(self, row: int) -> str:
        """The position of a row for messages."""
        file, _, number = self.first.rpartition(" ")
        return f"{file} {int(number) + row - int(self.table.index[0])}"


def read_with_engine(
    choice: EngineChoice,
    reader: "BatchReader",
    source: "TableSource",
    *,
    follow: Callable[[int, int], None] | None = None,
) -> "State":
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


def find_forms(reader: "BatchReader", first: "pd.DataFrame | None", source: Any) -> tuple[str | None, ...]:
    """Formats of the dates of each key, detected in the first rows if unknown: workers must not guess."""
    if first is None or any(reader.forms):
        return tuple(reader.forms)
    groups = Groups(reader.keys)
    groups.codes(first, source)
    return tuple(groups.forms)


def find_commas(reader: "BatchReader", source: Any) -> dict[str, str]:
    """What commas mean in the columns of numbers that are written as text: workers must not guess."""
    columns = [*reader.inputs.features, *([reader.weight] if reader.weight else [])]
    if not columns:
        return {}
    first = source.peek()
    written = [name for name in columns if any(isinstance(cell, str) for cell in first[name])]
    return {name: style for name in written if (style := source.comma_style(name))}


def _by_this_process(
    choice: EngineChoice, partitions: Sequence[Partition], source: "TableSource", columns: Sequence[str]
) -> "Iterator[pd.DataFrame] | None":
    """Chunks that this process reads for its workers; None if each worker reads its own partitions."""
    whole = any(one.row_groups is None for one in partitions)  # a file that only one process can read
    return source.chunks(columns) if choice.name == "local" and whole and len(partitions) < MANY else None


def _first_table(
    reader: "BatchReader", source: "TableSource", tables: "Iterator[pd.DataFrame] | None"
) -> "tuple[pd.DataFrame | None, Iterator[pd.DataFrame] | None]":
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
    source: "TableSource", tables: "Iterator[pd.DataFrame]", ids: list[str], done: frozenset[str]
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
        source: "TableSource",
        partitions: Sequence[Partition],
        start: "State | None",
        *,
        by_position: bool,
        follow: Callable[[int, int], None] | None,
    ) -> None:
        self.source, self.by_position, self.follow = source, by_position, follow
        self.sizes = {one.id: one.size for one in partitions}
        self.bytes = self.rows = 0
        if start is not None:
            self(start)

    def __call__(self, state: "State") -> None:
        self.rows += state.rows
        self.bytes += sum(self.sizes.get(one, 0) for one in state.partitions)
        if self.follow is not None:
            self.follow(self.source.position if self.by_position else self.bytes, self.rows)
