r"""The prediction-powered mean of a finite bag, with a score interval that covers with few labels.

With posteriors f of all N instances and labels y of n random ones,

.. math:: \hat p = \lambda \bar f_N + \sum_{i \in L} a_i (y_i - \lambda f_i)

is unbiased even if the posteriors are wrong, because the labelled instances measure their error. The influences
:math:`a_i` add up to 1; they are equal for a simple random part. λ minimizes the variance.

The interval is Wilson's, with the number of labels that would give the plain share the same variance: it contains the
shares p with :math:`(\hat p - p)^2 \le z^2 p (1 - p) / m`. If the posteriors are useless, m is n, and the interval is
Wilson's interval of the plain share.

If instances have weights (exposure), few labels may carry most of it, and exposure may be related to the class. So the
share of exposure is estimated within strata of similar exposure h, whose totals :math:`W_h` are known for the whole
bag. In each, unlabelled instances of total exposure :math:`U_h` get the mean residual of the labelled ones, with
influences b that add up to 1. The variance of the share is that of a finite bag (Royall 1970), with a variance of
residuals :math:`S_h^2`:

.. math:: \frac{1}{W^2} \sum_h S_h^2 \Big(\sum_{i \in U_h} w_i^2 + U_h^2 \sum_{i \in L_h} b_i^2\Big)

A few labels of a stratum may agree by chance, and one or none tells nothing of their variance. So each :math:`S_h^2`
counts one further label, of the largest variance that a label can have.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray

# Chosen in simulations (`benchmarks/refine.py`): exposure that is related to the class or not, and heavy tails.
RATIO = 4.0  # instances whose exposures differ by at most this factor are a stratum
REST = 0.1  # the lightest instances with this part of the exposure join the stratum before them
VARIED = 1.5  # of rows that stand for several: mean square of exposure, relative to the square of the mean
NOTHING = 1e-12
LARGEST = 0.25  # variance of a label; that of one further label in each stratum
PSEUDO = 1.0  # squared error added to the labels: a few may agree with all posteriors by chance


@dataclass(frozen=True, slots=True, eq=False)
class BagExposure:
    """Exposure of all instances of a bag.

    Attributes
    ----------
    totals : (N,) exposure of each row.
    counts, squares : (N,) if rows stand for several instances: how many, and the sums of their squared exposures.
    """

    totals: FloatArray
    counts: FloatArray | None = None
    squares: FloatArray | None = None

    @property
    def size(self) -> int:
        """Instances with exposure above 0."""
        exposed = self.totals > 0
        return int(exposed.sum() if self.counts is None else self.counts[exposed].sum())

    @property
    def squared(self) -> FloatArray:
        """(N,) sum of the squared exposures of the instances of each row."""
        return self.totals**2 if self.squares is None else self.squares

    @property
    def limits(self) -> FloatArray:
        """The least exposure of every stratum of similar exposure; rows that stand for several are one stratum."""
        return exposure_limits(self.totals) if self.squares is None else np.zeros(1)

    @property
    def varies(self) -> bool:
        """Whether exposure differs so much that labels are weighted in strata of it."""
        if self.squares is not None:
            return bool(self.size * self.squares.sum() > VARIED * self.totals.sum() ** 2)
        return len(self.limits) > 1

    def take(self, members: IntArray) -> "BagExposure":
        """Some of the rows."""
        counts, squares = (None if part is None else part[members] for part in (self.counts, self.squares))
        return BagExposure(self.totals[members], counts, squares)


def exposure_limits(exposure: FloatArray) -> FloatArray:
    """The least exposure of every stratum, from the heaviest stratum to the lightest.

    Examples
    --------
    >>> views = np.array([1.0, 2, 3, 11, 100, 0])
    >>> exposure_limits(views)
    array([100.,   0.])
    >>> exposure_limits(views[:4])
    array([3., 1.])
    >>> exposure_limits(np.array([1.0, 3, 4]))
    array([1.])
    """
    values = np.sort(exposure)[::-1]
    left = np.append(values[::-1].cumsum()[::-1], 0.0)
    limits, at = [], 0
    while at < len(values):
        at = int(np.searchsorted(-values, -values[at] / RATIO, side="right"))
        if left[at] <= REST * left[0]:
            at = len(values)
        limits.append(values[at - 1])
    return np.array(limits)


def exposure_strata(each: FloatArray, limits: FloatArray) -> IntArray:
    """The stratum of every instance, from 0 for the heaviest: (N,) -> (N,)."""
    return np.minimum(np.searchsorted(-limits, -each, side="left"), len(limits) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class ExposedDesign:
    """How labelled instances of a bag with exposure were drawn, and how much each one counts.

    Attributes
    ----------
    influence : (n,) share of each label in the estimate; they add up to 1.
    owner, cells : (n,) stratum of similar exposure of each, and its part of the stratum that was drawn separately.
    lent : (n,) share of each label in the correction of the unlabelled instances of its stratum.
    spreads : (h,) variance that each stratum adds to the plain share, divided by p (1 - p).
    unlabelled : share of the instances that is not labelled.
    given : what the design was made from: exposures of the labels and of the bag, design weights and strata.
    """

    influence: FloatArray
    owner: IntArray
    cells: IntArray
    lent: FloatArray
    spreads: FloatArray
    unlabelled: float
    given: tuple[FloatArray, BagExposure, FloatArray | None, IntArray | None]

    @classmethod
    def of(
        cls,
        exposure: FloatArray,
        bag: BagExposure,
        limits: FloatArray,
        *,
        weights: FloatArray | None = None,
        strata: IntArray | None = None,
    ) -> "ExposedDesign":
        """The design of labels of instances with these exposures (n,).

        Parameters
        ----------
        exposure, bag, limits : of the labels, of the bag, and of its strata.
        weights, strata : as in `LabelDesign.of`.
        """
        h = len(limits)
        every, owner = exposure_strata(bag.totals, limits), exposure_strata(exposure, limits)
        exposed = exposure > 0
        represented = np.where(exposed, 1.0 if weights is None else weights, 0.0)
        represented = represented * bag.size / max(represented.sum(), 1e-300)
        total, labelled = (np.bincount(*part, minlength=h) for part in ((every, bag.totals), (owner, exposure)))
        left, whole = np.maximum(total - labelled, 0.0), total.sum()
        # A label stands for itself and for instances that have none.
        others = np.maximum(represented - 1, 0.0) * exposure
        others = np.where((np.bincount(owner, others, minlength=h) > 0)[owner], others, exposure)
        lent = others / np.maximum(np.bincount(owner, others, minlength=h), 1e-300)[owner]
        squares = np.bincount(owner, lent**2, minlength=h)
        present = squares > 0
        squares = np.where(present, squares, 1.0)
        apart = np.bincount(every, bag.squared, minlength=h) - np.bincount(owner, exposure**2, minlength=h)
        spreads = (np.maximum(apart, 0.0) + left**2 * squares) / whole**2
        if bag.squares is not None and weights is None:
            # Heavy instances are not seen one by one: at least the variance of a random part of the bag.
            spreads = np.maximum(spreads, bag.squares.sum() / whole**2 * (bag.size / max(int(exposed.sum()), 1) - 1))
        influence = (exposure + left[owner] * lent) / whole
        # A stratum without labels gets the correction of all others.
        influence = influence + (total[~present].sum() / whole) * exposure / max(exposure.sum(), 1e-300)
        return cls(
            influence / influence.sum(),
            owner,
            _cells(owner, np.zeros(len(owner), dtype=np.intp) if strata is None else strata),
            lent,
            spreads,
            max(1 - int(exposed.sum()) / max(bag.size, 1), 0.0),
            (exposure, bag, weights, strata),
        )

    def part(self, rows: IntArray, labels: IntArray) -> "ExposedDesign | None":
        """The design of some rows of the bag and their labels, as a bag of its own; None if no label has exposure."""
        exposure, bag, weights, strata = self.given
        if not exposure[labels].any():
            return None
        some = bag.take(rows)
        return ExposedDesign.of(
            exposure[labels],
            some,
            some.limits,
            weights=None if weights is None else weights[labels],
            strata=None if strata is None else strata[labels],
        )

    @property
    def strata(self) -> IntArray:
        """(n,) parts of the bag that were drawn separately."""
        return self.cells

    @property
    def spread(self) -> float:
        """Variance of the plain share, divided by p (1 - p)."""
        return float(self.spreads.sum())

    @property
    def equivalent(self) -> float:
        """Number of labels of equal exposure, drawn at random, whose plain share has the same variance."""
        known = min(self.unlabelled, self.spread) < NOTHING
        return float(len(self.influence)) if known else self.unlabelled / self.spread

    def centred(self, values: FloatArray) -> FloatArray:
        """Values times what they add to the error of the estimate, minus the mean of their cell: (n, k) -> (n, k)."""
        scaled = self.lent[:, None] * values
        sizes = np.bincount(self.cells)
        means = np.stack([np.bincount(self.cells, column) / sizes for column in scaled.T], axis=1)
        return np.asarray((scaled - means[self.cells]) * self._scale[:, None])

    def variance(self, values: FloatArray) -> FloatArray:
        """Variance of the estimate from residuals of the labels: (n, k) -> (k,)."""
        sizes, h = np.bincount(self.cells), len(self.spreads)
        factors = (sizes / np.maximum(sizes - 1, 1))[self.cells, None]
        squared = factors * self.centred(values) ** 2
        found = np.stack([np.bincount(self.owner, part, minlength=h) for part in squared.T])
        freedom = np.maximum(1 / self._squares - 1, 0.0)
        return np.asarray(((freedom * found + LARGEST * self.spreads) / (freedom + 1)).sum(axis=1))

    @property
    def _squares(self) -> FloatArray:
        """(h,) sum of squares of `lent`; 1 in strata without labels."""
        squares = np.bincount(self.owner, self.lent**2, minlength=len(self.spreads))
        return np.where(squares > 0, squares, 1.0)

    @property
    def _scale(self) -> FloatArray:
        """(n,) from the error of a stratum's correction to that of the estimate."""
        return np.asarray(np.sqrt(self.spreads / self._squares)[self.owner])


def _cells(owner: IntArray, strata: IntArray) -> IntArray:
    """Parts (n,) of strata of similar exposure that were drawn separately; those with one label share a cell."""
    pairs = np.stack([owner, np.unique(strata, return_inverse=True)[1].ravel() + 1], axis=1)
    _, codes, sizes = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    pairs[:, 1] = np.where(sizes[codes.ravel()] > 1, pairs[:, 1], 0)
    return np.asarray(np.unique(pairs, axis=0, return_inverse=True)[1].ravel(), dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class LabelDesign:
    """How the labelled instances were drawn, and how much each one counts.

    Attributes
    ----------
    influence : (n,) share of each labelled instance in the estimate; they add up to 1.
    strata : (n,) stratum of each, numbered from 0. Each stratum has at least two labels, or is labelled completely.
    unlabelled : (n,) share of its stratum that is not labelled: the finite-population correction.
    """

    influence: FloatArray
    strata: IntArray
    unlabelled: FloatArray

    @classmethod
    def of(
        cls,
        n: int,
        size: int,
        *,
        weights: FloatArray | None = None,
        strata: IntArray | None = None,
        exposure: FloatArray | None = None,
    ) -> "LabelDesign":
        """The design of n labels in a bag of `size` instances.

        Parameters
        ----------
        n, size : numbers of labels and of instances.
        weights : (n,) instances that each labelled one represents, up to a factor; None for a simple random part.
        strata : (n,) strata that were drawn from separately, any integers in an order in which neighbours are alike.
            A stratum with one label is joined with the next.
        exposure : (n,) weights of the labelled instances in the share itself.
        """
        represented = np.ones(n) if weights is None else weights
        represented = represented * size / represented.sum()
        codes = np.zeros(n, dtype=np.intp) if strata is None else _join_single(strata)
        # A part of a bag may have fewer instances than the strata that it was drawn from.
        drawn = np.bincount(codes) / np.maximum(np.bincount(codes, represented), np.bincount(codes))
        counts = represented if exposure is None else represented * exposure
        return cls(counts / counts.sum(), codes, (1 - drawn)[codes])

    @property
    def spread(self) -> float:
        """Variance of the plain share, divided by p (1 - p): 1 / n for a small random part of a bag."""
        return float(self.influence**2 @ self.unlabelled)

    @property
    def equivalent(self) -> float:
        """Number of labels of equal weight whose plain share has the same variance; here all labels."""
        return float(len(self.influence))

    def centred(self, values: FloatArray) -> FloatArray:
        """Values times their influence, minus the mean of their stratum: (n, k) -> (n, k)."""
        scaled = self.influence[:, None] * values
        sizes = np.bincount(self.strata)
        means = np.stack([np.bincount(self.strata, column) / sizes for column in scaled.T], axis=1)
        return np.asarray(scaled - means[self.strata])

    def variance(self, values: FloatArray) -> FloatArray:
        """Variance of the sum of values times their influence: (n, k) -> (k,)."""
        sizes = np.bincount(self.strata)
        factors = (sizes / np.maximum(sizes - 1, 1))[self.strata] * self.unlabelled
        return np.asarray(factors @ self.centred(values) ** 2)


def design_labels(
    n: int,
    size: int,
    *,
    weights: FloatArray | None = None,
    strata: IntArray | None = None,
    exposure: FloatArray | None = None,
    bag: BagExposure | None = None,
) -> LabelDesign | ExposedDesign:
    """How n labels in a bag of `size` instances were drawn.

    Parameters
    ----------
    n, size, weights, strata, exposure : as in `LabelDesign.of`.
    bag : exposure of all instances. If it differs much, labels are weighted in strata of similar exposure.
    """
    if exposure is not None and bag is not None and bag.varies:
        return ExposedDesign.of(exposure, bag, bag.limits, weights=weights, strata=strata)
    return LabelDesign.of(n, size, weights=weights, strata=strata, exposure=exposure)


@dataclass(frozen=True, slots=True, eq=False)
class PoweredMean:
    """A prediction-powered estimate.

    Attributes
    ----------
    estimate : (k,) shares; they add up to 1, and single ones may be below 0 by chance.
    variance : (k,) of the estimate.
    weight : λ.
    n : number of labels.
    spread : see `LabelDesign.spread`.
    residuals : (n, k) labels minus λ times posteriors.
    equivalent : number of labels of equal exposure whose plain share has the same variance; n without exposure.
    """

    estimate: FloatArray
    variance: FloatArray
    weight: float
    n: int
    spread: float
    residuals: FloatArray
    equivalent: float

    @property
    def effective(self) -> FloatArray:
        """(k,) number of random labels whose plain share has the same variance."""
        return effective_labels(self.estimate, self.variance, self.equivalent, self.spread)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits (k,), (k,) of the shares."""
        return score_interval(self.estimate, self.effective, level)

    def after(self, more: int, size: int, level: float) -> FloatArray:
        """Expected width (k,) of the intervals with more labels of the same kind, in a bag of `size` instances."""
        n = min(self.n + more, size)
        change = self.n / n * (1 - n / size) / max(1 - self.n / size, 1e-12)
        equivalent = self.equivalent * n / self.n
        found = effective_labels(self.estimate, self.variance * change, equivalent, self.spread * change)
        lower, upper = score_interval(self.estimate, found, level)
        return upper - lower


def effective_labels(estimate: FloatArray, variance: FloatArray, n: float, spread: float) -> FloatArray:
    """Number of random labels whose plain share has the same variance; infinite if all are labelled."""
    share = np.clip(estimate, 0, 1)
    plain = share * (1 - share) * n / max(n - 1, 1)  # unbiased, as the variance is
    with np.errstate(divide="ignore"):
        return np.asarray((plain + PSEUDO / n) / (variance + PSEUDO / n * spread))


def score_interval(estimate: FloatArray, effective: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Limits of the shares p with (estimate - p)² ≤ z² p (1 - p) / effective (Wilson 1927).

    Examples
    --------
    >>> lower, upper = score_interval(np.array([0.1]), np.array([50.0]), 0.95)
    >>> lower.round(4), upper.round(4)
    (array([0.0435]), array([0.2136]))
    """
    share = np.clip(estimate, 0, 1)
    z = stats.norm.isf((1 - level) / 2)
    doubt = z**2 / effective
    centre = (share + doubt / 2) / (1 + doubt)
    half = np.sqrt(doubt * (share * (1 - share) + doubt / 4)) / (1 + doubt)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def prediction_powered(
    posteriors: FloatArray,
    known: FloatArray,
    codes: IntArray,
    *,
    design: LabelDesign | ExposedDesign | None = None,
    exposure: FloatArray | None = None,
    weight: float | None = None,
) -> PoweredMean:
    """The prediction-powered mean from posteriors (N, k), those of the labelled instances (n, k) and codes (n,).

    Parameters
    ----------
    posteriors, known, codes : see above.
    design : how the labelled instances were drawn; None for a simple random part.
    exposure : (N,) weights of the instances in the share.
    weight : λ; None for the one with the smallest variance.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: efficient prediction-powered inference", 2023;
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    N, k = posteriors.shape
    n = len(codes)
    drawn = design or LabelDesign.of(n, N)
    labels = np.eye(k)[codes]
    if weight is None:
        centred_y, centred_f = drawn.centred(labels), drawn.centred(known)
        weight = float(np.clip((centred_y * centred_f).sum() / max((centred_f**2).sum(), 1e-12), 0, 1))
    residuals = labels - weight * known
    correction = drawn.influence @ residuals
    estimate = weight * np.average(posteriors, axis=0, weights=exposure) + correction
    variance = drawn.variance(residuals - correction)
    return PoweredMean(estimate, variance, weight, n, drawn.spread, residuals, drawn.equivalent)


def _join_single(strata: IntArray) -> IntArray:
    """Strata numbered from 0, where each has at least two members: one with a single member joins the next."""
    _, codes = np.unique(strata, return_inverse=True)
    sizes, owner, joined, open_ = np.bincount(codes), np.empty(codes.max() + 1, dtype=np.intp), 0, 0
    for h, size in enumerate(sizes.tolist()):
        owner[h] = joined
        open_ += size
        if open_ >= 2:
            joined, open_ = joined + 1, 0
    if open_ and joined:  # the last one joins its neighbour
        owner[owner == joined] = joined - 1
    return np.asarray(owner[codes])
