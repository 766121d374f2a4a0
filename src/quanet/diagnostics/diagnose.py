"""Can this estimate be believed? Every answer as a sentence."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.classifiers import check_labels, check_posteriors
from quanet.diagnostics.checks import Case, bag_size, classifier, deviations, prevalence, prior_shift, sureness
from quanet.diagnostics.contents import familiar_contents
from quanet.diagnostics.findings import Diagnosis, Finding, shrinkage_findings
from quanet.diagnostics.mixture import mixture_test
from quanet.diagnostics.words import classifier_of, unknown_share, words_finding
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.instances import ReadInstances
from quanet.simplex import count, encode
from quanet.text import is_text
from quanet.uncertainty.held import kept_of

FEWEST = 2  # instances of a bag, to see how they differ
FEWEST_HELD = 10  # held-out instances of a class, below which its posteriors' distribution is a guess


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
    n, k = _num_samples(X), len(quantifier.classes_)
    if n < FEWEST:
        return Diagnosis([_too_small(n), *_familiar_words(quantifier, X, X_held)])
    bag = quantifier._inputs_of(X)  # noqa: SLF001
    held = _held_out(quantifier, X_held, y_held)
    if held is None:
        texts = [*_familiar_words(quantifier, X, X_held), *familiar_contents(quantifier, X, alpha)]
        return Diagnosis([*shrinkage_findings(quantifier), _nothing_kept(quantifier), *texts])
    case = Case(
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
    spread = deviations(case)
    return Diagnosis(
        [
            *shrinkage_findings(quantifier),
            prior_shift(case, fit),
            prevalence(case),
            classifier(case, spread),
            bag_size(case, spread),
            *_familiar_words(quantifier, X, X_held),
            *familiar_contents(quantifier, X, alpha),
            sureness(case, fit.prevalences),
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


def _too_small(n: int) -> Finding:
    if n == 0:
        raise InvalidBags("the bag has no instance, so there is nothing to diagnose. Give at least one.")
    return Finding(
        "bag size",
        "alarm",
        "1 instance is too few: any share is possible, and prior shift, prevalence, classifier and sureness cannot be "
        "checked.",
        "Estimate at least 20 instances together, better 100 or more.",
        {"n": 1.0},
    )


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


def _familiar_words(quantifier: Quantifier, X: Any, X_held: Any) -> list[Finding]:
    if isinstance(X, ReadInstances) or not is_text(X):
        return []
    classifier = classifier_of(quantifier)
    share = unknown_share(classifier, X)
    usual = unknown_share(classifier, X_held) if X_held is not None and is_text(X_held) else None
    return [] if share is None else [words_finding(share, usual)]
