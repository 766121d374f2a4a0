"""Words of texts that their classifier has never met, or meets more often than in training."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from quanet.arrays import BoolArray, FloatArray
from quanet.diagnostics.findings import Finding
from quanet.text import TextClassifier, check_texts

MANY_UNKNOWN = 0.15  # share of words that a classifier does not know, where it reads of something else
_WORD = re.compile(r"\w\w+")  # as scikit-learn's vectorizers read: two letters at least


def unknown_share(classifier: Any, X: Any) -> float | None:
    """Share of the words in texts that a fitted classifier does not know; None where it keeps no vocabulary.

    Examples
    --------
    >>> from quanet import TextClassifier
    >>> classifier = TextClassifier().fit(["good film", "bad film"] * 5, ["yes", "no"] * 5)
    >>> unknown_share(classifier, ["good film", "late flight"])
    0.5
    """
    counter = WordCounter(classifier)
    counter.add(check_texts(X))
    return counter.share


class WordCounter:
    """Words of texts, and how many of them a classifier does not know, counted as texts come.

    Parameters
    ----------
    classifier : fitted; one that keeps no vocabulary makes the share None.
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier
        self.total = self.unknown = 0
        self._known: dict[str, bool] = {}

    def add(self, texts: Iterable[str]) -> None:
        """Count the words of more texts."""
        words = Counter(word for text in texts for word in _WORD.findall(text.lower()))
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
        """Unknown words among all; None where nothing is known of it."""
        return self.unknown / self.total if self.total else None


def classifier_of(quantifier: Any) -> Any:
    """The fitted classifier inside a quantifier, or None."""
    chosen = getattr(quantifier, "quantifier_", quantifier)  # that of a search
    return getattr(chosen, "classifier_", None) or getattr(getattr(chosen, "rows_", None), "classifier", None)


def surplus_words(classifier: TextClassifier, texts: list[str], surplus: FloatArray, most: int = 3) -> list[str]:
    """The words of texts whose terms have the largest surplus (w,), in that order."""
    words = sorted({word for text in texts for word in _WORD.findall(text.lower())})
    found = classifier.terms_["words"].transform(words).tocoo()
    kept = found.col < len(surplus)
    best = {words[row]: float(surplus[column]) for row, column in zip(found.row[kept], found.col[kept], strict=True)}
    return sorted((word for word in best if best[word] > 0), key=lambda word: -best[word])[:most]


def _known(classifier: Any, words: list[str]) -> BoolArray | None:
    """Whether every word is in a classifier's vocabulary, wherever it keeps that."""
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
    if hasattr(classifier, "hashes") and hasattr(classifier, "transform"):  # terms that are kept as numbers
        return np.diff(classifier.transform(words).indptr) > 0
    return None


def words_finding(share: float, usual: float | None = None) -> Finding:
    """What it means that a share of a bag's words is unknown to the classifier, where `usual` is the normal one."""
    most = MANY_UNKNOWN if usual is None else max(2 * usual, usual + 0.05)
    numbers = {"unknown": share} | ({} if usual is None else {"usual": usual})
    beside = "" if usual is None else f", where {usual:.1%} is usual"
    if share <= most:
        sentence = f"The words are those of training: {share:.1%} are new to the classifier{beside}."
        return Finding("words", "ok", sentence, numbers=numbers)
    return Finding(
        "words",
        "warning" if share <= 2 * most else "alarm",
        f"The texts are unlike the training texts: {share:.1%} of their words are new to the classifier{beside}.",
        "Check that they are of the same kind and language; train on texts like these, or use refine.",
        numbers,
    )
