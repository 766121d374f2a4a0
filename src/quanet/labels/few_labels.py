r"""Refine an estimate with a few labels of the bag itself: valid under any drift.

With posteriors f of all N instances and labels y of n random ones,

.. math:: \hat p = \lambda \bar f_N + \frac1n \sum_{i \in L} (y_i - \lambda f_i)

is unbiased even if the posteriors are wrong, because the labelled instances measure their error. This is the
prediction-powered estimate; λ minimizes its variance.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels
from quanet.errors import InvalidData, InvalidSetting
from quanet.labels.label_em import (
    LabelledBag,
    fixed_label_em,
    likelihood_ratios,
    responsibilities,
)
from quanet.parameters import check_level, one_of
from quanet.simplex import encode, project

MIN_LABELS = 10  # fewer labels give no usable interval
PSEUDO = 0.5  # false positives and false negatives added to the labelled instances when their variance is estimated


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """Prevalences of a bag, refined with labels of some of its instances.

    Attributes
    ----------
    classes : (k,) labels.
    estimate, lower, upper : (k,) prevalences of the bag and the limits of their intervals.
    level : confidence level.
    method : "prediction-powered" or "em".
    weight : λ, the weight of the posteriors: 0 if they are unrelated to the labels.
    n_labelled : number of labels used.
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
    """Prevalences of a bag from a quantifier's posteriors and a few labels of the bag's own instances.

    Parameters
    ----------
    quantifier : fitted quantifier that uses posteriors.
    X : the whole bag, including the labelled instances.
    X_labelled, y_labelled : a random part of the bag and its labels, or the instances chosen by `plan_labels`.
    level : confidence level.
    weights : weights of the labelled instances if they are not a simple random part: those of `plan_labels`.
    method : "prediction-powered", whose interval is valid under any drift; or "em", maximum likelihood with the labels
        fixed, which is narrower under prior shift and wrong under other drift. The interval of "em" includes the
        uncertainty of the calibration on held-out instances. For quantifiers without held-out instances, such as CC, it
        is too narrow.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: efficient prediction-powered inference", 2023;
    K. Nigam et al., "Text classification from labeled and unlabeled documents using EM", 2000.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))
    >>> X, y = Gaussians().draw([0.8, 0.2], 2000, rng=1)
    >>> X = X + [-0.4, 0.4]  # drift that the quantifier has not seen
    >>> quantifier.predict(X).round(2)
    array([0.56, 0.44])
    >>> part = np.random.default_rng(2).permutation(2000)[:100]
    >>> print(refine(quantifier, X, X[part], y[part]))
    0: 79.8% (73.4% to 86.2%)
    1: 20.2% (13.8% to 26.6%)
    """
    check_level(level)
    one_of("prediction-powered", "em").check("method", method)
    ratios, known = likelihood_ratios(quantifier, X), likelihood_ratios(quantifier, X_labelled)
    codes = encode(check_labels(y_labelled, len(known)), quantifier.classes_)
    if len(codes) < MIN_LABELS:
        raise InvalidData(f"{len(codes)} labels are too few for an interval. Label at least {MIN_LABELS}, better 50.")
    if len(ratios) < len(known):
        raise InvalidData(
            f"the bag has {len(ratios)} instances, fewer than the {len(known)} labelled ones. "
            "Pass the whole bag as X, including the labelled instances."
        )
    shares = fixed_label_em(ratios, known, codes)
    if method == "em":
        if weights is not None:
            raise InvalidSetting("method 'em' needs a simple random part. Use weights with 'prediction-powered' only.")
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
    """Estimate (k,), standard deviation (k,) and λ from posteriors (N, k), (n, k), codes (n,) and weights (n,)."""
    N, k = posteriors.shape
    n = len(codes)
    labels = np.eye(k)[codes]
    w = weights / weights.sum()
    centred_y, centred_f = labels - w @ labels, known - w @ known
    weight = float(np.clip((w**2 @ (centred_y * centred_f)).sum() / max((w**2 @ centred_f**2).sum(), 1e-12), 0, 1))
    residuals = labels - weight * known
    estimate = weight * posteriors.mean(axis=0) + w @ residuals
    centred = residuals - w @ residuals
    # A few labels may agree with all posteriors by chance. The pseudo-errors keep the interval from being too narrow.
    variance = n / (n - 1) * (w**2 @ centred**2) + 2 * PSEUDO / n**2
    return estimate, np.sqrt(variance * (1 - n / N)), weight


def _check_weights(weights: ArrayLike | None, n: int) -> FloatArray:
    if weights is None:
        return np.ones(n)
    values = np.asarray(weights, dtype=float)
    if values.shape != (n,) or not (np.isfinite(values).all() and (values > 0).all()):
        raise InvalidData(f"weights must be one number above 0 for each of the {n} labelled instances.")
    return values
