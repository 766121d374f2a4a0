"""Shares of a table that a cluster holds: the answer of `quanet.ray.predict` and `quanet.spark.predict`."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quanet.base import Quantifier
from quanet.corpus.batch_reader import BatchReader, ReadingWork
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.model_inputs import ModelFiles, choose_inputs
from quanet.corpus.reading import BlockNames, collect, find_commas, find_forms
from quanet.data.arrow_tables import cells_of
from quanet.data.columns import PEEKED_ROWS, ClassNames, check_columns, comma_styles, report_style
from quanet.data.settings import Estimation, TableReading
from quanet.data.table_files import MAX_ROWS
from quanet.errors import Detected, InvalidData
from quanet.persist.load import facts_of
from quanet.workflows.predict import Shares, estimate_shares

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTable:
    """A table of a cluster.

    Attributes
    ----------
    name : used in messages.
    columns : their names.
    first : returns so many first rows of some columns.
    read : runs work on its rows, and returns states.
    """

    name: str
    columns: list[str]
    first: Callable[[int, Sequence[str]], "pa.Table"]
    read: Callable[[ReadingWork], Iterator[bytes]]

    def peek(self) -> "pd.DataFrame":
        """The first rows, as `TableSource.peek` returns them."""
        return cells_of(self.first(PEEKED_ROWS, self.columns), name=self.name)

    def comma_style(self, column: str) -> str:
        """What commas mean in the numbers of a column; a warning reports it."""
        style, example = comma_styles(self.peek()[[column]]).get(column, ("", ""))
        if style:
            report_style(self.name, column, style, example)
        return style

    def place(self, row: int) -> str:
        """The position of a row, for messages."""
        return f"{self.name}, row {row + 1}"


def predict_table(
    table: ClusterTable,
    model: str | Path | Quantifier,
    settings: TableReading,
    estimation: Estimation,
) -> Shares:
    """Estimate the shares of every class in a table of a cluster, overall and by group.

    Parameters
    ----------
    table : the rows.
    model : a model folder, or a fitted quantifier.
    settings : what is read.
    estimation : how shares are estimated.
    """
    keys, form, weight = settings.keys, settings.date_format, settings.weight
    others = [*(key.column for key in keys), *([weight] if weight else [])]
    check_columns(others, table.columns, table.name)
    files, facts = ModelFiles.of(model), {} if isinstance(model, Quantifier) else facts_of(model)
    loaded = files.quantifier()
    quantifier = ClassNames.of(loaded.classes_, {}, facts.get("names")).rename(loaded)
    inputs, found = choose_inputs(table, facts, settings.text, settings.features, exclude=others)
    if found:
        warnings.warn(Detected(found), stacklevel=3)
    reader = BatchReader(quantifier, inputs, keys=keys, form=form, weight=weight, model=files.digest)
    dated = any(key.period for key in keys) and form is None
    first = cells_of(table.first(MAX_ROWS, list({key.column for key in keys}))) if dated else None
    work = ReadingWork.of(reader, files, find_forms(reader, first, table), commas=find_commas(reader, table))
    state = collect(table.read(work), name=BlockNames())
    if state is None or not state.rows:
        raise InvalidData(f"{table.name} has no rows.")
    about = {"method": type(quantifier).__name__, "saved": facts.get("saved", "")}
    if not isinstance(model, Quantifier):
        about = {"folder": str(model)} | about
    reading = reading_of(state, quantifier, table.name)
    return estimate_shares(quantifier, reading, keys=keys, **asdict(estimation), source=table.name, model=about)
