"""Reading files once: the classifier's output for every instance, stored compactly, with the group of the instance."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.columns import label_names, weights_of
from quanet.data.instances import InputColumns, Inputs
from quanet.data.periods import Codes, Groups, Key
from quanet.diagnostics.text_drift import TrainingOverlap, UnknownWords, classifier_of, training_hashes
from quanet.errors import InvalidData

if TYPE_CHECKING:
    from quanet.data.streams import TableSource

WORKERS = 2  # reading threads; more would wait for each other
COUNTED = 1000  # texts of a chunk whose words are counted
MAX_TEXTS = 10_000  # kept at random, to name words and examples of drift
MAX_LETTERS = 50_000_000  # in these texts


@dataclass(slots=True, eq=False)
class GroupedInputs:
    """Instances that a quantifier has read, with their groups.

    Attributes
    ----------
    instances : input of `Quantifier.predict`, with descriptions if the quantifier has a drift scale.
    codes : (n,) the group of every instance, a position in `groups`.
    groups : values of the keys, sorted.
    skipped : rows skipped, by reason.
    unknown_words : share of unknown words, if the classifier has a vocabulary.
    training_texts : number of texts that the model was trained on; None if it does not record them.
    labels : number of rows by label, if a label column was given.
    weights, weight : (n,) weights of the instances, and the name of their column; None and "" without weights.
    texts, places : a random selection of the texts, and their positions among the instances.
    left_out : (rows,) 0 for every row that is an instance; else why not, a position in `reasons`.
    """

    instances: Inputs
    codes: Codes
    groups: list[tuple[str, ...]]
    skipped: dict[str, int]
    unknown_words: float | None
    labels: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    places: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    training_texts: int | None = None
    weights: FloatArray | None = None
    weight: str = ""
    left_out: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    reasons: tuple[str, ...] = ("",)

    @property
    def rows(self) -> IntArray:
        """(n,) the row of every instance in the source, counted from 0 over all its files."""
        return np.flatnonzero(self.left_out == 0)

    def bags(self) -> Bags:
        """A bag for every group, with its name and the weights."""
        order = np.argsort(self.codes, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(self.codes))[:-1])
        return Bags(members, labels=[", ".join(group) or "all" for group in self.groups], weights=self.weights)

    def whole(self) -> Bags:
        """One bag of all instances, with the weights."""
        return Bags(np.arange(len(self.instances))[None], labels=["all"], weights=self.weights)


class _RandomTexts:
    """A uniform random selection of the texts of a stream."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.texts: list[str] = []
        self.places: IntArray = np.empty(0, dtype=np.intp)
        self._rng, self._seen = rng, 0
        self._keys: FloatArray = np.empty(0)
        self._limit = 1.0  # larger keys are never selected

    def add(self, texts: list[str]) -> None:
        """Select from more texts."""
        drawn = self._rng.random(len(texts))
        new = np.flatnonzero(drawn < self._limit)
        keys = np.concatenate([self._keys, drawn[new]])
        places = np.concatenate([self.places, self._seen + new])
        kept = [*self.texts, *(texts[at] for at in new)]
        order = np.argsort(keys)
        letters = np.cumsum([len(kept[at]) for at in order])
        most = min(MAX_TEXTS, int(np.searchsorted(letters, MAX_LETTERS)))
        if most < len(order):
            self._limit = float(keys[order[most]])
        order = order[:most]
        self.texts, self.places, self._keys = [kept[at] for at in order], places[order], keys[order]
        self._seen += len(texts)


def read_source(
    quantifier: Quantifier,
    source: "TableSource",
    inputs: InputColumns,
    *,
    keys: Sequence[Key] = (),
    form: str | None = None,
    label: str | None = None,
    weight: str | None = None,
) -> GroupedInputs:
    """Read a source once, chunk by chunk.

    Parameters
    ----------
    quantifier : fitted.
    source : the files.
    inputs : input columns.
    keys, form : columns to group by, and the format of dates.
    label : a column whose values are counted.
    weight : a column of weights, such as views. The weight of every row that is used must be a number from 0 up.
    """
    groups, skipped, labels = Groups(keys, form=form), Counter[str](), Counter[str]()
    words = UnknownWords(classifier_of(quantifier))
    some = _RandomTexts(np.random.default_rng(0))
    seen = TrainingOverlap(training_hashes(quantifier))
    parts: list[Inputs] = []
    codes: list[Codes] = []
    weights: list[FloatArray] = []
    left_out: list[NDArray[np.int8]] = []
    columns = [*inputs.columns, *(key.column for key in keys), *(name for name in (label, weight) if name)]

    def instances() -> Iterator[Any]:
        for table in source.chunks(columns):
            found, there = inputs.of(table, source)
            grouped = groups.codes(table, source)
            skipped[inputs.lacking] += int((~there).sum())
            skipped["no group"] += int((there & (grouped < 0)).sum())
            kept = grouped[there] >= 0
            left_out.append(np.where(there, 2 * (grouped < 0), 1).astype(np.int8))
            codes.append(grouped[there][kept])
            if label:
                labels.update(name for name in label_names(table[label], source) if name)
            if weight:
                weights.append(weights_of(table[weight][there][kept], source))
            if not kept.all():
                found = [one for one, keep in zip(found, kept, strict=True) if keep] if inputs.text else found[kept]
            if not len(found):
                continue
            if inputs.text:
                words.add(found[:: -(-len(found) // COUNTED)])
                some.add(found)
                seen.add(found)
            yield found

    parts += _in_threads(lambda found: _compact(quantifier.read(found)), instances())
    skipped = Counter({reason: count for reason, count in skipped.items() if count})
    if not parts:
        raise InvalidData(f"{source.name}: none of the {source.rows:,} rows can be used ({_reasons(skipped)}).")
    order, places = groups.in_order(np.concatenate(codes))
    present = np.unique(places)  # a group may have lost all its rows
    return GroupedInputs(
        _joined(parts),
        np.searchsorted(present, places).astype(np.int32),
        [order[place] for place in present.tolist()],
        dict(skipped),
        words.share,
        labels,
        some.texts,
        some.places,
        seen.count,
        _all_weights(weights, weight, source) if weight else None,
        weight or "",
        left_out=np.concatenate(left_out),
        reasons=("", inputs.lacking, "no group"),
    )


def _compact(inputs: Inputs) -> Inputs:
    """The same inputs with fewer digits: descriptions are only averaged."""
    found = inputs.descriptions
    return Inputs(inputs.values.astype(np.float32), None if found is None else found.astype(np.float16))


def _joined(parts: list[Inputs]) -> Inputs:
    described = [part.descriptions for part in parts if part.descriptions is not None]
    values = np.concatenate([part.values for part in parts])
    parts.clear()  # to save memory
    return Inputs(values, np.concatenate(described) if described else None)


def _all_weights(parts: list[FloatArray], column: str, source: "TableSource") -> FloatArray:
    weights = np.concatenate(parts)
    if not weights.any():
        raise InvalidData(f"{source.name}: all weights in column {column!r} are 0. Choose another column of weights.")
    return weights


def _reasons(skipped: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in skipped.items())


def _in_threads(function: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """Results in order, computed by a few threads, with few items waiting."""
    workers = min(WORKERS, os.cpu_count() or 1)
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
