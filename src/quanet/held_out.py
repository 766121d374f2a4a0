r"""Held-out instances, which the classifier was not fitted to, and the shrinkage of estimates that they call for.

Every method divides, in some way, by how well the classifier separates the classes. If it separates them badly, this
amplifies chance, and the training prevalences :math:`\rho` would be the better estimate. So estimates are shrunk:

.. math:: \hat p - s\, (\hat p - \rho), \qquad 0 \le s \le 1.

The shrinkage s is estimated from held-out instances. `knowledge` is the share of the variance of uniformly distributed
prevalences that their posteriors explain. If it is at least one half, s = 0. Otherwise the method learns again from one
half of the held-out instances, and bags of the other half show by how much its estimates overshoot (`credibility`).
This is the shrinkage of James and Stein (1961), with measured instead of assumed noise.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import chi2

from quanet.arrays import FloatArray, IntArray
from quanet.data.duplicates import first_copies, independent_size
from quanet.drift.scale import without_drift
from quanet.errors import QuanetWarning
from quanet.simplex import count, draw_bags, draw_uniformly, order_of_appearance, to_counts
from quanet.wording import percent

MIN_HELD_OUT = 30  # held-out instances; with fewer, nothing is measured and estimates are not shrunk
MIN_PER_CLASS = 4  # held-out instances of a class, so that each half has two
ENOUGH = 0.5  # share of explained variance from which estimates are not shrunk
SIGNIFICANCE = 0.01  # p-value above which the classifier is assumed to know nothing
LUCK = 0.001  # probability that chance adds more to the measured precision than is subtracted
BAGS, SIZE = 100, 200  # bags drawn from each half of the held-out instances, and instances per bag
ADVICE = "More labelled instances or better features would help."
RIDGE = 1e-12  # added to variances, because posteriors may be constant


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """What a quantifier knows about instances that its classifier was not fitted to.

    `Quantifier.fit` keeps them in `held_out_`. Methods learn rates from them, intervals are calibrated on them, and
    diagnoses compare bags with them.

    Attributes
    ----------
    inputs : (m, d) the classifier's output for each instance, as `Quantifier.read` returns it.
    codes : (m,) their classes, as positions in `classes_`.
    k : number of classes.
    groups : (m,) equal numbers for copies of one instance (`quanet.data.duplicates`); None if all are different.
    fold_gap : (k, k + 1) how much better the final classifier is than the classifiers of the folds, which made the
        inputs (`measure_fold_gap`); None if unknown.
    growth : logarithm of how much larger its log posteriors are (`measure_growth`); 0 if unknown.

    Examples
    --------
    >>> from quanet import PACC
    >>> held_out = PACC("precomputed").fit([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], ["no", "no", "yes"]).held_out_
    >>> held_out.inputs.shape, held_out.codes, held_out.counts
    ((3, 2), array([0, 0, 1], dtype=int32), array([2, 1]))
    """

    inputs: FloatArray
    codes: IntArray
    k: int
    groups: IntArray | None = None
    fold_gap: FloatArray | None = None
    growth: float = 0.0

    @property
    def counts(self) -> IntArray:
        """Number of instances of every class, (k,)."""
        return count(self.codes, self.k)

    @property
    def distinct(self) -> IntArray:
        """Number of different instances of every class, (k,)."""
        if self.groups is None:
            return self.counts
        return count(np.unique(self.groups * self.k + self.codes) % self.k, self.k)

    def compact(self) -> "HeldOut":
        """The same instances in single precision, for storage: half the memory, and precise enough."""
        groups: Any = None if self.groups is None else self.groups.astype(np.int32)
        return replace(self, inputs=self.inputs.astype(np.float32), codes=self.codes.astype(np.int32), groups=groups)

    def doubles(self) -> "HeldOut":
        """The same instances in double precision, for computations."""
        groups = None if self.groups is None else self.groups.astype(np.intp)
        return replace(self, inputs=self.inputs.astype(float), codes=self.codes.astype(np.intp), groups=groups)

    def take(self, positions: IntArray) -> "HeldOut":
        """The instances at these positions, without information about copies."""
        return HeldOut(self.inputs[positions], self.codes[positions], self.k)

    def each_once(self) -> "HeldOut":
        """The same instances without copies."""
        return self if self.groups is None else self.take(first_copies(self.groups, self.codes))

    def by_class(self) -> list[IntArray]:
        """Positions of the instances of every class."""
        return [np.flatnonzero(self.codes == c) for c in range(self.k)]

    @property
    def class_order(self) -> IntArray:
        """The classes in the order (k,) in which anything is drawn from them, which does not depend on their names."""
        return order_of_appearance(self.codes, self.k)

    @property
    def effective_sizes(self) -> FloatArray:
        """Effective number of independent instances of every class, (k,): copies count as `independent_size`."""
        groups = self.groups
        if groups is None:
            return self.counts.astype(float)
        return np.array([independent_size(groups[part]) if len(part) else 0.0 for part in self.by_class()])

    @property
    def learning_sizes(self) -> FloatArray:
        """Number of instances by which a class's variance is divided to give that of its mean, (k,).

        The effective sizes m, times (m - 3) / (m - 1): the variance is estimated from the same instances, so the mean
        has Student's t distribution, whose variance is larger by that factor. With very few instances, m / 3.
        """
        m = self.effective_sizes
        return m * np.maximum((m - 3) / np.maximum(m - 1, 1.0), 1 / 3)

    def resamples(self, rng: np.random.Generator, number: int) -> Iterator["HeldOut"]:
        """Draw instances of each class with replacement, as many as the effective number of independent instances."""
        # The same for all classes, because some methods learn from class frequencies.
        similarity = float(np.mean(self.counts / self.effective_sizes))
        by_class = self.by_class()
        members = [by_class[c] for c in self.class_order.tolist()]
        sizes = [max(1, round(len(part) / similarity)) for part in members]
        for _ in range(number):
            yield self.take(np.concatenate([rng.choice(part, n) for part, n in zip(members, sizes, strict=True)]))


def shrinkage_of(quantifier: Any, scores: FloatArray, inputs: FloatArray, codes: IntArray) -> float:
    """The shrinkage of a fitted quantifier, between 0 (none) and 1 (the training prevalences).

    Parameters
    ----------
    quantifier : fitted; its estimates are not shrunk yet.
    scores : (m, k) of held-out instances: posteriors, or one-hot rows if the method counts predicted labels.
    inputs : (m, d) of the same instances, which the method learns from.
    codes : (m,) their classes.
    """
    counts = count(codes, scores.shape[1])
    if len(codes) < MIN_HELD_OUT or counts.min() < 2:  # one instance does not show how its class varies
        return 0.0
    known = knowledge(scores, codes)
    if known >= ENOUGH:
        return 0.0
    # By chance, out-of-fold posteriors of a class can be lower in this class; new bags will not repeat this.
    weight = known / ENOUGH if _points_right(scores, codes) else 0.0
    if weight > 0 and counts.min() >= MIN_PER_CLASS:
        weight = min(weight, credibility(quantifier, inputs, codes))
    return 1 - weight


def knowledge(scores: FloatArray, codes: IntArray) -> float:
    r"""Share of the variance of prevalences, 0 to 1, that scores (m, k) of instances with classes (m,) explain.

    The class means of the scores, :math:`\mu_c`, have the covariance :math:`\Sigma / m_c`. Prevalences can therefore be
    estimated with a precision (inverse covariance) of about

    .. math:: J_{cd} = \frac{\mu_c^\top \Sigma^{-1} \mu_d}{\sum_c \mathrm{E}[p_c^2] / m_c},

    minus what chance may add to it (`LUCK`). Let prevalences be uniform on the simplex, with variance :math:`v` in each
    direction. The explained share is the mean of :math:`v \lambda / (1 + v \lambda)` over the eigenvalues of J. It is 0
    if Bartlett's test does not show that the class means differ.

    Examples
    --------
    >>> codes = np.repeat([0, 1], 20)
    >>> knowledge(np.eye(2)[codes], codes) > 0.999, knowledge(np.full((40, 2), 0.5), codes)
    (True, 0.0)
    """
    m, k = scores.shape
    counts = count(codes, k)
    means = (np.eye(k)[codes].T @ scores) / counts[:, None]
    centred, within = scores - scores.mean(axis=0), scores - means[codes]
    total = centred.T @ centred / m
    rank = max(1, int(np.linalg.matrix_rank(total, hermitian=True)))
    ridge = RIDGE * np.eye(k)
    inside = within.T @ within / m
    gain = np.linalg.slogdet(total + ridge)[1] - np.linalg.slogdet(inside + ridge)[1]
    degrees = rank * (k - 1)
    if chi2.sf(max(0.0, m - 1 - (rank + k) / 2) * gain, degrees) > SIGNIFICANCE:
        return 0.0
    chance = chi2.isf(LUCK, degrees) / (k - 1) * np.diag(1 / counts)
    precision = means @ np.linalg.inv(inside * m / (m - k) + ridge) @ means.T - chance
    centre = np.eye(k) - 1 / k
    # Uniform prevalences have a variance of 1 / (k (k + 1)) in every direction, and a mean square of twice that.
    ratios = np.linalg.eigvalsh(centre @ precision @ centre).clip(0) / (2 * (1 / counts).sum())
    return float((ratios / (1 + ratios)).sum() / (k - 1))


def _points_right(scores: FloatArray, codes: IntArray) -> bool:
    """Whether the scores of a class are higher in this class than in others, on average over the classes."""
    own = np.eye(scores.shape[1])[codes]
    means = (own.T @ scores) / own.sum(axis=0)[:, None]
    return bool(np.trace(means) > means.sum() / len(means))


def credibility(quantifier: Any, inputs: FloatArray, codes: IntArray) -> float:
    """Factor, at most 1, by which deviations of estimates from the training prevalences should be multiplied.

    True deviations are regressed on estimated deviations, in bags with prevalences uniform on the simplex. The method
    learns from one half of the held-out inputs (m, d) with classes (m,), and bags are drawn from the other half; then
    the halves are exchanged. Each half consists of whole folds, except for one. Both
    halves have random errors, so that estimates exceed the truth by twice as much as in a new bag.
    """
    prior = quantifier.prior_
    place = order_of_appearance(codes, len(prior)).argsort()
    half = _first_half(codes, len(prior))
    rng = np.random.default_rng(0)
    along = squared = 0.0
    for bag_half in (half, ~half):
        counts = to_counts(draw_uniformly(BAGS, len(prior), rng=rng), SIZE)
        drawn = draw_bags(place[codes[bag_half]], counts, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuanetWarning)  # fit has already warned
            relearned = quantifier.relearn(inputs[~bag_half], codes[~bag_half])
            estimated = relearned.aggregate(relearned.rows(inputs[bag_half])[drawn]) - prior
        along += float(((counts[:, place] / SIZE - prior) * estimated).sum())
        squared += float((estimated**2).sum())
    slope = min(max(along / max(squared, RIDGE), 0.0), 1.0)
    return 2 * slope / (1 + slope)


@contextmanager
def members_are_quiet() -> Iterator[None]:
    """Fit members of a method: without warnings about shrinkage, since the method warns once, and without drift."""
    with warnings.catch_warnings(), without_drift():
        warnings.filterwarnings("ignore", "The classifier (hardly|does not) separate", QuanetWarning)
        yield


def shrinkage_of_members(members: Sequence[Any]) -> float:
    """The mean shrinkage of the fitted members of a method, with a warning if it is not 0."""
    shrinkage = float(np.mean([member.shrinkage_ for member in members]))
    warn_of_shrinkage(shrinkage)
    return shrinkage


def joint_shrinkage(members: Sequence[Any]) -> float:
    """Move the shrinkage from the members of a method to the method, with a warning if it is not 0.

    For members with different training prevalences, which would be shrunk towards different values. The result is the
    median, because some members have very few instances of a class.
    """
    shrinkage = float(np.median([member.shrinkage_ for member in members]))
    for member in members:
        member.shrinkage_ = 0.0
    warn_of_shrinkage(shrinkage)
    return shrinkage


def warn_of_shrinkage(shrinkage: float) -> None:
    """Warn if estimates are shrunk, and advise what would help."""
    if shrinkage:
        warnings.warn(f"{shrinkage_sentence(shrinkage)} {ADVICE}", QuanetWarning, stacklevel=4)


def shrinkage_sentence(shrinkage: float) -> str:
    """The sentence about shrinkage in warnings and reports.

    Examples
    --------
    >>> shrinkage_sentence(0.87)
    'The classifier hardly separates the classes; estimates are shrunk by 87 % towards the training prevalence.'
    >>> shrinkage_sentence(1.0)
    'The classifier does not separate the classes; the estimate is the training prevalence.'
    """
    if shrinkage == 1:
        return "The classifier does not separate the classes; the estimate is the training prevalence."
    return (
        f"The classifier hardly separates the classes; estimates are shrunk by {percent(shrinkage, digits=0)} "
        "towards the training prevalence."
    )


def _first_half(codes: IntArray, k: int) -> Any:
    """The first half of the instances of every class, as a mask (m,)."""
    half = np.zeros(len(codes), dtype=bool)
    for c in range(k):
        members = np.flatnonzero(codes == c)
        half[members[: len(members) // 2]] = True
    return half
