"""Every row of a file with its adjusted posteriors: `quanet predict --items`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.corpus.reading import in_threads
from quanet.data.columns import cell_name, label_name, nearest_first
from quanet.data.file_names import STDIN
from quanet.data.table_files import write_chunks
from quanet.errors import InvalidSetting
from quanet.uncertainty.adjusted_posteriors import AdjustedPosteriors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pandas as pd

    from quanet.corpus.batch_reader import BatchReader
    from quanet.corpus.grouped_inputs import GroupedInputs
    from quanet.data.streams import TableSource
    from quanet.workflows.predict import Shares

OWN = ("row", "class", "skipped")  # columns that every file of items has


def check_items(source: TableSource, keep: Sequence[str], groups: Sequence[str], classes: Any) -> None:
    """Raise before any work if rows cannot be written: the source must be read twice, and columns must differ."""
    if STDIN in source.files:
        raise InvalidSetting("--items reads the rows twice, which standard input does not allow. Save them to a file.")
    source.check(keep)
    taken = [*OWN, *groups, *_posterior_names(classes)]
    for name in keep:
        if name in taken:
            near = nearest_first(name, taken)[0]
            raise InvalidSetting(f"Column {name!r} cannot be kept: --items writes a column {near!r} of its own.")


def write_items(
    path: Path,
    reader: BatchReader,
    source: TableSource,
    reading: GroupedInputs,
    shares: Shares,
    *,
    keep: Sequence[str] = (),
) -> int:
    """Write each row of a source: number, columns to keep, group, most probable class, posteriors, why it was skipped.

    Posteriors are adjusted to the estimated shares of the row's group (`AdjustedPosteriors`): their mean over a group
    is the estimate. The source is read and classified a second time, chunk by chunk, so that memory is bounded.
    """
    codes, weights = np.asarray(reading.codes, dtype=np.intp), reading.row_weights
    estimate = shares.interval.estimate
    adjusted = AdjustedPosteriors(reader.quantifier, reading.instances.values, codes, estimate, weights)
    return write_chunks(path, _chunks(adjusted, reader, source, shares, keep))


def _chunks(
    adjusted: AdjustedPosteriors,
    reader: BatchReader,
    source: TableSource,
    shares: Shares,
    keep: Sequence[str],
) -> Iterator[pd.DataFrame]:
    import pandas as pd

    names = np.array([label_name(one) for one in shares.classes.tolist()], dtype=object)
    places = {group: at for at, group in enumerate(shares.groups)}
    reasons = [None, reader.inputs.lacking, "no group"]
    prepared = ((part, reader.prepare(part, source)) for part in source.chunks([*reader.columns, *keep]))
    for table, read in in_threads(lambda both: (both[0], reader.read(both[1])), prepared):
        used = read.left_out == 0
        codes = np.array([places[group] for group in read.groups], dtype=np.intp)[read.codes]
        posteriors = adjusted.of(read.inputs.values, codes) if len(codes) else np.empty((0, len(names)))
        made: dict[str, Any] = {"row": np.asarray(table.index) + 1}
        made |= {name: [None if cell is None else cell_name(cell) for cell in table[name]] for name in keep}
        for at, name in enumerate(shares.key_names):
            values = np.array([group[at] for group in shares.groups], dtype=object)
            made[name] = _spread(values[codes], used)
        made["class"] = _spread(names[posteriors.argmax(axis=1)], used)
        for c, name in enumerate(_posterior_names(shares.classes)):
            made[name] = _spread(posteriors[:, c], used)
        made["skipped"] = [reasons[code] for code in read.left_out.tolist()]
        yield pd.DataFrame(made)


def _posterior_names(classes: Any) -> list[str]:
    return [f"p_{label_name(one)}" for one in classes.tolist()]


def _spread(values: Any, used: Any) -> Any:
    """Values of the rows used, with None or NaN in between."""
    full = np.full(len(used), np.nan if values.dtype.kind == "f" else None, dtype=values.dtype)
    full[used] = values
    return full
