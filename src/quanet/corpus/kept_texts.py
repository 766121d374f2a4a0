"""A few texts of each group, and more of all: which ones follows from a hash of the text alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import IntArray
from quanet.data.duplicates import Hashes

MOST_TEXTS = 10_000  # of all groups
MOST_BYTES = 50_000_000  # in these texts
OF_GROUP = 2  # texts of each group, besides
LONGEST = 2000  # characters kept of a text


@dataclass(frozen=True, slots=True, eq=False)
class KeptTexts:
    """Texts that were kept.

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
        import pyarrow as pa

        chosen = _smallest(hashes, groups)
        written = [texts[at][:LONGEST].encode(errors="surrogatepass") for at in chosen.tolist()]
        some = np.asarray(descriptions[chosen], dtype=np.float16)
        return cls(hashes[chosen], groups[chosen], pa.array(written, pa.large_binary()), some).limited()

    @classmethod
    def merged(cls, parts: Sequence["KeptTexts"]) -> "KeptTexts":
        """The texts kept of several parts with the same numbers of groups."""
        import pyarrow as pa

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
        import pyarrow.compute as pc

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
