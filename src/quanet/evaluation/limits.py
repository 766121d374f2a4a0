r"""The smallest possible error of an estimate: the Cramér-Rao bound for the posteriors of a classifier.

The distribution of the posteriors in each class limits the accuracy of any unbiased quantifier that uses them. With
densities :math:`f_c` of the classes and a bag of prevalence p, the Fisher information of an instance about p is
:math:`J_{ab} = E_p[f_a f_b / f_p^2]` with :math:`f_p = \sum_c p_c f_c`.
The densities need not be known: calibrated posteriors divided by the prior are proportional to them.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray
from quanet.classifiers.calibration import calibrate
from quanet.errors import InvalidData
from quanet.files import json_text
from quanet.simplex import check_prevalences, encode

MIN_PREVALENCE = 1e-9  # at 0, the information about a class is infinite


def cramer_rao_variance(
    posteriors: ArrayLike, prevalences: ArrayLike, *, bag_size: int, fixed_counts: bool = True
) -> FloatArray:
    r"""Smallest variance of an unbiased estimate of each prevalence: (n, k), (..., k) -> (..., k).

    .. math:: \frac1m \big(J^{-1} - D\big)_{cc}, \qquad
              J_{ab} = \frac1n \sum_i \frac{r_{ia} r_{ib}}{\sum_c p_c r_{ic}}, \quad r_{ic} = \pi_{ic} / \bar\pi_c

    for bags of m instances, with D = diag(p) if the prevalences of the bag itself are estimated (class counts are
    fixed, as in every protocol here), and :math:`D = p p^T` if those of the population are estimated.
    For two classes, this is :math:`1 / (m I) - p (1 - p) / m` with :math:`I = E_p[((r - 1) / (1 - p + p r))^2]` and the
    density ratio r. For parameters and sources see `cramer_rao_error`.

    Notes
    -----
    The bound holds for unbiased estimates in large bags. Near 0 or 1, an estimate within the simplex is biased and can
    be better. A classifier that cannot separate two classes has an infinite bound.
    """
    rows = check_prevalences(posteriors)
    if rows.ndim != 2 or not len(rows):
        raise InvalidData(f"The posteriors of a pool must have shape (n, k); got {rows.shape}.")
    k = rows.shape[1]
    shares = check_prevalences(prevalences, k=k)
    prior = rows.mean(axis=0)
    if (prior <= 0).any():
        raise InvalidData(f"All posteriors of class {int(prior.argmin())} in the pool are 0. Remove this class.")
    ratios = rows / prior
    flat = np.maximum(shares.reshape(-1, k), MIN_PREVALENCE)
    flat = flat / flat.sum(axis=1, keepdims=True)
    variances = np.array([_one_variance(ratios, p, fixed_counts) for p in flat])
    return np.reshape(variances / bag_size, shares.shape)


def _one_variance(ratios: FloatArray, p: FloatArray, fixed_counts: bool) -> FloatArray:
    """The bound for bags of one instance: (n, k), (k,) -> (k,)."""
    weighted = ratios * np.sqrt(p)
    # Scaled by the square roots of p, the eigenvalues lie between 0 and 1, even for small prevalences.
    density = np.maximum(ratios @ p, np.finfo(float).tiny)
    information = (weighted / density[:, None]).T @ weighted / len(ratios)
    if np.linalg.eigvalsh(information)[0] < 1e-12 * p.min():
        return np.full(len(p), np.inf)
    inverse = np.diagonal(np.linalg.inv(information)) * p
    return np.maximum(inverse - (p if fixed_counts else p**2), 0.0)


def cramer_rao_error(
    posteriors: ArrayLike, prevalences: ArrayLike, *, bag_size: int, fixed_counts: bool = True
) -> FloatArray:
    r"""Cramér-Rao error: the expected absolute error of the best unbiased estimate, (n, k), (..., k) -> (...).

    .. math:: \frac1k \sum_c \sqrt{\frac{2}{\pi} V_c}, \qquad V_c = \frac1m \big(J^{-1} - D\big)_{cc}, \qquad
        J_{ab} = \frac1n \sum_i \frac{r_{ia} r_{ib}}{\sum_c p_c r_{ic}}, \quad r_{ic} = \pi_{ic} / \bar\pi_c

    V is the smallest variance [1]_ [2]_ for bags of m instances, J the Fisher information of an instance, and D =
    diag(p), or :math:`p p^T` without fixed counts. Errors are taken for normal. No unbiased method that uses the same
    posteriors does better.

    Parameters
    ----------
    posteriors : (n, k) of a pool, calibrated on this pool; see `pool_limit` for others.
    prevalences : (..., k) of the bags.
    bag_size : m, instances per bag.
    fixed_counts : whether the truth is the prevalence of the bag itself, as in every protocol here, or that of the
        population.

    References
    ----------
    .. [1] C. R. Rao, "Information and the accuracy attainable in the estimation of statistical parameters", Bulletin of
           the Calcutta Mathematical Society 37, 1945.
    .. [2] H. Cramér, Mathematical Methods of Statistics, Princeton University Press, 1946.

    Examples
    --------
    A classifier with accuracy 0.9. Counting its decisions has the variance p (1 - p) / n + .09 / (.8^2 n), where the
    first term is the variance of the prevalence of the bag:

    >>> pool = np.repeat([[0.9, 0.1], [0.1, 0.9]], 500, axis=0)
    >>> cramer_rao_error(pool, [[0.5, 0.5], [0.9, 0.1]], bag_size=500)
    array([0.0134, 0.0134])
    >>> math.sqrt(2 / math.pi * 0.09 / (0.8**2 * 500))
    0.0134
    """
    variance = cramer_rao_variance(posteriors, prevalences, bag_size=bag_size, fixed_counts=fixed_counts)
    return np.sqrt(2 / math.pi * variance).mean(axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """The smallest possible error of unbiased estimates, by the prevalence of a class.

    Attributes
    ----------
    prevalences : (g,) of the last class, ascending.
    errors : (g,) smallest absolute errors.
    methods : methods that use these posteriors, so that the limit applies to them; empty: all methods.
    """

    prevalences: FloatArray
    errors: FloatArray
    methods: tuple[str, ...] = ()


def pool_limit(
    posteriors: ArrayLike,
    labels: ArrayLike,
    classes: ArrayLike,
    *,
    bag_size: int,
    prevalences: ArrayLike | None = None,
    calibration: str = "platt",
) -> Limit:
    """Limit of a labelled pool: the Cramér-Rao error by prevalence, with posteriors calibrated on this pool.

    The prevalence of the last class varies; the others are equal. The result has `prevalences` (g,) and `errors` (g,).

    Parameters
    ----------
    posteriors, labels : (n, k) and (n,) of the pool.
    classes : (k,), sorted.
    bag_size : instances per bag.
    prevalences : (g,) of the last class; default: the 21 of the paper.
    calibration : see `quanet.classifiers.calibration`.

    See Also
    --------
    cramer_rao_error : the formula.

    Examples
    --------
    >>> pool, labels = np.repeat([[0.7, 0.3], [0.3, 0.7]], 50, axis=0), np.repeat(["a", "b", "b", "a"], [45, 5, 45, 5])
    >>> pool_limit(pool, labels, ["a", "b"], bag_size=500, prevalences=[0.5]).errors.round(3)
    array([0.014])
    """
    given = np.r_[0.01, np.arange(1, 20) / 20, 0.99] if prevalences is None else np.asarray(prevalences, dtype=float)
    rows = np.asarray(posteriors, dtype=float)
    names = np.asarray(classes)
    calibrated = calibrate(rows, encode(labels, names), method=calibration)(rows)
    others = (1 - given) / (len(names) - 1)
    shares = np.column_stack([*[others] * (len(names) - 1), given])
    return Limit(given, cramer_rao_error(calibrated, shares, bag_size=bag_size))


def mean_limit(limits: list[Limit]) -> Limit:
    """The mean of the limits of several runs, at the same prevalences."""
    first = limits[0].prevalences
    if any(limit.prevalences.shape != first.shape or (limit.prevalences != first).any() for limit in limits):
        raise InvalidData("Limits of runs cannot be averaged: their prevalences differ.")
    return Limit(first, np.mean([limit.errors for limit in limits], axis=0), limits[0].methods)


def limits_to_json(limits: Mapping[str, Limit]) -> str:
    """Limits of datasets as JSON: the content of a file for ``--limits`` of ``quanet experiment``.

    Parameters
    ----------
    limits : the result of `pool_limit` for each dataset, by its name.

    Examples
    --------
    >>> limit = Limit(np.array([0.5]), np.array([0.014]))
    >>> json.loads(limits_to_json({"reviews": limit}))
    {'reviews': {'prevalences': [0.5], 'errors': [0.014], 'methods': []}}
    """
    return json_text(
        {
            name: {"prevalences": limit.prevalences, "errors": limit.errors, "methods": limit.methods}
            for name, limit in limits.items()
        }
    )


def read_limits(path: Path) -> dict[str, Limit]:
    """Limits of datasets from a file written by `limits_to_json`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        limits = {
            name: Limit(
                np.array(limit["prevalences"], dtype=float),
                np.array(limit["errors"], dtype=float),
                tuple(map(str, limit.get("methods", ()))),
            )
            for name, limit in content.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidData(
            f"{path} does not contain limits: {error}. It must be a JSON object of datasets with 'prevalences' "
            "and 'errors'."
        ) from None
    for name, limit in limits.items():
        if limit.prevalences.ndim != 1 or limit.prevalences.shape != limit.errors.shape:
            raise InvalidData(f"{path}: {name!r} must have as many errors as prevalences.")
    return limits
