"""Read labelled rows of two files, with a note on rows that are skipped."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quanet.cli.console import note

if TYPE_CHECKING:
    from quanet.data.instances import InputColumns
    from quanet.data.periods import Key
    from quanet.data.streams import TableSource
    from quanet.workflows.labelled import Labelled, LabelledPool


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
    from quanet.workflows.labelled import read_labelled, read_pool, settle_labels

    inputs, label, description = columns
    note(description)
    training = read_labelled(train, inputs, label, normalize=normalize, given=given)
    pool = read_pool(test, inputs, label, key=key, form=date_format)
    names = settle_labels(pool.names, normalize=normalize, known=map(label_name, training.counts), given=given)
    for source, skipped in ((train, training.skipped), (test, pool.skipped)):
        for reason, number in skipped.items():
            note(f"{source.name}: {number:,} rows skipped ({reason})")
    return training, replace(pool, names=names)
