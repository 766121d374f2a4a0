"""Files and saved states as groups of instances, in bounded memory: what `predict`, `monitor` and others estimate."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.cli.console import note, progress
from quanet.cli.model_folder import find_inputs, note_rows

if TYPE_CHECKING:
    from quanet.base import Quantifier
    from quanet.data.periods import Key
    from quanet.data.streams import TableSource
    from quanet.engines.reading_run import EngineChoice
    from quanet.state.batch_reader import BatchReader
    from quanet.state.grouped_inputs import GroupedInputs
    from quanet.state.state import State


@dataclass(frozen=True, slots=True, eq=False)
class GroupFiles:
    """Files to read by group.

    Attributes
    ----------
    reader : reads rows with the model.
    source : the tables; None if all files are saved states.
    states : names of the saved states.
    """

    reader: "BatchReader"
    source: "TableSource | None"
    states: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name used in messages and answers."""
        from quanet.data.file_names import shown_name

        names = [] if self.source is None else [self.source.name]
        names += [shown_name(state) for state in self.states]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more files"

    @property
    def bad_files(self) -> dict[str, str]:
        """Files that were skipped, with the reason."""
        return {} if self.source is None else self.source.bad_files

    def tables(self, option: str) -> "TableSource":
        """The tables, for an option that needs every row. Raises if a saved state is among the files."""
        from quanet.errors import InvalidSetting

        if self.states or self.source is None:
            raise InvalidSetting(f"{option} needs every row; saved states do not contain them. Pass the data files.")
        return self.source

    def read(
        self, *, missing: str = "no group", engine: "EngineChoice | None" = None, save: Path | None = None
    ) -> "GroupedInputs":
        """The instances by group, with a note on how many rows there are.

        Parameters
        ----------
        missing : what the note calls rows without a group.
        engine : which processes read the tables; None: this one.
        save : where to save the state.
        """
        from quanet.state.arrow_file import save_state
        from quanet.state.state import State
        from quanet.state.state_reading import reading_of
        from quanet.workflows.merge import check_belongs, merge_states

        found, source = [], self.source
        if self.states:
            saved = merge_states(self.states, self.reader.keys).state
            check_belongs(saved, self.reader.model, self.reader.weight, self.states[0])
            found, source = [saved], None if source is None else _unread(source, saved)
        if source is not None:
            found.append(read_tables(self.reader, source, engine))
            self.bad_files.update(source.bad_files)
        state = State.merge(found)
        reading = reading_of(state, self.reader.quantifier, self.name)
        note_rows(reading, state.rows, missing=missing)
        if save is not None:
            size = save_state(state, save)
            note(f"State: {save} ({size / 1e6:,.1f} MB)")
        return reading


def open_files(
    quantifier: "Quantifier",
    facts: dict[str, Any],
    files: Sequence[str],
    keys: "Sequence[Key]",
    *,
    text: str | None = None,
    features: list[str] | None = None,
    weight: str | None = None,
    date_format: str | None = None,
    encoding: str = "auto",
    skip_bad: bool = False,
) -> GroupFiles:
    """Open files and saved states, and find the columns to read.

    Parameters
    ----------
    quantifier, facts : the model, and what is saved with it.
    files : tables, and states (.arrow).
    keys : columns to group by.
    text, features : input columns, if given.
    weight, date_format, encoding, skip_bad : as on the command line.
    """
    from quanet.data.file_names import resolve
    from quanet.data.instances import InputColumns
    from quanet.data.streams import TableSource
    from quanet.state.batch_reader import BatchReader
    from quanet.workflows.merge import is_state

    states = tuple(resolve([file for file in files if is_state(file)]))
    tables = [file for file in files if not is_state(file)]
    source, inputs, label = None, InputColumns(), None
    if tables or not files:
        source = TableSource(tables, encoding=encoding, skip_bad=skip_bad)
        others = [*(key.column for key in keys), *([weight] if weight else [])]
        source.check(others)
        inputs = find_inputs(source, facts, text, features, exclude=others)
        label = facts.get("label") if facts.get("label") in source.columns else None
    reader = BatchReader(
        quantifier, inputs, keys=keys, form=date_format, weight=weight, label=label, model=facts["digest"]
    )
    return GroupFiles(reader, source, states)


def _unread(source: "TableSource", saved: "State") -> "TableSource | None":
    """The files that a state does not contain; None if it contains all."""
    from quanet.data.partitions import partitions_of
    from quanet.data.streams import TableSource

    unknown = {one.file for one in partitions_of(source) if one.id not in saved.partitions}
    files = [file for file in source.files if file in unknown]
    if len(files) < len(source.files):
        known = len(source.files) - len(files)
        note(f"Not read again: {known:,} of {len(source.files):,} files, which the state contains.")
    return TableSource(files, encoding=source.encoding, skip_bad=source.skip_bad) if files else None


def read_tables(reader: "BatchReader", source: "TableSource", engine: "EngineChoice | None" = None) -> "State":
    """The state of all rows of tables, read by an engine or by this process."""
    from quanet.data.partitions import partitions_of
    from quanet.workflows.reading import read_state

    source.check(reader.columns)
    with progress(f"Reading {source.name}", source.size) as update:
        state = read_state(reader, source, engine=engine, follow=_show_rows(update, source.name))
    return replace(state, partitions=frozenset(one.id for one in partitions_of(source)))


def _show_rows(update: Callable[..., None], name: str) -> Callable[[int, int], None]:
    """What moves a progress bar, with the rows and their rate since it started."""
    started = time.monotonic()
    first: int | None = None

    def follow(done: int, rows: int) -> None:
        nonlocal first
        first = rows if first is None else first
        rate = (rows - first) / max(time.monotonic() - started, 0.1)
        update(done, f"Reading {name}: {rows:,} rows, {rate:,.0f} per second")

    return follow
