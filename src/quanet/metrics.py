r"""Errors between prevalence vectors: (..., k), (..., k) -> (...).

`truth` and `estimate` broadcast against each other; the last axis is the classes. Errors that divide by a prevalence
have a parameter `eps`, which smooths both vectors first: :math:`(p + \epsilon) / (1 + k \epsilon)`. The usual value is
``1 / (2 * bag_size)``. It is one number, or one for every bag.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray
from quanet.errors import InvalidSetting, nearest
from quanet.simplex import smooth

Eps = float | FloatArray


def absolute_error(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""AE: mean over classes of :math:`|\hat p_c - p_c|`.

    Examples
    --------
    >>> float(absolute_error(np.array([0.5, 0.5]), np.array([0.4, 0.6])))
    0.1
    """
    return np.abs(estimate - truth).mean(axis=-1)


def normalized_absolute_error(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""NAE: the absolute error divided by the largest possible one, :math:`2 (1 - \min_c p_c) / k`.

    Examples
    --------
    >>> float(normalized_absolute_error(np.array([0.2, 0.8]), np.array([1.0, 0.0])))
    1.0
    """
    largest = 2 * (1 - truth.min(axis=-1)) / truth.shape[-1]
    return absolute_error(truth, estimate) / largest


def squared_error(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""SE: mean over classes of :math:`(\hat p_c - p_c)^2`.

    Examples
    --------
    >>> float(squared_error(np.array([0.5, 0.5]), np.array([0.4, 0.6])))
    0.01
    """
    return np.square(estimate - truth).mean(axis=-1)


def relative_absolute_error(truth: FloatArray, estimate: FloatArray, *, eps: Eps) -> FloatArray:
    r"""RAE: mean over classes of :math:`|\hat p_c - p_c| / p_c`.

    Examples
    --------
    >>> float(relative_absolute_error(np.array([0.5, 0.5]), np.array([0.4, 0.6]), eps=0.0))
    0.2
    """
    p, q = smooth(truth, eps), smooth(estimate, eps)
    return (np.abs(q - p) / p).mean(axis=-1)


def normalized_relative_absolute_error(truth: FloatArray, estimate: FloatArray, *, eps: Eps) -> FloatArray:
    r"""NRAE: the relative absolute error divided by the largest possible one, :math:`(k - 2 + 1 / \min_c p_c) / k`.

    Examples
    --------
    >>> float(normalized_relative_absolute_error(np.array([0.2, 0.8]), np.array([1.0, 0.0]), eps=0.0))
    1.0
    """
    # The worst estimate puts everything on the rarest class: relative error 1 on the others, (1 - p) / p on it.
    rarest = smooth(truth, eps).min(axis=-1)
    k = truth.shape[-1]
    return relative_absolute_error(truth, estimate, eps=eps) / ((k - 2 + 1 / rarest) / k)


def kullback_leibler_divergence(truth: FloatArray, estimate: FloatArray, *, eps: Eps) -> FloatArray:
    r"""KLD: :math:`\sum_c p_c \log (p_c / \hat p_c)`, in nats.

    Examples
    --------
    >>> float(kullback_leibler_divergence(np.array([0.5, 0.5]), np.array([0.25, 0.75]), eps=0.0))
    0.1438
    """
    p, q = smooth(truth, eps), smooth(estimate, eps)
    ratio = np.divide(p, q, out=np.ones(np.broadcast_shapes(p.shape, q.shape)), where=p > 0)
    # Near the truth the terms almost cancel, and rounding could leave a tiny negative sum.
    return np.maximum((p * np.log(ratio)).sum(axis=-1), 0)


def normalized_kullback_leibler_divergence(truth: FloatArray, estimate: FloatArray, *, eps: Eps) -> FloatArray:
    r"""NKLD: :math:`2 e^{KLD} / (1 + e^{KLD}) - 1`, from 0 to 1.

    Examples
    --------
    >>> float(normalized_kullback_leibler_divergence(np.array([0.5, 0.5]), np.array([0.25, 0.75]), eps=0.0))
    0.0718
    """
    return np.tanh(kullback_leibler_divergence(truth, estimate, eps=eps) / 2)


def match_distance(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""MD: :math:`\sum_{c < k} |\hat P_c - P_c|` of cumulative prevalences, for ordered classes.

    This is the earth mover's distance if neighbouring classes have distance 1.

    Examples
    --------
    >>> float(match_distance(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])))
    2.0
    """
    return np.abs(np.cumsum(estimate - truth, axis=-1)[..., :-1]).sum(axis=-1)


def bias(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""Signed error :math:`\hat p_c - p_c` of every class: (..., k). It sums to zero over the classes.

    Examples
    --------
    >>> bias(np.array([0.5, 0.5]), np.array([0.4, 0.6]))
    array([-0.1,  0.1])
    """
    return np.asarray(estimate - truth)


@dataclass(frozen=True, slots=True)
class Metric:
    """An error: its function and short name, and what it needs.

    `smoothed` states that the function needs `eps`, `ordered` that it needs ordered classes, and `per_class` that it
    returns one number per class.
    """

    function: Callable[..., FloatArray]
    name: str
    smoothed: bool = False
    ordered: bool = False
    per_class: bool = False


METRICS = {
    metric.name: metric
    for metric in (
        Metric(absolute_error, "ae"),
        Metric(normalized_absolute_error, "nae"),
        Metric(squared_error, "se"),
        Metric(relative_absolute_error, "rae", smoothed=True),
        Metric(normalized_relative_absolute_error, "nrae", smoothed=True),
        Metric(kullback_leibler_divergence, "kld", smoothed=True),
        Metric(normalized_kullback_leibler_divergence, "nkld", smoothed=True),
        Metric(match_distance, "md", ordered=True),
        Metric(bias, "bias", per_class=True),
    )
}


def find_metric(metric: str | Callable[..., FloatArray]) -> Metric:
    """The `Metric` of a short name ("ae", "rae", ...) or of a function, which may be your own.

    Examples
    --------
    >>> find_metric("kld").function.__name__
    'kullback_leibler_divergence'
    """
    if not isinstance(metric, str):
        known = (entry for entry in METRICS.values() if entry.function is metric)
        return next(known, Metric(metric, getattr(metric, "__name__", "error")))
    if metric not in METRICS:
        raise InvalidSetting(f"Unknown metric {metric!r}. {nearest(metric, METRICS)}")
    return METRICS[metric]
