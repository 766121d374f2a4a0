"""Files and saved states as groups of instances, in bounded memory: what `predict`, `monitor` and others estimate."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from quanet.base import Quantifier
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.model_inputs import find_inputs
from quanet.corpus.reading import EngineChoice, read_state
from quanet.corpus.state import State
from quanet.corpus.state_files import check_belongs, is_state, merge_states
from quanet.data.file_names import resolve, shown_name
from quanet.data.instances import InputColumns
from quanet.data.periods import Key
from quanet.data.settings import FileColumns, Reading
from quanet.data.streams import TableSource, partitions_of
from quanet.errors import Detected, InvalidSetting


@dataclass(frozen=True, slots=True, eq=False)
class GroupFiles:
    """Files to read by group.

    Attributes
    ----------
    reader : reads rows with the model.
    source : the tables; None if all files are saved states.
    states : names of the saved states.
    """

    reader: BatchReader
    source: TableSource | None
    states: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name used in messages and answers."""
        names = [] if self.source is None else [self.source.name]
        names += [shown_name(state) for state in self.states]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more files"

    @property
    def bad_files(self) -> dict[str, str]:
        """Files that were skipped, with the reason."""
        return {} if self.source is None else self.source.bad_files

    def tables(self, option: str) -> TableSource:
        """The tables, for an option that needs every row. Raises if a saved state is among the files."""
        if self.states or self.source is None:
            raise InvalidSetting(f"{option} needs every row; saved states do not contain them. Pass the data files.")
        return self.source

    def state(
        self, *, engine: EngineChoice | None = None, follow: Callable[[TableSource, int, int], None] | None = None
    ) -> State:
        """The state of all rows; tables that the saved states contain are not read again.

        Parameters
        ----------
        engine : which processes read the tables; None: this one.
        follow : called with the tables, and the bytes and rows read so far.
        """
        found, source = [], self.source
        if self.states:
            saved = merge_states(self.states, self.reader.keys).state
            check_belongs(saved, self.reader.model, self.reader.weight, self.states[0])
            found, source = [saved], None if source is None else _unread(source, saved)
        if source is not None:
            source.check(self.reader.columns)
            progress = None if follow is None else partial(follow, source)
            state = read_state(self.reader, source, engine=engine, follow=progress)
            found.append(replace(state, partitions=frozenset(one.id for one in partitions_of(source))))
            self.bad_files.update(source.bad_files)
        return State.merge(found)


def open_files(
    quantifier: Quantifier,
    facts: dict[str, Any],
    files: Sequence[str],
    reading: FileColumns,
    *,
    keys: Sequence[Key] | None = None,
    cluster: str | None = None,
    skip_bad: bool = False,
) -> GroupFiles:
    """Open files and saved states, and find the columns to read.

    Parameters
    ----------
    quantifier, facts : the model, and what is saved with it (`load_model`).
    files : tables, and states (.arrow).
    reading : what is read, and how.
    keys : columns to group by; None for those of `reading`, a `Reading`.
    cluster : a column of clusters, if wanted.
    skip_bad : whether files that cannot be read are skipped.
    """
    states = tuple(resolve([file for file in files if is_state(file)]))
    tables = [file for file in files if not is_state(file)]
    source, inputs, label = None, InputColumns(), None
    if keys is None:
        keys = reading.keys if isinstance(reading, Reading) else ()
    if tables or not files:
        source = TableSource(tables, **reading.table_options, skip_bad=skip_bad)
        others = [*(key.column for key in keys), *(name for name in (reading.weight, cluster) if name)]
        source.check(others)
        inputs = find_inputs(source, facts, reading.text, reading.features, exclude=others)
        label = facts.get("label") if facts.get("label") in source.columns else None
    reader = BatchReader(
        quantifier,
        inputs,
        keys=keys,
        form=reading.date_format,
        weight=reading.weight,
        label=label,
        model=facts["digest"],
        cluster=cluster,
    )
    return GroupFiles(reader, source, states)


def _unread(source: TableSource, saved: State) -> TableSource | None:
    """The files that a state does not contain; None if it contains all."""
    unknown = {one.file for one in partitions_of(source) if one.id not in saved.partitions}
    files = [file for file in source.files if file in unknown]
    if len(files) < len(source.files):
        known = len(source.files) - len(files)
        message = f"Not read again: {known:,} of {len(source.files):,} files, which the state contains."
        warnings.warn(Detected(message), stacklevel=3)
    return source.with_files(files) if files else None
