"""Compiled loops that split words into tokens of a vocabulary. A token is represented by its hash."""

import numpy as np

from quanet.kernels.compiler import compiled
from quanet.kernels.term_counts import SEED, SPACE, WORD, Numbers, mix

BEGINS, CONTINUES = SEED, SEED + np.uint64(1)  # seeds of tokens at the start of a word, and of others
LONGEST_WORD = 100  # characters; longer ones, such as addresses, have no tokens


@compiled
def hash_tokens(points: Numbers, starts: Numbers, continues: Numbers, out: Numbers) -> None:
    """Write the hashes of tokens, of which some continue a word, to `out` (d,)."""
    for i in range(len(out)):
        out[i] = CONTINUES if continues[i] else BEGINS
        for at in range(starts[i], starts[i + 1]):
            out[i] = mix(out[i], np.uint64(points[at]))


@compiled
def fill_table(hashes: Numbers, keys: Numbers, places: Numbers) -> None:
    """Enter hashes (d,) and their places into a table; the length of `keys` and `places` is a power of two above d."""
    places[:] = -1
    for i in range(len(hashes)):
        slot = hashes[i] % np.uint64(len(keys))
        while places[slot] >= 0 and keys[slot] != hashes[i]:
            slot = (slot + np.uint64(1)) % np.uint64(len(keys))
        if places[slot] < 0:
            keys[slot], places[slot] = hashes[i], i


@compiled
def _place_of(number: np.uint64, keys: Numbers, places: Numbers) -> int:
    slot = number % np.uint64(len(keys))
    while places[slot] >= 0 and keys[slot] != number:
        slot = (slot + np.uint64(1)) % np.uint64(len(keys))
    return int(places[slot])


@compiled
def _split(points: Numbers, start: int, stop: int, keys: Numbers, places: Numbers, longest: int, out: Numbers) -> int:
    """Write the longest tokens of a word, from its start, to `out`; returns their number, 0 if a part has none."""
    found = 0
    at = start
    while at < stop:
        number = BEGINS if at == start else CONTINUES
        token, after = -1, at
        for position in range(at, min(stop, at + longest)):
            number = mix(number, np.uint64(points[position]))
            place = _place_of(number, keys, places)
            if place >= 0:
                token, after = place, position + 1
        if token < 0:
            return 0
        out[found] = token
        found += 1
        at = after
    return found


@compiled
def split_words(
    points: Numbers,
    starts: Numbers,
    kinds: Numbers,
    keys: Numbers,
    places: Numbers,
    longest: int,
    out: Numbers,
    ends: Numbers,
) -> None:
    """Write the tokens of texts to `out`, one text after the other, and where each text ends to `ends` (n + 1,).

    A word is a run of characters of the kind WORD; any other character except white space is a word of its own.
    """
    filled = 0
    for i in range(len(starts) - 1):
        at = starts[i]
        while at < starts[i + 1]:
            stop = at + 1
            if kinds[at] == WORD:
                while stop < starts[i + 1] and kinds[stop] == WORD:
                    stop += 1
            if kinds[at] != SPACE and stop - at <= LONGEST_WORD:
                filled += _split(points, at, stop, keys, places, longest, out[filled:])
            at = stop
        ends[i + 1] = filled
