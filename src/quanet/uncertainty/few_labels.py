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
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.calibration import calibrate
from quanet.classifiers import check_labels, check_posteriors
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.simplex import count, encode, project

FEWEST = 10  # labels below which an interval would be a guess
PSEUDO = 0.5  # instances wrongly in and wrongly out of a class, added to the labelled ones for their variance
ROUNDS = 500
STRATA = 10


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


@dataclass(frozen=True, slots=True, eq=False)
class LabelPlan:
    """Which instances of a bag to label.

    Attributes
    ----------
    n : how many.
    indices : (n,) of the bag, in the order to label them in.
    weights : (n,) for `refine`: how many instances of the bag each stands for.
    width : of the interval that they should give, the widest over classes, if posteriors are honest.
    """

    n: int
    indices: IntArray
    weights: FloatArray
    width: float


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
        fixed, narrower if this is prior shift and posteriors are honest, and wrong if not.

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
        deviation, weight = _em_deviation(ratios, known, codes, shares), 1.0
        estimate = shares
        reach = stats.norm.isf((1 - level) / 2) * deviation
    else:
        given = _check_weights(weights, len(codes))
        estimate, deviation, weight = prediction_powered(
            _responsibilities(ratios, shares), _responsibilities(known, shares), codes, given
        )
        reach = stats.t.isf((1 - level) / 2, len(codes) - 1) * deviation
    return Refined(
        classes=quantifier.classes_,
        estimate=project(estimate),
        lower=np.clip(estimate - reach, 0, 1),
        upper=np.clip(estimate + reach, 0, 1),
        level=level,
        method=method,
        weight=weight,
        n_labelled=len(codes),
    )


def plan_labels(
    quantifier: Quantifier,
    X: Any,
    width: float,
    *,
    level: float = 0.95,
    design: Literal["stratified", "random"] = "stratified",
    random_state: int | None = 0,
) -> LabelPlan:
    """How many labels an interval of a wanted width needs, and which instances to label.

    The plan trusts the posteriors for how often they are wrong; where they are worse than they say, the interval of
    `refine` is still right but wider, and more labels are needed.

    Parameters
    ----------
    quantifier : fitted, one that reads posteriors.
    X : the bag.
    width : of the widest interval over classes, from end to end, such as 0.1.
    level : of confidence.
    design : "random"; or "stratified", more of the instances whose class is open, fewer of the clear ones, with weights
        that make up for it (Neyman 1934).
    random_state : of the choice.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))
    >>> X, y = Gaussians().draw([0.8, 0.2], 2000, rng=1)
    >>> plan = plan_labels(quantifier, X, width=0.1)
    >>> refined = refine(quantifier, X, X[plan.indices], y[plan.indices], weights=plan.weights)
    >>> plan_labels(quantifier, X, width=0.1, design="random").n > plan.n > 10
    True
    """
    check_level(level)
    if not 0 < width < 1:
        raise InvalidSetting(f"width lies between 0 and 1, such as 0.1; got {width}.")
    if design not in ("stratified", "random"):
        raise InvalidSetting(f"design is 'stratified' or 'random'; got {design!r}.")
    ratios = likelihood_ratios(quantifier, X)
    if len(ratios) < FEWEST:
        raise InvalidBags(f"the bag has {len(ratios)} instances; label them all, or give at least {FEWEST}.")
    rng = np.random.default_rng(random_state)
    posteriors = _responsibilities(ratios, fixed_label_em(ratios, ratios[:0], np.empty(0, dtype=np.intp)))
    strata = _strata(posteriors) if design == "stratified" else np.zeros(len(posteriors), dtype=np.intp)
    sizes = np.bincount(strata)
    # A class's label varies around its posterior by p (1 - p); a floor keeps clear instances in the plan, as a check.
    doubt = np.stack([np.bincount(strata, column * (1 - column)) / sizes for column in posteriors.T], axis=1)
    worst = np.sqrt(np.maximum(doubt.max(axis=1), 0.01))
    for n in _candidates(len(posteriors)):
        counts = _allocate(n, sizes, sizes * worst)
        variance = ((sizes[:, None] / sizes.sum()) ** 2 * doubt * (1 / counts - 1 / sizes)[:, None]).sum(axis=0)
        variance += 2 * PSEUDO / n**2 * (1 - n / len(posteriors))
        reached = 2 * stats.t.isf((1 - level) / 2, n - 1) * float(np.sqrt(variance.max()))
        if reached <= width:
            break
    chosen = [rng.permutation(np.flatnonzero(strata == h))[:taken] for h, taken in enumerate(counts.tolist())]
    indices = np.concatenate(chosen)
    weights = np.repeat(sizes / counts, counts)
    order = rng.permutation(len(indices))  # so that a plan broken off is still a random part of each stratum
    return LabelPlan(len(indices), indices[order], weights[order], reached)


def check_level(level: float) -> None:
    """Raise unless a level of confidence is one."""
    if not 0 < level < 1:
        raise InvalidSetting(f"level lies between 0 and 1, such as 0.95; got {level}.")


def likelihood_ratios(quantifier: Quantifier, X: Any) -> FloatArray:
    """Calibrated posteriors over the training prevalence, proportional to the classes' densities: (n, k)."""
    check_is_fitted(quantifier, "classes_")
    kind = type(quantifier).__name__
    if not quantifier._reads_posteriors:  # noqa: SLF001
        raise InvalidSetting(f"{kind} reads no posteriors, which labels could refine. Take EMQ or PACC.")
    if _num_samples(X) == 0:
        raise InvalidBags("there are no instances. Give the bag, and its labelled part.")
    k = len(quantifier.classes_)
    posteriors = check_posteriors(quantifier._inputs_of(X)[:, :k], k)  # noqa: SLF001
    if hasattr(quantifier, "held_rows_"):
        held = check_posteriors(quantifier.held_rows_[:, :k], k)
        codes = np.asarray(quantifier.held_codes_, dtype=np.intp)
        posteriors = calibrate(held, codes, method="bcts")(posteriors)
    return np.maximum(posteriors, 1e-12) / quantifier.prior_


def fixed_label_em(ratios: FloatArray, known: FloatArray, codes: IntArray) -> FloatArray:
    """Shares of the bag by EM, the labels of its known part fixed: (N, k), (n, k), (n,) -> (k,)."""
    k = ratios.shape[1]
    labelled = count(codes, k) if len(codes) else np.zeros(k)
    shares = np.full(k, 1 / k)
    for _ in range(ROUNDS):
        expected = _responsibilities(ratios, shares).sum(axis=0) - _responsibilities(known, shares).sum(axis=0)
        updated = np.maximum(expected, 0) + labelled
        updated /= updated.sum()
        moved = np.abs(updated - shares).max()
        shares = updated
        if moved < 1e-7:
            break
    return shares


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


def _em_deviation(ratios: FloatArray, known: FloatArray, codes: IntArray, shares: FloatArray) -> FloatArray:
    """Standard deviation of the bag's own shares: of the open labels given p, and of p by the observed information."""
    N, k = ratios.shape
    p = np.maximum(shares, 0.5 / N)
    open_ = _responsibilities(ratios, p)
    fixed = _responsibilities(known, p)
    outer = open_.T @ open_ - fixed.T @ fixed
    doubt = np.diag(open_.sum(axis=0) - fixed.sum(axis=0)) - outer
    information = outer / np.outer(p, p) + np.diag(count(codes, k) / p**2)
    inverse = np.linalg.pinv(information, hermitian=True)
    ones = inverse.sum(axis=1)
    of_p = inverse - np.outer(ones, ones) / ones.sum()
    slope = doubt / p
    return np.sqrt(np.maximum(np.diag(doubt + slope @ of_p @ slope.T), 0.25)) / N


def _responsibilities(ratios: FloatArray, shares: FloatArray) -> FloatArray:
    joint = ratios * shares
    return joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)


def _check_weights(weights: ArrayLike | None, n: int) -> FloatArray:
    if weights is None:
        return np.ones(n)
    values = np.asarray(weights, dtype=float)
    if values.shape != (n,) or not (np.isfinite(values).all() and (values > 0).all()):
        raise InvalidData(f"weights are one number above 0 for each of the {n} labelled instances.")
    return values


def _strata(posteriors: FloatArray) -> IntArray:
    """Groups of instances whose class is equally open, by the most probable class: (N, k) -> (N,), from 0 on."""
    best = posteriors.argmax(axis=1)
    codes = np.zeros(len(posteriors), dtype=np.intp)
    following = 0
    for c in np.unique(best).tolist():
        inside = np.flatnonzero(best == c)
        # Equal parts of the total doubt, not of the number: most instances are clear.
        doubt = np.sqrt(np.maximum(posteriors[inside, c] * (1 - posteriors[inside, c]), 0.01))
        order = np.argsort(posteriors[inside, c], kind="stable")
        groups = max(1, min(STRATA // 2, len(inside) // 20))
        part = np.minimum((doubt[order].cumsum() / doubt.sum() * groups).astype(np.intp), groups - 1)
        _, dense = np.unique(part, return_inverse=True)
        codes[inside[order]] = following + dense
        following += int(dense.max()) + 1
    return codes


def _candidates(size: int) -> list[int]:
    """Numbers of labels to try, some five per cent apart; in the end all of the bag."""
    steps = np.unique(np.round(FEWEST * 1.05 ** np.arange(300)).astype(int))
    return [*steps[steps < size].tolist(), size]


def _allocate(n: int, sizes: IntArray, importance: FloatArray) -> IntArray:
    """Labels of every stratum, about `n`: in proportion to importance, two at least, no more than it has."""
    counts = np.clip(np.round(n * importance / importance.sum()), 2, None).astype(np.intp)
    return np.minimum(counts, sizes)
