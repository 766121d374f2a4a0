"""Labelled instances that a quantifier's classifier has not seen, and what it would be had it seen others."""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.calibration import calibrate
from quanet.classifiers import check_labels
from quanet.errors import QuanetWarning
from quanet.lead import move_ahead
from quanet.methods.em import maximum_likelihood
from quanet.simplex import count, encode, smooth

T = TypeVar("T")

REPLICATES = 32  # of what a quantifier has learnt from held-out rows, each from another resample of them
BLOCKS = 50  # of neighbours in a class, to see how alike they are
FINE = 4001  # shares that are tried for an interval's ends


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Inputs (m, d) of held-out instances and their classes (m,)."""

    inputs: FloatArray
    codes: IntArray
    k: int

    @property
    def counts(self) -> IntArray:
        """Instances of every class, (k,)."""
        return count(self.codes, self.k)

    def by_class(self) -> list[IntArray]:
        """Positions of the instances of every class."""
        return [np.flatnonzero(self.codes == c) for c in range(self.k)]


def held_of(quantifier: Quantifier, held_out: tuple[Any, Any] | None) -> Held | None:
    """The held-out instances that the caller gives, or those kept from fit, or None."""
    k = len(quantifier.classes_)
    if held_out is not None:
        X, y = held_out
        inputs = quantifier._inputs_of(X)  # noqa: SLF001
        return Held(inputs, encode(check_labels(y, len(inputs)), quantifier.classes_), k)
    if hasattr(quantifier, "held_rows_"):
        return Held(quantifier.held_rows_.astype(float), quantifier.held_codes_.astype(np.intp), k)
    return None


_memory: WeakKeyDictionary[Quantifier, dict[Any, Any]] = WeakKeyDictionary()


def remembered(quantifier: Quantifier, key: Any, make: Callable[[], T]) -> T:
    """What was made once for a quantifier as it is now fitted; `make` must not return what holds the quantifier."""
    rows = getattr(quantifier, "held_rows_", None)
    mine = _memory.get(quantifier)
    if mine is None or mine["rows"] is not rows:  # it has been fitted again since
        mine = _memory[quantifier] = {"rows": rows}
    if key not in mine:
        mine[key] = make()
    return mine[key]


def brought_ahead(quantifier: Quantifier) -> Quantifier:
    """What the quantifier would be had it learnt from rows of its classifier as it is, which is ahead of its folds'.

    Made once for a fitted quantifier; itself where the lead is not known.
    """
    if getattr(quantifier, "lead_", None) is None:  # nor kept, by versions before it was measured
        return quantifier
    return remembered(quantifier, "ahead", lambda: _bring_ahead(quantifier))


def _bring_ahead(quantifier: Quantifier) -> Quantifier:
    assert quantifier.lead_ is not None
    k = len(quantifier.classes_)
    inputs, codes = quantifier.held_rows_.astype(float), quantifier.held_codes_.astype(np.intp)
    inputs[:, :k] = move_ahead(inputs[:, :k], codes, quantifier.lead_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has said it already
        ahead = copy(quantifier._relearnt(inputs, codes))  # noqa: SLF001
    ahead.held_rows_, ahead.lead_ = inputs.astype(np.float32), None
    return ahead


def replicates(quantifier: Quantifier) -> list[Quantifier]:
    """What the quantifier would be had it learnt from resamples of its held-out rows, class by class.

    They are made once for a fitted quantifier. One that learns nothing from such rows is alone in the list.
    """
    if not hasattr(quantifier, "held_rows_"):
        return [quantifier]
    return remembered(quantifier, "replicates", lambda: _relearn(quantifier)) or [quantifier]


def _relearn(quantifier: Quantifier) -> list[Quantifier]:
    held = held_of(quantifier, None)
    assert held is not None
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
    members = held.by_class()
    alike = float(np.mean([len(part) / worth(held.inputs[part, : held.k]) for part in members])) if posteriors else 1.0
    # The same for all classes, since what is learnt may depend on how common they are.
    chosen = np.concatenate([rng.choice(part, max(1, round(len(part) / alike))) for part in members])
    return Held(held.inputs[chosen], held.codes[chosen], held.k)


def worth(scores: FloatArray) -> float:
    """How many independent scores these (m, d) are worth, whose neighbours may be alike: m at most.

    Reviews of one film, or posts of one day, stand together in most data. Means of blocks of neighbours then differ by
    more than those of independent scores would. Each is compared with the next, so that a trend, or data that are
    sorted, are not mistaken for it (von Neumann 1941).
    """
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


def towards_the_ends(points: int) -> FloatArray:
    """Shares from 0 to 1, closer to each other near the ends."""
    return np.sin(np.linspace(0, np.pi / 2, points)) ** 2


def invert(
    estimate: FloatArray, shares: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Least and largest share that an estimate (b,) can belong to, if errors at shares (g,) lie in low to high, (g,).

    Examples
    --------
    >>> invert(np.array([0.0, 0.5]), np.array([0.0, 1.0]), np.array([-0.1, -0.1]), np.array([0.1, 0.1]))
    (array([0. , 0.4]), array([0.1, 0.6]))
    """
    fine = towards_the_ends(FINE)
    # A larger share has larger estimates; where noise says otherwise the wider of the two holds.
    highest = np.maximum.accumulate(fine + np.interp(fine, shares, high))
    lowest = np.minimum.accumulate((fine + np.interp(fine, shares, low))[::-1])[::-1]
    lower = fine[np.minimum(np.searchsorted(highest, estimate - 1e-12), FINE - 1)]
    upper = fine[np.maximum(np.searchsorted(lowest, estimate + 1e-12, side="right") - 1, 0)]
    return lower, upper
