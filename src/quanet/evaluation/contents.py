"""Do the instances differ from the training data, and how many points may that cost? The finding "contents".

Texts are also compared with the training texts: unknown words, and texts that the model was trained on.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from quanet.arrays import BoolArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.duplicates import MAX_HASHES, Hashes
from quanet.data.instances import Inputs, check_texts
from quanet.drift.descriptions import WORD, Descriptions, PosteriorDescriber, TextDescriber
from quanet.drift.profile import BagMeans
from quanet.evaluation.findings import WORTH_A_SENTENCE, Finding
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.widening import FEW_ROWS, SMALL_COST, STATES, Drift, described
from quanet.wording import listing, percent, plus_minus, points

TEXTS = 2000  # whose words are compared with the training texts
EXAMPLES = 3
NAMED = 3  # groups
MANY_UNKNOWN = 0.15  # share of unknown words above which texts are unlike the training texts
MUCH_OVERLAP = 0.01  # share of training texts that needs a warning


@dataclass(frozen=True, slots=True, eq=False)
class SomeTexts:
    """Texts of some instances, to name words and examples.

    Attributes
    ----------
    texts : (m,).
    descriptions : (m, e) what they are about.
    groups : (m,) the bag of each text.
    """

    texts: Sequence[str] = ()
    descriptions: Descriptions = field(default_factory=lambda: np.empty((0, 0)))
    groups: NDArray[np.integer[Any]] = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def among(self, groups: IntArray) -> "SomeTexts":
        """The texts of these bags."""
        kept = np.flatnonzero(np.isin(self.groups, groups))
        return SomeTexts([self.texts[at] for at in kept.tolist()], self.descriptions[kept], self.groups[kept])


def contents_findings(
    quantifier: Quantifier,
    inputs: Inputs,
    total: Interval,
    texts: SomeTexts | None = None,
    *,
    bags: Bags | None = None,
    groups: Interval | None = None,
) -> list[Finding]:
    """What drift may cost, how this was determined, and what is different; empty if intervals do not include drift.

    Parameters
    ----------
    quantifier : fitted.
    inputs : the instances as it reads them.
    total : the interval of all instances, arrays (k,).
    texts : texts of some instances; words and examples are quoted if drift costs much.
    bags, groups : groups of the instances, if there are several, and their intervals, arrays (b, k).
    """
    if total.drift is None:
        return []
    what, training = _nouns(quantifier)
    if total.drift.state == "unknown":
        reason = "one instance does not show it" if np.isfinite(total.drift.variance) else total.drift.source
        sentence = f"It is unknown whether the {what} differ from the {training}: {reason}."
        return [Finding("contents", "note", sentence, "The interval includes sampling only, not drift.")]
    parts = total.drift if groups is None or groups.drift is None else groups.drift
    found = _differing(parts)
    unseen = " Drift that posteriors do not show is unknown." if what == "posteriors" else ""
    if len(_differing(total.drift)):
        worst, bag, some, who = total.drift, None, texts, what.capitalize()
    elif len(found):
        assert bags is not None
        worst = parts.of_bag(int(found[parts.cost[found].max(axis=1).argmax()]))
        bag, some = bags.take(found).joined(), None if texts is None else texts.among(found)
        who = f"{what.capitalize()} of {len(found):,} of {len(bags):,} groups"
    else:
        return [_alike(total, f"The {what} are like the {training}", unseen)]
    words, examples = _quoted(quantifier, inputs, bag, some or SomeTexts())
    more = f"; more {', '.join(map(repr, words))}" if words else ""
    sentence = f"{who} differ from the {training}: {_cost(worst)}{more}.{_by_state(groups)}{unseen}"
    severity, advice = _severity(total.drift, parts), _advice(total.drift, worst)
    return [Finding("contents", severity, sentence, advice, _numbers(worst), examples)]


def _severity(total: Drift, parts: Drift) -> str:
    """An alarm if a bag is refused, a warning if drift may cost more than half of an interval, otherwise a note."""
    if "refused" in (total.state, *np.atleast_1d(parts.state)):
        return "alarm"
    costly = (drift.cost.max(axis=-1) > (drift.upper - drift.lower).max(axis=-1) / 2 for drift in (total, parts))
    return "warning" if any(map(np.any, costly)) else "note"


def _alike(total: Interval, like: str, unseen: str) -> Finding:
    """The finding that no difference is visible, or that it costs little."""
    drift = total.drift
    assert drift is not None
    if drift.state == FEW_ROWS:
        sentence = f"{like} as far as they can show: they are too few to rule out drift that matters.{unseen}"
        advice = f"Estimate more of them together, or label {int(drift.labels):,} at random and use quanet refine."
        return Finding("contents", "note", sentence, advice, _numbers(drift))
    half = float(total.without_drift.width.max()) / 2
    if float(drift.cost.max()) > SMALL_COST * half:
        hidden = f" Drift of up to {points(float(drift.cost.max()))} may go unnoticed; the interval includes it."
        sentence = f"{like}: no drift was detected.{hidden if _costs(drift) else ''}{unseen}"
        return Finding("contents", "ok", sentence, numbers=_numbers(drift))
    small = f": {_cost(drift)}, at most half of the sampling error ({plus_minus(half)})" if _costs(drift) else ""
    return Finding("contents", "ok", f"{like}{small}.{unseen}", numbers=_numbers(drift))


def _nouns(quantifier: Quantifier) -> tuple[str, str]:
    """What the instances are, and what they are compared with."""
    describer = None if quantifier.drift_ is None else quantifier.drift_.describer
    if isinstance(describer, TextDescriber):
        return "texts", "training texts"
    if isinstance(describer, PosteriorDescriber):
        return "posteriors", "training posteriors"
    return "instances", "training data"


def _differing(drift: Drift) -> IntArray:
    """Positions of the bags that are widened or refused, and that differ visibly from the training data."""
    states = np.atleast_1d(drift.state)
    return np.flatnonzero(np.isin(states.astype(str), ("widened", "refused")) & (np.atleast_1d(drift.distance) > 0))


def _numbers(drift: Drift) -> dict[str, float]:
    return {
        "points": 100 * float(drift.cost.max()),
        "distance": float(drift.distance),
        "variance": float(drift.variance),
        "labels": float(drift.labels),
    }


def _cost(drift: Drift) -> str:
    return f"drift may cost up to {points(float(drift.cost.max()))} ({drift.source})"


def _costs(drift: Drift) -> bool:
    """Whether drift may cost so much that it is worth a sentence."""
    return bool(drift.cost.max() >= WORTH_A_SENTENCE)


def _by_state(groups: Interval | None) -> str:
    """How many groups have each state, with the names of those that are refused."""
    if groups is None or groups.drift is None:
        return ""
    counts = {state: int((groups.drift.state == state).sum()) for state in STATES}
    parts = {state: f"{number:,} {state}" for state, number in counts.items() if number}
    if counts["refused"] and groups.groups is not None:
        names = [str(name) for name in groups.groups[groups.drift.state == "refused"].tolist()]
        parts["refused"] += f" ({listing(names, most=NAMED)})"
    return f" Groups: {', '.join(parts.values())}."


def _advice(total: Drift, worst: Drift) -> str:
    how = "quanet label plan, then quanet refine"
    if total.state == "trusted":
        return f"Label about {int(worst.labels):,} random rows of such a group: {how}."
    label = f"Label about {int(worst.labels):,} random rows: {how}"
    if total.state == "widened":
        return f"{label}."
    return f"Do not rely on the estimate. {label}; or train on similar data."


def _quoted(
    quantifier: Quantifier, inputs: Inputs, bag: Bags | None, some: SomeTexts
) -> tuple[list[str], tuple[str, ...]]:
    """Words that are more frequent in a bag (None: all instances) than in training, and texts with most of them.

    Among texts with equally many of these words, those that are closest to the shift come first.
    """
    scale, descriptions = quantifier.drift_, described(quantifier, inputs)
    if scale is None or scale.profile is None or descriptions is None or not some.texts:
        return [], ()
    if not isinstance(scale.describer, TextDescriber):
        return [], ()
    found = BagMeans.of(descriptions, Bags([np.arange(len(inputs))]) if bag is None else bag)
    excess = scale.profile.compare(found).excesses[0]
    words = scale.describer.words(list(some.texts[:TEXTS]), found.means[0] - excess - scale.profile.mean)
    closeness = np.asarray(some.descriptions, dtype=float) @ excess
    named = [len(set(words) & set(WORD.findall(text.lower()))) for text in some.texts]
    order = np.lexsort((-closeness, -np.array(named)))[: 20 * EXAMPLES].tolist()
    examples = dict.fromkeys(some.texts[at].strip() for at in order)  # each once
    return words, tuple(examples)[:EXAMPLES]


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
