"""Every row of a file with its adjusted posteriors: `quanet predict --items`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.data.columns import label_name, nearest_first
from quanet.data.row_writers import write_chunks
from quanet.data.table_rows import STDIN
from quanet.errors import InvalidSetting
from quanet.uncertainty.adjusted_posteriors import AdjustedPosteriors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pandas as pd

    from quanet.base import Quantifier
    from quanet.data.streams import TableSource
    from quanet.workflows.predict import Shares
    from quanet.workflows.reading import GroupedInputs

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
    quantifier: Quantifier,
    source: TableSource,
    reading: GroupedInputs,
    shares: Shares,
    *,
    keep: Sequence[str] = (),
) -> int:
    """Write each row of a source: number, columns to keep, group, most probable class, posteriors, why it was skipped.

    Posteriors are adjusted to the estimated shares of the row's group (`AdjustedPosteriors`): their mean over a group
    is the estimate. The source is read a second time, chunk by chunk; the classifier does not run again.
    """
    adjusted = AdjustedPosteriors(
        quantifier, reading.instances.values, reading.codes.astype(np.intp), shares.interval.estimate, reading.weights
    )
    return write_chunks(path, _chunks(adjusted, source, reading, shares, keep))


def _chunks(
    adjusted: AdjustedPosteriors,
    source: TableSource,
    reading: GroupedInputs,
    shares: Shares,
    keep: Sequence[str],
) -> Iterator[pd.DataFrame]:
    import pandas as pd

    start = 0
    names = np.array([label_name(one) for one in shares.classes.tolist()], dtype=object)
    columns = list(dict.fromkeys(keep)) or source.columns[:1]
    for table in source.chunks(columns):
        rows = np.asarray(table.index)
        left_out = reading.left_out[rows]
        used = left_out == 0
        stop = start + int(used.sum())
        posteriors = adjusted[start:stop]
        codes = reading.codes[start:stop]
        made: dict[str, Any] = {"row": rows + 1}
        made |= {name: [None if cell is None else label_name(cell) for cell in table[name]] for name in keep}
        for at, name in enumerate(shares.key_names):
            values = np.array([group[at] for group in shares.groups], dtype=object)
            made[name] = _spread(values[codes], used)
        made["class"] = _spread(names[posteriors.argmax(axis=1)], used)
        for c, name in enumerate(_posterior_names(shares.classes)):
            made[name] = _spread(posteriors[:, c], used)
        made["skipped"] = [reading.reasons[code] or None for code in left_out.tolist()]
        start = stop
        yield pd.DataFrame(made)


def _posterior_names(classes: Any) -> list[str]:
    return [f"p_{label_name(one)}" for one in classes.tolist()]


def _spread(values: Any, used: Any) -> Any:
    """Values of the rows used, with None or NaN in between."""
    full = np.full(len(used), np.nan if values.dtype.kind == "f" else None, dtype=values.dtype)
    full[used] = values
    return full
