"""The state of partitions of instances: what estimates, intervals and reports need, in bounded memory.

States can be merged in any order, all at once or as they arrive (`Accumulator`). A partition that occurs twice counts
once. The result has the same digits however instances were divided into partitions, because sums are exact, and what is
kept follows from the rows and texts alone. `regroup` groups a state by fewer columns, or by longer periods.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quanet.arrays import IntArray
from quanet.corpus.fixed_point import Int64, add_by
from quanet.corpus.kept_rows import KeptRows
from quanet.corpus.layout import Layout
from quanet.data.duplicates import Hashes
from quanet.data.grouping import EMPTY
from quanet.data.periods import MAX_GROUPS, Key, first_day, period_of
from quanet.errors import InvalidData

VERSION = 5  # of the format
MOST_TEXTS = 10_000  # kept of all groups
MOST_BYTES = 50_000_000  # in these texts
OF_GROUP = 2  # texts of each group, besides
LONGEST = 2000  # characters kept of a text
MOST_LABELS = 10_000  # different labels that are counted
# Periods that consist of whole shorter ones.
LONGER = {"day": ("week", "month", "quarter", "year"), "month": ("quarter", "year"), "quarter": ("year",)}
S = TypeVar("S", bound="HasPartitions")
Groups: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class KeptTexts:
    """A few texts of each group, and more of all: which ones follows from a hash of the text alone.

    Attributes
    ----------
    hashes : (n,) of the texts; the smallest ones are kept.
    groups : (n,).
    texts : (n,) as UTF-8, an Arrow array of binary values.
    descriptions : (n, e) what each text is about; (n, 0) if unknown.
    """

    hashes: Hashes
    groups: NDArray[np.int32]
    texts: Any
    descriptions: NDArray[np.float16]

    @classmethod
    def of(cls, texts: list[str], hashes: Hashes, groups: NDArray[np.int32], descriptions: Any) -> "KeptTexts":
        """The texts kept of a batch."""
        chosen = _smallest(hashes, groups)
        written = [texts[at][:LONGEST].encode(errors="surrogatepass") for at in chosen.tolist()]
        some = np.asarray(descriptions[chosen], dtype=np.float16)
        return cls(hashes[chosen], groups[chosen], pa.array(written, pa.large_binary()), some).limited()

    @classmethod
    def merged(cls, parts: Sequence["KeptTexts"]) -> "KeptTexts":
        """The texts kept of several parts with the same numbers of groups."""
        hashes, groups = (np.concatenate([getattr(part, name) for part in parts]) for name in ("hashes", "groups"))
        chosen = _smallest(hashes, groups)
        texts = pa.concat_arrays([part.texts for part in parts]).take(chosen)
        pa.default_memory_pool().release_unused()
        descriptions = np.concatenate([part.descriptions for part in parts])[chosen]
        return cls(hashes[chosen], groups[chosen], texts, descriptions).limited()

    def take(self, chosen: IntArray) -> "KeptTexts":
        """Some of the texts."""
        return KeptTexts(self.hashes[chosen], self.groups[chosen], self.texts.take(chosen), self.descriptions[chosen])

    def renumbered(self, numbers: IntArray) -> "KeptTexts":
        """The same texts with other numbers (g,) of the groups."""
        return replace(self, groups=numbers[self.groups].astype(np.int32))

    def strings(self, most: int = MOST_TEXTS) -> list[str]:
        """The texts with the smallest hashes."""
        return [text.decode(errors="surrogatepass") for text in self.texts[:most].to_pylist()]

    def limited(self) -> "KeptTexts":
        """Without the texts that exceed the limit of bytes, unless they are among the first of their group."""
        lengths = np.asarray(pc.binary_length(self.texts), dtype=np.int64)
        if lengths.sum() <= MOST_BYTES:
            return self
        allowed = (np.cumsum(lengths) <= MOST_BYTES) | (_ranks(self.groups) < OF_GROUP)
        return self.take(np.flatnonzero(allowed))


def _smallest(hashes: Hashes, groups: NDArray[np.int32]) -> IntArray:
    """Positions of the texts to keep, by hash; a text that occurs again in its group is left out."""
    order = np.lexsort((groups, hashes))
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (np.diff(hashes[order]) == 0) & (np.diff(groups[order]) == 0)
    order = order[~again]
    if len(order) <= MOST_TEXTS:
        return order
    allowed = _ranks(groups[order]) < OF_GROUP
    allowed[:MOST_TEXTS] = True
    return order[allowed]


def _ranks(groups: NDArray[np.int32]) -> IntArray:
    """How many earlier entries have the same group, (n,)."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    return ranks


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


def regroup(state: State, keys: Sequence[Key], name: str = "The state") -> State:
    """The same instances by other keys: some of those of the state, or longer periods.

    Parameters
    ----------
    state : grouped by these columns, perhaps by more.
    keys : what to group by; without keys, all instances are one group.
    name : of the state, for messages.
    """
    places = [_determining(state.header.keys, key, name) for key in keys]
    same = [key.period == state.header.keys[at].period for key, at in zip(keys, places, strict=True)]
    if all(same) and places == list(range(len(state.header.keys))):
        return replace(state, header=replace(state.header, keys=tuple(keys)))
    found = {
        group: tuple(_value_of(group[at], key) for key, at in zip(keys, places, strict=True)) for group in state.groups
    }
    numbers = {group: at for at, group in enumerate(sorted(set(found.values())))}
    regrouped = state.renumbered({group: numbers[values] for group, values in found.items()})
    return replace(regrouped, header=replace(state.header, keys=tuple(keys)), groups=tuple(numbers)).bounded()


def _determining(have: Sequence[Key], wanted: Key, name: str) -> int:
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


def _value_of(value: str, key: Key) -> str:
    """The value of a key for a group with the value of the key that determines it."""
    return value if value == EMPTY or not key.period else period_of(first_day(value), key.period)
