"""Labelled instances that a quantifier's classifier has not seen, and what it would be had it seen others."""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.calibration import calibrate
from quanet.classifiers import check_labels
from quanet.duplicates import find_distinct, first_copies, independent_size
from quanet.errors import QuanetWarning
from quanet.instances import ReadInstances
from quanet.lead import move_ahead
from quanet.methods.em import maximum_likelihood
from quanet.simplex import count, encode, smooth

T = TypeVar("T")

REPLICATES = 32  # of what a quantifier has learnt from held-out rows, each from another resample of them
BLOCKS = 50  # of neighbours in a class, to see how alike they are


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Inputs (m, d) of held-out instances and their classes (m,); `groups` (m,) tell copies of one instance, if any."""

    inputs: FloatArray
    codes: IntArray
    k: int
    groups: IntArray | None = None

    @property
    def counts(self) -> IntArray:
        """Instances of every class, (k,)."""
        return count(self.codes, self.k)

    @property
    def distinct(self) -> IntArray:
        """Different instances of every class, (k,)."""
        if self.groups is None:
            return self.counts
        return count(np.unique(self.groups * self.k + self.codes) % self.k, self.k)

    def worth(self, scores: FloatArray) -> FloatArray:
        """How many independent instances of every class (k,) the scores (m, d) of these instances are worth."""
        return np.array([worth(scores[part], self.groups_of(part)) for part in self.by_class()])

    def groups_of(self, part: IntArray) -> IntArray | None:
        """Which of some instances are copies of one another."""
        return None if self.groups is None else self.groups[part]

    def each_once(self) -> "Held":
        """The same without copies."""
        if self.groups is None:
            return self
        first = first_copies(self.groups, self.codes)
        return Held(self.inputs[first], self.codes[first], self.k)

    def by_class(self) -> list[IntArray]:
        """Positions of the instances of every class."""
        return [np.flatnonzero(self.codes == c) for c in range(self.k)]


def held_of(quantifier: Quantifier, held_out: tuple[Any, Any] | None) -> Held | None:
    """The held-out instances that the caller gives, or those kept from fit, or None."""
    k = len(quantifier.classes_)
    if held_out is not None:
        X, y = held_out
        inputs = quantifier._inputs_of(X)  # noqa: SLF001
        codes = encode(check_labels(y, len(inputs)), quantifier.classes_)
        distinct = None if isinstance(X, ReadInstances) else find_distinct(X)
        return Held(inputs, codes, k, None if distinct is None else distinct.owner)
    return kept_of(quantifier) if hasattr(quantifier, "held_rows_") else None


def kept_of(quantifier: Quantifier) -> Held:
    """The held-out instances kept from fit."""
    groups: IntArray | None = getattr(quantifier, "held_groups_", None)  # not kept by versions before it was
    return Held(
        quantifier.held_rows_.astype(float),
        quantifier.held_codes_.astype(np.intp),
        len(quantifier.classes_),
        None if groups is None else groups.astype(np.intp),
    )


_memory: WeakKeyDictionary[Quantifier, dict[Any, Any]] = WeakKeyDictionary()
MEMORY = RLock()  # also keeps `catch_warnings`, which changes the whole process, to one thread at a time


def remembered(quantifier: Quantifier, key: Any, make: Callable[[], T]) -> T:
    """What was made once for a quantifier as it is now fitted; `make` must not return what holds the quantifier."""
    with MEMORY:
        rows = getattr(quantifier, "held_rows_", None)
        mine = _memory.get(quantifier)
        if mine is None or mine["rows"] is not rows:  # it has been fitted again since
            mine = _memory[quantifier] = {"rows": rows}
        if key not in mine:
            mine[key] = make()
        return mine[key]


def brought_ahead(quantifier: Quantifier) -> Quantifier:
    """What the quantifier would be had it learnt from rows of its classifier as it is, which is ahead of its folds'.

    Made once for a fitted quantifier; itself where the lead is not known. It does not shrink its estimates.
    """
    if getattr(quantifier, "lead_", None) is None:  # nor kept, by versions before it was measured
        return unshrunk(quantifier)
    return remembered(quantifier, "ahead", lambda: _bring_ahead(quantifier))


def _bring_ahead(quantifier: Quantifier) -> Quantifier:
    assert quantifier.lead_ is not None
    k = len(quantifier.classes_)
    inputs, codes = quantifier.held_rows_.astype(float), quantifier.held_codes_.astype(np.intp)
    inputs[:, :k] = move_ahead(inputs[:, :k], codes, quantifier.lead_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has said it already
        ahead = copy(quantifier._relearnt(inputs, codes))  # noqa: SLF001
    ahead.held_rows_, ahead.lead_, ahead.shrinkage_ = inputs.astype(np.float32), None, 0.0
    return ahead


def unshrunk(quantifier: Quantifier) -> Quantifier:
    """The quantifier without its shrinkage: intervals are those of the method's own estimates, as wide as these err."""
    return remembered(quantifier, "unshrunk", lambda: _unshrink(quantifier)) if quantifier.shrinkage_ else quantifier


def _unshrink(quantifier: Quantifier) -> Quantifier:
    copied = copy(quantifier)
    copied.shrinkage_ = 0.0
    return copied


def replicates(quantifier: Quantifier) -> list[Quantifier]:
    """What the quantifier would be had it learnt from resamples of its held-out rows, class by class.

    They are made once for a fitted quantifier. One that learns nothing from such rows is alone in the list.
    """
    if not hasattr(quantifier, "held_rows_"):
        return [quantifier]
    return remembered(quantifier, "replicates", lambda: _relearn(quantifier)) or [quantifier]


def _relearn(quantifier: Quantifier) -> list[Quantifier]:
    held = kept_of(quantifier)
    made: list[Quantifier] = []
    if held.counts.min() == 0:  # nothing to draw a class from
        return made
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has said it already
        for _ in range(REPLICATES):
            chosen = resampled(held, rng, posteriors=quantifier._reads_posteriors)  # noqa: SLF001
            other = quantifier._relearnt(chosen.inputs, chosen.codes)  # noqa: SLF001
            if other is quantifier:
                break
            made.append(other)
    return made


def resampled(held: Held, rng: np.random.Generator, *, posteriors: bool) -> Held:
    """Held-out rows drawn again with replacement, class by class, as many as they are worth.

    `posteriors` says whether the inputs begin with posteriors, which show how alike neighbours are.
    """
    members, alike = held.by_class(), 1.0
    if posteriors:
        alike = float(np.mean(held.counts / held.worth(held.inputs[:, : held.k])))
    elif held.groups is not None:
        alike = float(np.mean([len(part) / independent_size(held.groups[part]) for part in members]))
    # The same for all classes, since what is learnt may depend on how common they are.
    chosen = np.concatenate([rng.choice(part, max(1, round(len(part) / alike))) for part in members])
    return Held(held.inputs[chosen], held.codes[chosen], held.k)


def worth(scores: FloatArray, groups: IntArray | None = None) -> float:
    """How many independent scores these (m, d) are worth, whose neighbours may be alike: m at most.

    Copies of an instance, those of the same of the `groups` (m,), count once.

    Reviews of one film, or posts of one day, stand together in most data. Means of blocks of neighbours then differ by
    more than those of independent scores would. Each is compared with the next, so that a trend, or data that are
    sorted, are not mistaken for it (von Neumann 1941).
    """
    if groups is not None:
        _, first = np.unique(groups, return_index=True)
        return worth(scores[np.sort(first)]) * independent_size(groups) / len(first)
    m = len(scores)
    if m < 2 * BLOCKS:
        return float(m)
    parts = np.array_split(np.arange(m), BLOCKS)
    means = np.array([scores[part].mean(axis=0) for part in parts])
    between = float((np.diff(means, axis=0) ** 2).sum()) / (2 * (BLOCKS - 1))
    alone = float(scores.var(axis=0, ddof=1).sum()) * BLOCKS / m
    return m * min(1.0, max(alone / max(between, 1e-300), BLOCKS / m))


def training_covariance(quantifier: Quantifier, inputs: FloatArray, bags: Bags) -> FloatArray:
    """How much the bags' estimates would differ had other rows been held out: (b, k, k)."""
    others = replicates(quantifier)
    k = len(quantifier.classes_)
    if len(others) == 1:
        return np.zeros((len(bags), k, k))
    found = np.stack([one._aggregate_bags(one._rows(inputs), bags) for one in others])  # noqa: SLF001
    found -= found.mean(axis=0)
    return np.einsum("rbc,rbd->bcd", found, found) / (len(others) - 1)


class Likelihoods:
    """Class-conditional likelihoods of instances, up to a factor, from posteriors calibrated on held-out ones.

    Parameters
    ----------
    held : whose inputs begin with posteriors; None takes posteriors at their word.
    prior : (k,) training prevalences, of the posteriors.
    """

    def __init__(self, held: Held | None, prior: FloatArray) -> None:
        self.prior = prior
        self.calibration: Any = None
        if held is not None:
            self.prior = held.counts / len(held.codes)
            self.calibration = calibrate(held.inputs[:, : held.k], held.codes, method="bcts")

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """Likelihoods (n, k) of inputs (n, d); a row's largest is 1."""
        posteriors = inputs[:, : len(self.prior)]
        ratios = (posteriors if self.calibration is None else self.calibration(posteriors)) / self.prior
        return ratios / ratios.max(axis=1, keepdims=True)

    @staticmethod
    def prevalences(likelihoods: FloatArray) -> FloatArray:
        """Maximum likelihood, smoothed by an instance a class, since no bag shows that one is absent.

        (..., n, k) -> (..., k)
        """
        n, k = likelihoods.shape[-2:]
        # Scaled by the same number for all classes, which changes nothing.
        found, _ = maximum_likelihood(likelihoods, np.full(k, 1 / k))
        return smooth(found, 1 / n)

    @staticmethod
    def posteriors(likelihoods: FloatArray, prevalences: FloatArray) -> FloatArray:
        """Posteriors (n, k) in a bag of these prevalences."""
        joint = likelihoods * prevalences
        return joint / joint.sum(axis=1, keepdims=True)
