"""Are the texts of a bag like those of training? Their words, and what they are about."""

from typing import Any

from sklearn.frozen import FrozenEstimator

from quanet.base import Quantifier
from quanet.diagnostics.findings import Finding
from quanet.diagnostics.words import surplus_words, unknown_share
from quanet.text import TextClassifier, check_texts, is_text

MANY_UNKNOWN = 0.15  # share of words that a classifier does not know, where it reads of something else
# Squared distance from training, as a share of the texts' own, up to which texts are of the same kind. Chosen on halves
# of training sets: other films are at .0001, devices without dates at .0002, other days of tweets at .0005; earlier
# and later years of device reviews at .0011 to .0016, of book reviews at .0018.
SAME_KIND = 0.0005


def text_findings(quantifier: Quantifier, X: Any, X_held: Any, alpha: float) -> list[Finding]:
    """What the texts of a bag say; nothing of other data, or where the classifier has kept nothing to compare with."""
    if not is_text(X):
        return []
    classifier = getattr(quantifier, "classifier_", None) or getattr(
        getattr(quantifier, "rows_", None), "classifier", None
    )
    return [*_familiar_words(classifier, X, X_held), *_familiar_contents(classifier, X, alpha)]


def _familiar_words(classifier: Any, X: Any, X_held: Any) -> list[Finding]:
    share = unknown_share(classifier, X)
    if share is None:
        return []
    usual = unknown_share(classifier, X_held) if X_held is not None and is_text(X_held) else None
    most = MANY_UNKNOWN if usual is None else max(2 * usual, usual + 0.05)
    numbers = {"unknown": share} | ({} if usual is None else {"usual": usual})
    beside = "" if usual is None else f", where {usual:.1%} is usual"
    if share <= most:
        sentence = f"The words are those of training: {share:.1%} are new to the classifier{beside}."
        return [Finding("words", "ok", sentence, numbers=numbers)]
    return [
        Finding(
            "words",
            "warning" if share <= 2 * most else "alarm",
            f"The texts are unlike the training texts: {share:.1%} of their words are new to the classifier{beside}.",
            "Check that they are of the same kind and language; train on texts like these, or use refine.",
            numbers,
        )
    ]


def _familiar_contents(classifier: Any, X: Any, alpha: float) -> list[Finding]:
    """Whether a bag is further from every mixture of the training classes than texts of one kind are."""
    while isinstance(classifier, FrozenEstimator):
        classifier = classifier.estimator
    texts = check_texts(X)
    found = classifier.contents(texts) if isinstance(classifier, TextClassifier) else None
    if found is None:
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
