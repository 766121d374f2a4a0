"""What all kinds of intervals share: the request, variants of a fitted quantifier, and calibrated likelihoods.

- `IntervalRequest`: bags whose intervals are requested, with everything a kind of interval needs.
- `as_full_fit`, `unshrunk`, `replicates`: copies of a quantifier that have learned from other held-out inputs.
- `Likelihoods`: class-conditional likelihoods from posteriors calibrated on held-out instances.
- `cached`: results that are computed once for a fitted quantifier.
"""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy.stats import norm

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.calibration import calibrate
from quanet.classifiers.cross_fitting import check_labels, close_fold_gap
from quanet.data.duplicates import find_distinct
from quanet.data.instances import Inputs
from quanet.errors import QuanetWarning
from quanet.held_out import HeldOut
from quanet.methods.solvers import maximum_likelihood
from quanet.simplex import encode, smooth

if TYPE_CHECKING:
    from quanet.uncertainty.sampling import BagEvidence

T = TypeVar("T")
Ends = tuple[FloatArray, FloatArray, FloatArray]  # lower and upper ends (b, k), covariances (b, k, k)

REPLICATES = 32  # quantifiers relearned from resampled held-out instances


@dataclass(frozen=True, slots=True, eq=False)
class IntervalRequest:
    """Bags whose intervals are requested, all of one kind, and what their intervals are computed from.

    Attributes
    ----------
    quantifier : whose estimation errors the intervals describe.
    inputs : (n, d) of the pool, as `Quantifier.read` returns them.
    bags : b bags of the pool.
    positions : (b,) of these bags among all bags of the caller; they seed random draws.
    estimate : (b, k) of the quantifier.
    sizes : (b,) number of instances that the sampling error depends on: that of the bag if it has no weights.
    held_out : held-out instances, or None.
    level : probability that an interval contains the true prevalence.
    target_is_bag : whether the true prevalences are those of the bag, or those of the source it was drawn from.
    resamples : draws per bag of the bootstrap; None for other kinds.
    seed : of random draws.
    held_out_from_fit : whether the held-out instances are those kept by fit; results are then cached.
    evidence : of the bags: copies and clusters; None if there are none.
    hashes : of the instances of the pool, as in `Inputs`.
    curves : the network's distributions, of every class, if the estimates are their means (`kept_curves`); else None.
    """

    quantifier: Quantifier
    inputs: FloatArray
    bags: Bags
    positions: IntArray
    estimate: FloatArray
    sizes: IntArray
    held_out: HeldOut | None
    level: float
    target_is_bag: bool
    resamples: int | None
    seed: int
    held_out_from_fit: bool
    evidence: "BagEvidence | None" = None
    hashes: Any = None
    curves: Any = None

    @property
    def z(self) -> float:
        """The normal quantile of the level, such as 1.96 for 0.95."""
        return float(norm.ppf((1 + self.level) / 2))

    def likelihoods(self) -> "Likelihoods":
        """Likelihoods calibrated on the held-out instances; uncalibrated without them or without posteriors."""
        if not self.quantifier.reads_posteriors:
            return Likelihoods(None, self.quantifier.prior_)
        if self.held_out is None or not self.held_out_from_fit:
            return Likelihoods(self.held_out, self.quantifier.prior_)
        return cached(self.quantifier, "likelihoods", lambda: Likelihoods(self.held_out, self.quantifier.prior_))


def held_out_of(quantifier: Quantifier, given: tuple[Any, Any] | None = None) -> HeldOut | None:
    """Held-out instances in double precision: those that the caller gives as (X, y), or those kept by fit, or None."""
    if given is not None:
        X, y = given
        inputs = quantifier.read(X).values
        codes = encode(check_labels(y, len(inputs)), quantifier.classes_)
        distinct = None if isinstance(X, Inputs) else find_distinct(X)
        return HeldOut(inputs, codes, len(quantifier.classes_), None if distinct is None else distinct.owner)
    return None if quantifier.held_out_ is None else quantifier.held_out_.doubles()


_cache: WeakKeyDictionary[Quantifier, dict[Any, Any]] = WeakKeyDictionary()
LOCK = RLock()  # also keeps `catch_warnings`, which affects the whole process, to one thread at a time


def cached(quantifier: Quantifier, key: Any, compute: Callable[[], T]) -> T:
    """What `compute` returned the first time for a fitted quantifier; the result must not refer to the quantifier."""
    with LOCK:
        held_out = quantifier.held_out_
        entries = _cache.get(quantifier)
        if entries is None or entries["held_out"] is not held_out:  # the quantifier was fitted again
            entries = _cache[quantifier] = {"held_out": held_out}
        if key not in entries:
            entries[key] = compute()
        return entries[key]


def as_full_fit(quantifier: Quantifier) -> Quantifier:
    """A copy that has learned from inputs as the final classifier would give them, without shrinkage.

    `fit` learns from inputs of the classifiers of the folds, which are slightly worse (`HeldOut.fold_gap`). If the fold
    gap is unknown, the result is the quantifier itself, without shrinkage. It is computed once for a fitted quantifier.
    """
    if quantifier.held_out_ is None or quantifier.held_out_.fold_gap is None:
        return unshrunk(quantifier)
    return cached(quantifier, "full fit", lambda: _relearn_as_full_fit(quantifier))


def _relearn_as_full_fit(quantifier: Quantifier) -> Quantifier:
    assert quantifier.held_out_ is not None and quantifier.held_out_.fold_gap is not None  # noqa: PT018
    held_out = quantifier.held_out_.doubles()
    inputs = held_out.inputs.copy()
    inputs[:, : held_out.k] = close_fold_gap(inputs[:, : held_out.k], held_out.codes, quantifier.held_out_.fold_gap)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has already warned
        relearned = copy(quantifier.relearn(inputs, held_out.codes))
    relearned.held_out_ = replace(held_out, inputs=inputs, fold_gap=None).compact()
    relearned.shrinkage_ = 0.0
    return relearned


def unshrunk(quantifier: Quantifier) -> Quantifier:
    """The quantifier without shrinkage: intervals are computed for estimates that are not shrunk."""
    return cached(quantifier, "unshrunk", lambda: _unshrink(quantifier)) if quantifier.shrinkage_ else quantifier


def _unshrink(quantifier: Quantifier) -> Quantifier:
    copied = copy(quantifier)
    copied.shrinkage_ = 0.0
    return copied


def replicates(quantifier: Quantifier) -> list[Quantifier]:
    """Copies of the quantifier that have learned from resamples of its held-out instances, drawn class by class.

    They are computed once for a fitted quantifier. A quantifier that learns nothing from held-out instances is the only
    element of the list.
    """
    if quantifier.held_out_ is None:
        return [quantifier]
    return cached(quantifier, "replicates", lambda: _relearn_resampled(quantifier)) or [quantifier]


def _relearn_resampled(quantifier: Quantifier) -> list[Quantifier]:
    assert quantifier.held_out_ is not None
    held_out, copies = quantifier.held_out_.doubles(), list[Quantifier]()
    if held_out.counts.min() == 0:  # a class without instances cannot be resampled
        return copies
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has already warned
        for resampled in held_out.resamples(rng, REPLICATES):
            relearned = quantifier.relearn(resampled.inputs, resampled.codes)
            if relearned is quantifier:
                break
            copies.append(relearned)
    return copies


def relearned_errors(quantifier: Quantifier, inputs: FloatArray, bags: Bags) -> FloatArray:
    """Deviations (r, b, k) of the bags' estimates over resamples of the held-out instances.

    They are scaled so that the sum over r of the products of two of them is their covariance. None, (0, b, k), if the
    quantifier learns nothing from held-out instances.
    """
    relearned = replicates(quantifier)
    if len(relearned) == 1:
        return np.zeros((0, len(bags), len(quantifier.classes_)))
    estimates = np.stack([replicate.aggregate_bags(replicate.rows(inputs), bags) for replicate in relearned])
    return (estimates - estimates.mean(axis=0)) / np.sqrt(len(relearned) - 1)


class Likelihoods:
    """Class-conditional likelihoods of instances, up to a factor, from posteriors calibrated on held-out instances.

    Parameters
    ----------
    held_out : instances whose inputs begin with posteriors; None means that posteriors are not calibrated.
    prior : (k,) training prevalences that the posteriors assume.
    """

    def __init__(self, held_out: HeldOut | None, prior: FloatArray) -> None:
        self.prior = prior
        self.calibration: Any = None
        if held_out is not None:
            self.prior = held_out.counts / len(held_out.codes)
            self.calibration = calibrate(held_out.inputs[:, : held_out.k], held_out.codes, method="bcts")

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """Likelihoods (n, k) of inputs (n, d), scaled so that the largest of each row is 1."""
        posteriors = inputs[:, : len(self.prior)]
        ratios = (posteriors if self.calibration is None else self.calibration(posteriors)) / self.prior
        return ratios / ratios.max(axis=1, keepdims=True)

    @staticmethod
    def prevalences(likelihoods: FloatArray, sizes: Any = None) -> FloatArray:
        """Maximum likelihood estimates, (..., n, k) -> (..., k), smoothed by one instance per class.

        They are smoothed because no bag can prove that a class is absent. Bags with weights have more rows than
        instances; their effective sizes (...) say how much one instance is. None for the number of rows.
        """
        n, k = likelihoods.shape[-2:]
        # A uniform prior divides all classes by the same factor, which does not change the estimate.
        estimates, _ = maximum_likelihood(likelihoods, np.full(k, 1 / k))
        return smooth(estimates, 1 / (n if sizes is None else sizes))

    @staticmethod
    def posteriors(likelihoods: FloatArray, prevalences: FloatArray) -> FloatArray:
        """Posteriors (n, k) in a bag with these prevalences."""
        joint = likelihoods * prevalences
        return joint / joint.sum(axis=1, keepdims=True)
