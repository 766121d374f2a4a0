"""Intervals that include drift: how many points it may cost, and whether a bag is trusted, widened or refused.

The bias of a bag that differs from the training data has variance v p (1 - p) (`quanet.drift.scale`). This is the
variance of a share counted in 1 / v labels, so its interval is Wilson's (1927). Both parts of the error are
independent, so that the ends of the two intervals are combined by the root of the sum of squares.

============  ==================================================================================================
trusted       the drift that can be seen costs at most half of the sampling error
few rows      the same, but chance in so few rows may hide drift that leaves an estimate worth under `ENOUGH` labels
widened       drift costs more, and the interval includes it
refused       fewer than `FEWEST_LABELS` labels would say more than the estimate
unknown       the distance from the training data cannot be measured; the interval includes sampling only
============  ==================================================================================================

Every interval also includes what few training instances cannot show, up to `MOST_UNSEEN`: it is reported as part of the
cost, and is no reason to widen.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.copies import count_copies
from quanet.data.instances import Inputs
from quanet.drift.scale import NO_SCALE

FEW_ROWS = "few rows"
STATES = ("trusted", FEW_ROWS, "widened", "refused", "unknown")
SMALL_COST = 0.5  # of the sampling error, what drift that is seen may cost in a bag that is trusted
ENOUGH = 50  # labels that a trusted estimate is worth at the largest distance that chance may hide: 14 points at a half
MOST_UNSEEN = 0.6  # of the sampling error, what drift that cannot be seen may cost
FEWEST_LABELS = 20
WANTED = 0.05  # half-width of an interval that settles a question, unless sampling allows no narrower one
LEAST_VARIANCE = 0.05  # of a label, p (1 - p), to plan labels for rare classes
NO_DESCRIPTIONS = "the instances were read without descriptions; pass them, or what `read` returns"


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """What drift may do to the estimates of bags: arrays with one entry per bag (...), or per bag and class (..., k).

    Attributes
    ----------
    distance : (...) squared distance of each bag from the training data; NaN if unknown.
    variance : (...) of the bias, relative to p (1 - p): the estimate is worth 1 / variance labels. NaN if unknown.
    cost : (..., k) by how much the bias may change each prevalence, at the level of the interval; NaN if unknown.
    lower, upper : (..., k) ends of the intervals without drift.
    state : (...) one of `STATES`.
    labels : (...) number of labels, drawn at random from the bag, that would settle its prevalence; 0 if trusted.
    source : where the scale comes from, as part of a sentence; or why drift is unknown.
    """

    distance: FloatArray
    variance: FloatArray
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    state: LabelArray
    labels: IntArray
    source: str

    def of_bag(self, at: int) -> "Drift":
        """The drift of one of many bags."""
        names = ("distance", "variance", "cost", "lower", "upper", "state", "labels")
        return replace(self, **{name: getattr(self, name)[at] for name in names})


def measure_drift(
    quantifier: Quantifier,
    inputs: Inputs,
    bags: Bags,
    estimate: FloatArray,
    ends: tuple[FloatArray, FloatArray],
    level: float,
) -> Drift:
    """The drift of bags of inputs with estimates (b, k), and lower and upper ends of intervals without drift."""
    scale, descriptions = quantifier.drift_, described(quantifier, inputs)
    if scale is None or descriptions is None:
        return _unknown_drift(unknown_reason(quantifier, inputs), estimate, ends)
    measured, shared = scale.compare(descriptions, bags, inputs.hashes)
    different = np.maximum(np.rint(bags.effective_sizes / count_copies(inputs.hashes, bags).factor), 1)
    own = measured.distances, different.astype(np.intp)
    return drift_at(quantifier, shared, estimate, ends, bags.sizes, level, own=own)


def drift_at(
    quantifier: Quantifier,
    distances: FloatArray,
    estimate: FloatArray,
    ends: tuple[FloatArray, FloatArray],
    sizes: IntArray,
    level: float,
    *,
    own: tuple[FloatArray, IntArray] | None = None,
) -> Drift:
    """The drift of bags of these sizes (b,) at distances (b,), NaN if unknown; the rest as in `measure_drift`.

    `own` are their distances before they shared information, and their effective sizes, (b,) each.
    """
    scale, (lower, upper) = quantifier.drift_, ends
    known = np.isfinite(distances)
    if scale is None or scale.unknown or not known.any():
        return _unknown_drift(unknown_reason(quantifier) or NO_DESCRIPTIONS, estimate, ends)
    half, quantile = (upper - lower).max(axis=1) / 2, scale.quantile(level)
    spread = np.maximum((estimate * (1 - estimate)).max(axis=1), LEAST_VARIANCE)
    most_unseen = (MOST_UNSEEN * half / max(quantile, 1e-9)) ** 2 / spread  # a level near 0 has a quantile of 0
    variance = np.where(known, scale.variance(np.where(known, distances, 0.0), estimate, most_unseen), np.nan)
    low, high = wilson(estimate, variance[:, None], quantile)
    cost = (high - low) / 2
    seen_low, seen_high = wilson(estimate, scale.seen(np.where(known, distances, 0.0))[:, None], quantile)
    seen = ((seen_high - seen_low) / 2).max(axis=1)
    measured, effective = own or (distances, sizes)
    hidden = scale.hidden(np.where(known, measured, 0.0), np.maximum(effective, 1), estimate)
    states = np.where(hidden <= 1 / ENOUGH, "trusted", FEW_ROWS).astype(object)
    states[seen > SMALL_COST * half] = "widened"
    states[variance > 1 / FEWEST_LABELS] = "refused"
    states[(sizes == 1) | ~known] = "unknown"
    worth = np.where(states == FEW_ROWS, np.maximum(variance, hidden), variance)
    labels = labels_needed(estimate, half, np.where(known, worth, 1.0), sizes, level)
    labels[(states == "trusted") | (states == "unknown")] = 0
    return Drift(distances, variance, cost, lower, upper, states, labels, source_of(quantifier))


def _unknown_drift(reason: str, estimate: FloatArray, ends: tuple[FloatArray, FloatArray]) -> Drift:
    missing, states = np.full(len(estimate), np.nan), np.full(len(estimate), "unknown", dtype=object)
    labels = np.zeros(len(estimate), dtype=np.intp)
    return Drift(missing, missing, np.full(estimate.shape, np.nan), *ends, states, labels, reason)


def described(quantifier: Quantifier, inputs: Inputs) -> Any:
    """Descriptions of inputs: those that were read with them, or those of their values; None if unknown."""
    scale = quantifier.drift_
    if inputs.descriptions is not None or scale is None or scale.describer is None or not scale.describer.of_values:
        return inputs.descriptions
    return scale.describe(None, inputs.values)


def unknown_reason(quantifier: Quantifier, inputs: Inputs | None = None) -> str:
    """Why drift cannot be measured; empty if it can."""
    scale = quantifier.drift_
    if scale is None:
        return NO_SCALE
    if scale.unknown or inputs is None:
        return scale.unknown
    return "" if described(quantifier, inputs) is not None else NO_DESCRIPTIONS


def source_of(quantifier: Quantifier) -> str:
    """Where the drift scale of a quantifier comes from, as part of a sentence."""
    scale: Any = quantifier.drift_
    if not scale.kind:
        return "from the bias that is typical of other datasets at this distance"
    return f"from the bias on {len(scale.distances)} {scale.kind} of the training data, each left out once"


def combine_ends(
    estimate: FloatArray, lower: FloatArray, upper: FloatArray, drift: Drift, quantile: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals that include sampling and drift, (b, k); unchanged if drift is unknown."""
    known = np.isfinite(drift.variance)
    lower, upper = add_variance(estimate, lower, upper, np.where(known, drift.variance, 0.0), quantile)
    return np.where(known[:, None], lower, drift.lower), np.where(known[:, None], upper, drift.upper)


def add_variance(
    estimate: FloatArray, lower: FloatArray, upper: FloatArray, variance: FloatArray, quantile: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals (b, k) that include a further error: that of shares counted in 1 / variance (b,) labels."""
    low, high = wilson(estimate, variance[:, None], quantile)
    lower = np.maximum(0.0, estimate - np.hypot(estimate - lower, estimate - low))
    upper = np.minimum(1.0, estimate + np.hypot(upper - estimate, high - estimate))
    return lower, upper


def wilson(share: FloatArray, variance: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval for shares that were counted in 1 / variance labels.

    Examples
    --------
    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([0.01, 0.01]), 1.96)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.404]), array([0.037, 0.596]))
    """
    spread = quantile**2 * variance
    middle = (share + spread / 2) / (1 + spread)
    half = np.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)
    return np.minimum(middle - half, share), np.maximum(middle + half, share)


def drift_covariance(estimate: FloatArray, variance: FloatArray) -> FloatArray:
    """Covariance (b, k, k) of the bias, that of shares counted in 1 / variance labels; 0 if drift is unknown."""
    within = estimate[:, :, None] * (np.eye(estimate.shape[1]) - estimate[:, None, :])
    return np.nan_to_num(variance)[:, None, None] * within


def labels_needed(
    estimate: FloatArray, half: FloatArray, variance: FloatArray, sizes: IntArray, level: float
) -> IntArray:
    """Labels (b,) that, together with the estimate, give an interval of half-width `WANTED`, or as sampling allows."""
    spread = np.maximum((estimate * (1 - estimate)).max(axis=1), LEAST_VARIANCE)
    wanted = np.maximum(half, WANTED)
    needed = norm.ppf((1 + level) / 2) ** 2 * spread / wanted**2
    # The estimate counts like 1 / variance labels.
    more = needed - 1 / np.maximum(variance, 1e-12)
    return np.minimum(np.ceil(np.maximum(more, FEWEST_LABELS)), sizes).astype(np.intp)
