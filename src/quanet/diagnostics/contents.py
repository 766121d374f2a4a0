"""Whether the texts of a bag are about what those of training are about."""

from collections.abc import Iterable
from typing import Any

from sklearn.frozen import FrozenEstimator

from quanet.base import Quantifier
from quanet.diagnostics.findings import Finding
from quanet.diagnostics.words import classifier_of, surplus_words
from quanet.text import TextClassifier, check_texts, is_text

# Squared distance from training, as a share of the texts' own, up to which texts are of the same kind. Chosen on halves
# of training sets: other films are at .0001, devices without dates at .0002, other days of tweets at .0005; earlier
# and later years of device reviews at .0011 to .0016, of book reviews at .0018.
SAME_KIND = 0.0005


def unlike_training(quantifier: Quantifier, texts: list[str]) -> float | None:
    """The p-value of texts being of the same kind as those of training; None where that cannot be said."""
    classifier = _text_classifier(quantifier)
    found = None if classifier is None else classifier.contents(texts)
    return None if found is None else found.p_value(SAME_KIND)


def _text_classifier(quantifier: Quantifier) -> TextClassifier | None:
    classifier = classifier_of(quantifier)
    while isinstance(classifier, FrozenEstimator):
        classifier = classifier.estimator
    return classifier if isinstance(classifier, TextClassifier) else None


def familiar_contents(quantifier: Quantifier, X: Any, alpha: float) -> list[Finding]:
    """Whether a bag is further from every mixture of the training classes than texts of one kind are.

    Nothing of other data, or where the classifier keeps no contents.
    """
    if not (isinstance(X, Iterable) and is_text(X)):
        return []
    classifier, texts = _text_classifier(quantifier), check_texts(X)
    found = None if classifier is None else classifier.contents(texts)
    if classifier is None or found is None:
        return []
    p_value, beyond = found.p_value(), found.p_value(SAME_KIND)
    numbers = {"p_value": p_value, "distance": found.distance, "p_beyond": beyond, "usual": SAME_KIND}
    if p_value >= alpha:
        sentence = f"The texts are about what those of training are, at some prevalence (p = {p_value:.2g})."
        return [Finding("contents", "ok", sentence, numbers=numbers)]
    more = ", ".join(repr(word) for word in surplus_words(classifier, texts, found.surplus))
    said = f"distance {found.distance:.2%} of the texts' own, p = {p_value:.2g}" + (f"; more of {more}" if more else "")
    if beyond >= alpha:
        sentence = f"The texts are about a little else than those of training, as is usual with new ones ({said})."
        return [Finding("contents", "note", sentence, numbers=numbers)]
    return [
        Finding(
            "contents",
            "alarm",
            f"The texts are about something else than those of training, whatever their prevalence ({said}; up to "
            f"{SAME_KIND:.2%} is usual).",
            "Classes may look different here, which no method can see: label a small random part of the bag and use "
            "refine, or train on texts like these.",
            numbers,
        )
    ]
