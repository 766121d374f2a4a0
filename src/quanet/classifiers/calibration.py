r"""Calibrate posteriors: an affine map of log posteriors, fitted by maximum likelihood to labelled instances.

============  =================================================================  ==========
name          calibrated posterior of class c                                    parameters
============  =================================================================  ==========
temperature   softmax of :math:`a \log p_c`                                      1
nbvs          softmax of :math:`a_c \log p_c`                                    k
bcts          softmax of :math:`a \log p_c + b_c`                                1 + k
vector        softmax of :math:`a_c \log p_c + b_c`                              2 k
platt         logistic of :math:`a_c \log \frac{p_c}{1 - p_c} + b_c`, normalised  2 k
============  =================================================================  ==========

Temperature and vector scaling are by Guo et al. (2017), bias-corrected temperature scaling (BCTS) and vector scaling
without bias (NBVS) by Alexandari, Kundaje and Shrikumar (2020), the last by Platt (1999), one class against the others.
For two classes Platt and BCTS are the same family; Platt also smooths its targets.

Trees, forests and nearest neighbours return posteriors of exactly 0, whose logarithm is infinite. These are first mixed
with a fraction of the prior, chosen on held-out instances: see `zero_floor`. Posteriors without zeros are unchanged.

Log posteriors are standardised before the fit, so the confidence of a classifier does not matter: logits multiplied by
any number give the same calibrated posteriors. This is exact for "temperature" and "bcts", and for "platt" with two
classes; it holds approximately for the other families.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit, softmax

from quanet.arrays import FloatArray, IntArray
from quanet.parameters import one_of
from quanet.simplex import log_softmax

METHODS = ("platt", "temperature", "bcts", "vector", "nbvs")
MIN_POSTERIOR = 1e-9  # before taking logarithms; exact zeros are smoothed first (`zero_floor`)
Loss = Callable[[FloatArray], tuple[float, FloatArray]]  # value and gradient at some parameters

AT_A_TIME = 2**18  # numbers that are calibrated, so that memory is bounded
TINY = 1e-12  # smallest posterior before taking logarithms; smaller ones count as zero
MAX_PRIOR = 0.999  # largest fraction of the prior that zeros are mixed with
RIDGE = 10.0  # penalty of squared weights of classifiers, relative to the cross-entropy of one instance


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fitted map from posteriors to calibrated posteriors: log p -> scale * log p + shift.

    With a floor, p is smoothed first, see `smooth_zeros`.
    """

    method: str
    scale: FloatArray  # (k,)
    shift: FloatArray  # (k,)
    floor: FloatArray | None = None  # (k,)

    def __call__(self, posteriors: FloatArray) -> FloatArray:
        """Calibrate posteriors: (..., k) -> (..., k)."""
        if posteriors.size <= AT_A_TIME:
            return self._calibrated(posteriors)
        rows = posteriors.reshape(-1, posteriors.shape[-1])
        shares, step = np.empty(rows.shape), max(1, AT_A_TIME // rows.shape[1])
        for start in range(0, len(rows), step):
            shares[start : start + step] = self._calibrated(rows[start : start + step])
        return shares.reshape(posteriors.shape)

    def _calibrated(self, posteriors: FloatArray) -> FloatArray:
        clipped = _clipped(posteriors, self.floor)
        if self.method == "platt":
            shares = expit(self.scale * logit(clipped) + self.shift)
            return shares / shares.sum(axis=-1, keepdims=True)
        if len(self.scale) == 2:  # the logistic of the difference is equal and twice as fast
            logs = np.log(clipped)
            odds = self.scale[1] * logs[..., 1] - self.scale[0] * logs[..., 0] + (self.shift[1] - self.shift[0])
            shares = np.empty(clipped.shape)
            expit(-odds, out=shares[..., 0])
            expit(odds, out=shares[..., 1])
            return shares
        return softmax(self.scale * np.log(clipped) + self.shift, axis=-1)


def calibrate(posteriors: FloatArray, codes: IntArray, *, method: str, ridge: float = 0.0) -> Calibration:
    r"""Calibrate posteriors: fit a map to posteriors (n, k) of instances with known classes.

    Each map is an affine one of log posteriors, followed by a softmax ("platt": a logistic function), fitted by maximum
    likelihood:

    .. math:: \log \pi'_c = a_c \log \pi_c + b_c + \text{const}

    =============  ============================================================================
    "temperature"  one a for all classes, no b [1]_
    "bcts"         bias-corrected temperature scaling: one a for all classes, a b for each [2]_
    "vector"       an a and a b for each class [1]_
    "nbvs"         no-bias vector scaling: an a for each class, no b [2]_
    "platt"        one class against the others, with smoothed targets [3]_
    =============  ============================================================================

    Parameters
    ----------
    posteriors : (n, k) of instances that the classifier was not fitted to, such as out-of-fold posteriors.
    codes : (n,) their classes, as positions 0 to k - 1.
    method : one of the names above. The result is a function that calibrates posteriors (..., k).
    ridge : penalty of a squared scale of standardised log posteriors, relative to the cross-entropy of one instance;
        not for "platt". It matters if the classifier made no error, where the likelihood grows without end.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.
    .. [2] A. M. Alexandari, A. Kundaje and A. Shrikumar, "Maximum likelihood with bias-corrected calibration is
           hard-to-beat at label shift adaptation", ICML 2020.
    .. [3] J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood
           methods", Advances in Large Margin Classifiers, MIT Press, 1999.

    Examples
    --------
    An overconfident classifier:

    >>> honest = np.repeat([[0.8, 0.2], [0.2, 0.8]], 50, axis=0)
    >>> truth = np.repeat([0, 1, 1, 0], [40, 10, 40, 10])
    >>> overconfident = honest**2 / (honest**2).sum(axis=1, keepdims=True)
    >>> calibrate(overconfident, truth, method="temperature")(overconfident)[0]
    array([0.8, 0.2])
    """
    one_of(*METHODS).check("method", method)
    floor = zero_floor(posteriors, codes)
    clipped = _clipped(posteriors, floor)
    truth = np.eye(posteriors.shape[1])[codes]
    if method == "platt":
        return Calibration(method, *_fit_platt(logit(clipped), truth), floor)
    return Calibration(method, *_fit_softmax(np.log(clipped), truth, method, ridge), floor)


def zero_floor(posteriors: FloatArray, codes: IntArray) -> FloatArray | None:
    r"""The floor (k,) for `smooth_zeros`, fitted to posteriors (n, k); None if they contain no zeros.

    A posterior of 0 means that a class is impossible, although a leaf or a neighbourhood merely did not contain it. The
    floor is :math:`\epsilon \pi` with the prior :math:`\pi` and the fraction :math:`\epsilon` that maximises the
    likelihood of the held-out labels. It is also None if calibrated posteriors without a floor have a higher
    likelihood: the classifier is then overconfident, but ranks correctly.

    .. math:: \epsilon = \arg\max_\epsilon \sum_i \log\big((1 - \epsilon)\, p_{i y_i} + \epsilon\, \pi_{y_i}\big)

    Examples
    --------
    Unanimous votes that are wrong in one of ten cases:

    >>> votes, codes = np.eye(2)[[0] * 10 + [1] * 10], np.repeat([0, 1, 0], [9, 10, 1])
    >>> zero_floor(votes, codes)
    array([0.1, 0.1])
    """
    if posteriors.min() >= TINY:
        return None
    prior = np.bincount(codes, minlength=posteriors.shape[1]) / len(codes)
    given, prior_of_class = posteriors[np.arange(len(codes)), codes], prior[codes]

    def slope(share: float) -> float:  # of the log-likelihood, which is concave
        return float(((prior_of_class - given) / np.maximum(given + share * (prior_of_class - given), TINY)).sum())

    if slope(0.0) <= 0:
        return None
    share = MAX_PRIOR if slope(MAX_PRIOR) >= 0 else float(brentq(slope, 0.0, MAX_PRIOR))
    with_floor, without = (_calibrated_loss(posteriors, codes, floor) for floor in (share * prior, None))
    return share * prior if with_floor < without else None


def _calibrated_loss(posteriors: FloatArray, codes: IntArray, floor: FloatArray | None) -> float:
    """Cross-entropy of labels under smoothed and calibrated posteriors."""
    logs = np.log(_clipped(posteriors, floor))
    scale, shift = _fit_softmax(logs, np.eye(logs.shape[1])[codes], "bcts")
    return -float(log_softmax(scale * logs + shift)[np.arange(len(codes)), codes].mean())


def smooth_zeros(posteriors: FloatArray, floor: FloatArray | None) -> FloatArray:
    """Posteriors with zeros raised to a floor (k,) from `zero_floor`; they still sum to 1: (..., k) -> (..., k)."""
    return posteriors if floor is None else (1 - floor.sum()) * posteriors + floor


def _clipped(posteriors: FloatArray, floor: FloatArray | None) -> FloatArray:
    return np.clip(smooth_zeros(posteriors, floor), TINY, 1 - TINY)


def centred_logs(posteriors: FloatArray, floor: FloatArray | None) -> FloatArray:
    """Log posteriors minus their mean over the classes: (n, k) -> (n, k)."""
    logs = np.log(np.maximum(smooth_zeros(posteriors, floor), MIN_POSTERIOR))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def fit_weights(logits: Sequence[FloatArray], codes: IntArray) -> FloatArray:
    r"""Weights (m,) for the logits (n, k) of m classifiers, fitted to instances with known classes `codes` (n,).

    They minimise the cross-entropy of :math:`\text{softmax}(\sum_v w_v z_v + b)`, are at least 0, and are scaled to
    sum to 1, since calibration determines the confidence. Pass logits of instances that the classifiers were not fitted
    to (stacking; Wolpert 1992, Breiman 1996).

    Examples
    --------
    A perfect classifier, and one without information:

    >>> codes = np.array([0, 1] * 50)
    >>> fit_weights([4.0 * np.eye(2)[codes] - 2, np.zeros((100, 2))], codes).round(2)
    array([1., 0.])
    """
    m, (n, k) = len(logits), logits[0].shape
    truth = np.eye(k)[codes]

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        weights, shift = parameters[:m], parameters[m:]
        logs = log_softmax(sum(w * z for w, z in zip(weights, logits, strict=True)) + shift)
        residual = (np.exp(logs) - truth) / n
        gradient = np.array([(residual * z).sum() for z in logits]) + RIDGE / n * weights
        value = (RIDGE * float(weights @ weights) / 2 - float((truth * logs).sum())) / n
        return value, np.concatenate([gradient, residual.sum(axis=0)])

    start = np.concatenate([np.full(m, 1 / m), np.zeros(k)])
    weights = _minimise(loss, start, [(0.0, 1e3)] * m + [(-50.0, 50.0)] * k)[:m]
    total = weights.sum()
    return weights / total if total > TINY else np.full(m, 1 / m)


def _fit_softmax(
    scores: FloatArray, truth: FloatArray, method: str, ridge: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Scale and shift (k,) that minimise the cross-entropy of softmax(scale * scores + shift)."""
    n, k = scores.shape
    scales = k if method in {"vector", "nbvs"} else 1
    shifted = method in {"bcts", "vector"}
    # Standardised, so that bounds and steps suit every classifier.
    unit = _spread(scores - scores.mean(axis=1, keepdims=True))
    centre = scores.mean(axis=0) if shifted else np.zeros(k)
    scores = (scores - centre) / unit

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        scale, shift = parameters[:scales], parameters[scales:]
        logs = log_softmax(scale * scores + (shift if len(shift) else 0))
        residual = (np.exp(logs) - truth) / n
        by_class = (residual * scores).sum(axis=0)
        gradient = (by_class if scales == k else np.atleast_1d(by_class.sum())) + ridge / n * scale
        if len(shift):
            gradient = np.concatenate([gradient, residual.sum(axis=0)])
        return (ridge * float(scale @ scale) / 2 - float((truth * logs).sum())) / n, gradient

    # Starting at the prior is exactly optimal for scores without information.
    prior = np.log(np.maximum(truth.sum(axis=0), 0.5) / n)
    start = np.concatenate([np.ones(scales), (prior - prior.mean())[: k if shifted else 0]])
    # A negative scale would reverse the classifier.
    best = _minimise(loss, start, [(1e-3, 1e3)] * scales + [(-50.0, 50.0)] * (len(start) - scales))
    scale = np.broadcast_to(best[:scales], (k,)) / unit
    shift = best[scales:] - scale * centre if shifted else np.zeros(k)
    return scale, shift - shift.mean()


def _spread(scores: FloatArray) -> float:
    """Root mean square distance of scores from their mean, or 1 if all are equal."""
    spread = float(np.sqrt(np.square(scores - scores.mean(axis=0)).mean()))
    return spread if spread > TINY else 1.0


def _fit_platt(scores: FloatArray, truth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale and shift (k,), one class against the others, with Platt's smoothed targets."""
    positives = truth.sum(axis=0)
    negatives = len(truth) - positives
    targets = np.where(truth == 1, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    fitted = [_fit_logistic(scores[:, c], targets[:, c]) for c in range(scores.shape[1])]
    return np.array([scale for scale, _ in fitted]), np.array([shift for _, shift in fitted])


def _fit_logistic(score: FloatArray, target: FloatArray) -> tuple[float, float]:
    unit, centre = _spread(score), float(score.mean())
    score = (score - centre) / unit

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        value = parameters[0] * score + parameters[1]
        residual = (expit(value) - target) / len(score)
        entropy = (np.logaddexp(0, value) - target * value).mean()
        return float(entropy), np.array([residual @ score, residual.sum()])

    scale, shift = _minimise(loss, np.array([1.0, 0.0]), [(1e-3, 1e3), (-50.0, 50.0)])
    return float(scale) / unit, float(shift) - float(scale) * centre / unit


def _minimise(loss: Loss, start: FloatArray, bounds: list[tuple[float, float]]) -> FloatArray:
    fitted = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    )
    return np.asarray(fitted.x, dtype=float)
