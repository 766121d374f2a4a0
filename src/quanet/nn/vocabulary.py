"""Words to ids: the tokeniser, the vocabulary and the matrix of ids that a network reads."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import IntArray
from quanet.errors import InvalidData

PADDING = 0
UNKNOWN = 1
FIRST_WORD = 2

IdMatrix: TypeAlias = NDArray[np.int32]

_LINE_BREAK = re.compile(r"<br\s*/?>")
_WORD = re.compile(r"\w+(?:'\w+)*")


def tokenize(text: str) -> list[str]:
    """The words of a text, lower-cased; HTML line breaks are none.

    Examples
    --------
    >>> tokenize("Don't look.<br /><br />GREAT film, 10/10")
    ["don't", 'look', 'great', 'film', '10', '10']
    """
    return _WORD.findall(_LINE_BREAK.sub(" ", text.lower()))


def most_frequent_words(texts: list[str], size: int) -> dict[str, int]:
    """Ids of the `size` most frequent words, from `FIRST_WORD` on; words as frequent as each other in their own order.

    Examples
    --------
    >>> most_frequent_words(["b a c", "c b", "c"], 2)
    {'c': 2, 'b': 3}
    """
    frequency: Counter[str] = Counter()
    for text in texts:
        frequency.update(tokenize(text))
    if not frequency:
        raise InvalidData(
            f"no words were found in the {len(texts)} texts, such as {texts[0][:40]!r}. Check the column."
        )
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))
    return {word: number for number, word in enumerate(ranked[:size], start=FIRST_WORD)}


def encode_words(texts: Iterable[str], vocabulary: Mapping[str, int], length: int) -> tuple[IdMatrix, IntArray]:
    """Ids (n, length) of the last `length` words of every text, padded at the end, and their number (n,).

    Examples
    --------
    >>> encode_words(["one two three", "", "two four"], {"one": 2, "two": 3, "three": 4}, 2)
    (array([[3, 4], [0, 0], [3, 1]], dtype=int32), array([2, 0, 2]))
    """
    known = vocabulary.get
    # Numbers side by side: a list of lists would take several times the memory.
    flat, sizes = array("i"), []
    for text in texts:
        words = tokenize(text)[-length:]
        flat.extend([known(word, UNKNOWN) for word in words])
        sizes.append(len(words))
    lengths = np.array(sizes, dtype=np.intp)
    ids = np.full((len(lengths), length), PADDING, dtype=np.int32)
    ids[np.arange(length) < lengths[:, None]] = np.asarray(flat, dtype=np.int32)
    return ids, lengths
