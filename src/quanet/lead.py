r"""How far a classifier fitted to all data is ahead of those of its folds.

Out-of-fold posteriors come from classifiers that have seen a part of the data, say four fifths, and bags are read by
one that has seen all of it, which is a little better. One more classifier, fitted to three fifths, shows how much
a fifth of the data is worth; errors of learning shrink about with the root of what is learnt from, so that the next
fifth is worth two thirds of that.
"""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.calibration import smooth_zeros, zero_floor
from quanet.simplex import count

FEWEST = 20  # instances of a class, below which nothing is said of it
TINY = 1e-9  # posteriors are kept this far from 0, where logarithms end; zeros are smoothed before (`zero_floor`)


def measure_lead(less: FloatArray, more: FloatArray, codes: IntArray, shares: tuple[float, float]) -> FloatArray | None:
    """How posteriors will change: those of the same instances by two classifiers, (n, k) each -> (k, k + 1).

    For the instances of each class, the change of their mean log posteriors (k), and the factor by which these spread
    more. None where a class has too few instances to say.

    Parameters
    ----------
    less, more : by classifiers that have seen less and more of the data.
    codes : classes of the instances.
    shares : of all data that the two classifiers have seen.

    Examples
    --------
    >>> less, more = np.repeat([[0.7, 0.3], [0.3, 0.7]], 20, 0), np.repeat([[0.8, 0.2], [0.2, 0.8]], 20, 0)
    >>> lead = measure_lead(less, more, np.repeat([0, 1], 20), (0.6, 0.8))
    >>> move_ahead(more, np.repeat([0, 1], 20), lead)[::20].round(2)
    array([[0.85, 0.15],
           [0.15, 0.85]])
    """
    k = less.shape[1]
    if count(codes, k).min() < FEWEST:
        return None
    before, now = 1 / np.sqrt(shares[0]), 1 / np.sqrt(shares[1])
    rest = (now - 1) / (before - now)
    lead = np.empty((k, k + 1))
    floor = zero_floor(np.concatenate([less, more]), np.tile(codes, 2))
    logs_less, logs_more = _logs(less, floor), _logs(more, floor)
    for c in range(k):
        one, two = logs_less[codes == c], logs_more[codes == c]
        lead[c, :k] = rest * (two.mean(axis=0) - one.mean(axis=0))
        spreads = [max(float(np.sqrt(logs.var(axis=0).sum())), TINY) for logs in (one, two)]
        lead[c, k] = (spreads[1] / spreads[0]) ** rest
    return lead


def move_ahead(posteriors: FloatArray, codes: IntArray, lead: FloatArray) -> FloatArray:
    """Out-of-fold posteriors (m, k) of classes (m,), as the classifier that is ahead would distribute them.

    Zeros stay zero: how much to trust them is learnt from the result, as from any posteriors.
    """
    k = posteriors.shape[1]
    logs = _logs(posteriors, zero_floor(posteriors, codes))
    for c in range(k):
        mine = codes == c
        centre = logs[mine].mean(axis=0)
        logs[mine] = centre + lead[c, :k] + lead[c, k] * (logs[mine] - centre)
    moved = np.exp(logs - logs.max(axis=1, keepdims=True)) * (posteriors > 0)
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def _logs(posteriors: FloatArray, floor: FloatArray | None) -> FloatArray:
    """Log posteriors, less their mean over the classes: (n, k) -> (n, k)."""
    logs = np.log(np.maximum(smooth_zeros(posteriors, floor), TINY))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))
