"""Labelled instances as they stand in a table: what they are, how their labels are called, which group they are in."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from quanet.answers.groups import Groups
from quanet.answers.reading import Inputs, Reading
from quanet.answers.shares import Key
from quanet.data.columns import UnclearColumn, find_label, find_text, names_of, numbers_in
from quanet.data.streams import Source
from quanet.errors import InvalidData


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Labelled instances.

    Attributes
    ----------
    X : texts, or numbers (n, d).
    names : (n,) labels as they are called.
    groups : (n,) the group of every instance, None for one that has none; None where nothing is grouped.
    skipped : rows left out, by the reason.
    """

    X: Any
    names: list[str]
    groups: list[str | None] | None
    skipped: dict[str, int]


def choose_columns(source: Source, text: str | None, label: str | None) -> tuple[Inputs, str, str]:
    """Columns of instances and of labels, those named or the only ones that can be it; and a line that says which.

    Where no column is text, all other columns of numbers are the instances.
    """
    named = find_label(source, label, besides=[text] if text else []) if label else None
    try:
        taken = find_text(source, text, besides=[named.name] if named else [])
        inputs, said = Inputs(taken.name), f"text {taken.name!r}{' (guessed)' if taken.guessed else ''}"
        named = named or find_label(source, None, besides=[taken.name])
    except UnclearColumn:
        numbers = numbers_in(source, besides=[named.name]) if named else []
        if text is not None or not numbers:
            raise
        inputs, said = Inputs(features=tuple(numbers)), f"features {', '.join(numbers)} (guessed)"
    assert named is not None
    if named.name in inputs.columns:
        raise InvalidData(f"column {named.name!r} cannot be both what is learnt from and the label.")
    return inputs, named.name, f"{source.name}: {said}, label {named.name!r}{' (guessed)' if named.guessed else ''}"


def read_pool(source: Source, inputs: Inputs, label: str, *, key: Key | None = None, form: str | None = None) -> Pool:
    """Labelled instances of a source; rows without an instance or a label are left out and counted.

    Parameters
    ----------
    source : of the rows.
    inputs, label : columns.
    key, form : what instances are grouped by, if anything, and how dates are written.
    """
    groups = Groups([key] if key else [], form=form)
    parts: list[Any] = []
    names: list[str] = []
    owners: list[Any] = []
    skipped: Counter[str] = Counter()
    for table in source.chunks([*inputs.columns, label, *([key.column] if key else [])]):
        found, there = inputs.of(table, source)
        owner = groups.codes(table, source)[there]
        cells = names_of(table.loc[there, label], source)
        named = np.array([bool(cell) for cell in cells], dtype=bool)
        skipped[inputs.lacking] += int((~there).sum())
        skipped["no label"] += int((~named).sum())
        names += [cell for cell in cells if cell]
        owners.append(owner[named])
        parts += [one for one, kept in zip(found, named, strict=True) if kept] if inputs.text else [found[named]]
    left_out = {reason: number for reason, number in skipped.items() if number}
    if not names:
        why = ", ".join(f"{reason}: {number:,}" for reason, number in left_out.items())
        raise InvalidData(f"{source.name}: none of its {source.rows:,} rows can be used ({why}).")
    called = [*(values[0] for values in groups.found), None] if key else []  # the last is that of -1
    by_row = [called[place] for place in np.concatenate(owners).tolist()] if key else None
    return Pool(parts if inputs.text else np.concatenate(parts), names, by_row, left_out)


def labels_in(reading: Reading) -> tuple[list[str], list[str | None] | None]:
    """Labels and groups, row by row, of a reading whose first key was the column of labels.

    The second key, if there is one, is what instances are grouped by.
    """
    names = [values[0] for values in reading.groups]
    grouped = [values[1] for values in reading.groups] if len(reading.groups[0]) > 1 else None
    codes = reading.codes.tolist()
    return [names[code] for code in codes], None if grouped is None else [grouped[code] for code in codes]
