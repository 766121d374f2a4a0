"""Files read once by a quantifier: what it needs of every instance, kept compactly, with the group it belongs to."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.answers.groups import Codes, Groups
from quanet.answers.shares import Key
from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.base import Quantifier
from quanet.data.columns import NOTHING, as_number, names_of
from quanet.diagnostics.overlap import SeenTexts, hashes_of
from quanet.diagnostics.words import WordCounter, classifier_of
from quanet.errors import InvalidData, brief
from quanet.instances import ReadInstances

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from quanet.data.streams import Source

WORKERS = 2  # threads that read at a time; more would wait for each other
COUNTED = 1000  # texts of a chunk whose words are counted: enough for a share
KEPT = 10_000  # texts that are kept, drawn at random, to look at their contents
LETTERS = 50_000_000  # in them at most


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a model reads: a column of texts, or columns of numbers.

    Attributes
    ----------
    text : the column of texts, or None.
    features : columns of numbers, where there is no text.
    """

    text: str | None = None
    features: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Those that are read."""
        return [self.text] if self.text is not None else list(self.features)

    @property
    def lacking(self) -> str:
        """What rows are left out for."""
        return "no text" if self.text is not None else "a number is missing"

    def of(self, table: "pd.DataFrame", source: "Source") -> tuple[Any, BoolArray]:
        """Instances of a table, and which rows have them (n,)."""
        if self.text is not None:
            return _texts(table[self.text], self.text, source)
        columns = [_numbers(table[name], name, source) for name in self.features]
        matrix: FloatArray = np.column_stack(columns)
        there = np.asarray(np.isfinite(matrix).all(axis=1))
        return matrix[there], there


def _texts(cells: "pd.Series[Any]", column: str, source: "Source") -> tuple[list[str], BoolArray]:
    values = cells.tolist()
    for row, value in zip(cells.index, values, strict=True):
        if value is not None and not isinstance(value, str):
            raise InvalidData(
                f"{source.place(row)}: column {column!r} holds {brief(value)}, which is not text. "
                "Name the column of texts: --text."
            )
    there = np.array([value is not None and not value.isspace() for value in values], dtype=bool)
    return [value for value, kept in zip(values, there, strict=True) if kept], there


def _numbers(cells: "pd.Series[Any]", column: str, source: "Source") -> FloatArray:
    found = np.full(len(cells), np.nan)
    for at, value in enumerate(cells):
        if value is None:
            continue
        number = as_number(value)
        if number is None and str(value).strip().lower() not in NOTHING:
            raise InvalidData(
                f"{source.place(cells.index[at])}: {brief(value)} in column {column!r} is not a number. "
                "Leave the column out of --features, or correct it."
            )
        found[at] = np.nan if number is None else number
    return found


@dataclass(slots=True, eq=False)
class Reading:
    """Instances as a quantifier has read them.

    Attributes
    ----------
    instances : for `Quantifier.predict` and all else that takes instances.
    codes : (n,) the group of every instance, a place in `groups`.
    groups : sorted.
    skipped : rows left out, by the reason.
    unknown_words : their share, where the classifier has a vocabulary.
    training_texts : texts that the model was trained on; None where it does not remember them.
    labels : how many rows have a label, by label, where asked for.
    texts, places : some of the texts, drawn at random, and their places among the instances.
    """

    instances: ReadInstances
    codes: Codes
    groups: list[tuple[str, ...]]
    skipped: dict[str, int]
    unknown_words: float | None
    labels: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    places: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    training_texts: int | None = None


class _Some:
    """Some of the texts of a stream, each as likely as any other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.texts: list[str] = []
        self.places: IntArray = np.empty(0, dtype=np.intp)
        self._rng, self._seen = rng, 0
        self._keys: FloatArray = np.empty(0)
        self._limit = 1.0  # no key above it is among the least

    def add(self, texts: list[str]) -> None:
        """Draw from more texts."""
        drawn = self._rng.random(len(texts))
        new = np.flatnonzero(drawn < self._limit)
        keys = np.concatenate([self._keys, drawn[new]])
        places = np.concatenate([self.places, self._seen + new])
        kept = [*self.texts, *(texts[at] for at in new)]
        order = np.argsort(keys)
        letters = np.cumsum([len(kept[at]) for at in order])
        most = min(KEPT, int(np.searchsorted(letters, LETTERS)))
        if most < len(order):
            self._limit = float(keys[order[most]])
        order = order[:most]
        self.texts, self.places, self._keys = [kept[at] for at in order], places[order], keys[order]
        self._seen += len(texts)


def read_source(
    quantifier: Quantifier,
    source: "Source",
    inputs: Inputs,
    *,
    keys: Sequence[Key] = (),
    form: str | None = None,
    label: str | None = None,
) -> Reading:
    """Read a source once, chunk by chunk.

    Parameters
    ----------
    quantifier : fitted.
    source : the files.
    inputs : which columns are read.
    keys, form : what rows are grouped by, and how dates are written.
    label : a column whose values are counted.
    """
    groups, skipped, labels = Groups(keys, form=form), Counter[str](), Counter[str]()
    words = WordCounter(classifier_of(quantifier))
    some = _Some(np.random.default_rng(0))
    seen = SeenTexts(hashes_of(quantifier))
    rows: list[NDArray[np.float32]] = []
    codes: list[Codes] = []

    def instances() -> Iterator[Any]:
        for table in source.chunks([*inputs.columns, *(key.column for key in keys), *([label] if label else [])]):
            found, there = inputs.of(table, source)
            grouped = groups.codes(table, source)
            skipped[inputs.lacking] += int((~there).sum())
            skipped["no group"] += int((there & (grouped < 0)).sum())
            kept = grouped[there] >= 0
            codes.append(grouped[there][kept])
            if label:
                labels.update(name for name in names_of(table[label], source) if name)
            if not kept.all():
                found = [one for one, keep in zip(found, kept, strict=True) if keep] if inputs.text else found[kept]
            if not len(found):
                continue
            if inputs.text:
                words.add(found[:: -(-len(found) // COUNTED)])
                some.add(found)
                seen.add(found)
            yield found

    rows += _in_threads(lambda found: quantifier.read(found).inputs.astype(np.float32), instances())
    skipped = Counter({reason: count for reason, count in skipped.items() if count})
    if not rows:
        raise InvalidData(f"{source.name}: none of its {source.rows:,} rows can be used ({_said(skipped)}).")
    order, places = groups.in_order(np.concatenate(codes))
    present = np.unique(places)  # a group may have lost all its rows
    return Reading(
        ReadInstances(np.concatenate(rows)),
        np.searchsorted(present, places).astype(np.int32),
        [order[place] for place in present.tolist()],
        dict(skipped),
        words.share,
        labels,
        some.texts,
        some.places,
        seen.count,
    )


def _said(skipped: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in skipped.items())


def _in_threads(function: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """Results in order, made by a few threads at a time, with few items waiting."""
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
