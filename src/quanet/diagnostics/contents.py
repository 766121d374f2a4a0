"""Do the instances differ from the training data, and how many points may that cost? The finding "contents"."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.diagnostics.findings import WORTH_A_SENTENCE, Finding
from quanet.drift.descriptions import WORD, Descriptions, PosteriorDescriber, TextDescriber
from quanet.drift.profile import BagMeans
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.widening import FEW_ROWS, SMALL_COST, STATES, Drift, described
from quanet.wording import listing, plus_minus, points

TEXTS = 2000  # whose words are compared with the training texts
EXAMPLES = 3
NAMED = 3  # groups


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
