"""Merge saved states, so that what was read once need not be read again: the answer of `quanet merge`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quanet.corpus.arrow_file import from_bytes, load_state
from quanet.corpus.state import Accumulator, State, StateHeader, distinct, regroup
from quanet.data.file_names import STATE, shown_name, split_address
from quanet.data.periods import Key
from quanet.errors import InvalidData


@dataclass(frozen=True, slots=True, eq=False)
class StateFile:
    """What a file with a state contains.

    Attributes
    ----------
    name : of the file.
    header : model, groups and weights.
    partitions : ids of the partitions.
    rows, instances, groups : their numbers; rows include those skipped.
    repeated : whether another file contains all its partitions, so that it adds nothing.
    """

    name: str
    header: StateHeader
    partitions: frozenset[str]
    rows: int
    instances: int
    groups: int
    repeated: bool = False

    @classmethod
    def of(cls, name: str, state: State) -> "StateFile":
        """The facts of a state."""
        return cls(name, state.header, state.partitions, state.rows, state.instances, len(state.groups))


@dataclass(frozen=True, slots=True, eq=False)
class MergedStates:
    """A merged state, and the files it comes from, in the order given."""

    state: State
    files: tuple[StateFile, ...]


def is_state(file: str) -> bool:
    """Whether a file is a state rather than a table, by its ending.

    Examples
    --------
    >>> is_state("week.arrow"), is_state("week.parquet")
    (True, False)
    """
    return Path(file).suffix.lower() == STATE


def merge_states(files: Sequence[str], keys: Sequence[Key] | None = None) -> MergedStates:
    """Merge the states in files. The order does not matter, and a file that occurs again adds nothing.

    Raises `InvalidData` if they come from different models, groups or weights, or share only a part of their rows.

    Parameters
    ----------
    files : names.
    keys : what to group by; None if all states are grouped alike.
    """
    if not files:
        raise InvalidData("There are no states to merge. Write one with quanet predict --save-state FILE.arrow.")
    # Their rows are loaded again, one by one: all of them together may not fit into memory.
    facts = [StateFile.of(file, _load(file, keys)) for file in files]
    for one in facts[1:]:
        facts[0].header.check(one.header, shown_name(one.name))
    try:
        different = distinct(facts)
    except InvalidData as error:
        names = ", ".join(map(shown_name, files[:3]))
        raise InvalidData(f"{names}{' and others' if len(files) > 3 else ''}: {error}") from None
    merged = Accumulator()
    for one in different:
        merged.add(_load(one.name, keys))
    state = merged.state()
    assert state is not None
    again = [one not in different for one in facts]
    return MergedStates(
        state, tuple(replace(one, repeated=is_again) for one, is_again in zip(facts, again, strict=True))
    )


def _load(file: str, keys: Sequence[Key] | None) -> State:
    path, _ = split_address(file)
    name = shown_name(file)
    if isinstance(path, Path):
        state = load_state(path)
    else:
        with path.open() as stored:
            state = from_bytes(stored.read(), name)
    return state if keys is None else regroup(state, keys, name)


def check_belongs(state: State, model: str, weight: str | None, name: str) -> None:
    """Raise `InvalidData` unless a state was read with this model (its digest) and this column of weights."""
    if state.header.model != model:
        raise InvalidData(f"{name} was read with another model. Use that model, or read its data again.")
    if state.header.weight != (weight or ""):
        weighted = f"is weighted by {state.header.weight!r}" if state.header.weight else "has no weights"
        raise InvalidData(f"{name} {weighted}. Use the same --weight, or read its data again.")
