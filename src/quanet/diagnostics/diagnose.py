"""Can an estimate be trusted? `diagnose` answers with a list of findings."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels, check_posteriors
from quanet.classifiers.text import is_text
from quanet.data.instances import Inputs
from quanet.diagnostics.findings import (
    Diagnosis,
    Evidence,
    Finding,
    bag_size,
    classifier,
    confidence,
    deviations,
    prevalence,
    prior_shift,
    shrinkage_findings,
)
from quanet.diagnostics.prior_shift import mixture_test
from quanet.diagnostics.text_drift import classifier_of, topics_findings, unknown_share, unknown_words_finding
from quanet.errors import InvalidBags, InvalidData
from quanet.parameters import check_level
from quanet.simplex import count, encode
from quanet.uncertainty.relearning import held_out_of

MIN_INSTANCES = 2  # in a bag, to see how they vary
MIN_HELD_OUT = 10  # held-out instances per class, to estimate the distribution of their posteriors


def diagnose(
    quantifier: Quantifier,
    X: Any,
    *,
    estimate: FloatArray | None = None,
    X_held: Any = None,
    y_held: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 999,
    random_state: int | None = 0,
) -> Diagnosis:
    """Can the estimate for a bag be trusted? Returns findings, each a sentence with its numbers.

    ================  ================================================================================================
    shrinkage         Only if the classifier hardly separates the classes: how much are estimates shrunk?
    prior shift       Is the bag a mixture of the training classes? (`mixture_test`)
    prevalence        Does its prevalence differ from the training data? Mean posteriors against held-out ones.
    classifier        Does the classifier separate the classes well enough? The Cramér-Rao bound.
    bag size          Is the bag large enough for a useful interval?
    words             For texts: does the classifier know their words?
    contents          For texts, with `TextClassifier`: are the topics those of the training texts?
    sureness          Is the classifier as confident as expected? The entropy of its posteriors.
    ================  ================================================================================================

    Parameters
    ----------
    quantifier : fitted, and based on posteriors. Quantifiers that learn from out-of-fold posteriors, such as ACC, PACC,
        EMQ and QuaNet, have the held-out instances that the checks need.
    X : the bag.
    estimate : (k,) the estimate for the bag, if already computed; default: `quantifier.predict(X)`.
    X_held, y_held : labelled instances that the classifier was not fitted to, for quantifiers without held-out ones.
    level : confidence level; a fraction of ``1 - level`` of unproblematic bags raises an alarm by chance.
    resamples, random_state : for the test of prior shift.

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
    check_level(level)
    alpha = 1 - float(level)
    check_is_fitted(quantifier, "classes_")
    n, k = _num_samples(X), len(quantifier.classes_)
    if n < MIN_INSTANCES:
        return Diagnosis([_too_small(n), *_unknown_words_findings(quantifier, X, X_held)])
    bag = quantifier.read(X).values
    held_out = _held_out(quantifier, X_held, y_held)
    if held_out is None:
        texts = [*_unknown_words_findings(quantifier, X, X_held), *topics_findings(quantifier, X, alpha)]
        return Diagnosis([*shrinkage_findings(quantifier), _not_checkable(quantifier), *texts])
    case = Evidence(
        names=[str(name) for name in quantifier.classes_.tolist()],
        estimate=quantifier.predict(X) if estimate is None else estimate,
        prior=quantifier.prior_,
        bag=check_posteriors(bag[:, :k], k),
        held_out=held_out[0],
        codes=held_out[1],
        alpha=alpha,
    )
    rng = np.random.default_rng(random_state)
    refitted = X_held is None and _is_refitted(quantifier)
    fit = mixture_test(case.bag, case.held_out, case.codes, refitted=refitted, resamples=resamples, rng=rng)
    spread = deviations(case)
    return Diagnosis(
        [
            *shrinkage_findings(quantifier),
            prior_shift(case, fit),
            prevalence(case),
            classifier(case, spread),
            bag_size(case, spread),
            *_unknown_words_findings(quantifier, X, X_held),
            *topics_findings(quantifier, X, alpha),
            confidence(case, fit.prevalences),
        ]
    )


def prior_shift_p_value(
    quantifier: Quantifier, X: Any, *, resamples: int = 999, random_state: int | None = 0
) -> float | None:
    """The p-value of the finding "prior shift" alone, to check many bags; None if it cannot be computed."""
    k, held_out = len(quantifier.classes_), _held_out(quantifier, None, None)
    if held_out is None:
        return None
    bag = check_posteriors(quantifier.read(X).values[:, :k], k)
    rng = np.random.default_rng(random_state)
    return mixture_test(bag, *held_out, refitted=_is_refitted(quantifier), resamples=resamples, rng=rng).p_value


def _is_refitted(quantifier: Quantifier) -> bool:
    """Whether the final classifier was fitted to all data, and the held-out posteriors come from folds."""
    return not isinstance(getattr(quantifier, "classifier", None), str | FrozenEstimator)


def _held_out(quantifier: Quantifier, X_held: Any, y_held: ArrayLike | None) -> tuple[FloatArray, IntArray] | None:
    """Posteriors (m, k) of held-out instances, and their classes (m,); None if there are none."""
    k = len(quantifier.classes_)
    if (X_held is None) != (y_held is None):
        raise InvalidData("X_held and y_held must be passed together.")
    if X_held is not None and y_held is not None:
        rows = quantifier.read(X_held).values
        codes = encode(check_labels(y_held, len(rows)), quantifier.classes_)
    elif quantifier.reads_posteriors and (kept := held_out_of(quantifier)) is not None:
        held_out = kept.each_once()  # copies are not additional evidence
        rows, codes = held_out.inputs, held_out.codes
    else:
        return None
    if not quantifier.reads_posteriors:
        return None
    counts = count(np.asarray(codes, dtype=np.intp), k)
    if counts.min() < MIN_HELD_OUT:
        rarest = quantifier.classes_.tolist()[int(counts.argmin())]
        raise InvalidData(
            f"Class {rarest!r} has {counts.min()} held-out instances; a diagnosis needs {MIN_HELD_OUT} per class. "
            "Fit to more labelled instances, or pass X_held and y_held."
        )
    return check_posteriors(rows[:, :k], k), np.asarray(codes, dtype=np.intp)


def _too_small(n: int) -> Finding:
    if n == 0:
        raise InvalidBags("The bag is empty. Pass at least one instance.")
    return Finding(
        "bag size",
        "alarm",
        "1 instance is too few: any prevalence is possible, and prior shift, prevalence, classifier and confidence "
        "cannot be checked.",
        "Use bags of at least 20 instances, preferably 100 or more.",
        {"n": 1.0},
    )


def _not_checkable(quantifier: Quantifier) -> Finding:
    kind = type(quantifier).__name__
    if not quantifier.reads_posteriors:
        return Finding(
            "prior shift",
            "note",
            f"{kind} does not use posteriors, so its assumptions cannot be checked.",
            "Diagnose the bag with EMQ() or PACC(), fitted to the same data.",
        )
    return Finding(
        "prior shift",
        "note",
        f"{kind} has no held-out posteriors, so prior shift, prevalence, classifier and bag size cannot be checked.",
        "Pass X_held and y_held, labelled instances that its classifier was not fitted to, or use PACC or EMQ.",
    )


def _unknown_words_findings(quantifier: Quantifier, X: Any, X_held: Any) -> list[Finding]:
    if isinstance(X, Inputs) or not is_text(X):
        return []
    classifier = classifier_of(quantifier)
    share = unknown_share(classifier, X)
    usual = unknown_share(classifier, X_held) if X_held is not None and is_text(X_held) else None
    return [] if share is None else [unknown_words_finding(share, usual)]
