"""The state of partitions of instances: what estimates, intervals and reports need, in bounded memory.

States can be merged in any order. A partition that occurs twice counts once. The result has the same digits however
instances were divided into partitions, because sums are exact and what is kept follows from the rows alone.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from quanet.arrays import IntArray
from quanet.corpus.fixed_point import Int64, add_by
from quanet.corpus.kept_rows import KeptRows
from quanet.corpus.kept_texts import KeptTexts
from quanet.corpus.layout import Layout
from quanet.data.periods import MAX_GROUPS, Key
from quanet.errors import InvalidData

VERSION = 5  # of the format
MOST_LABELS = 10_000  # different labels that are counted


S = TypeVar("S", bound="HasPartitions")
Groups: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class StateHeader:
    """What states must have in common to be merged.

    Attributes
    ----------
    model : digest of the model.
    keys : columns to group by.
    inputs : input columns.
    weight : the column of weights; "" without.
    layout : of the rows.
    described : number of columns of descriptions; 0 if drift is unknown.
    """

    model: str
    keys: tuple[Key, ...]
    inputs: tuple[str, ...]
    weight: str
    layout: Layout
    described: int

    def check(self, other: "StateHeader", name: str = "") -> None:
        """Raise `InvalidData` if a state with the other header cannot be merged with this one."""
        what = f"{name or 'A state'} cannot be merged: it"
        if other.model != self.model:
            raise InvalidData(f"{what} comes from another model. Read its data with this model again.")
        if [(key.column, key.period) for key in other.keys] != [(key.column, key.period) for key in self.keys]:
            mine, theirs = (", ".join(map(str, one.keys)) or "nothing" for one in (self, other))
            raise InvalidData(f"{what} is grouped by {theirs}, the others by {mine}. Use the same --by.")
        if other.weight != self.weight:
            mine, theirs = (f"column {one.weight!r}" if one.weight else "nothing" for one in (self, other))
            raise InvalidData(f"{what} is weighted by {theirs}, the others by {mine}. Use the same --weight.")
        if self.layout.d and other.layout.d and (other.layout, other.described) != (self.layout, self.described):
            raise InvalidData(f"{what} was made by another version of quanet. Read its data again.")


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Mergeable summary of the rows read so far.

    Attributes
    ----------
    header : the model, groups and weights.
    partitions : ids of the partitions.
    rows : rows read, including those skipped.
    groups : values of the keys, one entry per group.
    kept : rows of the groups.
    sums : (g, e + 1, limbs) of the descriptions of each group and of their squared lengths, times the weights.
    totals : (g, 3, limbs) instances of each group, their weights, and the squares of these.
    texts : some of the texts.
    skipped : rows skipped, by reason.
    labels : rows by label, if a label column was given.
    overlap : number of texts, of those compared with the training texts, and of those found among them.
    """

    header: StateHeader
    partitions: frozenset[str]
    rows: int
    groups: Groups
    kept: KeptRows
    sums: Int64
    totals: Int64
    texts: KeptTexts
    skipped: Counter[str]
    labels: Counter[str]
    overlap: tuple[int, int, int]

    def named(self, partition: str) -> "State":
        """The same state as one partition with this id."""
        return replace(self, partitions=frozenset({partition}))

    @property
    def instances(self) -> int:
        """The number of instances."""
        return self.rows - self.skipped.total()

    @classmethod
    def merge(cls, states: Iterable["State"]) -> "State":
        """Merge states, in any order. Partitions that occur again are ignored.

        Raises `InvalidData` if states have a part of their partitions in common, or do not belong together.
        """
        united, parts = cls.united(states)
        return united.with_rows(parts)

    @classmethod
    def united(cls, states: Iterable["State"]) -> tuple["State", list[KeptRows]]:
        """Merged states, and all their rows, which are not yet merged: they need most of the memory."""
        different = distinct(states)
        if not different:
            raise InvalidData("There are no states to merge.")
        if len(different) == 1:
            return replace(different[0], labels=_frequent(different[0].labels)), [different[0].kept]
        first = max(different, key=lambda state: len(state.groups) > 0)
        for state in different:
            first.header.check(state.header)
        full = [state for state in different if state.groups] or [first]
        groups, places = _united_groups([state.groups for state in full])
        size = len(groups)
        if size > MAX_GROUPS:
            raise InvalidData(
                f"{' and '.join(repr(key.column) for key in first.header.keys)} give more than {MAX_GROUPS:,} groups. "
                "Group by a column with fewer distinct values."
            )
        pairs = list(zip(full, places, strict=True))
        parts = [state.kept.renumbered(at, size) for state, at in pairs]
        united = cls(
            header=full[0].header,
            partitions=frozenset(chain.from_iterable(state.partitions for state in different)),
            rows=sum(state.rows for state in different),
            groups=groups,
            kept=parts[0],
            texts=KeptTexts.merged([state.texts.renumbered(at) for state, at in pairs]),
            sums=_added_at([state.sums for state in full], places, size),
            totals=_added_at([state.totals for state in full], places, size),
            skipped=sum((state.skipped for state in different), Counter()),
            labels=_frequent(sum((state.labels for state in different), Counter())),
            overlap=_added([state.overlap for state in different]),
        )
        return united, parts

    def with_rows(self, parts: Sequence[KeptRows]) -> "State":
        """The same state with the rows of these parts, at most as many as are kept of so many groups."""
        one, cap = len(parts) == 1, self.most_rows
        return replace(self, kept=parts[0].bounded(cap) if one else KeptRows.merged(parts, cap))

    @property
    def most_rows(self) -> int:
        """Rows that are kept of each of so many groups."""
        return self.header.layout.most_rows(len(self.groups))

    def bounded(self) -> "State":
        """The same state with at most as many rows as are kept of so many groups."""
        return self.with_rows([self.kept])

    def renumbered(self, numbers: dict[tuple[str, ...], int]) -> "State":
        """The same state with other numbers of the groups; several groups may get the same number."""
        return self._moved(_places(self.groups, numbers), max(numbers.values(), default=-1) + 1)

    def _moved(self, places: IntArray, size: int) -> "State":
        """The same state with other numbers (g,) of the groups, below `size`."""
        if len(places) == size and np.array_equal(places, np.arange(size)):
            return self
        return replace(
            self,
            kept=self.kept.renumbered(places, size),
            sums=add_by(places, self.sums, size),
            totals=add_by(places, self.totals, size),
            texts=self.texts.renumbered(places),
        )

    def as_one(self) -> "State":
        """The same instances as one group."""
        one = self.renumbered(dict.fromkeys(self.groups, 0))
        header = replace(self.header, keys=())
        return replace(one, header=header, groups=((),)).bounded()

    def in_order(self) -> "State":
        """The same state with sorted groups and rows, so that equal states have equal bytes."""
        groups = tuple(sorted(self.groups))
        state = self.bounded().renumbered({group: at for at, group in enumerate(groups)})
        return replace(
            state,
            groups=groups,
            kept=state.kept.in_order(),
            texts=KeptTexts.merged([state.texts]),
            skipped=Counter(dict(sorted(self.skipped.items()))),
            labels=Counter(dict(sorted(self.labels.items()))),
        )


class HasPartitions(Protocol):
    """A state, or facts about one."""

    @property
    def partitions(self) -> frozenset[str]:
        """Ids of the partitions."""


def distinct(states: Iterable[S]) -> list[S]:
    """The states, without those whose partitions have all occurred."""
    seen: set[str] = set()
    different = []
    # Large ones first, so that a state does not come after its own part.
    for state in sorted(states, key=lambda one: -len(one.partitions)):
        again = len(state.partitions & seen)
        if again and again < len(state.partitions):
            raise InvalidData(
                f"Two states share {again:,} partitions, but neither contains the other, so they cannot be merged. "
                "Merge states of different data, or read the data again."
            )
        if not again:
            seen |= state.partitions
            different.append(state)
    return different


def _united_groups(parts: Sequence[Groups]) -> tuple[Groups, list[IntArray]]:
    """The groups of all parts, and the position of each part's groups among them."""
    different = {id(part): part for part in parts}  # partitions often have the same groups
    if len(different) == 1:
        return parts[0], [np.arange(len(parts[0]))] * len(parts)
    numbers = {group: at for at, group in enumerate(dict.fromkeys(chain.from_iterable(different.values())))}
    places = {name: _places(part, numbers) for name, part in different.items()}
    united = parts[0] if len(parts[0]) == len(numbers) else tuple(numbers)
    return united, [places[id(part)] for part in parts]


def _places(groups: Groups, numbers: dict[tuple[str, ...], int]) -> IntArray:
    return np.fromiter(map(numbers.__getitem__, groups), dtype=np.intp, count=len(groups))


def _added_at(parts: Sequence[Int64], places: Sequence[IntArray], size: int) -> Int64:
    """The sums (size, ...) of arrays whose rows have these places; no two rows of one array have the same."""
    added = np.zeros((size, *parts[0].shape[1:]), dtype=np.int64)
    for part, at in zip(parts, places, strict=True):
        if len(at) == size and (at[1:] > at[:-1]).all():  # all groups in the same order
            added += part
        else:
            added[at] += part
    return added


def _added(numbers: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    texts, compared, found = (sum(column) for column in zip(*numbers, strict=True))
    return texts, compared, found


def _frequent(labels: Counter[str]) -> Counter[str]:
    """At most `MOST_LABELS` labels: a column with more is not a column of labels."""
    if len(labels) <= MOST_LABELS:
        return labels
    return Counter(dict(sorted(labels.items(), key=lambda item: (-item[1], item[0]))[:MOST_LABELS]))
