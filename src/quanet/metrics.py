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
    r"""Absolute error (AE): the mean over classes of the distance from the truth [1]_.

    .. math:: AE(p, \hat p) = \frac1k \sum_c |\hat p_c - p_c|

    Parameters
    ----------
    truth : (..., k) true prevalences p.
    estimate : (..., k) estimated prevalences; both broadcast against each other, and the result is (...).

    References
    ----------
    .. [1] F. Sebastiani, "Evaluation measures for quantification: an axiomatic approach", Information Retrieval Journal
           23, 2020.

    Examples
    --------
    >>> float(absolute_error(np.array([0.5, 0.5]), np.array([0.4, 0.6])))
    0.1
    """
    return np.abs(estimate - truth).mean(axis=-1)


def normalized_absolute_error(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""Normalized absolute error (NAE): the absolute error divided by the largest possible one [1]_.

    .. math:: NAE(p, \hat p) = \frac{\sum_c |\hat p_c - p_c|}{2 (1 - \min_c p_c)}

    Parameters
    ----------
    truth, estimate : see `absolute_error`.

    References
    ----------
    .. [1] F. Sebastiani, "Evaluation measures for quantification: an axiomatic approach", Information Retrieval Journal
           23, 2020.

    Examples
    --------
    >>> float(normalized_absolute_error(np.array([0.2, 0.8]), np.array([1.0, 0.0])))
    1.0
    """
    largest = 2 * (1 - truth.min(axis=-1)) / truth.shape[-1]
    return absolute_error(truth, estimate) / largest


def squared_error(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""Squared error (SE): the mean over classes of the squared distance from the truth [1]_.

    .. math:: SE(p, \hat p) = \frac1k \sum_c (\hat p_c - p_c)^2

    Parameters
    ----------
    truth, estimate : see `absolute_error`.

    References
    ----------
    .. [1] F. Sebastiani, "Evaluation measures for quantification: an axiomatic approach", Information Retrieval Journal
           23, 2020.

    Examples
    --------
    >>> float(squared_error(np.array([0.5, 0.5]), np.array([0.4, 0.6])))
    0.01
    """
    return np.square(estimate - truth).mean(axis=-1)


def relative_absolute_error(truth: FloatArray, estimate: FloatArray, *, eps: Eps) -> FloatArray:
    r"""Relative absolute error (RAE): the mean over classes of the distance from the truth, as a share of it [1]_.

    .. math:: RAE(p, \hat p) = \frac1k \sum_c \frac{|\hat p_c - p_c|}{p_c}

    For rare classes: an error of one point counts more where the truth is one point than where it is fifty.

    Parameters
    ----------
    truth, estimate : see `absolute_error`.
    eps : both are first smoothed, :math:`(p + \epsilon) / (1 + k \epsilon)`. The usual value is
        ``1 / (2 * bag_size)``; one number, or one for every bag.

    References
    ----------
    .. [1] F. Sebastiani, "Evaluation measures for quantification: an axiomatic approach", Information Retrieval Journal
           23, 2020.

    Examples
    --------
    >>> float(relative_absolute_error(np.array([0.5, 0.5]), np.array([0.4, 0.6]), eps=0.0))
    0.2
    """
    p, q = smooth(truth, eps), smooth(estimate, eps)
    return (np.abs(q - p) / p).mean(axis=-1)


def normalized_relative_absolute_error(truth: FloatArray, estimate: FloatArray, *, eps: Eps) -> FloatArray:
    r"""Normalized relative absolute error (NRAE): the relative absolute error divided by the largest possible one [1]_.

    .. math:: NRAE(p, \hat p) = \frac{\sum_c |\hat p_c - p_c| / p_c}{k - 2 + 1 / \min_c p_c}

    Parameters
    ----------
    truth, estimate : see `absolute_error`.
    eps : see `relative_absolute_error`.

    References
    ----------
    .. [1] F. Sebastiani, "Evaluation measures for quantification: an axiomatic approach", Information Retrieval Journal
           23, 2020.

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
    r"""Kullback-Leibler divergence (KLD) of the estimate from the truth, in nats [1]_.

    .. math:: KLD(p, \hat p) = \sum_c p_c \ln \frac{p_c}{\hat p_c}

    Parameters
    ----------
    truth, estimate : see `absolute_error`.
    eps : see `relative_absolute_error`.

    References
    ----------
    .. [1] F. Sebastiani, "Evaluation measures for quantification: an axiomatic approach", Information Retrieval Journal
           23, 2020.

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
    r"""Normalized Kullback-Leibler divergence (NKLD), from 0 to 1 [1]_.

    .. math:: NKLD(p, \hat p) = 2\, \frac{e^{KLD}}{1 + e^{KLD}} - 1

    Parameters
    ----------
    truth, estimate : see `absolute_error`.
    eps : see `relative_absolute_error`.

    References
    ----------
    .. [1] F. Sebastiani, "Evaluation measures for quantification: an axiomatic approach", Information Retrieval Journal
           23, 2020.

    Examples
    --------
    >>> float(normalized_kullback_leibler_divergence(np.array([0.5, 0.5]), np.array([0.25, 0.75]), eps=0.0))
    0.0718
    """
    return np.tanh(kullback_leibler_divergence(truth, estimate, eps=eps) / 2)


def match_distance(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""Match distance (MD): the error for ordered classes, such as stars [1]_.

    .. math:: MD(p, \hat p) = \sum_{c < k} \big| \hat P_c - P_c \big|, \qquad P_c = \sum_{j \le c} p_j

    This is the earth mover's distance if neighbouring classes have distance 1.

    Parameters
    ----------
    truth, estimate : see `absolute_error`; classes from the lowest to the highest.

    References
    ----------
    .. [1] M. Werman, S. Peleg and A. Rosenfeld, "A distance metric for multidimensional histograms", Computer Vision,
           Graphics, and Image Processing 32, 1985.

    Examples
    --------
    >>> float(match_distance(np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])))
    2.0
    """
    return np.abs(np.cumsum(estimate - truth, axis=-1)[..., :-1]).sum(axis=-1)


def bias(truth: FloatArray, estimate: FloatArray) -> FloatArray:
    r"""Bias: the signed error of every class, (..., k). It sums to zero over the classes.

    .. math:: \hat p_c - p_c

    Parameters
    ----------
    truth, estimate : see `absolute_error`.

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


#: The metrics by their short names: "ae", "nae", "se", "rae", "nrae", "kld", "nkld", "md", "bias". Each entry has its
#: `function`, and whether it needs `eps` (`smoothed`) or ordered classes (`ordered`), or gives a number `per_class`.
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
