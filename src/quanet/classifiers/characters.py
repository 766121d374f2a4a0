"""Characters of texts as arrays: code points in lower case, and what kind each is."""

import unicodedata
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import IntArray
from quanet.kernels.term_counts import BLOCK, SPACE, WORD, read_characters

Characters: TypeAlias = tuple[NDArray[np.uint32], IntArray, NDArray[np.uint8]]

BATCH = 2**21  # characters processed at a time, to bound memory
OTHER = 0  # a kind of characters, as WORD and SPACE
CODE_POINTS = 0x110000
IN_CONTEXT = "Σİ"  # their lower case depends on the neighbours, or has two characters

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
