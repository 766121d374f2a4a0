r"""Errors that too few held-out instances have shown: what may happen although it was never seen.

Rates, likelihoods and calibrations are learned from m held-out instances of a class. If the classifier made no error on
them, or hardly any, their variance is almost 0, and so is that of all their resamples. But it may still make errors.
Before anything was seen, error rates have Kerman's (2011) neutral prior, Beta(a, a) with a = 1 / 3. If none of m
instances was an error, the number J of errors among N further instances of the class then has a distribution that is
almost negative binomial. With the quantile q of a Gamma(a) distribution, its quantile is about

.. math:: j_{level} = \frac{q_{(1 + level) / 2}}{\log (1 + m / N)}

If all rates were equally likely (a = 1), intervals of nearly perfect classifiers would be up to 1.7 times as wide, and
contain the truth in 98 to 100 % of bags (`docs/experiments/share-network.md`).

Errors are whole numbers, so that half an error or less is none. In a bag of n instances with an estimate of
:math:`\hat p_c` there may be :math:`N = n \hat p_c + 1` of class c, because one may have been missed. The estimate of
this class may be too low by :math:`j_{level} / n`, and those of the others too high. In large bags this is
:math:`p_c\, q / m`, about 2.0 / m instances of the class for a level of 95 %. So the error is not symmetric: a small
prevalence may be overestimated by much, but underestimated by little. It is independent of the errors that the held-out
instances do show, and combined with them by the root of the sum of squares. With many held-out instances it is
negligible, because other errors decrease with :math:`1 / \sqrt m`.
"""

import numpy as np
from scipy.special import gammaincinv
from scipy.stats import norm

from quanet.arrays import FloatArray, IntArray
from quanet.held_out import HeldOut

PRIOR = 1 / 3  # parameter of the neutral prior of error rates


def unseen_reach(
    prevalences: FloatArray, sizes: IntArray, held_out: HeldOut, level: float
) -> tuple[FloatArray, FloatArray]:
    """By how much estimates of every class may be too low because of errors that were never seen, (b, k) twice.

    The second value is the part that does not decrease with the size of the bag, because it was learned.

    Parameters
    ----------
    prevalences : (b, k) of the bags.
    sizes : (b,) numbers of instances.
    held_out : held-out instances.
    level : of the interval.

    Examples
    --------
    Nine of ten instances are of the first class:

    >>> held_out = HeldOut(np.full((300, 2), 0.5), np.repeat([0, 1], 150), 2)
    >>> for n in (50, 100_000):
    ...     print(unseen_reach(np.array([[0.9, 0.1]]), np.array([n]), held_out, 0.95)[0].round(3))
    [[0.028 0.005]]
    [[0.012 0.001]]
    """
    known = np.maximum(held_out.effective_sizes, 1.0)
    bound = gammaincinv(PRIOR, (1 + level) / 2)
    n = np.asarray(sizes, dtype=float)[:, None]
    of_class = n * np.clip(prevalences, 0, 1) + 1  # the one instance of a class may be the one that was missed
    errors = bound / np.log1p(known / of_class)
    errors = np.clip(2 * errors - 1, 0.0, errors)  # errors are whole numbers: less than half an error is none
    whole = np.minimum(errors, of_class) / n
    return whole, np.minimum(whole, of_class / n * bound / known)


def add_unseen(
    estimate: FloatArray, lower: FloatArray, upper: FloatArray, reach: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals (b, k) that include errors of instances of every class, with their `unseen_reach` (b, k).

    Examples
    --------
    >>> share, reach = np.array([[0.9, 0.1]]), np.array([[0.04, 0.01]])
    >>> [end.round(3) for end in add_unseen(share, share, share, reach)]
    [array([[0.89, 0.06]]), array([[0.94, 0.11]])]
    """
    squares = reach**2
    into = np.sqrt(np.maximum(squares.sum(axis=1, keepdims=True) - squares, 0.0))  # from each of the other classes
    anchor = np.clip(estimate, lower, upper)
    return anchor - np.hypot(anchor - lower, into), anchor + np.hypot(upper - anchor, reach)


def unseen_parts(reach: FloatArray, level: float) -> FloatArray:
    """Parts (k, b, k) of the errors of bags: the sum of the products of two bags is the covariance of each class.

    One part for every class whose instances are taken for those of other classes, all equally often.
    """
    k = reach.shape[1]
    moves = (1 - np.eye(k)) / np.sqrt(k - 1) - np.eye(k)  # from one class to others
    return (reach / norm.ppf((1 + level) / 2)).T[:, :, None] * moves[:, None, :]


def unseen_covariance(reach: FloatArray, level: float) -> FloatArray:
    """Covariance (b, k, k) of the errors of bags.

    Examples
    --------
    >>> unseen_covariance(np.array([[0.196, 0.0]]), 0.95).round(3)
    array([[[ 0.01, -0.01],
            [-0.01,  0.01]]])
    """
    k = reach.shape[1]
    variance = (reach / norm.ppf((1 + level) / 2)) ** 2
    of_class = np.eye(k) * variance[:, :, None]
    into = np.eye(k) * (variance.sum(axis=1, keepdims=True) - variance)[:, :, None]
    between = (variance[:, :, None] + variance[:, None, :]) * (1 - np.eye(k))
    return np.asarray(of_class + (into - between) / (k - 1))
