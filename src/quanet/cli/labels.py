"""Read labelled rows, and unify or report variants of labels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quanet.cli.console import note, warn

if TYPE_CHECKING:
    from quanet.data.instances import InputColumns
    from quanet.data.periods import Key
    from quanet.data.streams import TableSource
    from quanet.workflows.labelled import Labelled, LabelledPool


def settle_labels(
    names: Sequence[Any], *, normalize: bool, known: Iterable[Any] = (), given: Mapping[str, str] | None = None
) -> list[Any]:
    """Labels with one spelling for all variants if `normalize`; otherwise a warning names the variants.

    Parameters
    ----------
    names : labels as they were read; None if missing.
    normalize : True to merge variants.
    known : classes of a model; their spelling is used.
    given : names given with --names, by label: they are replaced by the labels.
    """
    from quanet.data.class_names import as_labels_written
    from quanet.data.columns import describe_variants, label_variants, spellings

    classes = [*known, *(given or {}).values()]
    everything = [*names, *classes]
    if not normalize:
        variants = describe_variants(everything)
        if variants:
            warn(f"{variants} If so, use --normalize-labels.")
        return as_labels_written(names, given or {})
    spelling = spellings(names, classes)
    for group in label_variants(everything):
        used = spelling.get(group[0], group[0])
        note(f"Labels merged into {used!r}: {', '.join(repr(one) for one in group if one != used)}")
    return as_labels_written((spelling.get(name, name) for name in names), given or {})


def labelled_pools(
    train: "TableSource",
    test: "TableSource",
    columns: "tuple[InputColumns, str, str]",
    key: "Key | None",
    date_format: str | None,
    *,
    normalize: bool,
    given: Mapping[str, str] | None = None,
) -> "tuple[Labelled, LabelledPool]":
    """The labelled instances of the training file and of the test file; `given` as in `settle_labels`."""
    from dataclasses import replace

    from quanet.data.columns import label_name
    from quanet.workflows.labelled import read_labelled, read_pool

    inputs, label, description = columns
    note(description)
    training = read_labelled(train, inputs, label, normalize=normalize, given=given)
    pool = read_pool(test, inputs, label, key=key, form=date_format)
    names = settle_labels(pool.names, normalize=normalize, known=map(label_name, training.counts), given=given)
    for source, skipped in ((train, training.skipped), (test, pool.skipped)):
        for reason, number in skipped.items():
            note(f"{source.name}: {number:,} rows skipped ({reason})")
    return training, replace(pool, names=names)
