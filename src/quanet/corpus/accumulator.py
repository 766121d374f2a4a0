"""Merge states that arrive one by one."""

from collections.abc import Sequence

import numpy as np

from quanet.corpus.kept_rows import KeptRows
from quanet.corpus.state import State


class Accumulator:
    """Merges states that arrive one by one: many small ones together, because each merge costs a sort.

    Parameters
    ----------
    start : a state to continue, such as a checkpoint.
    """

    MOST_PENDING = 2**19  # rows
    GROUP_ROWS = 2**3  # rows that need as much memory as a group
    MOST_PARTS = 2**6  # with rows that are not merged yet

    def __init__(self, start: State | None = None) -> None:
        self._merged = start
        self._united: tuple[State, list[KeptRows]] | None = None  # whose rows are to be merged
        self._pending: list[State] = []
        self._rows = 0

    def add(self, state: State) -> None:
        """Add a state."""
        self._pending.append(state)
        self._rows += len(state.kept.rows.groups) + len(state.kept.cells.groups) + self.GROUP_ROWS * len(state.groups)
        if self._rows > self.MOST_PENDING:
            self._unite()

    def state(self, *, in_order: bool = False) -> State | None:
        """The state of everything added so far, in order if wanted; None if nothing was added."""
        self._unite()
        self._merge_rows()
        if in_order and self._merged is not None:
            self._merged = self._merged.in_order()
        return self._merged

    def _unite(self) -> None:
        """Unite what is pending with the rest. Rows of groups below the cap wait: merging them copies all others."""
        if not self._pending:
            return
        if self._united is not None and not _comes_first(self._united[0], self._pending):
            self._merge_rows()  # its groups would get other numbers
        base, parts = (self._merged, []) if self._united is None else self._united
        united, more = State.united([*([] if base is None else [base]), *self._pending])
        size = len(united.groups)
        more += [part.renumbered(np.arange(len(part.levels)), size) for part in parts[1:]]
        self._united = united, more
        self._merged, self._pending, self._rows = None, [], 0  # to free their memory before rows need more
        if len(more) > self.MOST_PARTS or KeptRows.above(more, united.most_rows).any():
            self._merge_rows()

    def _merge_rows(self) -> None:
        if self._united is not None:
            united, parts = self._united
            self._merged, self._united = united.with_rows(parts), None


def _comes_first(state: State, others: Sequence[State]) -> bool:
    """Whether the groups of a state keep their numbers when `State.united` unites it with others."""
    return bool(state.groups) and all(len(state.partitions) >= len(other.partitions) for other in others)
