"""What a diagnosis checks, one function for each finding."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from quanet.arrays import FloatArray, IntArray
from quanet.calibration import calibrate
from quanet.diagnostics.findings import Finding
from quanet.diagnostics.mixture import MixtureFit
from quanet.evaluation.limits import cramer_rao_variance
from quanet.simplex import count

WIDE = 0.1  # an interval of 10 points to either side


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Everything that findings are made from."""

    names: list[str]  # of the classes
    estimate: FloatArray  # (k,)
    prior: FloatArray  # (k,)
    bag: FloatArray  # (n, k) posteriors
    held: FloatArray  # (m, k) posteriors of instances that the classifier had not seen
    codes: IntArray  # (m,) their classes
    alpha: float

    @property
    def n(self) -> int:
        """Instances in the bag."""
        return len(self.bag)


def prior_shift(case: Case, fit: MixtureFit) -> Finding:
    """Whether the bag is a mixture of the classes as training knew them, as a fit says."""
    numbers = {"p_value": fit.p_value, "statistic": fit.statistic, "surplus": fit.surplus}
    if fit.p_value >= case.alpha:
        return Finding(
            "prior shift",
            "ok",
            f"The bag looks like a mixture of the classes as training knew them (p = {fit.p_value:.2g}).",
            numbers=numbers,
        )
    c, low, high = fit.worst
    more = "more" if fit.surplus > 0 else "fewer"
    return Finding(
        "prior shift",
        "alarm",
        f"This is not prior shift alone: no mixture of the training classes explains the bag (p = {fit.p_value:.2g}); "
        f"it has {abs(fit.surplus):.1%} {more} instances than it should where {case.names[c]!r} has a posterior of "
        f"{low:.2f} to {high:.2f}.",
        "Do not rely on the estimate: label a small random part of the bag and use refine, or train on newer data.",
        numbers,
    )


def prevalence(case: Case) -> Finding:
    """The score test at the training prevalence, where the mean posterior is all that matters: Hotelling's T-square."""
    m, k = case.held.shape
    difference = case.bag.mean(axis=0) - case.held.mean(axis=0)
    covariance = np.cov(case.held, rowvar=False) * (1 / case.n + 1 / m)
    degrees = k - 1  # posteriors sum to one
    statistic = float(difference @ np.linalg.pinv(covariance, rcond=1e-8, hermitian=True) @ difference)
    p_value = float(stats.f.sf(statistic / degrees, degrees, max(1, m - k)))
    at = int(np.abs(case.estimate - case.prior).argmax())
    numbers = {"p_value": p_value, "estimate": float(case.estimate[at]), "training": float(case.prior[at])}
    found = f"{case.names[at]!r}: {case.estimate[at]:.1%} here, {case.prior[at]:.1%} in training; p = {p_value:.2g}"
    if p_value >= case.alpha:
        return Finding("prevalence", "ok", f"The prevalence may be that of training ({found}).", numbers=numbers)
    return Finding(
        "prevalence",
        "note",
        f"The prevalence is not that of training ({found}).",
        "A plain count of predicted labels is biased here; a corrected method, such as EMQ or PACC, is not.",
        numbers,
    )


def deviations(case: Case) -> FloatArray:
    """Least standard deviation of every share, for a bag of this size and these shares: (k,)."""
    calibrated = calibrate(case.held, case.codes, method="bcts")(case.held)
    return np.sqrt(cramer_rao_variance(calibrated, case.estimate, bag_size=case.n))


def classifier(case: Case, deviations: FloatArray) -> Finding:
    """Whether the classes are told apart well enough."""
    members = np.eye(len(case.names))[case.codes]
    # Decided as if all classes were equally common: else a rare one is hardly ever predicted, however clear it is.
    decided = (case.held / case.held.mean(axis=0)).argmax(axis=1)
    rates = (np.eye(len(case.names))[decided].T @ members) / members.sum(axis=0)
    condition = float(np.linalg.cond(rates))
    recall = float(np.diag(rates).mean())
    per_instance = float(deviations.max()) * case.n**0.5  # in a bag of one, so that the bag's size does not matter
    numbers = {"balanced_accuracy": recall, "condition": condition, "deviation_per_instance": per_instance}
    found = f"balanced accuracy {recall:.1%}, condition of its confusion matrix {condition:.3g}"
    if not np.isfinite(per_instance) or condition > 50:
        return Finding(
            "classifier",
            "alarm",
            f"The classifier hardly tells the classes apart ({found}).",
            "Train a better classifier, merge classes that it confuses, or label a part of the bag (refine).",
            numbers,
        )
    # Where a bag of 500 could not be known to 10 points either way.
    weak = per_instance * 1.96 / 500**0.5 > WIDE / 2 or condition > 10
    return Finding(
        "classifier",
        "warning" if weak else "ok",
        f"The classifier tells the classes apart {'poorly' if weak else 'well enough'} ({found}).",
        "Estimates need large bags; a better classifier helps more than another method." if weak else "",
        numbers,
    )


def bag_size(case: Case, deviations: FloatArray) -> Finding:
    """Whether the bag is large enough for a narrow interval."""
    half = float(stats.norm.isf(case.alpha / 2) * deviations.max())
    limit = f"no unbiased method gets closer than {half:.1%} either way at {1 - case.alpha:.0%} confidence"
    numbers = {"n": float(case.n), "half_width": half}
    if np.isfinite(half) and half <= WIDE / 2:
        return Finding("bag size", "ok", f"{case.n} instances are enough: {limit}.", numbers=numbers)
    needed = f"{int(np.ceil(case.n * (half / (WIDE / 2)) ** 2)):,}" if np.isfinite(half) else "even very many"
    numbers["needed"] = case.n * (half / (WIDE / 2)) ** 2
    return Finding(
        "bag size",
        "warning" if half <= WIDE else "alarm",
        f"{case.n} instances are few: {limit}.",
        f"About {needed} instances would bring that to {WIDE / 2:.0%}; pool bags, or wait for more.",
        numbers,
    )


def sureness(case: Case, prevalences: FloatArray) -> Finding:
    """Mean entropy of the bag's posteriors against that of the mixture that fits it best."""
    entropy, of_held = _entropy(case.bag), _entropy(case.held)
    k = len(case.names)
    sizes = count(case.codes, k)
    means = np.array([of_held[case.codes == c].mean() for c in range(k)])
    variances = np.array([of_held[case.codes == c].var() for c in range(k)])
    expected = float(prevalences @ means)
    spread = prevalences @ (variances + means**2) - expected**2
    error = float(np.sqrt(spread / case.n + prevalences**2 @ (variances / sizes)))
    score = (float(entropy.mean()) - expected) / max(error, 1e-12)
    p_value = float(2 * stats.norm.sf(abs(score)))
    numbers = {"entropy": float(entropy.mean()), "expected": expected, "p_value": p_value}
    change = float(entropy.mean()) / max(expected, 1e-12) - 1
    if p_value >= case.alpha / 5 or abs(change) < 0.05:
        return Finding("sureness", "ok", "The classifier is as sure as it should be of such a bag.", numbers=numbers)
    return Finding(
        "sureness",
        "warning",
        f"The classifier is {'less' if change > 0 else 'more'} sure than it should be: its posteriors' entropy is "
        f"{entropy.mean():.2f} instead of {expected:.2f} (p = {p_value:.2g}).",
        "The instances may be shorter, noisier or of another kind than those of training.",
        numbers,
    )


def _entropy(posteriors: FloatArray) -> FloatArray:
    return -(posteriors * np.log(np.maximum(posteriors, 1e-300))).sum(axis=1)
