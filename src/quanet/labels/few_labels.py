"""Refine an estimate with a few labels of the bag itself: valid under any drift."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels
from quanet.errors import InvalidData, InvalidSetting
from quanet.labels.exposed_labels import BagExposure
from quanet.labels.label_em import (
    LabelledBag,
    fixed_label_em,
    likelihood_ratios,
    responsibilities,
)
from quanet.labels.prediction_powered import design_labels, prediction_powered
from quanet.parameters import check_level, one_of
from quanet.simplex import encode, project
from quanet.wording import between, percent

MIN_LABELS = 10  # fewer labels give no usable interval


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
    effective : (k,) number of random labels whose plain share has the same variance; NaN for "em".
    """

    classes: LabelArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    method: str
    weight: float
    n_labelled: int
    effective: FloatArray

    def __str__(self) -> str:
        lines = zip(self.classes.tolist(), self.estimate, self.lower, self.upper, strict=True)
        return "\n".join(f"{name}: {percent(p)} ({between(low, high)})" for name, p, low, high in lines)


def refine(
    quantifier: Quantifier,
    X: Any,
    X_labelled: Any,
    y_labelled: ArrayLike,
    *,
    level: float = 0.95,
    design_weights: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weights_labelled: ArrayLike | None = None,
    method: Literal["prediction-powered", "em"] = "prediction-powered",
) -> Refined:
    r"""Prevalences of a bag from a quantifier's posteriors and a few labels of the bag's own instances.

    Use it if a bag may have drifted, or if its interval is too wide: 50 to 200 labels often settle the question. With
    posteriors f of all N instances, adapted to the bag by EM with the labels, and labels y of a random part L, [1]_

    .. math:: \hat p = \lambda \bar f_N + \sum_{i \in L} a_i (y_i - \lambda f_i)

    is unbiased even if the posteriors are wrong; :math:`\lambda` minimises the variance, and the influences
    :math:`a_i` add up to 1. The interval is Wilson's [2]_, with the number m of labels whose plain share has the same
    variance: :math:`(\hat p - p)^2 \le z^2 p (1 - p) / m`.

    Parameters
    ----------
    quantifier : fitted quantifier that uses posteriors.
    X : the whole bag, including the labelled instances.
    X_labelled, y_labelled : a random part of the bag and its labels, or the instances chosen by `plan_labels`.
    level : confidence level.
    design_weights : (n,) instances that each labelled one represents, if they are not a simple random part; from
        `plan_labels`.
    strata : (n,) strata that the labelled instances were drawn from, as integers; from `plan_labels`.
    weights, weights_labelled : exposure of the instances of X and of X_labelled, such as views: shares of exposure. If
        it differs much, labels are weighted in strata of similar exposure, and few heavy labels give a wide interval;
        `plan_labels` with weights gives a narrow one.
    method : "prediction-powered", whose interval is valid under any drift; or "em", maximum likelihood with the labels
        fixed [3]_, which is narrower under prior shift and wrong under other drift. The interval of "em" includes the
        uncertainty of the calibration on held-out instances. For quantifiers without held-out instances, such as CC, it
        is too narrow.

    Returns
    -------
    Refined
        `estimate`, `lower` and `upper`, (k,) each; `weight` is :math:`\lambda`, `effective` is m.

    References
    ----------
    .. [1] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: efficient prediction-powered inference", 2023.
    .. [2] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    .. [3] K. Nigam et al., "Text classification from labeled and unlabeled documents using EM", 2000.

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
    0: 79.8 % (73.0 to 85.2 %)
    1: 20.2 % (14.8 to 27.0 %)
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
        if any(one is not None for one in (design_weights, strata, weights, weights_labelled)):
            raise InvalidSetting("method 'em' needs a simple random part and no weights. Use 'prediction-powered'.")
        bag = LabelledBag.of(quantifier, ratios, known, codes)
        lower, upper = bag.interval(shares, float(stats.norm.isf((1 - level) / 2)))
        estimate, weight, effective = shares, 1.0, np.full(len(shares), np.nan)
    else:
        if (weights is None) != (weights_labelled is None):
            raise InvalidData("weights and weights_labelled belong together: pass both or neither.")
        exposure = check_exposure(weights, len(ratios), "weights")
        design = design_labels(
            len(codes),
            len(ratios),
            weights=check_exposure(design_weights, len(codes), "design_weights"),
            strata=_check_strata(strata, len(codes)),
            exposure=check_exposure(weights_labelled, len(codes), "weights_labelled"),
            bag=None if exposure is None else BagExposure(exposure),
        )
        powered = prediction_powered(
            responsibilities(ratios, shares),
            responsibilities(known, shares),
            codes,
            design=design,
            exposure=exposure,
        )
        lower, upper = powered.interval(level)
        estimate, weight, effective = project(powered.estimate), powered.weight, powered.effective
    return Refined(
        classes=quantifier.classes_,
        estimate=estimate,
        lower=lower,
        upper=upper,
        level=level,
        method=method,
        weight=weight,
        n_labelled=len(codes),
        effective=effective,
    )


def check_exposure(weights: ArrayLike | None, n: int, name: str) -> FloatArray | None:
    """Weights (n,) as numbers; None if there are none."""
    if weights is None:
        return None
    values = np.asarray(weights, dtype=float)
    zero = name != "design_weights"
    fine = values.shape == (n,) and np.isfinite(values).all() and ((values >= 0) if zero else (values > 0)).all()
    if not fine or not values.any():
        least = "from 0 up, not all 0," if zero else "above 0"
        raise InvalidData(f"{name} must be one number {least} for each of the {n} instances.")
    return values


def _check_strata(strata: ArrayLike | None, n: int) -> IntArray | None:
    if strata is None:
        return None
    values = np.asarray(strata)
    if values.shape != (n,) or values.dtype.kind not in "iu":
        raise InvalidData(f"strata must be one integer for each of the {n} labelled instances.")
    return np.asarray(values, dtype=np.intp)
