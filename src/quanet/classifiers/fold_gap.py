"""The fold gap: how much better a classifier fitted to all data is than the classifiers of the folds.

Out-of-fold posteriors come from classifiers fitted to a part of the data, say four fifths, but new instances are
classified by one fitted to all data, which is a little better. One more classifier, fitted to three fifths, measures
what a fifth of the data is worth. Errors shrink roughly with the square root of the training size, so the last fifth
is worth two thirds of that.

Intervals are computed from posteriors with the gap closed. So are the rates of `PACC`, if enough instances show the
gap. Likelihoods and densities are not: their estimates hardly depend on the gap, and closing it adds its error.
"""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.classifiers.calibration import MIN_POSTERIOR, centred_logs, zero_floor
from quanet.simplex import count

MIN_OF_CLASS = 20  # instances of each class, to measure the fold gap
ENOUGH_OF_CLASS = 100  # instances of each class that show the gap, to learn rates from posteriors with the gap closed


def measure_fold_gap(
    less: FloatArray, more: FloatArray, codes: IntArray, shares: tuple[float, float]
) -> FloatArray | None:
    """Extrapolate from posteriors of the same instances by two classifiers, (n, k) each, to a full fit: (k, k + 1).

    For the instances of each class: the change of their mean log posteriors (k), and the factor by which their spread
    grows. None if a class has too few instances.

    Parameters
    ----------
    less, more : posteriors by classifiers fitted to less and to more of the data.
    codes : classes of the instances.
    shares : of all data, to which the two classifiers were fitted.

    Examples
    --------
    >>> less, more = np.repeat([[0.7, 0.3], [0.3, 0.7]], 20, 0), np.repeat([[0.8, 0.2], [0.2, 0.8]], 20, 0)
    >>> gap = measure_fold_gap(less, more, np.repeat([0, 1], 20), (0.6, 0.8))
    >>> gap.round(2)
    array([[ 0.18, -0.18,  1.  ],
           [-0.18,  0.18,  1.  ]])
    """
    k = less.shape[1]
    if count(codes, k).min() < MIN_OF_CLASS:
        return None
    error_less, error_more = 1 / np.sqrt(shares[0]), 1 / np.sqrt(shares[1])
    factor = (error_more - 1) / (error_less - error_more)
    gap = np.empty((k, k + 1))
    floor = zero_floor(np.concatenate([less, more]), np.tile(codes, 2))
    logs_less, logs_more = centred_logs(less, floor), centred_logs(more, floor)
    for c in range(k):
        first, second = logs_less[codes == c], logs_more[codes == c]
        gap[c, :k] = factor * (second.mean(axis=0) - first.mean(axis=0))
        spreads = [max(float(np.sqrt(logs.var(axis=0).sum())), MIN_POSTERIOR) for logs in (first, second)]
        gap[c, k] = (spreads[1] / spreads[0]) ** factor
    return gap


def close_fold_gap(posteriors: FloatArray, codes: IntArray, gap: FloatArray) -> FloatArray:
    """Out-of-fold posteriors (m, k) of instances of classes (m,), distributed like those of the full fit.

    Zeros stay zero: calibration learns from the result how far to trust them.
    """
    k = posteriors.shape[1]
    logs = centred_logs(posteriors, zero_floor(posteriors, codes))
    for c in range(k):
        members = codes == c
        centre = logs[members].mean(axis=0)
        logs[members] = centre + gap[c, :k] + gap[c, k] * (logs[members] - centre)
    moved = np.exp(logs - logs.max(axis=1, keepdims=True)) * (posteriors > 0)
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))
