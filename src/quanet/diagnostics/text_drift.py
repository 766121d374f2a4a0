"""Compare texts with the training texts: unknown words, and texts that the model was trained on."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from quanet.arrays import BoolArray
from quanet.data.duplicates import MAX_HASHES, Hashes
from quanet.data.instances import check_texts
from quanet.diagnostics.findings import Finding
from quanet.drift.descriptions import WORD
from quanet.wording import percent

MANY_UNKNOWN = 0.15  # share of unknown words above which texts are unlike the training texts
MUCH_OVERLAP = 0.01  # share of training texts that needs a warning


def classifier_of(quantifier: Any) -> Any:
    """The fitted classifier of a quantifier, or None."""
    return getattr(quantifier, "classifier_", None) or getattr(getattr(quantifier, "rows_", None), "classifier", None)


class UnknownWords:
    """Count the words of texts that a classifier does not know, batch by batch.

    Parameters
    ----------
    classifier : fitted; without a vocabulary, the share is None.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier
        self.total = self.unknown = 0
        self._known: dict[str, bool] = {}

    def add(self, texts: Iterable[str]) -> None:
        """Count the words of more texts."""
        words = Counter(word for text in texts for word in WORD.findall(text.lower()))
        new = [word for word in words if word not in self._known]
        if new:
            known = _known(self.classifier, new)
            if known is None:
                return
            self._known.update(zip(new, known.tolist(), strict=True))
        self.total += words.total()
        self.unknown += sum(count for word, count in words.items() if not self._known[word])

    @property
    def share(self) -> float | None:
        """Share of unknown words; None if it is not known."""
        return self.unknown / self.total if self.total else None


def unknown_share(classifier: Any, X: Any) -> float | None:
    """Share of the words in texts that a fitted classifier does not know; None without a vocabulary.

    Examples
    --------
    >>> from quanet import TextClassifier
    >>> classifier = TextClassifier().fit(["good film", "bad film"] * 5, ["yes", "no"] * 5)
    >>> unknown_share(classifier, ["good film", "late flight"])
    0.5
    """
    counter = UnknownWords(classifier)
    counter.add(check_texts(X))
    return counter.share


def _known(classifier: Any, words: list[str]) -> BoolArray | None:
    """Whether each word is in the vocabulary of a classifier, of its first step, or of its vectorizer."""
    if isinstance(classifier, FrozenEstimator):
        return _known(classifier.estimator, words)
    if hasattr(classifier, "steps"):
        return _known(classifier.steps[0][1], words)
    terms = getattr(classifier, "terms_", None)
    if terms is not None:
        return _known(terms["words"] if isinstance(terms, dict) else terms, words)
    if hasattr(classifier, "vocabulary_"):
        vocabulary = classifier.vocabulary_
        return np.array([word in vocabulary for word in words])
    if hasattr(classifier, "hashes") and hasattr(classifier, "transform"):  # `Terms`
        return np.diff(classifier.transform(words).indptr) > 0
    return None


def unknown_words_finding(share: float, usual: float | None = None) -> Finding:
    """The finding about a share of unknown words, compared with the usual share if known."""
    limit = MANY_UNKNOWN if usual is None else max(2 * usual, usual + 0.05)
    numbers = {"unknown": share} | ({} if usual is None else {"usual": usual})
    typical = "" if usual is None else f" ({percent(usual)} is typical)"
    if share <= limit:
        sentence = f"The vocabulary matches the training texts: {percent(share)} of the words are unknown{typical}."
        return Finding("words", "ok", sentence, numbers=numbers)
    return Finding(
        "words",
        "warning" if share <= 2 * limit else "alarm",
        f"The vocabulary differs from the training texts: {percent(share)} of the words are unknown{typical}.",
        "Check that the texts are of the same kind and language. Train on similar texts, or use refine.",
        numbers,
    )


def training_hashes(quantifier: Any) -> Hashes | None:
    """The hashes of training texts saved with a model, or None."""
    found: Hashes | None = getattr(quantifier, "training_hashes_", None)
    return found


class TrainingOverlap:
    """Count texts that are also training texts, batch by batch.

    Parameters
    ----------
    hashes : the result of `hash_training_texts`, or None if unknown.

    Examples
    --------
    >>> from quanet.data.duplicates import hash_texts, hash_training_texts
    >>> overlap = TrainingOverlap(hash_training_texts(["good film", "bad film"]))
    >>> overlap.add(hash_texts(["Good film ", "poor film"]))
    >>> overlap.count
    1
    """

    def __init__(self, hashes: Hashes | None) -> None:
        self._hashes = hashes
        self.texts = self.compared = self.found = 0

    def add(self, hashes: Hashes) -> None:
        """Compare more texts, given the result of `hash_texts`."""
        if self._hashes is None or not len(self._hashes):
            return
        self.texts += len(hashes)
        if len(self._hashes) == MAX_HASHES:  # a subset: only texts in its range can be compared
            hashes = hashes[hashes <= self._hashes[-1]]
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        self.compared += len(hashes)
        self.found += int((self._hashes[at] == hashes).sum())

    @property
    def count(self) -> int | None:
        """Texts that are training texts, estimated if only a subset of the hashes is known; None if none is known."""
        return overlap_count(self.texts, self.compared, self.found)


def overlap_count(texts: int, compared: int, found: int) -> int | None:
    """How many of some texts are training texts, if as many were found among those compared; None if none was."""
    return round(found / compared * texts) if compared else None


def training_overlap_findings(count: int | None, n: int) -> list[Finding]:
    """The finding about `count` training texts among n texts; empty if there are none.

    Examples
    --------
    >>> print(*training_overlap_findings(1, 3000))
    note: 1 of the 3,000 texts is a training text. So few hardly change the shares.
    """
    if not count:
        return []
    share, are = count / n, "is a training text" if count == 1 else "are training texts"
    much = share >= MUCH_OVERLAP
    them, they = ("it", "its label") if count == 1 else ("them", "their labels")
    advice = (
        f"The model was fitted to {they}, so it is more confident about {them} than about new texts. Leave {them} out, "
        f"and add {they} to the result."
    )
    return [
        Finding(
            "training texts",
            "warning" if much else "note",
            f"{count:,} of the {n:,} texts{f' ({percent(share)})' if much else ''} {are}.",
            advice if much else "So few hardly change the shares.",
            {"texts": float(count), "share": share},
        )
    ]
