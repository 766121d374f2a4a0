"""Can this estimate be believed? Every answer as a sentence."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier, ReadInstances
from quanet.calibration import calibrate
from quanet.classifiers import check_labels, check_posteriors
from quanet.diagnostics.contents import familiar_contents
from quanet.diagnostics.findings import Diagnosis, Finding, shrinkage_findings
from quanet.diagnostics.mixture import MixtureFit, mixture_test
from quanet.diagnostics.words import classifier_of, unknown_share
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.evaluation.limits import cramer_rao_variance
from quanet.simplex import count, encode
from quanet.text import is_text
from quanet.uncertainty.held import kept_of

FEWEST_HELD = 10  # held-out instances of a class, below which its posteriors' distribution is a guess
WIDE = 0.1  # an interval of 10 points to either side
MANY_UNKNOWN = 0.15  # share of words that a classifier does not know, where it reads of something else


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
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
        return len(self.bag)


def diagnose(
    quantifier: Quantifier,
    X: Any,
    *,
    X_held: Any = None,
    y_held: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 999,
    random_state: int | None = 0,
) -> Diagnosis:
    """Say whether the estimate for a bag can be believed: findings, each a plain sentence with its numbers.

    ================  ================================================================================================
    shrinkage         Only where estimates are shrunk, because the classifier hardly separates the classes: by how much.
    prior shift       Is the bag a mixture of the classes as training knew them? (`mixture_test`)
    prevalence        Is its prevalence different from training? A score test: mean posteriors against held-out ones.
    classifier        Are the classes told apart well enough? The Cramér-Rao bound for bags of this size.
    bag size          Is the bag large enough for an interval that says something?
    words             Of texts: does the classifier know their words?
    contents          Of texts, with `TextClassifier`: are they about what training was about, at some prevalence?
    sureness          Is it as sure of the instances as it should be, by the entropy of its posteriors?
    ================  ================================================================================================

    Parameters
    ----------
    quantifier : fitted, one that reads posteriors; what it needs of training it has kept if it learns from out-of-fold
        posteriors, as ACC, PACC, EMQ and QuaNet do.
    X : the bag.
    X_held, y_held : labelled instances that the classifier has not seen, for a quantifier that has kept none.
    level : of confidence; an alarm is raised by chance in one minus this share of sound bags.
    resamples, random_state : of the test for prior shift.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> quantifier = EMQ().fit(X, y)
    >>> bag, _ = Gaussians().draw([0.8, 0.2], 500, rng=1)
    >>> [finding.severity for finding in diagnose(quantifier, bag)]
    ['ok', 'note', 'ok', 'ok', 'ok']
    >>> diagnose(quantifier, 0 * bag)["prior shift"].severity
    'alarm'
    """
    alpha = 1 - check_level(level)
    check_is_fitted(quantifier, "classes_")
    if _num_samples(X) < 2:
        raise InvalidBags(f"the bag has {_num_samples(X)} instance; a diagnosis needs at least 2, better 50 or more.")
    bag = quantifier._inputs_of(X)  # noqa: SLF001
    k = len(quantifier.classes_)
    held = _held_out(quantifier, X_held, y_held)
    if held is None:
        texts = [*_familiar_words(quantifier, X, X_held), *familiar_contents(quantifier, X, alpha)]
        return Diagnosis([*shrinkage_findings(quantifier), _nothing_kept(quantifier), *texts])
    case = _Case(
        names=[str(name) for name in quantifier.classes_.tolist()],
        estimate=quantifier.predict(X),
        prior=quantifier.prior_,
        bag=check_posteriors(bag[:, :k], k),
        held=held[0],
        codes=held[1],
        alpha=alpha,
    )
    rng = np.random.default_rng(random_state)
    refitted = X_held is None and _is_refitted(quantifier)
    fit = mixture_test(case.bag, case.held, case.codes, refitted=refitted, resamples=resamples, rng=rng)
    deviations = _deviations(case)
    return Diagnosis(
        [
            *shrinkage_findings(quantifier),
            _prior_shift(case, fit),
            _prevalence(case),
            _classifier(case, deviations),
            _bag_size(case, deviations),
            *_familiar_words(quantifier, X, X_held),
            *familiar_contents(quantifier, X, alpha),
            _sureness(case, fit.prevalences),
        ]
    )


def prior_shift_p_value(
    quantifier: Quantifier, X: Any, *, resamples: int = 999, random_state: int | None = 0
) -> float | None:
    """The p-value of the finding "prior shift" alone, where many bags are looked at; None where it cannot be had."""
    k, held = len(quantifier.classes_), _held_out(quantifier, None, None)
    if held is None:
        return None
    bag = check_posteriors(quantifier._inputs_of(X)[:, :k], k)  # noqa: SLF001
    rng = np.random.default_rng(random_state)
    return mixture_test(bag, *held, refitted=_is_refitted(quantifier), resamples=resamples, rng=rng).p_value


def _is_refitted(quantifier: Quantifier) -> bool:
    """Whether its classifier was fitted to all data, after those of folds that gave the held-out posteriors."""
    return not isinstance(getattr(quantifier, "classifier", None), str | FrozenEstimator)


def check_level(level: float) -> float:
    """A level of confidence, or what it must be."""
    if not 0 < level < 1:
        raise InvalidSetting(f"level lies between 0 and 1, such as 0.95; got {level}.")
    return float(level)


def _held_out(quantifier: Quantifier, X_held: Any, y_held: ArrayLike | None) -> tuple[FloatArray, IntArray] | None:
    """Posteriors (m, k) of instances that the classifier had not seen, and their classes (m,), if there are any."""
    k = len(quantifier.classes_)
    if (X_held is None) != (y_held is None):
        raise InvalidData("X_held and y_held belong together: give both or none.")
    if X_held is not None and y_held is not None:
        rows = quantifier._inputs_of(X_held)  # noqa: SLF001
        codes = encode(check_labels(y_held, len(rows)), quantifier.classes_)
    elif quantifier._reads_posteriors and hasattr(quantifier, "held_rows_"):  # noqa: SLF001
        held = kept_of(quantifier).each_once()  # copies would count as more evidence than there is
        rows, codes = held.inputs, held.codes
    else:
        return None
    if not quantifier._reads_posteriors:  # noqa: SLF001
        return None
    counts = count(np.asarray(codes, dtype=np.intp), k)
    if counts.min() < FEWEST_HELD:
        rarest = quantifier.classes_.tolist()[int(counts.argmin())]
        raise InvalidData(
            f"class {rarest!r} has {counts.min()} held-out instances; a diagnosis needs {FEWEST_HELD} of each. "
            "Fit on more labelled instances, or give X_held and y_held."
        )
    return check_posteriors(rows[:, :k], k), np.asarray(codes, dtype=np.intp)


def _nothing_kept(quantifier: Quantifier) -> Finding:
    kind = type(quantifier).__name__
    if not quantifier._reads_posteriors:  # noqa: SLF001
        return Finding(
            "prior shift",
            "note",
            f"{kind} reads no posteriors, so its assumptions cannot be checked.",
            "Diagnose the bag with EMQ() or PACC(), fitted to the same data.",
        )
    return Finding(
        "prior shift",
        "note",
        f"{kind} keeps no held-out posteriors, so prior shift, prevalence, classifier and bag size cannot be checked.",
        "Give X_held and y_held, labelled instances that its classifier has not seen; or take PACC or EMQ.",
    )


def _prior_shift(case: _Case, fit: MixtureFit) -> Finding:
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


def _prevalence(case: _Case) -> Finding:
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


def _deviations(case: _Case) -> FloatArray:
    """Least standard deviation of every share, for a bag of this size and these shares: (k,)."""
    calibrated = calibrate(case.held, case.codes, method="bcts")(case.held)
    return np.sqrt(cramer_rao_variance(calibrated, case.estimate, bag_size=case.n))


def _classifier(case: _Case, deviations: FloatArray) -> Finding:
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


def _bag_size(case: _Case, deviations: FloatArray) -> Finding:
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


def _familiar_words(quantifier: Quantifier, X: Any, X_held: Any) -> list[Finding]:
    if isinstance(X, ReadInstances) or not is_text(X):
        return []
    classifier = classifier_of(quantifier)
    share = unknown_share(classifier, X)
    usual = unknown_share(classifier, X_held) if X_held is not None and is_text(X_held) else None
    return [] if share is None else [words_finding(share, usual)]


def words_finding(share: float, usual: float | None = None) -> Finding:
    """What it means that a share of a bag's words is unknown to the classifier, where `usual` is the normal one."""
    most = MANY_UNKNOWN if usual is None else max(2 * usual, usual + 0.05)
    numbers = {"unknown": share} | ({} if usual is None else {"usual": usual})
    beside = "" if usual is None else f", where {usual:.1%} is usual"
    if share <= most:
        sentence = f"The words are those of training: {share:.1%} are new to the classifier{beside}."
        return Finding("words", "ok", sentence, numbers=numbers)
    return Finding(
        "words",
        "warning" if share <= 2 * most else "alarm",
        f"The texts are unlike the training texts: {share:.1%} of their words are new to the classifier{beside}.",
        "Check that they are of the same kind and language; train on texts like these, or use refine.",
        numbers,
    )


def _sureness(case: _Case, prevalences: FloatArray) -> Finding:
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
