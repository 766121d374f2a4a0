"""How many words of a text its classifier has never met."""

import re
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from quanet.arrays import BoolArray
from quanet.text import check_texts

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
