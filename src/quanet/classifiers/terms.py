"""Characters and terms of texts: n-grams of words and of characters.

A text is its code points in lower case, and what kind of character each is. A term is represented by its hash.
Different terms sometimes share a hash, mostly rare ones. In return, the vocabulary is an array of numbers, small on
disk and fast to look up.

`derived` keeps values that are computed from the attributes of an object for as long as it lives. They are not
attributes, so copies, pickles and saved models do not contain them.

`project_terms` multiplies TF-IDF rows with weights or directions, text by text: the rows are never stored. The result
for a text depends on no other text, to the last bit.
"""

import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from quanet.arrays import FloatArray, IntArray
from quanet.kernels.term_counts import (
    BLOCK,
    MAX_CHARACTERS,
    SPACE,
    WORD,
    Numbers,
    count_terms,
    count_texts,
    project,
    read_characters,
    weigh,
)

Floats = NDArray[np.float32]
Characters: TypeAlias = tuple[NDArray[np.uint32], IntArray, NDArray[np.uint8]]

BATCH = 2**21  # characters processed at a time, to bound memory
OTHER = 0  # a kind of characters, as WORD and SPACE
CODE_POINTS = 0x110000
IN_CONTEXT = "Σİ"  # their lower case depends on the neighbours, or has two characters
MANY_TEXTS = 1000  # with at least this many, terms that occur in one or two texts are dropped
MIN_BITS = 16
MAX_BITS = 22  # of a hash; enough for the terms of 25,000 long reviews
T = TypeVar("T")
_KEPT: WeakKeyDictionary[Any, dict[str, tuple[tuple[Any, ...], Any]]] = WeakKeyDictionary()
FACTORS = np.concatenate([[0], 1 + np.log(np.arange(1, 1024))])  # weights of counts; those of larger ones are computed
NO_DIRECTIONS: Floats = np.empty((0, 0), dtype=np.float32)

# The lower case and the kind of every code point, filled block by block when a text first contains one of a block.
_KNOWN: NDArray[np.uint32] = np.zeros(CODE_POINTS, dtype=np.uint32)


def in_batches(texts: list[str]) -> list[list[str]]:
    """Consecutive texts in batches of bounded length; one empty batch if there are no texts."""
    ends = np.cumsum(_lengths(texts)) // BATCH
    cuts = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(texts)]
    return [texts[start:stop] for start, stop in pairwise(cuts)]


def characters(texts: list[str]) -> Characters:
    """The concatenated texts in lower case, the start of each text (n + 1,), and the kind of each character."""
    joined = "".join(texts)
    if any(letter in joined for letter in IN_CONTEXT):
        texts = [text.lower() for text in texts]
        joined = "".join(texts)
    raw = (
        np.frombuffer(joined.encode(), dtype=np.uint8)
        if joined.isascii()
        else np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    )
    points, kinds = np.empty(len(raw), dtype=np.uint32), np.empty(len(raw), dtype=np.uint8)
    lacking = np.zeros(CODE_POINTS // BLOCK, dtype=np.bool_)
    while not read_characters(raw, _KNOWN, points, kinds, lacking):
        for block in np.flatnonzero(lacking).tolist():
            _learn(block)
        lacking[:] = False
    starts = np.concatenate([[0], np.cumsum(_lengths(texts))])
    return points, starts, kinds


def _lengths(texts: list[str]) -> IntArray:
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))


def _learn(block: int) -> None:
    """Enter a block of code points: the kind plus one in the upper eight bits, the lower case in the others."""
    for point in range(block * BLOCK, (block + 1) * BLOCK):
        lower = chr(point).lower()[0]
        _KNOWN[point] = (_kind(lower) + 1) << 24 | ord(lower)


def _kind(character: str) -> int:
    if character.isspace():
        return SPACE
    # Marks are vowels in Indic scripts, and accents in decomposed Unicode.
    return WORD if character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M" else OTHER


def derived(owner: object, name: str, sources: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """The result of `compute`, which is called again when one of its sources is another object than before.

    Sources are compared by identity: replace an array instead of writing into it.

    Examples
    --------
    >>> class Owner: ...
    >>> owner, sources = Owner(), ("a", "b")
    >>> derived(owner, "joined", sources, lambda: "".join(sources))
    'ab'
    >>> derived(owner, "joined", sources, lambda: "not called")
    'ab'
    """
    kept = _KEPT.setdefault(owner, {})
    found = kept.get(name)
    if (
        found is None
        or len(found[0]) != len(sources)
        or any(a is not b for a, b in zip(found[0], sources, strict=True))
    ):
        found = kept[name] = sources, compute()
    value: T = found[1]
    return value


class Terms:
    """Frequent terms of texts, weighted by TF-IDF.

    A row is ``(1 + log count) * idf`` with ``idf = 1 + log((1 + texts) / (1 + texts with the term))``, of length one.

    Parameters
    ----------
    unit : "words", n-grams of words; or "characters", n-grams of characters, within and across words.
    longest : the largest n; n-grams of characters have two to five characters.
    repeats : whether to count how often a text contains a term; otherwise every count is 1.

    Attributes
    ----------
    hashes : (d,) hashes of the terms, the most frequent first.
    idf : (d,) weights of the terms.
    """

    def __init__(self, unit: str, longest: int, *, repeats: bool = True) -> None:
        assert unit == "words" or longest <= MAX_CHARACTERS
        self.unit = unit
        self.longest = longest
        self.repeats = repeats

    def fit_transform(self, texts: list[str]) -> csr_matrix:
        """Find the frequent terms, and return their weights in each text: (n, d), float32."""
        size = sum(map(len, texts)) * self.longest
        self.bits = min(MAX_BITS, max(MIN_BITS, size.bit_length() + 4))
        frequency = np.zeros(2**self.bits, dtype=np.int32)
        last = np.full(2**self.bits, -1, dtype=np.int32)
        first = 0
        for batch in in_batches(texts):
            count_texts(self.unit == "words", *characters(batch), self.longest, self.bits, first, last, frequency)
            first += len(batch)
        self.rarest = 3 if len(texts) >= MANY_TEXTS else 1
        kept = np.flatnonzero(frequency >= self.rarest)
        # Frequent terms are then adjacent in memory, which speeds up every pass over the matrix.
        kept = kept[np.argsort(-frequency[kept], kind="stable")]
        self.hashes: IntArray = kept.astype(np.int32)
        self.idf = inverse_frequency(frequency[kept], len(texts))
        return self.transform(texts)

    def transform(self, texts: list[str]) -> csr_matrix:
        """Weights of terms in texts: (n, d), float32; columns are not sorted within a row."""
        parts = [self._counted(batch, self.columns) for batch in in_batches(texts)]
        ends = np.concatenate([[0], np.cumsum(np.concatenate([part[2] for part in parts]))])
        indices, data = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1], dtype=np.float32)
        filled = ends[-1]
        while parts:  # from the last one, each freed at once, to save memory
            part = parts.pop()
            start = filled - len(part[0])
            indices[start:filled], data[start:filled] = part[0], part[1]
            filled = start
        weigh(data, indices, ends, self.idf)
        return csr_matrix((data, indices, ends), shape=(len(texts), len(self.hashes)))

    @property
    def columns(self) -> Numbers:
        """(2**bits,) the column of each hash: its position in `hashes`, or d if it is not there."""

        def compute() -> Numbers:
            columns = np.full(2**self.bits, len(self.hashes), dtype=np.int32)
            columns[self.hashes] = np.arange(len(self.hashes), dtype=np.int32)
            return columns

        return derived(self, "columns", (self.hashes, self.bits), compute)

    def as_new(self, matrix: csr_matrix, held_out: IntArray) -> csr_matrix:
        """Rows `held_out` of the training matrix, as if the terms had been fitted without them.

        Terms that are too rare in the other rows are dropped, and the rows rescaled to length one, just as new texts
        lose their unknown terms. Otherwise the remaining terms would have smaller weights, and scores would shrink.
        """
        rows = matrix[held_out]
        size = matrix.shape[1]
        elsewhere = np.bincount(matrix.indices, minlength=size) - np.bincount(rows.indices, minlength=size)
        rows.data *= (elsewhere >= self.rarest)[rows.indices]
        squares = np.bincount(np.repeat(np.arange(len(held_out)), np.diff(rows.indptr)), rows.data**2, len(held_out))
        lengths = np.sqrt(np.where(squares > 0, squares, 1)).astype(np.float32)
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        return rows

    def _counted(self, texts: list[str], column: Numbers) -> tuple[Numbers, Numbers, IntArray]:
        """Columns and counts of the terms of all texts, and the number of terms in each text."""
        points, starts, kinds = characters(texts)
        size = (len(points) + 2 * len(texts)) * self.longest
        indices, counts = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
        ends = np.zeros(len(texts) + 1, dtype=np.int64)
        place = np.full(len(self.hashes), -1, dtype=np.int64)
        how = self.unit == "words", self.repeats
        count_terms(*how, points, starts, kinds, self.longest, self.bits, column, place, indices, counts, ends)
        return indices[: ends[-1]].copy(), counts[: ends[-1]].copy(), np.diff(ends)


def inverse_frequency(frequency: IntArray | Numbers, texts: int) -> Numbers:
    """Weights of terms (d,) that occur in these numbers of texts (d,), of so many texts in all."""
    return (1 + np.log((1 + texts) / (1 + frequency))).astype(np.float32)


def project_terms(
    terms: Terms,
    read: Characters,
    views: Sequence[tuple[float, Floats]] = (),
    directions: Floats | None = None,
    *,
    by_term: bool = True,
) -> tuple[FloatArray, Floats]:
    """Scores (n, c) of texts, and their positions (n, e) along directions.

    Parameters
    ----------
    terms : fitted.
    read : the characters of n texts.
    views : shares and weights (d + 1, c) of regressions on these terms; the last row of the weights is the intercept.
        The score is the weighted sum of theirs. Empty: c is 0.
    directions : of the first w terms: (w, e) if `by_term`, else (e, w). None: e is 0.
    """
    sources = terms.idf, *(part for view in views for part in view)
    records, shift = derived(terms, "scored" if views else "unscored", sources, lambda: _records(terms.idf, views))
    rows = NO_DIRECTIONS
    if directions is not None:
        turned = directions if by_term else directions.T
        rows = derived(terms, "directions", (directions,), lambda: np.array(turned, order="C"))
    n = len(read[1]) - 1
    scores, positions = np.empty((n, len(shift))), np.empty((n, rows.shape[1]), dtype=np.float32)
    counts = np.zeros(len(records), dtype=np.int32)
    how = terms.unit == "words", terms.repeats
    size = terms.longest, terms.bits
    project(*how, *read, *size, terms.columns, counts, records, rows, FACTORS, scores, positions)
    return scores + shift, positions


def _records(idf: Floats, views: Sequence[tuple[float, Floats]]) -> tuple[Floats, FloatArray]:
    """The idf of each term and its weights times idf (d + 1, 1 + c), side by side in memory, and the intercepts (c,).

    The last row is zero. It stands for unknown terms.
    """
    weights = np.zeros((len(idf) + 1, views[0][1].shape[1] if views else 0), dtype=np.float32)
    for share, part in views:
        weights += np.float32(share) * part
    records = np.zeros((len(idf) + 1, 1 + weights.shape[1]), dtype=np.float32)
    records[:-1, 0] = idf
    np.multiply(idf[:, None], weights[:-1], out=records[:-1, 1:])
    return records, weights[-1].astype(float)
