"""Compiled loops over texts: hash their n-grams, count them, and weigh the counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.kernels.compiler import compiled

Numbers = NDArray[Any]  # integers of 32 or 64 bits
WORD, SPACE = 1, 2  # kinds of characters; all others are 0
APOSTROPHE = 39
SEED = np.uint64(0x2545F4914F6CDD1D)  # of hashes


@compiled
def mix(before: np.uint64, value: np.uint64) -> np.uint64:
    """A hash of two numbers. Not symmetric, because the order of words matters."""
    mixed = (before * np.uint64(0xBF58476D1CE4E5B9) ^ value) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@compiled
def _bucket(number: np.uint64, bits: int) -> np.int64:
    return np.int64((number * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(64 - bits))


@compiled
def _word_terms(points: Numbers, kinds: Numbers, start: int, stop: int, longest: int, bits: int, out: Numbers) -> int:
    """Write hashes of the n-grams of up to `longest` words to `out`; returns their number."""
    previous = np.zeros(longest, dtype=np.uint64)  # hashes of the n-grams that end in the previous word
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
            word = mix(word, np.uint64(points[at]))
            at += 1
        words += 1
        for length in range(min(longest, words) - 1, 0, -1):
            previous[length] = mix(previous[length - 1], word)
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
    """Write hashes of the n-grams of 2 to `longest` characters to `out`; white space counts as one blank."""
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
            previous[length] = mix(previous[length - 1], point)
            out[found] = _bucket(previous[length], bits)
            found += 1
        previous[0] = mix(SEED, point)
    return found


@compiled
def _read_terms(
    words: bool, points: Numbers, kinds: Numbers, start: int, stop: int, longest: int, bits: int, out: Numbers
) -> int:
    if words:
        return _word_terms(points, kinds, start, stop, longest, bits, out)
    return _character_terms(points, kinds, start, stop, longest, bits, out)


@compiled
def _max_terms(starts: Numbers, longest: int) -> int:
    """The largest number of terms in a text."""
    most = 0
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    return (most + 2) * longest


@compiled
def count_texts(
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
    """Count the texts that contain each term; `last` is the last text counted for a term."""
    terms = np.empty(_max_terms(starts, longest), dtype=np.int64)
    for i in range(len(starts) - 1):
        for position in range(_read_terms(words, points, kinds, starts[i], starts[i + 1], longest, bits, terms)):
            term = terms[position]
            if last[term] != first + i:
                last[term] = first + i
                frequency[term] += 1


@compiled
def count_terms(
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
    """Rows of counts; `place` is the position of a column in the current row."""
    terms = np.empty(_max_terms(starts, longest), dtype=np.int64)
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
def weigh(data: Numbers, indices: Numbers, starts: Numbers, idf: Numbers) -> None:
    """Convert counts to TF-IDF in place, with rows of length one."""
    for i in range(len(starts) - 1):
        square = 0.0
        for position in range(starts[i], starts[i + 1]):
            data[position] = (1 + np.log(data[position])) * idf[indices[position]]
            square += data[position] * data[position]
        if square > 0:
            data[starts[i] : starts[i + 1]] /= np.sqrt(square)
