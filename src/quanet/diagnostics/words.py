"""Words of texts that their classifier has never met, or meets more often than in training."""

import re
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from quanet.arrays import BoolArray, FloatArray
from quanet.text import TextClassifier, check_texts

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
    words, places = np.unique(
        [word for text in check_texts(X) for word in _WORD.findall(text.lower())], return_inverse=True
    )
    if not len(words):
        return None
    known = _known(classifier, words.tolist())
    return None if known is None else float(1 - known[places].mean())


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
