"""Load a model folder, and read what the model needs from a file."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from quanet.cli.console import note, progress
from quanet.wording import many

if TYPE_CHECKING:
    from quanet.base import Quantifier
    from quanet.corpus.group_files import GroupFiles
    from quanet.corpus.grouped_inputs import GroupedInputs
    from quanet.corpus.reading import EngineChoice
    from quanet.data.instances import InputColumns
    from quanet.data.periods import Key
    from quanet.data.settings import FileColumns, Naming
    from quanet.data.streams import TableSource


def load_model(folder: Path, naming: "Naming") -> tuple["Quantifier", dict[str, Any]]:
    """The quantifier in a model folder, and the facts saved with it; see `quanet.corpus.model_inputs.load_model`.

    An unknown label in --names is a usage error.
    """
    from quanet.corpus import model_inputs
    from quanet.errors import InvalidSetting

    try:
        return model_inputs.load_model(folder, naming.by_label)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--names") from None


def read_files(
    data: "GroupFiles",
    *,
    missing: str = "no group",
    engine: "EngineChoice | None" = None,
    save: Path | None = None,
) -> "GroupedInputs":
    """The instances of files by group, with a note on how many rows there are.

    Parameters
    ----------
    data : the files.
    missing : what the note calls rows without a group.
    engine : which processes read the tables; None: this one.
    save : where to save the state.
    """
    from quanet.corpus.grouped_inputs import check_usable, reading_of
    from quanet.corpus.state_files import save_state
    from quanet.corpus.workers import return_memory

    size = data.source.size if data.source is not None and not data.states else None
    with progress(f"Reading {data.name}", size) as update:
        state = data.state(engine=engine, follow=_show_rows(update))
    written, rows = 0, state.rows
    if save is not None:
        check_usable(state, data.name)
        state = state.in_order()  # so that there is no second copy while it is written
        return_memory()
        written = save_state(state, save)
        return_memory()
    reading = reading_of(state, data.reader.quantifier, data.name)
    note_rows(reading, rows, missing=missing)
    if save is not None:
        note(f"State: {save} ({written / 1e6:,.1f} MB)")
    return reading


def _show_rows(update: Callable[..., None]) -> "Callable[[TableSource, int, int], None]":
    """What moves a progress bar, with the rows and their rate since it started."""
    started = time.monotonic()
    first: int | None = None

    def follow(source: "TableSource", done: int, rows: int) -> None:
        nonlocal first
        first = rows if first is None else first
        rate = (rows - first) / max(time.monotonic() - started, 0.1)
        update(done, f"Reading {source.name}: {rows:,} rows, {rate:,.0f} per second", of=source.size)

    return follow


def read_grouped(
    quantifier: "Quantifier",
    source: "TableSource",
    inputs: "InputColumns",
    settings: "FileColumns",
    *,
    keys: "Sequence[Key] | None" = None,
    missing: str = "no group",
    label: str | None = None,
    cluster: str | None = None,
    named: bool = False,
) -> "GroupedInputs":
    """The rows of a file as the model reads them, by group, with a note on how many there are.

    Parameters
    ----------
    quantifier, source, inputs : as in `read_source`.
    settings : what is read, and how.
    keys : columns to group by; None for those of `settings`.
    missing : what the note calls rows without a group. Groups are counted unless they are labels ("no label").
    label, cluster : columns of labels to count, and of clusters, if wanted.
    named : whether the note begins with the name of the file.
    """
    from quanet.corpus.reading import read_source
    from quanet.data.settings import Reading

    if keys is None:
        keys = settings.keys if isinstance(settings, Reading) else ()
    others = [name for name in (settings.weight, cluster) if name]
    source.check([*inputs.columns, *(key.column for key in keys), *others])
    with progress(f"Reading {source.name}", source.size) as update:
        source.follow = update
        reading = read_source(
            quantifier,
            source,
            inputs,
            keys=keys,
            form=settings.date_format,
            weight=settings.weight,
            label=label,
            cluster=cluster,
        )
    note_rows(reading, source.rows, f"{source.name}: " if named else "", missing=missing)
    return reading


def note_rows(reading: "GroupedInputs", rows: int, name: str = "", *, missing: str = "no group") -> None:
    """Print how many of the rows are used, and why others are not."""
    reasons = {"no group": missing}
    skipped = ", ".join(f"{number:,} skipped ({reasons.get(why, why)})" for why, number in reading.skipped.items())
    groups = f" in {many(len(reading.groups), 'group')}" if reading.groups[0] and missing != "no label" else ""
    note(f"{name}{reading.total:,} of {rows:,} rows{groups}{': ' + skipped if skipped else ''}")
    if reading.without_weight:
        note(f"{reading.without_weight:,} rows have weight 0 in column {reading.weight!r} and do not count.")
