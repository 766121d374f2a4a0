r"""Refine an estimate with a few labels of the bag itself: valid under any drift.

By default the estimate is a prediction-powered mean. With ``method="em"`` it has maximum likelihood, with the labels
fixed. The posteriors are then calibrated on held-out instances by one scale and one shift per class. The uncertainty of
these parameters depends on the number of held-out instances and is part of the standard deviation.

Checks tell whether the labelled instances look like a random part, or were chosen by hand.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import softmax
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.classifiers.calibration import calibrate
from quanet.classifiers.cross_fitting import check_labels, check_posteriors
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.labels.prediction_powered import BagExposure, design_labels, prediction_powered
from quanet.parameters import check_level, one_of
from quanet.simplex import count, encode, project
from quanet.wording import between, percent

MIN_LABELS = 10  # fewer labels give no usable interval
MAX_ITERATIONS = 500
BISECTIONS = 14  # steps that locate each limit of an interval
TINY = 1e-12  # smallest posterior used in a ratio
CHOSEN = 0.001  # p-value below which labels are taken to be hand-picked


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """Prevalences of a bag, refined with labels of some of its instances.

    Attributes
    ----------
    classes : (k,) labels.
    estimate, lower, upper : (k,) prevalences of the bag and the limits of their intervals.
    level : confidence level.
    method : "prediction-powered" or "em".
    weight : λ, the weight of the posteriors: 0 if they are unrelated to the labels.
    n_labelled : number of labels used.
    effective : (k,) number of random labels whose plain share has the same variance; NaN for "em".
    """

    classes: LabelArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    method: str
    weight: float
    n_labelled: int
    effective: FloatArray

    def __str__(self) -> str:
        lines = zip(self.classes.tolist(), self.estimate, self.lower, self.upper, strict=True)
        return "\n".join(f"{name}: {percent(p)} ({between(low, high)})" for name, p, low, high in lines)


def refine(
    quantifier: Quantifier,
    X: Any,
    X_labelled: Any,
    y_labelled: ArrayLike,
    *,
    level: float = 0.95,
    design_weights: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weights_labelled: ArrayLike | None = None,
    method: Literal["prediction-powered", "em"] = "prediction-powered",
) -> Refined:
    r"""Prevalences of a bag from a quantifier's posteriors and a few labels of the bag's own instances.

    Use it if a bag may have drifted, or if its interval is too wide: 50 to 200 labels often settle the question. With
    posteriors f of all N instances, adapted to the bag by EM with the labels, and labels y of a random part L, [1]_

    .. math:: \hat p = \lambda \bar f_N + \sum_{i \in L} a_i (y_i - \lambda f_i)

    is unbiased even if the posteriors are wrong; :math:`\lambda` minimises the variance, and the influences
    :math:`a_i` add up to 1. The interval is Wilson's [2]_, with the number m of labels whose plain share has the same
    variance: :math:`(\hat p - p)^2 \le z^2 p (1 - p) / m`.

    Parameters
    ----------
    quantifier : fitted quantifier that uses posteriors.
    X : the whole bag, including the labelled instances.
    X_labelled, y_labelled : a random part of the bag and its labels, or the instances chosen by `plan_labels`.
    level : confidence level.
    design_weights : (n,) instances that each labelled one represents, if they are not a simple random part; from
        `plan_labels`.
    strata : (n,) strata that the labelled instances were drawn from, as integers; from `plan_labels`.
    weights, weights_labelled : exposure of the instances of X and of X_labelled, such as views: shares of exposure. If
        it differs much, labels are weighted in strata of similar exposure, and few heavy labels give a wide interval;
        `plan_labels` with weights gives a narrow one.
    method : "prediction-powered", whose interval is valid under any drift; or "em", maximum likelihood with the labels
        fixed [3]_, which is narrower under prior shift and wrong under other drift. The interval of "em" includes the
        uncertainty of the calibration on held-out instances. For quantifiers without held-out instances, such as CC, it
        is too narrow.

    Returns
    -------
    Refined
        `estimate`, `lower` and `upper`, (k,) each; `weight` is :math:`\lambda`, `effective` is m.

    References
    ----------
    .. [1] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: efficient prediction-powered inference", 2023.
    .. [2] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    .. [3] K. Nigam et al., "Text classification from labeled and unlabeled documents using EM", 2000.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))
    >>> X, y = Gaussians().draw([0.8, 0.2], 2000, rng=1)
    >>> X = X + [-0.4, 0.4]  # drift that the quantifier has not seen
    >>> quantifier.predict(X).round(2)
    array([0.56, 0.44])
    >>> part = np.random.default_rng(2).permutation(2000)[:100]
    >>> print(refine(quantifier, X, X[part], y[part]))
    0: 79.8 % (73.0 to 85.2 %)
    1: 20.2 % (14.8 to 27.0 %)
    """
    check_level(level)
    one_of("prediction-powered", "em").check("method", method)
    ratios, known = likelihood_ratios(quantifier, X), likelihood_ratios(quantifier, X_labelled)
    codes = encode(check_labels(y_labelled, len(known)), quantifier.classes_)
    if len(codes) < MIN_LABELS:
        raise InvalidData(f"{len(codes)} labels are too few for an interval. Label at least {MIN_LABELS}, better 50.")
    if len(ratios) < len(known):
        raise InvalidData(
            f"the bag has {len(ratios)} instances, fewer than the {len(known)} labelled ones. "
            "Pass the whole bag as X, including the labelled instances."
        )
    shares = fixed_label_em(ratios, known, codes)
    if method == "em":
        if any(one is not None for one in (design_weights, strata, weights, weights_labelled)):
            raise InvalidSetting("method 'em' needs a simple random part and no weights. Use 'prediction-powered'.")
        bag = LabelledBag.of(quantifier, ratios, known, codes)
        lower, upper = bag.interval(shares, float(stats.norm.isf((1 - level) / 2)))
        estimate, weight, effective = shares, 1.0, np.full(len(shares), np.nan)
    else:
        if (weights is None) != (weights_labelled is None):
            raise InvalidData("weights and weights_labelled belong together: pass both or neither.")
        exposure = check_exposure(weights, len(ratios), "weights")
        design = design_labels(
            len(codes),
            len(ratios),
            weights=check_exposure(design_weights, len(codes), "design_weights"),
            strata=_check_strata(strata, len(codes)),
            exposure=check_exposure(weights_labelled, len(codes), "weights_labelled"),
            bag=None if exposure is None else BagExposure(exposure),
        )
        powered = prediction_powered(
            responsibilities(ratios, shares),
            responsibilities(known, shares),
            codes,
            design=design,
            exposure=exposure,
        )
        lower, upper = powered.interval(level)
        estimate, weight, effective = project(powered.estimate), powered.weight, powered.effective
    return Refined(
        classes=quantifier.classes_,
        estimate=estimate,
        lower=lower,
        upper=upper,
        level=level,
        method=method,
        weight=weight,
        n_labelled=len(codes),
        effective=effective,
    )


def check_exposure(weights: ArrayLike | None, n: int, name: str) -> FloatArray | None:
    """Weights (n,) as numbers; None if there are none."""
    if weights is None:
        return None
    values = np.asarray(weights, dtype=float)
    zero = name != "design_weights"
    fine = values.shape == (n,) and np.isfinite(values).all() and ((values >= 0) if zero else (values > 0)).all()
    if not fine or not values.any():
        least = "from 0 up, not all 0," if zero else "above 0"
        raise InvalidData(f"{name} must be one number {least} for each of the {n} instances.")
    return values


def _check_strata(strata: ArrayLike | None, n: int) -> IntArray | None:
    if strata is None:
        return None
    values = np.asarray(strata)
    if values.shape != (n,) or values.dtype.kind not in "iu":
        raise InvalidData(f"strata must be one integer for each of the {n} labelled instances.")
    return np.asarray(values, dtype=np.intp)


def likelihood_ratios(quantifier: Quantifier, X: Any) -> FloatArray:
    """Calibrated posteriors divided by the training prevalence, proportional to the class densities: (n, k)."""
    check_is_fitted(quantifier, "classes_")
    kind = type(quantifier).__name__
    if not quantifier.reads_posteriors:
        raise InvalidSetting(f"{kind} does not use posteriors, which refine needs. Use EMQ or PACC.")
    if _num_samples(X) == 0:
        raise InvalidBags("X has no instances. Pass the bag and its labelled part.")
    k = len(quantifier.classes_)
    posteriors = check_posteriors(quantifier.read(X).values[:, :k], k)
    held = held_out_posteriors(quantifier)
    if held is not None:
        posteriors = calibrate(*held, method="bcts")(posteriors)
    return np.maximum(posteriors, TINY) / quantifier.prior_


def held_out_posteriors(quantifier: Quantifier) -> tuple[FloatArray, IntArray] | None:
    """Posteriors (m, k) and classes (m,) of the held-out instances; None if the quantifier keeps none."""
    held = quantifier.held_out_
    if held is None:
        return None
    k = len(quantifier.classes_)
    return check_posteriors(held.inputs[:, :k], k), np.asarray(held.codes, dtype=np.intp)


def calibration_errors(quantifier: Quantifier) -> FloatArray:
    r"""Uncertainty of the calibration, as independent changes of log ratios of one standard deviation each.

    The true log posteriors may be :math:`(1 + \alpha) l_c + \beta_c` instead of the calibrated :math:`l_c`. The
    covariance of α and β is the inverse of the information in the held-out labels, minus the part of β that comes from
    the training class frequencies: dividing by the training prevalence removes it (as in case-control studies, Prentice
    and Pyke 1979). Each change is a row (α, β): (d, 1 + k).
    """
    held = held_out_posteriors(quantifier)
    if held is None:
        return np.empty((0, 1 + len(quantifier.classes_)))
    posteriors, codes = np.maximum(calibrate(*held, method="bcts")(held[0]), TINY), held[1]
    m, k = posteriors.shape
    features = np.concatenate([np.log(posteriors)[:, :, None], np.tile(np.eye(k), (m, 1, 1))], axis=2)  # (m, k, 1 + k)
    centred = features - np.einsum("mc,mcd->md", posteriors, features)[:, None]
    information = np.einsum("mc,mcd,mce->de", posteriors, centred, features)
    centre = np.eye(k) - 1 / k
    covariance = np.linalg.pinv(information, rcond=1e-10, hermitian=True)  # all β may move together
    covariance[1:, 1:] -= centre @ np.diag(1 / np.maximum(count(codes, k), 1)) @ centre
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)


def fixed_label_em(
    ratios: FloatArray, known: FloatArray, codes: IntArray, counts: FloatArray | None = None
) -> FloatArray:
    """Prevalences of the bag by EM with the known labels fixed: (N, k), (n, k), (n,) -> (k,).

    `counts` (N,) are the instances that each row of `ratios` stands for; None for one each.
    """
    k = ratios.shape[1]
    labelled = count(codes, k) if len(codes) else np.zeros(k)
    shares = np.full(k, 1 / k)
    for _ in range(MAX_ITERATIONS):
        posteriors = responsibilities(ratios, shares)
        every = posteriors.sum(axis=0) if counts is None else counts @ posteriors
        updated = np.maximum(every - responsibilities(known, shares).sum(axis=0), 0) + labelled
        updated /= updated.sum()
        moved = np.abs(updated - shares).max()
        shares = updated
        if moved < 1e-7:
            break
    return shares


@dataclass(frozen=True, slots=True, eq=False)
class LabelledBag:
    """A bag whose prevalences are estimated with some labels fixed.

    Attributes
    ----------
    ratios, known : (N, k), (n, k) likelihood ratios of the bag and of its labelled part.
    codes : (n,) classes of the labelled part.
    shifted : these ratios with the calibration changed by minus and plus one standard deviation, for every independent
        calibration error: pairs of pairs.
    """

    ratios: FloatArray
    known: FloatArray
    codes: IntArray
    shifted: tuple[tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]], ...] = ()

    @classmethod
    def of(cls, quantifier: Quantifier, ratios: FloatArray, known: FloatArray, codes: IntArray) -> "LabelledBag":
        """A bag with the calibration errors of its quantifier."""
        prior = quantifier.prior_
        shifted = tuple(
            (
                (_shifted(ratios, prior, -error), _shifted(known, prior, -error)),
                (_shifted(ratios, prior, error), _shifted(known, prior, error)),
            )
            for error in calibration_errors(quantifier)
        )
        return cls(ratios, known, codes, shifted)

    def interval(self, shares: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """Limits (k,), (k,): prevalences at most z standard deviations from the estimate.

        The standard deviation is evaluated at the limit, as in Wilson (1927), so prevalences near 0 or 1 are covered.
        """
        k = len(shares)
        lower, upper = np.zeros(k), np.ones(k)
        for c in range(k) if k > 2 else [1]:
            for ends, side in ((lower, 0.0), (upper, 1.0)):
                ends[c] = self._end(shares, c, side, z)
        if k == 2:
            lower[0], upper[0] = 1 - upper[1], 1 - lower[1]
        return lower, upper

    def _end(self, shares: FloatArray, c: int, side: float, z: float) -> float:
        inside, outside = float(shares[c]), side
        rest = np.where(np.arange(len(shares)) == c, 0.0, np.maximum(shares, 1e-9))

        def accepted(p: float) -> bool:
            candidate = rest * (1 - p) / rest.sum()
            candidate[c] = p
            return bool(abs(p - shares[c]) <= z * self.deviation(candidate)[c])

        if accepted(outside):
            return outside
        for _ in range(BISECTIONS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
        return inside

    def deviation(self, shares: FloatArray) -> FloatArray:
        """Standard deviation of the estimate around the bag's prevalences if these are `shares`: (k,).

        It has three parts: the unknown labels given the source's prevalences, the source's prevalences (from the
        observed information), and the calibration.
        """
        N, k = self.ratios.shape
        p = np.maximum(shares, 0.5 / N)
        open_ = responsibilities(self.ratios, p)
        fixed = responsibilities(self.known, p)
        outer = open_.T @ open_ - fixed.T @ fixed
        sums = open_.sum(axis=0) - fixed.sum(axis=0)
        doubt = np.diag(sums) - outer
        information = outer / np.outer(p, p) + np.diag(count(self.codes, k) / p**2)
        inverse = np.linalg.pinv(information, hermitian=True)
        ones = inverse.sum(axis=1)
        of_p = inverse - np.outer(ones, ones) / ones.sum()
        slope = doubt / p
        variance = np.maximum(np.diag(doubt + slope @ of_p @ slope.T), 0.25) / N**2
        # Derivative of the fixed point of EM with respect to the expected counts of the unknown labels.
        rest = np.linalg.pinv(np.eye(k) - slope / N)
        for ends in self.shifted:
            low, high = (
                responsibilities(bag, p).sum(axis=0) - responsibilities(part, p).sum(axis=0) for bag, part in ends
            )
            variance += (rest @ (high - low) / 2 / N) ** 2
        return np.sqrt(variance)


def _shifted(ratios: FloatArray, prior: FloatArray, error: FloatArray) -> FloatArray:
    """Ratios whose calibration is changed by (α, β): (n, k) -> (n, k)."""
    return np.asarray(softmax((1 + error[0]) * np.log(ratios * prior) + error[1:], axis=1) / prior)


def responsibilities(ratios: FloatArray, shares: FloatArray) -> FloatArray:
    """Posteriors for given prevalences: (n, k), (k,) -> (n, k)."""
    joint = ratios * shares
    return joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)


def random_part(posteriors: FloatArray, known: FloatArray, counts: FloatArray | None = None) -> float:
    """P-value of the hypothesis that the labelled instances are a random part, judged by posteriors (N, k), (n, k).

    Two-sample Kolmogorov-Smirnov tests of every class, corrected for their number. The labelled instances are among
    the N; `counts` (N,) are the instances that each row stands for, None for one each.

    Examples
    --------
    >>> posteriors = np.linspace(0, 1, 1000)[:, None] * [1, -1] + [0, 1]
    >>> random_part(posteriors, posteriors[::10]) > 0.5, random_part(posteriors, posteriors[:100]) < 1e-6
    (True, True)
    """
    heights = np.ones(len(posteriors)) if counts is None else counts
    total, n = float(heights.sum()), len(known)
    if n == 0 or n >= total:
        return 1.0
    each = [1] if posteriors.shape[1] == 2 else range(posteriors.shape[1])
    distance = max(_distance(posteriors[:, c], heights, known[:, c]) for c in each) * total / (total - n)
    return min(1.0, len(each) * float(stats.kstwo.sf(distance, np.round(n * (total - n) / total))))


def _distance(values: FloatArray, heights: FloatArray, known: FloatArray) -> float:
    """Largest difference between the distribution of values (N,) with heights (N,) and that of known ones (n,)."""
    points, place = np.unique(values, return_inverse=True)
    # A row may be the mean of several instances: a known value counts at the nearest row.
    nearest = np.searchsorted((points[1:] + points[:-1]) / 2, known, side="right")
    among = np.bincount(nearest, minlength=len(points)).cumsum() / len(known)
    every = np.bincount(place.ravel(), heights, minlength=len(points)).cumsum() / heights.sum()
    return float(np.abs(among - every).max())


def in_one_place(rows: IntArray, total: int) -> bool:
    """Whether labelled rows (n,), counted from 0, are concentrated in a part of a file of `total` rows.

    Examples
    --------
    >>> in_one_place(np.arange(100), 1000), in_one_place(np.arange(0, 1000, 10), 1000)
    (True, False)
    """
    if len(rows) in (0, total):
        return False
    return bool(stats.kstest((rows + 0.5) / total, "uniform").pvalue < CHOSEN)
