r"""A few labels of the bag itself: estimates that no drift can mislead, and how many labels are needed.

With posteriors f of all N instances and labels y of n of them, drawn at random,

.. math:: \hat p = \lambda \bar f_N + \frac1n \sum_{i \in L} (y_i - \lambda f_i)

is right on average whatever the posteriors are worth: the labelled part measures how far they are off. That is the
prediction-powered estimate; λ is chosen to make its variance least.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.classifiers import check_labels
from quanet.errors import InvalidData, InvalidSetting
from quanet.simplex import encode, project
from quanet.uncertainty.label_em import (
    LabelledBag,
    check_level,
    fixed_label_em,
    likelihood_ratios,
    responsibilities,
)

FEWEST = 10  # labels below which an interval would be a guess
PSEUDO = 0.5  # instances wrongly in and wrongly out of a class, added to the labelled ones for their variance


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """An estimate that labels of the bag have refined.

    Attributes
    ----------
    classes : (k,) labels.
    estimate, lower, upper : (k,) shares of the bag, and the ends of their intervals.
    level : of confidence.
    method : "prediction-powered" or "em".
    weight : λ, how much the posteriors count: 0 if they say nothing about the labels.
    n_labelled : labels used.
    """

    classes: LabelArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    method: str
    weight: float
    n_labelled: int

    def __str__(self) -> str:
        lines = zip(self.classes.tolist(), self.estimate, self.lower, self.upper, strict=True)
        return "\n".join(f"{name}: {p:.1%} ({low:.1%} to {high:.1%})" for name, p, low, high in lines)


def refine(
    quantifier: Quantifier,
    X: Any,
    X_labelled: Any,
    y_labelled: ArrayLike,
    *,
    level: float = 0.95,
    weights: ArrayLike | None = None,
    method: Literal["prediction-powered", "em"] = "prediction-powered",
) -> Refined:
    """Shares of a bag from a quantifier's posteriors and a few labels of the bag's own instances.

    Parameters
    ----------
    quantifier : fitted, one that reads posteriors.
    X : the whole bag, the labelled instances among it.
    X_labelled, y_labelled : a random part of it with labels; or the part that `plan_labels` chose.
    level : of confidence.
    weights : of the labelled instances, for a part that is not a plain random one: those of `plan_labels`.
    method : "prediction-powered", whose interval holds under any drift; or "em", maximum likelihood with the labels
        fixed, narrower if this is prior shift, and wrong if not. The interval of "em" includes how well the calibration
        of posteriors is known from held-out instances; for quantifiers that keep none, such as CC, it is too narrow.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: efficient prediction-powered inference", 2023;
    K. Nigam et al., "Text classification from labeled and unlabeled documents using EM", 2000.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))
    >>> X, y = Gaussians().draw([0.8, 0.2], 2000, rng=1)
    >>> X = X + [-0.4, 0.4]  # drift, of which the quantifier knows nothing
    >>> quantifier.predict(X).round(2)
    array([0.56, 0.44])
    >>> part = np.random.default_rng(2).permutation(2000)[:100]
    >>> print(refine(quantifier, X, X[part], y[part]))
    0: 79.8% (73.4% to 86.2%)
    1: 20.2% (13.8% to 26.6%)
    """
    check_level(level)
    if method not in ("prediction-powered", "em"):
        raise InvalidSetting(f"method is 'prediction-powered' or 'em'; got {method!r}.")
    ratios, known = likelihood_ratios(quantifier, X), likelihood_ratios(quantifier, X_labelled)
    codes = encode(check_labels(y_labelled, len(known)), quantifier.classes_)
    if len(codes) < FEWEST:
        raise InvalidData(f"{len(codes)} labels are too few for an interval; label at least {FEWEST}, better 50.")
    if len(ratios) < len(known):
        raise InvalidData(
            f"the bag has {len(ratios)} instances, fewer than the {len(known)} labelled ones, which are part of it. "
            "Give the whole bag as X."
        )
    shares = fixed_label_em(ratios, known, codes)
    if method == "em":
        if weights is not None:
            raise InvalidSetting("em takes a plain random part; weights are for 'prediction-powered'.")
        estimate, weight = shares, 1.0
        bag = LabelledBag.of(quantifier, ratios, known, codes)
        lower, upper = bag.interval(shares, float(stats.norm.isf((1 - level) / 2)))
    else:
        given = _check_weights(weights, len(codes))
        estimate, deviation, weight = prediction_powered(
            responsibilities(ratios, shares), responsibilities(known, shares), codes, given
        )
        reach = stats.t.isf((1 - level) / 2, len(codes) - 1) * deviation
        lower, upper = np.clip(estimate - reach, 0, 1), np.clip(estimate + reach, 0, 1)
    return Refined(
        classes=quantifier.classes_,
        estimate=project(estimate),
        lower=lower,
        upper=upper,
        level=level,
        method=method,
        weight=weight,
        n_labelled=len(codes),
    )


def prediction_powered(
    posteriors: FloatArray, known: FloatArray, codes: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Estimate and standard deviation (k,), and λ: (N, k), (n, k), (n,), (n,)."""
    N, k = posteriors.shape
    n = len(codes)
    labels = np.eye(k)[codes]
    w = weights / weights.sum()
    centred_y, centred_f = labels - w @ labels, known - w @ known
    weight = float(np.clip((w**2 @ (centred_y * centred_f)).sum() / max((w**2 @ centred_f**2).sum(), 1e-12), 0, 1))
    residuals = labels - weight * known
    estimate = weight * posteriors.mean(axis=0) + w @ residuals
    centred = residuals - w @ residuals
    # Few labels may happen to agree with all posteriors; one of each kind that does not keeps the interval honest.
    variance = n / (n - 1) * (w**2 @ centred**2) + 2 * PSEUDO / n**2
    return estimate, np.sqrt(variance * (1 - n / N)), weight


def _check_weights(weights: ArrayLike | None, n: int) -> FloatArray:
    if weights is None:
        return np.ones(n)
    values = np.asarray(weights, dtype=float)
    if values.shape != (n,) or not (np.isfinite(values).all() and (values > 0).all()):
        raise InvalidData(f"weights are one number above 0 for each of the {n} labelled instances.")
    return values
