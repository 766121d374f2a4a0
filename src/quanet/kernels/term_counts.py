"""Compiled loops over texts: read characters, hash n-grams, count them, and weigh the counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.kernels.compiler import compiled, prefetch

Numbers = NDArray[Any]  # integers of 32 or 64 bits
WORD, SPACE = 1, 2  # kinds of characters; all others are 0
BLOCK = 256  # code points whose kinds are found together
MAX_CHARACTERS = 5  # of a term
APOSTROPHE = 39
AHEAD = 24  # terms whose columns are loaded ahead of their use
SEED = np.uint64(0x2545F4914F6CDD1D)  # of hashes


@compiled
def read_characters(raw: Numbers, known: Numbers, points: Numbers, kinds: Numbers, lacking: Numbers) -> bool:
    """Write code points in lower case and kinds of characters (n,), from a table of known code points.

    Blocks of code points that are not in the table are marked in `lacking`; returns whether there are none.
    """
    complete = True
    for at in range(len(raw)):
        entry = known[raw[at]]
        if entry == 0:
            lacking[raw[at] // BLOCK] = True
            complete = False
        points[at] = entry & np.uint32(0xFFFFFF)
        kinds[at] = (entry >> np.uint32(24)) - np.uint32(1)
    return complete


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
    one = two = three = four = np.uint64(0)  # hashes of the n-grams that end in the previous character, in registers
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
        most = min(longest, read)
        if most >= MAX_CHARACTERS:
            out[found] = _bucket(mix(four, point), bits)
            found += 1
        four, three, two, one = mix(three, point), mix(two, point), mix(one, point), mix(SEED, point)
        if most >= 4:
            out[found] = _bucket(four, bits)
            found += 1
        if most >= 3:
            out[found] = _bucket(three, bits)
            found += 1
        if most >= 2:
            out[found] = _bucket(two, bits)
            found += 1
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
    terms = np.empty(_max_terms(starts, longest), dtype=np.int32)
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
    """Rows of counts; `place` (d,) is the position of a column in the current row. Unknown terms have the column d."""
    terms = np.empty(_max_terms(starts, longest), dtype=np.int32)
    filled = 0
    for i in range(len(starts) - 1):
        row = filled
        for position in range(_read_terms(words, points, kinds, starts[i], starts[i + 1], longest, bits, terms)):
            j = column[terms[position]]
            if j == len(place):
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


@compiled
def project(
    words: bool,
    repeats: bool,
    points: Numbers,
    starts: Numbers,
    kinds: Numbers,
    longest: int,
    bits: int,
    column: Numbers,
    counts: Numbers,
    records: Numbers,
    directions: Numbers,
    factors: Numbers,
    scores: Numbers,
    positions: Numbers,
) -> None:
    """Multiply TF-IDF rows of texts by weights and by directions, without storing the rows.

    Parameters
    ----------
    column : (2**bits,) the column of a hash, d for unknown terms.
    counts : (d + 1,) zeros, before and after.
    records : (d + 1, 1 + c) the idf of each term, and the product of idf and weights; the last row is zero.
    directions : (w, e) for the first w columns.
    factors : the weights of counts, 1 + log(count).
    scores, positions : (n, c) and (n, e), the products; written.
    """
    size = _max_terms(starts, longest)
    terms, distinct = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    for i in range(len(starts) - 1):
        found = _read_terms(words, points, kinds, starts[i], starts[i + 1], longest, bits, terms)
        # Every loop starts to load what the next one reads.
        for at in range(found):
            if at + AHEAD < found:
                prefetch(column, terms[at + AHEAD])
            j = column[terms[at]]
            terms[at] = j
            prefetch(counts, j)
            prefetch(records, j)
        filled = 0
        for at in range(found):
            j = terms[at]
            distinct[filled] = j
            filled += counts[j] == 0
            counts[j] += 1
        square = 0.0
        scores[i], positions[i] = 0, 0
        for at in range(filled):
            j = distinct[at]
            count = counts[j] if repeats else 1
            counts[j] = 0
            factor = factors[count] if count < len(factors) else 1 + np.log(count)
            value = factor * records[j, 0]
            square += value * value
            for b in range(scores.shape[1]):
                scores[i, b] += factor * records[j, b + 1]
            if j < len(directions):
                for b in range(positions.shape[1]):
                    positions[i, b] += np.float32(value) * directions[j, b]
        if square > 0:
            scores[i] /= np.sqrt(square)
            positions[i] /= np.float32(np.sqrt(square))
