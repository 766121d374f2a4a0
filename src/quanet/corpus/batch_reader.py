"""Read batches and partitions of a table with a model: what runs in every process of every engine."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from quanet.arrays import BoolArray, FloatArray, LabelArray
from quanet.base import Quantifier
from quanet.corpus.fixed_point import COUNTS, DESCRIPTIONS, LARGEST, WEIGHTED, Int64, add_by
from quanet.corpus.kept_rows import KeptRows, Rows
from quanet.corpus.layout import Layout
from quanet.corpus.model_inputs import ModelFiles
from quanet.corpus.state import Accumulator, KeptTexts, State, StateHeader
from quanet.corpus.state_files import from_bytes, to_bytes
from quanet.data.arrow_tables import cells_of
from quanet.data.columns import label_names, weights_of
from quanet.data.duplicates import hash_texts
from quanet.data.instances import InputColumns, Inputs, has_no_value
from quanet.data.periods import Codes, Groups, Key
from quanet.data.table_files import MAX_ROWS
from quanet.errors import BadFile, InvalidData
from quanet.evaluation.contents import TrainingOverlap, training_hashes
from quanet.methods.kde import KDEyCS, KDEyML
from quanet.methods.likelihood import MAPLS
from quanet.methods.ordinal import OEMQ
from quanet.nn.quanet import QuaNet
from quanet.uncertainty.closed_form import closed_form_of, likelihoods_of
from quanet.uncertainty.widening import described
from quanet.wording import quantity

OWN_BITS = 12  # of the columns that a method computes itself
BAD = b"quanet bad file "  # what follows is JSON


@dataclass(frozen=True, slots=True, eq=False)
class BatchRows:
    """Rows of a table.

    Attributes
    ----------
    instances : texts or numbers of the n rows that are used.
    groups : values of the keys, by number.
    codes : (n,) the group of each of these rows.
    weights : (n,); None without weights.
    left_out : (rows,) 0 for every row that is used; 1 without an instance, 2 without a group.
    labels : number of rows by label.
    inputs : what the quantifier reads, with the digits that are kept; empty before it has read them.
    clusters : (n,) names of their clusters; None without clusters.
    """

    instances: Any
    groups: list[tuple[str, ...]]
    codes: Codes
    weights: FloatArray | None
    left_out: NDArray[np.int8]
    labels: Counter[str]
    inputs: Inputs
    clusters: LabelArray | None = None


class BatchReader:
    """Reads batches of a table with a model.

    What it returns for a row never depends on other rows.

    Parameters
    ----------
    quantifier : fitted.
    inputs : input columns.
    keys : columns to group by.
    forms : the format of dates of each key, see `Groups`. None: detected in the first batch, for a single reader.
    form : the same for all keys.
    weight : a column of weights, such as views.
    label : a column whose values are counted.
    model : digest of the model (`persist.load.model_digest`).
    commas : what commas mean in columns of numbers (`quanet.data.columns`). None: the source of a batch decides.
    cluster : a column of clusters, such as authors. States do not keep them.
    """

    def __init__(
        self,
        quantifier: Quantifier,
        inputs: InputColumns,
        *,
        keys: Sequence[Key] = (),
        forms: Sequence[str | None] | None = None,
        form: str | None = None,
        weight: str | None = None,
        label: str | None = None,
        model: str = "",
        commas: Mapping[str, str] | None = None,
        cluster: str | None = None,
    ) -> None:
        self.quantifier = quantifier
        self.inputs = inputs
        self.keys = tuple(keys)
        self._groups = Groups(keys, form=form, forms=forms)
        self.weight = weight
        self.label = label
        self.model = model
        self.commas = commas
        self.cluster = cluster
        self.training = training_hashes(quantifier)

    @property
    def forms(self) -> list[str | None]:
        """The format of the dates of each key, given or detected so far."""
        return self._groups.forms

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        others = [name for name in (self.label, self.weight, self.cluster) if name]
        return list(dict.fromkeys([*self.inputs.columns, *(key.column for key in self.keys), *others]))

    def prepare(self, table: pd.DataFrame, source: Any = None) -> BatchRows:
        """The rows of a table, before the quantifier reads them.

        Parameters
        ----------
        table : cells, as `TableSource.chunks` yields them.
        source : what the table is a part of, for messages: it has a `name` and `place(row)`.
        """
        if source is None or self.commas is not None:
            source = _Part(source, self.commas or {})
        found, there = self.inputs.of(table, source)
        grouped = self._groups.codes(table, source)
        left_out = np.where(there, 2 * (grouped < 0), 1).astype(np.int8)
        used = left_out == 0
        kept = used[there]
        if not kept.all():
            found = [one for one, keep in zip(found, kept, strict=True) if keep] if self.inputs.text else found[kept]
        present, codes = np.unique(grouped[used], return_inverse=True)  # a group may have lost all its rows
        every = self._groups.found
        return BatchRows(
            instances=found,
            groups=[every[at] for at in present.tolist()],
            codes=codes.astype(np.int32),
            weights=self._weights(table, used, source) if self.weight else None,
            left_out=left_out,
            labels=self._labels(table, source),
            inputs=Inputs(np.empty((0, 0), dtype=np.float32)),
            clusters=self._clusters(table, used, source) if self.cluster else None,
        )

    def read(self, rows: BatchRows) -> BatchRows:
        """The rows with what the quantifier reads; safe in threads."""
        if not len(rows.codes):
            return rows
        read = self.quantifier.read(rows.instances)
        descriptions = described(self.quantifier, read)
        few = None if descriptions is None else descriptions.astype(np.float16)
        # Methods with a closed form use posteriors alone.
        used = None if closed_form_of(self.quantifier) is None else len(self.quantifier.classes_)
        values: Any = read.values[:, :used].astype(np.float32)
        return replace(rows, inputs=Inputs(values, few, read.hashes))

    def _weights(self, table: pd.DataFrame, used: BoolArray, source: Any) -> FloatArray:
        weights = weights_of(table[self.weight][used], source)
        if len(weights) and weights.max() > LARGEST:
            raise InvalidData(
                f"{source.name}: column {self.weight!r} has a weight of {quantity(weights.max())}; weights must be at "
                f"most {quantity(LARGEST)}. Divide the column by a number."
            )
        return weights

    def _clusters(self, table: pd.DataFrame, used: BoolArray, source: Any) -> LabelArray:
        cells = table[self.cluster][used]
        for row, name in zip(cells.index, cells, strict=True):
            if has_no_value(name) or name == "":
                raise InvalidData(
                    f"{source.place(row)}: column {self.cluster!r} is empty. Give every row a cluster; a row that "
                    "belongs to none is a cluster of its own."
                )
        return np.array([str(name) for name in cells], dtype=object)

    def _labels(self, table: pd.DataFrame, source: Any) -> Counter[str]:
        names = label_names(table[self.label], source) if self.label else []
        return Counter(name for name in names if name)

    def __call__(self, table: pd.DataFrame, *, partition: str, source: Any = None) -> State:
        """The state of a table; `partition` is the id of its rows, the rest as in `prepare`."""
        return self.state(self.read(self.prepare(table, source)), partition)

    def state(self, rows: BatchRows, partition: str) -> State:
        """The state of rows that the quantifier has read; safe in threads."""
        size, weights, values = len(rows.groups), rows.weights, rows.inputs.values.astype(np.float32)
        kind, own = own_columns(self.quantifier, values)
        layout = self._layout(values.shape[1], kind, own.shape[1])
        found = rows.inputs.descriptions
        descriptions: NDArray[np.floating[Any]] = np.empty((len(values), 0)) if found is None else found
        texts = rows.instances if self.inputs.text else []
        content = rows.inputs.hashes
        hashes, overlap = (
            hash_texts(texts) if content is None else content[: len(texts)],
            TrainingOverlap(self.training),
        )
        overlap.add(hashes)
        columns = tuple(self.inputs.columns)
        few = np.zeros(len(values), dtype=np.uint32) if content is None else content.astype(np.uint32)
        kept = Rows(rows.codes, np.hstack([values, own]), few, weights)
        return State(
            header=StateHeader(self.model, self.keys, columns, self.weight or "", layout, descriptions.shape[1]),
            partitions=frozenset({partition}),
            rows=len(rows.left_out),
            groups=tuple(rows.groups),
            kept=KeptRows.of(layout, kept, size),
            sums=_description_sums(rows.codes, descriptions, weights, size),
            totals=_totals(rows.codes, weights, size),
            texts=KeptTexts.of(texts, hashes, rows.codes[: len(texts)], descriptions[: len(texts)]),
            skipped=self._skipped(rows.left_out),
            labels=rows.labels,
            overlap=(overlap.texts, overlap.compared, overlap.found),
        )

    def _layout(self, inputs: int, kind: str, own: int) -> Layout:
        posteriors = self.quantifier.reads_posteriors and inputs > 0
        prior = tuple(self.quantifier.prior_.tolist()) if posteriors else ()
        smooth = reads_smoothly(self.quantifier)
        return Layout(inputs + own, len(prior), prior, bool(self.weight), smooth, kind, own)

    def _skipped(self, left_out: NDArray[np.int8]) -> Counter[str]:
        numbers = np.bincount(left_out, minlength=3).tolist()
        reasons = {self.inputs.lacking: numbers[1], "no group": numbers[2]}
        return Counter({reason: number for reason, number in reasons.items() if number})


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A part of a table, with what commas mean in the whole table; also a table without a file, as in a cluster."""

    source: Any
    commas: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name used in messages."""
        return "The table" if self.source is None else str(self.source.name)

    def place(self, row: int) -> str:
        """The position of a row, for messages."""
        return f"row {row + 1}" if self.source is None else str(self.source.place(row))

    def comma_style(self, column: str) -> str:
        """What commas mean in the numbers of a column."""
        return self.commas.get(column, "")


def reads_smoothly(quantifier: Quantifier) -> bool:
    """Whether a method reads means or a likelihood alone, for which few cells are enough; QuaNet also counts ranks."""
    return closed_form_of(quantifier) is not None and not isinstance(quantifier, QuaNet)


def own_columns(quantifier: Quantifier, values: NDArray[np.floating]) -> tuple[str, NDArray[np.float32]]:
    """What else of rows (n, d) is summed exactly for this method, see `Layout.own`, and the columns (n, c) with it.

    Likelihoods of each class, up to a factor for each row, exactly as the method maximises them, or numbers of which it
    reads the means. Two classes are kept as cells, which need neither. Numbers are rounded to 12 bits, so that they do
    not depend on the rows that are computed together; the estimate does not read them.
    """
    kind = _own_kind(quantifier) if len(values) else ""
    if not kind:
        return "", np.empty((len(values), 0), dtype=np.float32)
    rows = quantifier.rows(values.astype(float))
    direct = kind == "means" or isinstance(quantifier, KDEyML)
    mantissas, exponents = np.frexp(rows if direct else likelihoods_of(quantifier, rows))
    return kind, np.ldexp(np.rint(mantissas * 2**OWN_BITS), exponents - OWN_BITS).astype(np.float32)


def _own_kind(quantifier: Quantifier) -> str:
    if len(quantifier.classes_) == 2:
        return ""
    if isinstance(quantifier, KDEyML | MAPLS | OEMQ) or closed_form_of(quantifier) == "likelihood":
        return "likelihoods"
    return "means" if isinstance(quantifier, KDEyCS) else ""


def _description_sums(
    codes: Codes, descriptions: NDArray[np.floating[Any]], weights: FloatArray | None, size: int
) -> Int64:
    """Sums of descriptions (n, e) and of their squared lengths by group: (size, e + 1, limbs)."""
    columns = np.empty((len(descriptions), descriptions.shape[1] + 1))
    columns[:, :-1] = descriptions
    columns[:, -1] = (columns[:, :-1] ** 2).sum(axis=1)
    if weights is not None:
        columns *= weights[:, None]
    written = (DESCRIPTIONS if weights is None else WEIGHTED).write(columns)
    return add_by(codes.astype(np.intp), written, size)


def _totals(codes: Codes, weights: FloatArray | None, size: int) -> Int64:
    """Instances, weights and squared weights by group: (size, 3, limbs)."""
    ones = np.ones(len(codes))
    columns = np.column_stack([ones, ones, ones] if weights is None else [ones, weights, weights**2])
    return add_by(codes.astype(np.intp), (COUNTS if weights is None else WEIGHTED).write(columns), size)


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
        """The state of a partition (`quanet.data.streams`), or the report of a bad file."""
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

    def _cells(self, tables: Iterable[Any]) -> Iterator[pd.DataFrame]:
        for table in tables:
            for start in range(0, table.num_rows, MAX_ROWS):
                yield cells_of(table.slice(start, MAX_ROWS), self.columns, start=start)

    def _state(self, tables: Iterable[pd.DataFrame], name: str, source: Any) -> State:
        reader, merged = self.reader(), Accumulator()
        for number, table in enumerate(tables):
            merged.add(reader(table, partition=f"{name}/{number}", source=source))
        state = merged.state()
        if state is None:
            state = reader(pd.DataFrame(columns=self.columns, dtype=object), partition=name)
        return state.named(name)


def bad_file(result: bytes) -> tuple[str, str, str] | None:
    """The bad file that a result reports, the reason and the partition; None if it is a state."""
    if not result.startswith(BAD):
        return None
    file, reason, partition = json.loads(result[len(BAD) :])
    return str(file), str(reason), str(partition)
