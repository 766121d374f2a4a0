"""The work of every engine: read a partition with a model, and return its state."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.model_files import ModelFiles
from quanet.corpus.state import Accumulator, State
from quanet.corpus.state_files import from_bytes, to_bytes
from quanet.data.arrow_cells import cells_of
from quanet.data.instances import InputColumns
from quanet.data.periods import Key
from quanet.data.table_chunks import MAX_ROWS
from quanet.errors import BadFile

if TYPE_CHECKING:
    import pandas as pd

BAD = b"quanet bad file "  # what follows is JSON
_readers: dict[tuple[Any, ...], BatchReader] = {}  # of this process


@dataclass(frozen=True, slots=True, eq=False)
class ReadingWork:
    """How partitions are read. It can be pickled, and called in any process.

    Attributes
    ----------
    model : its files.
    inputs, keys, forms, weight, label : as in `BatchReader`.
    encoding, delimiter : of text files.
    commas : what commas mean in columns of numbers.
    """

    model: ModelFiles
    inputs: InputColumns
    keys: tuple[Key, ...] = ()
    forms: tuple[str | None, ...] = ()
    weight: str | None = None
    label: str | None = None
    encoding: str = "auto"
    delimiter: str = "auto"
    commas: tuple[tuple[str, str], ...] = ()

    @property
    def settings(self) -> tuple[Any, ...]:
        """What the states depend on."""
        inputs = (self.inputs.text, self.inputs.features)
        keys = [(key.column, key.period, key.required) for key in self.keys]
        text = (self.encoding, self.delimiter, self.commas)
        return self.model.digest, inputs, tuple(keys), self.forms, self.weight, self.label, *text

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        others = [name for name in (self.label, self.weight) if name]
        return list(dict.fromkeys([*self.inputs.columns, *(key.column for key in self.keys), *others]))

    @classmethod
    def of(
        cls,
        reader: BatchReader,
        model: ModelFiles,
        forms: tuple[str | None, ...],
        *,
        encoding: str = "auto",
        delimiter: str = "auto",
        commas: Mapping[str, str] | None = None,
    ) -> "ReadingWork":
        """What another process does to read batches as this reader does, with these formats of dates and numbers."""
        known = tuple(sorted((commas or {}).items()))
        return cls(model, reader.inputs, reader.keys, forms, reader.weight, reader.label, encoding, delimiter, known)

    def reader(self) -> BatchReader:
        """What reads a batch, one for all partitions that this process reads."""
        if self.settings not in _readers:
            _readers.clear()
            _readers[self.settings] = BatchReader(
                self.model.quantifier(),
                self.inputs,
                keys=self.keys,
                forms=self.forms,
                weight=self.weight,
                label=self.label,
                model=self.model.digest,
                commas=dict(self.commas),
            )
        return _readers[self.settings]

    def __call__(self, partition: Any) -> bytes:
        """The state of a partition (`quanet.data.partitions`), or the report of a bad file."""
        try:
            tables = partition.chunks(self.columns, encoding=self.encoding, delimiter=self.delimiter)
            return to_bytes(self._state(tables, partition.id, partition))
        except BadFile as error:
            return BAD + json.dumps([error.file, str(error), error.partition]).encode()

    def of_tables(self, tables: Iterable[Any], name: str = "block") -> bytes:
        """The state of Arrow tables or record batches, as a partition with this id."""
        return to_bytes(self._state(self._cells(tables), name, None))

    @staticmethod
    def merged(states: Iterable[bytes]) -> bytes:
        """Several states as one."""
        return to_bytes(State.merge([from_bytes(state) for state in states]))

    def _cells(self, tables: Iterable[Any]) -> Iterator["pd.DataFrame"]:
        for table in tables:
            for start in range(0, table.num_rows, MAX_ROWS):
                yield cells_of(table.slice(start, MAX_ROWS), self.columns, start=start)

    def _state(self, tables: Iterable["pd.DataFrame"], name: str, source: Any) -> State:
        reader, merged = self.reader(), Accumulator()
        for number, table in enumerate(tables):
            merged.add(reader(table, partition=f"{name}/{number}", source=source))
        state = merged.state()
        if state is None:
            state = reader(empty_cells(self.columns), partition=name)
        return state.named(name)


def empty_cells(columns: list[str]) -> "pd.DataFrame":
    """A table without rows."""
    import pandas as pd

    return pd.DataFrame({column: pd.Series([], dtype=object) for column in columns})


def bad_file(result: bytes) -> tuple[str, str, str] | None:
    """The bad file that a result reports, the reason and the partition; None if it is a state."""
    if not result.startswith(BAD):
        return None
    file, reason, partition = json.loads(result[len(BAD) :])
    return str(file), str(reason), str(partition)
