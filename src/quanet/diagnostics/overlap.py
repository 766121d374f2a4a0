"""Texts that a model was trained on, recognised when they come again."""

from typing import Any

import numpy as np

from quanet.diagnostics.findings import Finding
from quanet.duplicates import Hashes, hash_texts

MOST = 2**16  # hashes kept of the training texts: half a megabyte
LARGE = 0.01  # share of training texts from which on a file needs a warning


def remember_texts(texts: list[str]) -> Hashes:
    """Hashes of the distinct texts, sorted; of many, the smallest ones, which are as good as a random part."""
    return np.unique(hash_texts(texts))[:MOST]


class SeenTexts:
    """Counts texts that were training texts, as they come.

    Parameters
    ----------
    hashes : what `remember_texts` made of the training texts; None where they were not kept.

    Examples
    --------
    >>> seen = SeenTexts(remember_texts(["good film", "bad film"]))
    >>> seen.add(["Good film ", "poor film"])
    >>> seen.count
    1
    """

    def __init__(self, hashes: Hashes | None) -> None:
        self._hashes = hashes
        self.texts = self.compared = self.found = 0

    def add(self, texts: list[str]) -> None:
        """Look at more texts."""
        if self._hashes is None or not len(self._hashes):
            return
        hashes = hash_texts(texts)
        if len(self._hashes) == MOST:  # a part was kept: texts outside its range cannot be compared
            hashes = hashes[hashes <= self._hashes[-1]]
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        self.texts += len(texts)
        self.compared += len(hashes)
        self.found += int((self._hashes[at] == hashes).sum())

    @property
    def count(self) -> int | None:
        """Texts that were training texts, an estimate where only part of these was kept; None where none was."""
        return round(self.found / self.compared * self.texts) if self.compared else None


def seen_finding(count: int | None, n: int) -> list[Finding]:
    """What to say of n texts, of which `count` were training texts: nothing where there are none."""
    if not count:
        return []
    share, are = count / n, "is a training text" if count == 1 else "are training texts"
    return [
        Finding(
            "training texts",
            "warning" if share >= LARGE else "note",
            f"{count:,} of the {n:,} texts ({share:.1%}) {are}.",
            "The model has seen their labels, so it is more confident about them than about new texts. Leave them out, "
            "and add their known labels to the result.",
            {"texts": float(count), "share": share},
        )
    ]


def hashes_of(quantifier: Any) -> Hashes | None:
    """The hashes kept with a model, or None."""
    found: Hashes | None = getattr(quantifier, "training_hashes_", None)
    return found
