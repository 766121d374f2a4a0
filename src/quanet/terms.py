"""Terms of texts: runs of words and runs of characters, counted by compiled loops that keep no strings.

A term is a number, its hash. Terms that differ share a number now and then, mostly rare ones; the vocabulary is thereby
an array of numbers, small on disk and quick to look up.
"""

import unicodedata
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from quanet.arrays import IntArray
from quanet.kernels import compiled

Numbers = NDArray[Any]  # whole numbers of 32 or 64 bits
MANY_TEXTS = 1000  # from here on, a term that occurs in one or two texts is left out
FEWEST_BITS = 16
MOST_BITS = 22  # of a hash; four million numbers hold the terms of 25,000 long reviews with room to spare
AT_A_TIME = 2**21  # characters that are read together, to bound memory
OTHER, WORD, SPACE = 0, 1, 2  # kinds of characters
APOSTROPHE = 39
SEED = np.uint64(0x2545F4914F6CDD1D)  # of hashes


class Terms:
    """Terms that occur in enough of the texts they were fitted to, weighted by TF-IDF.

    A row is ``(1 + log count) * idf`` with ``idf = 1 + log((1 + texts) / (1 + texts with the term))``, of length one.

    Parameters
    ----------
    unit : "words", runs of letters and digits; or "characters", runs of anything, in and across words.
    longest : words, or characters, of the longest terms; those of characters have two at least.
    repeats : whether it counts how often a text has a term; otherwise every count is one.

    Attributes
    ----------
    hashes : (d,) of the terms, the most frequent first.
    idf : (d,) their weights.
    """

    def __init__(self, unit: str, longest: int, *, repeats: bool = True) -> None:
        self.unit = unit
        self.longest = longest
        self.repeats = repeats

    def fit_transform(self, texts: list[str]) -> csr_matrix:
        """Learn which terms are frequent enough, and weigh them: (n, d), float32."""
        size = sum(map(len, texts)) * self.longest
        self.bits = min(MOST_BITS, max(FEWEST_BITS, size.bit_length() + 4))
        frequency = np.zeros(2**self.bits, dtype=np.int32)
        last = np.full(2**self.bits, -1, dtype=np.int32)
        first = 0
        for batch in in_batches(texts):
            _count_texts(self.unit == "words", *_characters(batch), self.longest, self.bits, first, last, frequency)
            first += len(batch)
        self.rarest = 3 if len(texts) >= MANY_TEXTS else 1
        kept = np.flatnonzero(frequency >= self.rarest)
        # Frequent terms lie side by side in memory then, which makes every pass over the matrix quicker.
        kept = kept[np.argsort(-frequency[kept], kind="stable")]
        self.hashes: IntArray = kept.astype(np.int32)
        self.idf = (1 + np.log((1 + len(texts)) / (1 + frequency[kept]))).astype(np.float32)
        return self.transform(texts)

    def transform(self, texts: list[str]) -> csr_matrix:
        """Weighted terms of texts: (n, d), float32; columns are in no order within a row."""
        column = np.full(2**self.bits, -1, dtype=np.int32)
        column[self.hashes] = np.arange(len(self.hashes), dtype=np.int32)
        parts = [self._counted(batch, column) for batch in in_batches(texts)]
        ends = np.cumsum([0, *(length for part in parts for length in part[2])])
        indices, data = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1], dtype=np.float32)
        filled = ends[-1]
        while parts:  # from the last one, each let go at once, so that memory holds them once
            part = parts.pop()
            start = filled - len(part[0])
            indices[start:filled], data[start:filled] = part[0], part[1]
            filled = start
        _weigh(data, indices, ends, self.idf)
        return csr_matrix((data, indices, ends), shape=(len(texts), len(self.hashes)))

    def as_new(self, matrix: csr_matrix, held: IntArray) -> csr_matrix:
        """Rows `held` of the matrix the terms were fitted to, as if they were new to the others.

        Terms that are too rare in the others go, and what is left has length one again. New texts lose their unknown
        terms like that; rows that keep them would be shorter in the rest, and their scores nearer to zero.
        """
        rows = matrix[held]
        size = matrix.shape[1]
        elsewhere = np.bincount(matrix.indices, minlength=size) - np.bincount(rows.indices, minlength=size)
        rows.data *= (elsewhere >= self.rarest)[rows.indices]
        squares = np.bincount(np.repeat(np.arange(len(held)), np.diff(rows.indptr)), rows.data**2, len(held))
        lengths = np.sqrt(np.where(squares > 0, squares, 1)).astype(np.float32)
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        return rows

    def _counted(self, texts: list[str], column: IntArray) -> tuple[Numbers, Numbers, IntArray]:
        """Columns and counts of the terms of all texts, and how many terms each text has."""
        points, starts, kinds = _characters(texts)
        size = (len(points) + 2 * len(texts)) * self.longest
        indices, counts = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
        ends = np.zeros(len(texts) + 1, dtype=np.int64)
        place = np.full(len(self.hashes), -1, dtype=np.int64)
        how = self.unit == "words", self.repeats
        _count_terms(*how, points, starts, kinds, self.longest, self.bits, column, place, indices, counts, ends)
        return indices[: ends[-1]].copy(), counts[: ends[-1]].copy(), np.diff(ends)


def in_batches(texts: list[str]) -> list[list[str]]:
    """Consecutive texts of some millions of characters together; one empty batch for no texts."""
    ends = np.cumsum([len(text) for text in texts]) // AT_A_TIME
    cuts = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(texts)]
    return [texts[start:stop] for start, stop in pairwise(cuts)]


def _characters(texts: list[str]) -> tuple[NDArray[np.uint32], IntArray, NDArray[np.uint8]]:
    """Characters in lower case, all texts in a row; where each text starts; the kind of every character."""
    lowered = [text.lower() for text in texts]
    starts = np.cumsum([0, *(len(text) for text in lowered)])
    points = np.frombuffer("".join(lowered).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    used = np.bincount(points) if len(points) else np.zeros(1, dtype=int)
    kinds = np.zeros(len(used), dtype=np.uint8)
    for point in np.flatnonzero(used).tolist():
        kinds[point] = _kind(chr(point))
    return points, starts, kinds[points]


def _kind(character: str) -> int:
    if character.isspace():
        return SPACE
    # Marks are the vowels of Indic scripts, and the accents of texts in decomposed form.
    return WORD if character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M" else OTHER


@compiled
def _mixed(before: np.uint64, value: np.uint64) -> np.uint64:
    # Multiplied first: the order of the two matters, as that of words does.
    mixed = (before * np.uint64(0xBF58476D1CE4E5B9) ^ value) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@compiled
def _bucket(number: np.uint64, bits: int) -> np.int64:
    return np.int64((number * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(64 - bits))


@compiled
def _word_terms(points: Numbers, kinds: Numbers, start: int, stop: int, longest: int, bits: int, out: Numbers) -> int:
    """Hashes of the runs of up to `longest` words between two places; returns how many there are."""
    previous = np.zeros(longest, dtype=np.uint64)  # hashes of the runs that end in the word before
    found = 0
    words = 0
    at = start
    while at < stop:
        if kinds[at] != WORD:
            at += 1
            continue
        word = SEED
        while at < stop and (
            kinds[at] == WORD or (points[at] == APOSTROPHE and at + 1 < stop and kinds[at + 1] == WORD)
        ):
            word = _mixed(word, np.uint64(points[at]))
            at += 1
        words += 1
        for length in range(min(longest, words) - 1, 0, -1):
            previous[length] = _mixed(previous[length - 1], word)
            out[found] = _bucket(previous[length], bits)
            found += 1
        previous[0] = word
        out[found] = _bucket(word, bits)
        found += 1
    return found


@compiled
def _character_terms(
    points: Numbers, kinds: Numbers, start: int, stop: int, longest: int, bits: int, out: Numbers
) -> int:
    """Hashes of the runs of 2 to `longest` characters; white space is one blank, and a text has blanks around it."""
    previous = np.zeros(longest, dtype=np.uint64)
    found = 0
    read = 0
    blank = False
    for at in range(start - 1, stop + 1):
        space = at < start or at == stop or kinds[at] == SPACE
        if space and blank:
            continue
        blank = space
        point = np.uint64(32) if space else np.uint64(points[at])
        read += 1
        for length in range(min(longest, read) - 1, 0, -1):
            previous[length] = _mixed(previous[length - 1], point)
            out[found] = _bucket(previous[length], bits)
            found += 1
        previous[0] = _mixed(SEED, point)
    return found


@compiled
def _read_terms(
    words: bool, points: Numbers, kinds: Numbers, start: int, stop: int, longest: int, bits: int, out: Numbers
) -> int:
    if words:
        return _word_terms(points, kinds, start, stop, longest, bits, out)
    return _character_terms(points, kinds, start, stop, longest, bits, out)


@compiled
def _room(starts: Numbers, longest: int) -> int:
    """Terms that the longest text can have."""
    most = 0
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    return (most + 2) * longest


@compiled
def _count_texts(
    words: bool,
    points: Numbers,
    starts: Numbers,
    kinds: Numbers,
    longest: int,
    bits: int,
    first: int,
    last: Numbers,
    frequency: Numbers,
) -> None:
    """Add one to the frequency of every term for every text that has it; `last` is the last text seen with it."""
    terms = np.empty(_room(starts, longest), dtype=np.int64)
    for i in range(len(starts) - 1):
        for position in range(_read_terms(words, points, kinds, starts[i], starts[i + 1], longest, bits, terms)):
            term = terms[position]
            if last[term] != first + i:
                last[term] = first + i
                frequency[term] += 1


@compiled
def _count_terms(
    words: bool,
    repeats: bool,
    points: Numbers,
    starts: Numbers,
    kinds: Numbers,
    longest: int,
    bits: int,
    column: Numbers,
    place: Numbers,
    indices: Numbers,
    counts: Numbers,
    ends: Numbers,
) -> None:
    """Rows of counts, one after another; `place` is where a column stands in the row that is being filled."""
    terms = np.empty(_room(starts, longest), dtype=np.int64)
    filled = 0
    for i in range(len(starts) - 1):
        row = filled
        for position in range(_read_terms(words, points, kinds, starts[i], starts[i + 1], longest, bits, terms)):
            j = column[terms[position]]
            if j < 0:
                continue
            if place[j] < row:
                place[j] = filled
                indices[filled] = j
                counts[filled] = 1
                filled += 1
            elif repeats:
                counts[place[j]] += 1
        ends[i + 1] = filled


@compiled
def _weigh(data: Numbers, indices: Numbers, starts: Numbers, idf: Numbers) -> None:
    """Turn counts into TF-IDF in place, every row of length one."""
    for i in range(len(starts) - 1):
        square = 0.0
        for position in range(starts[i], starts[i + 1]):
            data[position] = (1 + np.log(data[position])) * idf[indices[position]]
            square += data[position] * data[position]
        if square > 0:
            data[starts[i] : starts[i + 1]] /= np.sqrt(square)
