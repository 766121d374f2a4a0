"""Labelled tables: which columns hold instances and labels, and the labelled instances in them."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quanet.arrays import LabelArray
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.data.columns import (
    FoundColumn,
    UnclearColumn,
    as_labels,
    as_labels_written,
    check_columns,
    describe_variants,
    find_label,
    find_text,
    label_name,
    label_names,
    label_variants,
    normalize_labels,
    numeric_columns,
    spellings,
)
from quanet.data.duplicates import find_distinct
from quanet.data.instances import InputColumns, posterior_columns
from quanet.data.periods import Groups, Key
from quanet.data.streams import TableSource
from quanet.errors import Detected, InvalidData, QuanetWarning
from quanet.simplex import classes_of

MOST_CLASSES = 200  # a column with more different values hardly contains labels


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPool:
    """Labelled instances.

    Attributes
    ----------
    X : texts, or numbers (n, d).
    names : (n,) labels as text.
    groups : (n,) the group of every instance, or None if it has none; None if there are no groups.
    skipped : rows skipped, by reason.
    """

    X: Any
    names: list[str]
    groups: list[str | None] | None
    skipped: dict[str, int]


def choose_columns(
    source: TableSource,
    text: str | None,
    label: str | None,
    *,
    features: Sequence[str] = (),
    detect: bool = True,
    exclude: Sequence[str] = (),
) -> tuple[InputColumns, str, str]:
    """Columns of instances and labels: the ones named, or the only ones that fit; and a line that reports them.

    Parameters
    ----------
    source : the table.
    text, label, features : names given.
    detect : whether all numeric columns become the instances if no column is text.
    exclude : columns that are neither instances nor labels unless named, such as that of groups.
    """
    check_columns(exclude, source.columns, source.name)
    named = find_label(source, label, besides=[text, *features] if text else features) if label else None
    if features:
        check_columns(features, source.columns, source.name)
        inputs, found = InputColumns(features=tuple(features)), f"features {', '.join(features)}"
    else:
        inputs, found = _find_instances(source, text, named, detect=detect, exclude=exclude)
    named = named or find_label(source, None, besides=[*inputs.columns, *exclude])
    if named.name in inputs.columns:
        raise InvalidData(f"Column {named.name!r} cannot be both input and label. Choose another --label.")
    return inputs, named.name, f"{source.name}: {found}, label {_reported(named)}"


def _find_instances(
    source: TableSource, text: str | None, label: FoundColumn | None, *, detect: bool, exclude: Sequence[str]
) -> tuple[InputColumns, str]:
    exclude = [*exclude, label.name] if label else exclude
    try:
        column = find_text(source, text, besides=exclude)
    except UnclearColumn as error:
        if not detect:
            raise InvalidData(f"{error} If the instances are numbers, name their columns: --features.") from None
        numbers = numeric_columns(source, besides=exclude) if label else []
        if text is not None or not numbers:
            raise
        return InputColumns(features=tuple(numbers)), f"features {', '.join(numbers)} (detected)"
    return InputColumns(column.name), f"text {_reported(column)}"


def _reported(column: FoundColumn) -> str:
    return f"{column.name!r}{' (detected)' if column.guessed else ''}"


def read_pool(
    source: TableSource, inputs: InputColumns, label: str, *, key: Key | None = None, form: str | None = None
) -> LabelledPool:
    """Labelled instances of a source; rows without an instance or a label are skipped and counted.

    Parameters
    ----------
    source : the table.
    inputs, label : columns.
    key, form : the column to group by, if any, and the format of its dates.
    """
    groups = Groups([key], form=form) if key else None
    parts: list[Any] = []
    names: list[str] = []
    owners: list[Any] = []
    skipped: Counter[str] = Counter()
    for table in source.chunks([*inputs.columns, label, *([key.column] if key else [])]):
        found, there = inputs.of(table, source)
        cells = label_names(table.loc[there, label], source)
        named = np.array([bool(cell) for cell in cells], dtype=bool)
        skipped[inputs.lacking] += int((~there).sum())
        skipped["no label"] += int((~named).sum())
        names += [cell for cell in cells if cell]
        if groups is not None:
            owners.append(groups.codes(table, source)[there][named])
        parts += [one for one, kept in zip(found, named, strict=True) if kept] if inputs.text else [found[named]]
    skipped_rows = {reason: number for reason, number in skipped.items() if number}
    if not names:
        why = ", ".join(f"{reason}: {number:,}" for reason, number in skipped_rows.items())
        raise InvalidData(f"{source.name}: none of the {source.rows:,} rows can be used ({why}).")
    by_row: list[str | None] | None = None
    if groups is not None:
        group_names = [*(values[0] for values in groups.found), None]  # the last is that of code -1
        by_row = [group_names[place] for place in np.concatenate(owners).tolist()]
    return LabelledPool(parts if inputs.text else np.concatenate(parts), names, by_row, skipped_rows)


def labels_in(reading: GroupedInputs) -> tuple[list[str], list[str | None] | None]:
    """Labels and groups of every instance, if the first key was the label column and the second the group, if any."""
    names = [label_name(values[0]) for values in reading.groups]
    grouped = [values[1] for values in reading.groups] if len(reading.groups[0]) > 1 else None
    codes = reading.codes.tolist()
    return [names[code] for code in codes], None if grouped is None else [grouped[code] for code in codes]


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Labelled instances to train on.

    Attributes
    ----------
    X, y : instances and labels (n,).
    counts : instances by class.
    skipped : rows skipped, by reason.
    duplicates : instances that are copies of an earlier one (`quanet.data.duplicates`).
    conflicts : instances whose copies have different labels.
    groups : (n,) the group of every instance, None for those without one; None if no groups were named.
    """

    X: Any
    y: LabelArray
    counts: dict[Any, int]
    skipped: dict[str, int]
    duplicates: int = 0
    conflicts: int = 0
    groups: list[str | None] | None = None


def read_labelled(
    source: TableSource,
    inputs: InputColumns,
    label: str,
    *,
    normalize: bool = False,
    groups: Key | None = None,
    form: str | None = None,
    given: Mapping[str, str] | None = None,
) -> Labelled:
    """All labelled instances of a source, to train on; rows without an instance or a label are skipped and counted.

    Parameters
    ----------
    source : the table.
    inputs, label : columns.
    normalize : whether variants of a label become one (`normalize_labels`).
    groups, form : the column of groups that are left out to learn the drift scale, and the format of its dates.
    given : names of classes by label (`parse_names`); the file may contain both.
    """
    pool = read_pool(source, inputs, label, key=groups, form=form)
    names = normalize_labels(pool.names, known=(given or {}).values()).tolist() if normalize else pool.names
    y = as_labels(as_labels_written(names, given or {}))
    counts = dict(sorted(Counter(y.tolist()).items()))
    _check(counts, f"{source.name}: column {label!r}")
    return Labelled(pool.X, y, counts, pool.skipped, *_copies(pool.X, y), pool.groups)


def _copies(X: Any, y: LabelArray) -> tuple[int, int]:
    """Instances that are copies of an earlier one, and distinct instances with several labels."""
    distinct = find_distinct(X)
    if distinct is None:
        return 0, 0
    codes = np.unique(y, return_inverse=True)[1].ravel()
    pairs = np.unique(np.column_stack([distinct.owner, codes]), axis=0)[:, 0]
    return distinct.copies, int((np.bincount(pairs) > 1).sum())


def order_posteriors(data: Labelled, inputs: InputColumns) -> tuple[Labelled, InputColumns]:
    """Posterior columns, which are named after the classes, in the order of the classes; then all other columns."""
    import pandas as pd

    classes = classes_of(data.y)
    posteriors, others = posterior_columns(pd.DataFrame(data.X, columns=pd.Index(inputs.features)), classes)
    names = [label_name(label) for label in classes.tolist()]
    rest = [name for name in inputs.features if name not in names]
    return replace(data, X=np.hstack([posteriors, others])), InputColumns(features=(*names, *rest))


def _check(counts: dict[Any, int], where: str) -> None:
    if len(counts) < 2:
        only = next(iter(counts))
        raise InvalidData(f"{where} contains a single class, {only!r}. Add rows of at least one other class.")
    if len(counts) > MOST_CLASSES:
        raise InvalidData(
            f"{where} contains {len(counts):,} different labels in {sum(counts.values()):,} rows. "
            "Choose the label column with --label."
        )


def settle_labels(
    names: Sequence[Any], *, normalize: bool, known: Iterable[Any] = (), given: Mapping[str, str] | None = None
) -> list[Any]:
    """Labels with one spelling for all variants if `normalize`; otherwise a warning names the variants.

    Parameters
    ----------
    names : labels as they were read; None if missing.
    normalize : True to merge variants.
    known : classes of a model; their spelling is used.
    given : names of classes (`parse_names`): they are replaced by the labels.
    """
    classes = [*known, *(given or {}).values()]
    everything = [*names, *classes]
    if not normalize:
        variants = describe_variants(everything)
        if variants:
            warnings.warn(f"{variants} If so, use --normalize-labels.", QuanetWarning, stacklevel=2)
        return as_labels_written(names, given or {})
    spelling = spellings(names, classes)
    for group in label_variants(everything):
        used = spelling.get(group[0], group[0])
        others = ", ".join(repr(one) for one in group if one != used)
        warnings.warn(Detected(f"Labels merged into {used!r}: {others}"), stacklevel=2)
    return as_labels_written((spelling.get(name, name) for name in names), given or {})
