r"""How good can an estimate get? The Cramér-Rao bound of a classifier's posteriors.

What a classifier tells of an instance is its posterior, and how the posterior is distributed in each class limits what
any unbiased quantifier on top of it can reach. With densities :math:`f_c` of the classes and a bag of prevalence p, an
instance's Fisher information on the shares is :math:`J_{ab} = E_p[f_a f_b / f_p^2]` with :math:`f_p = \sum_c p_c f_c`.
The densities need not be known: calibrated posteriors divided by their prior are proportional to them.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, LabelArray
from quanet.calibration import calibrate
from quanet.errors import InvalidData
from quanet.simplex import check_prevalences, encode

EDGE = 1e-9  # shares are kept this far from 0, where the information of a class that is not there has no end


def cramer_rao_variance(
    posteriors: ArrayLike, prevalences: ArrayLike, *, bag_size: int, fixed_counts: bool = True
) -> FloatArray:
    r"""Least variance of an unbiased estimate of every share: (n, k), (..., k) -> (..., k).

    .. math:: \frac1m \big(J^{-1} - D\big)_{cc}, \qquad
              J_{ab} = \frac1n \sum_i \frac{r_{ia} r_{ib}}{\sum_c p_c r_{ic}}, \quad r_{ic} = \pi_{ic} / \bar\pi_c

    for bags of m instances, with D = diag(p) where the bag's own shares are estimated (their class counts are fixed, as
    in every protocol here), and :math:`D = p p^T` where those of the source are that the bag was drawn from. For two
    classes that is :math:`1 / (m I) - p (1 - p) / m` with :math:`I = E_p[((r - 1) / (1 - p + p r))^2]` and the density
    ratio r.

    Parameters
    ----------
    posteriors : of a pool, (n, k), calibrated on that pool: see `pool_limit` for ones that are not.
    prevalences : of the bags, (..., k).
    bag_size : instances in a bag.
    fixed_counts : whether the bag's own shares are the truth, or those of its source.

    Notes
    -----
    The bound is for unbiased estimates, in large bags. Near a share of 0 or 1 an estimate that stays within the simplex
    is biased, and can lie below it. A classifier that does not tell two classes apart has an infinite bound.

    References
    ----------
    C. R. Rao, "Information and the accuracy attainable in the estimation of statistical parameters", 1945.
    """
    rows = check_prevalences(posteriors)
    if rows.ndim != 2 or not len(rows):
        raise InvalidData(f"the posteriors of a pool have shape (n, k); got {rows.shape}.")
    k = rows.shape[1]
    shares = check_prevalences(prevalences, k=k)
    prior = rows.mean(axis=0)
    if (prior <= 0).any():
        raise InvalidData(f"class {int(prior.argmin())} has no posterior above 0 in the pool. Leave it out.")
    ratios = rows / prior
    flat = np.maximum(shares.reshape(-1, k), EDGE)
    flat = flat / flat.sum(axis=1, keepdims=True)
    variances = np.array([_one_variance(ratios, p, fixed_counts) for p in flat])
    return np.reshape(variances / bag_size, shares.shape)


def _one_variance(ratios: FloatArray, p: FloatArray, fixed_counts: bool) -> FloatArray:
    """The bound for bags of one instance: (n, k), (k,) -> (k,)."""
    weighted = ratios * np.sqrt(p)
    # In units of the shares' roots the matrix has its eigenvalues between 0 and 1, however small a share is.
    density = np.maximum(ratios @ p, np.finfo(float).tiny)
    information = (weighted / density[:, None]).T @ weighted / len(ratios)
    if np.linalg.eigvalsh(information)[0] < 1e-12 * p.min():
        return np.full(len(p), np.inf)
    inverse = np.diagonal(np.linalg.inv(information)) * p
    return np.maximum(inverse - (p if fixed_counts else p**2), 0.0)


def cramer_rao_error(
    posteriors: ArrayLike, prevalences: ArrayLike, *, bag_size: int, fixed_counts: bool = True
) -> FloatArray:
    r"""Expected absolute error of the best unbiased estimate: (n, k), (..., k) -> (...).

    :math:`\sqrt{2 / \pi}` of the root of `cramer_rao_variance`, as for a normal error, averaged over classes.

    Examples
    --------
    A classifier that is right 9 times of 10. Its decisions give the share with variance p (1 - p) / n + .09 / (.8^2 n),
    of which the first part is that of the bag's own share:

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
    """The least expected error, by the prevalence of a class.

    Attributes
    ----------
    prevalences : (g,) of the last class, ascending.
    errors : (g,) absolute errors that no unbiased estimate gets below.
    methods : those that read the classifier's posteriors, whose limit it is; none means all.
    """

    prevalences: FloatArray
    errors: FloatArray
    methods: tuple[str, ...] = ()


def pool_limit(
    posteriors: ArrayLike,
    labels: ArrayLike,
    classes: LabelArray,
    *,
    bag_size: int,
    prevalences: ArrayLike | None = None,
    calibration: str = "platt",
) -> Limit:
    """The limit on a labelled pool, with posteriors calibrated on the pool itself; other classes share the rest evenly.

    Parameters
    ----------
    posteriors, labels : of the pool, (n, k) and (n,).
    classes : (k,), sorted.
    bag_size : instances in a bag.
    prevalences : of the last class, (g,); None takes the 21 of the paper.
    calibration : see `quanet.calibration`.

    Examples
    --------
    >>> pool, labels = np.repeat([[0.7, 0.3], [0.3, 0.7]], 50, axis=0), np.repeat(["a", "b", "b", "a"], [45, 5, 45, 5])
    >>> pool_limit(pool, labels, np.array(["a", "b"]), bag_size=500, prevalences=[0.5]).errors.round(3)
    array([0.014])
    """
    given = np.r_[0.01, np.arange(1, 20) / 20, 0.99] if prevalences is None else np.asarray(prevalences, dtype=float)
    rows = np.asarray(posteriors, dtype=float)
    calibrated = calibrate(rows, encode(labels, classes), method=calibration)(rows)
    others = (1 - given) / (len(classes) - 1)
    shares = np.column_stack([*[others] * (len(classes) - 1), given])
    return Limit(given, cramer_rao_error(calibrated, shares, bag_size=bag_size))


def mean_limit(limits: list[Limit]) -> Limit:
    """One limit from those of several runs, at the same prevalences: their mean."""
    first = limits[0].prevalences
    if any(limit.prevalences.shape != first.shape or (limit.prevalences != first).any() for limit in limits):
        raise InvalidData("limits can be averaged over runs if they are at the same prevalences; these are not.")
    return Limit(first, np.mean([limit.errors for limit in limits], axis=0), limits[0].methods)


def limits_to_json(limits: Mapping[str, Limit]) -> str:
    """Limits of datasets, as the text of a file."""
    plain = {
        name: {
            "prevalences": limit.prevalences.tolist(),
            "errors": limit.errors.tolist(),
            "methods": list(limit.methods),
        }
        for name, limit in limits.items()
    }
    return json.dumps(plain, indent=1) + "\n"


def read_limits(path: Path) -> dict[str, Limit]:
    """Limits of datasets from a file that holds what `limits_to_json` gave."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        limits = {
            name: Limit(
                np.array(one["prevalences"], dtype=float),
                np.array(one["errors"], dtype=float),
                tuple(map(str, one.get("methods", ()))),
            )
            for name, one in plain.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidData(
            f"{path} holds no limits: {error}. It is a JSON object of datasets, each with 'prevalences' and 'errors'."
        ) from None
    for name, limit in limits.items():
        if limit.prevalences.ndim != 1 or limit.prevalences.shape != limit.errors.shape:
            raise InvalidData(f"{path}: {name!r} needs as many prevalences as errors.")
    return limits
