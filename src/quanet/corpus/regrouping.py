"""A state by fewer columns or longer periods than it was read with."""

from collections.abc import Sequence
from dataclasses import replace

from quanet.corpus.state import State
from quanet.data.grouping import EMPTY
from quanet.data.periods import Key, first_day, period_of
from quanet.errors import InvalidData

# Periods that consist of whole shorter ones.
LONGER = {"day": ("week", "month", "quarter", "year"), "month": ("quarter", "year"), "quarter": ("year",)}


def regroup(state: State, keys: Sequence[Key], name: str = "The state") -> State:
    """The same instances by other keys: some of those of the state, or longer periods.

    Parameters
    ----------
    state : grouped by these columns, perhaps by more.
    keys : what to group by; without keys, all instances are one group.
    name : of the state, for messages.
    """
    places = [_place(state.header.keys, key, name) for key in keys]
    same = [key.period == state.header.keys[at].period for key, at in zip(keys, places, strict=True)]
    if all(same) and places == list(range(len(state.header.keys))):
        return replace(state, header=replace(state.header, keys=tuple(keys)))
    found = {
        group: tuple(_value(group[at], key) for key, at in zip(keys, places, strict=True)) for group in state.groups
    }
    numbers = {group: at for at, group in enumerate(sorted(set(found.values())))}
    regrouped = state.renumbered({group: numbers[values] for group, values in found.items()})
    return replace(regrouped, header=replace(state.header, keys=tuple(keys)), groups=tuple(numbers)).bounded()


def _place(have: Sequence[Key], wanted: Key, name: str) -> int:
    """The position of the key that determines another one."""
    exact = [at for at, key in enumerate(have) if (key.column, key.period) == (wanted.column, wanted.period)]
    longer = [
        at for at, key in enumerate(have) if key.column == wanted.column and wanted.period in LONGER.get(key.period, ())
    ]
    if not exact + longer:
        known = ", ".join(f"{key.column}:{key.period}" if key.period else key.column for key in have) or "nothing"
        raise InvalidData(
            f"{name} is grouped by {known}, which does not determine {wanted}. Group by these, or read the data again."
        )
    return (exact + longer)[0]


def _value(value: str, key: Key) -> str:
    """The value of a key for a group with the value of the key that determines it."""
    return value if value == EMPTY or not key.period else period_of(first_day(value), key.period)
