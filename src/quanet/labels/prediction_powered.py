r"""The prediction-powered mean of a finite bag, with a score interval that covers with few labels.

With posteriors f of all N instances and labels y of n random ones,

.. math:: \hat p = \lambda \bar f_N + \sum_{i \in L} a_i (y_i - \lambda f_i)

is unbiased even if the posteriors are wrong, because the labelled instances measure their error. The influences
:math:`a_i` add up to 1; they are equal for a simple random part. λ minimizes the variance.

The interval is Wilson's, with the number of labels that would give the plain share the same variance: it contains the
shares p with :math:`(\hat p - p)^2 \le z^2 p (1 - p) / m`. If the posteriors are useless, m is n, and the interval is
Wilson's interval of the plain share.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.labels.exposed_labels import BagExposure, ExposedDesign

PSEUDO = 1.0  # squared error added to the labels: a few may agree with all posteriors by chance


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
