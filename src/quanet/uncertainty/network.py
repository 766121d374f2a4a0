"""Intervals of `QuaNet`: quantiles of what its network returns, a distribution over the shares of a bag's instances.

The network was trained on tasks whose held-out instances are few or many and come from classifiers of folds. So its
distributions include what was learned from held-out instances, and the gap between the classifiers of the folds and the
final one, and errors that no held-out instance has shown (`unseen_errors`).
"""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.errors import InvalidSetting
from quanet.nn.quanet import QuaNet
from quanet.nn.share_reader import ShareCurves
from quanet.uncertainty.closed_form import multinomial_covariance, observed_covariance
from quanet.uncertainty.relearning import Ends, IntervalRequest

MOST_KEPT = 50_000  # distributions that are kept at a time, 1.5 kB each


def network_intervals(request: IntervalRequest) -> Ends:
    """Intervals of the requested bags from the network's distributions."""
    quantifier, bags = request.quantifier, request.bags
    if not isinstance(quantifier, QuaNet):
        raise InvalidSetting(f"{type(quantifier).__name__} has no network; method='network' is for QuaNet.")
    if request.held_out is not None and not request.held_out_from_fit:
        learned = quantifier.relearn(request.held_out.inputs, request.held_out.codes)
        assert isinstance(learned, QuaNet)
        quantifier = learned
    k, tail = len(quantifier.classes_), (1 - request.level) / 2
    lower, upper = np.empty((len(bags), k)), np.empty((len(bags), k))
    covariance = np.empty((len(bags), k, k))
    for positions, stack in bags.gather(quantifier.rows(request.inputs)):
        sizes, estimate = request.sizes[positions], request.estimate[positions]
        variance = np.empty_like(estimate)
        if request.curves is not None and quantifier is request.quantifier and (sizes == stack.shape[1]).all():
            curves = [curve.take(positions) for curve in request.curves]
        else:
            curves = quantifier.share_curves(stack, sizes)
        for c, curve in enumerate(curves):
            lower[positions, c], upper[positions, c] = curve.quantile(tail), curve.quantile(1 - tail)
            variance[:, c] = curve.variance
        smoothed = (estimate + 1 / sizes[:, None]) / (1 + k / sizes[:, None])
        covariance[positions] = _covariance(stack / quantifier.prior_, smoothed, sizes, variance)
    if not request.target_is_bag:
        lower, upper = add_sampling(request.estimate, lower, upper, request.sizes, request.z)
        covariance = covariance + multinomial_covariance(request.estimate, request.sizes)
    return lower, upper, covariance


def kept_curves(quantifier: Quantifier, rows: FloatArray, bags: Bags) -> list[ShareCurves] | None:
    """The network's distributions of every class in bags of rows (n, k), whose means are the estimates.

    None for weighted bags, which are read as other instances, and for bags that are too many to keep them.
    """
    k = len(quantifier.classes_)
    if not isinstance(quantifier, QuaNet) or bags.weights is not None or k * len(bags) > MOST_KEPT:
        return None
    places, parts = zip(
        *((positions, quantifier.share_curves(stack)) for positions, stack in bags.gather(rows)), strict=True
    )
    order = np.concatenate(places).argsort()
    return [ShareCurves.joined([part[c] for part in parts]).take(order) for c in range(k)]


def _covariance(likelihoods: FloatArray, estimate: FloatArray, sizes: IntArray, variance: FloatArray) -> FloatArray:
    """Covariances (b, k, k) with about these variances (b, k), correlated as maximum likelihood estimates are."""
    if variance.shape[1] == 2:
        return variance[:, :, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    observed = observed_covariance(likelihoods, estimate, sizes, target_is_bag=False)
    scale = np.sqrt(variance / np.maximum(np.diagonal(observed, axis1=1, axis2=2), 1e-12))
    scaled = observed * scale[:, :, None] * scale[:, None, :]
    # Shares sum to 1, so their errors sum to 0.
    k = estimate.shape[1]
    centring = np.eye(k) - 1 / k
    return centring @ scaled @ centring


def add_sampling(
    estimate: FloatArray, lower: FloatArray, upper: FloatArray, sizes: IntArray, z: float
) -> tuple[FloatArray, FloatArray]:
    """Ends (b, k) for the source of bags of these sizes (b,), from those for the bags themselves.

    Wilson's interval, as if all classes were known, is added as the root of the sum of squares.

    Examples
    --------
    >>> share, half = np.array([[0.5]]), np.array([100])
    >>> [end.round(2) for end in add_sampling(share, share, share, half, 1.96)]
    [array([[0.4]]), array([[0.6]])]
    """
    n = np.asarray(sizes, dtype=float)[:, None]
    centre = (estimate + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * np.sqrt(estimate * (1 - estimate) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    below = np.hypot(estimate - np.minimum(lower, estimate), np.maximum(estimate - centre + reach, 0))
    above = np.hypot(np.maximum(upper, estimate) - estimate, np.maximum(centre + reach - estimate, 0))
    return estimate - below, estimate + above
