"""Can an estimate be trusted? `diagnose` answers with a list of findings."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels, check_posteriors
from quanet.data.copies import count_copies
from quanet.data.instances import Inputs, check_texts, is_text
from quanet.errors import InvalidBags, InvalidData, QuanetWarning
from quanet.evaluation.contents import SomeTexts, classifier_of, contents_findings, unknown_share, unknown_words_finding
from quanet.evaluation.findings import (
    Diagnosis,
    Evidence,
    Finding,
    bag_size,
    classifier,
    confidence,
    copies_findings,
    deviations,
    prevalence,
    prior_shift,
    shrinkage_findings,
    weights_findings,
)
from quanet.evaluation.prior_shift import mixture_test
from quanet.parameters import check_level
from quanet.simplex import count, encode
from quanet.uncertainty.intervals import predict_interval
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.relearning import held_out_of
from quanet.uncertainty.sampling import NOTED
from quanet.uncertainty.widening import described

MIN_INSTANCES = 2  # in a bag, to see how they vary
# Share of the effective size that the test of prior shift leaves out if weights are very unequal: its distance varies
# more than with as many instances of equal weight. Chosen by simulation, so that 5 % of unproblematic bags fail.
FEWER = 0.3
MIN_HELD_OUT = 10  # held-out instances per class, to estimate the distribution of their posteriors


def diagnose(
    quantifier: Quantifier,
    X: Any,
    *,
    weights: ArrayLike | None = None,
    interval: Interval | None = None,
    X_held: Any = None,
    y_held: ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 999,
    random_state: int | None = 0,
) -> Diagnosis:
    """Can the estimate for a bag be trusted? Returns findings, each a sentence with its numbers.

    Three of them tell apart what may have changed since training: `prevalence`, the prevalences; `contents`, what the
    instances are about; `prior shift`, how the classifier sees them. The last two say how many points are at stake.
    They are quiet (ok, note) if the interval includes these points or hardly changes, and warn otherwise.

    ================  ================================================================================================
    shrinkage         Only if the classifier hardly separates the classes: how much are estimates shrunk?
    prior shift       Are the posteriors a mixture of those of the training classes? (`mixture_test`)
    prevalence        Does its prevalence differ from the training data? Mean posteriors against held-out ones.
    classifier        Does the classifier separate the classes well enough? The Cramér-Rao bound.
    bag size          Is the bag large enough for a useful interval?
    confidence        Is the classifier as confident as expected? The entropy of its posteriors.
    words             For texts: does the classifier know their words?
    weights           Only with weights: do a few instances have most of the weight?
    copies            Only if they matter: how many instances are copies of others?
    contents          Do the instances differ from the training data, and how many points may this cost? For texts with
                      words that are more frequent, and three examples (`quanet.drift.scale`).
    ================  ================================================================================================

    Parameters
    ----------
    quantifier : fitted, and based on posteriors. Quantifiers that learn from out-of-fold posteriors, such as ACC, PACC,
        EMQ and QuaNet, have the held-out instances that the checks need.
    X : the bag.
    weights : (n,) weights of the instances, such as views. All checks are then about shares of the weight.
    interval : the interval of the bag, if already computed; default: `predict_interval(quantifier, X, level)`. One
        without drift leaves out `contents`.
    X_held, y_held : labelled instances that the classifier was not fitted to, for quantifiers without held-out ones.
    level : confidence level; a fraction of ``1 - level`` of unproblematic bags fails the test of prior shift by chance.
    resamples, random_state : for the test of prior shift.

    Returns
    -------
    Diagnosis
        a sequence of findings, each with `name`, `severity` ("ok", "note", "warning" or "alarm"), `sentence`, `advice`
        and `numbers`. ``diagnosis["contents"]`` is a finding by its name, `diagnosis.severity` the worst severity.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> quantifier = EMQ().fit(X, y)
    >>> bag, _ = Gaussians().draw([0.8, 0.2], 3000, rng=1)
    >>> [finding.severity for finding in diagnose(quantifier, bag)]
    ['ok', 'note', 'ok', 'ok', 'ok', 'ok']
    >>> diagnose(quantifier, 0 * bag)["contents"].severity
    'alarm'
    """
    check_level(level)
    check_is_fitted(quantifier, "classes_")
    n = _num_samples(X)
    words = _unknown_words_findings(quantifier, X, X_held)
    if n < MIN_INSTANCES:
        return Diagnosis([_too_small(n), *words])
    inputs = quantifier.read(X)
    bag = Bags(np.arange(n)[None], pool_size=n, weights=weights)
    held_out = _held_out(quantifier, X_held, y_held)
    if interval is None:
        given = None if X_held is None else (X_held, y_held)
        interval = quiet_interval(quantifier, inputs, level, weights=weights, held_out=given, rng=random_state or 0)
    rng = np.random.default_rng(random_state)
    refitted = X_held is None and _is_refitted(quantifier)
    found = _check(quantifier, inputs, bag, held_out, interval, refitted=refitted, resamples=resamples, rng=rng)
    texts = None
    if not isinstance(X, Inputs) and is_text(X):
        descriptions = described(quantifier, inputs)
        about = np.empty((n, 0)) if descriptions is None else descriptions
        texts = SomeTexts(check_texts(X), about, np.zeros(n, dtype=np.intp))
    if weights is not None:
        found += weights_findings(bag)
    found += copies_findings(inputs, bag)
    return Diagnosis([*found, *words, *contents_findings(quantifier, inputs, interval, texts)])


def quiet_interval(quantifier: Quantifier, inputs: Inputs, level: float, **options: Any) -> Interval:
    """The interval of a bag, without a warning about missing held-out instances: a finding reports them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)
        return predict_interval(quantifier, inputs, level, **options)


def _check(
    quantifier: Quantifier,
    inputs: Inputs,
    bag: Bags,
    held_out: tuple[FloatArray, IntArray] | None,
    interval: Interval,
    *,
    refitted: bool,
    resamples: int,
    rng: np.random.Generator,
) -> list[Finding]:
    """The findings about posteriors."""
    if held_out is None:
        return [*shrinkage_findings(quantifier), _not_checkable(quantifier)]
    k = len(quantifier.classes_)
    posteriors = check_posteriors(inputs.values[:, :k], k)
    # As many instances as the effective size says, without copies and in proportion to their weights.
    sizes, tested = bag.effective_sizes, posteriors
    copies = count_copies(inputs.hashes, bag).factor
    if bag.weights is not None or copies[0] > 1 / (1 - NOTED):
        unequal = FEWER * (1 - sizes / bag.sizes)
        sizes = np.maximum(np.rint(sizes / copies), MIN_INSTANCES).astype(np.intp)
        fewer = np.maximum(sizes * (1 - unequal), MIN_INSTANCES).astype(np.intp)
        posteriors, tested = (posteriors[bag.unweighted(posteriors, each).flat] for each in (sizes, fewer))
    case = Evidence(
        names=[str(name) for name in quantifier.classes_.tolist()],
        estimate=interval.estimate,
        prior=quantifier.prior_,
        bag=posteriors,
        held_out=held_out[0],
        codes=held_out[1],
        alpha=1 - float(interval.level),
        half_width=float(interval.width.max()) / 2,
        unit="instance" if bag.weights is None else "effective instance",
    )
    fit = mixture_test(tested, case.held_out, case.codes, refitted=refitted, resamples=resamples, rng=rng)
    spread = deviations(case)
    return [
        *shrinkage_findings(quantifier),
        prior_shift(case, fit),
        prevalence(case),
        classifier(case, spread),
        bag_size(case, spread),
        confidence(case, fit.prevalences),
    ]


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
        "1 instance is too few: any prevalence is possible, and prior shift, prevalence, classifier, confidence and "
        "drift cannot be checked.",
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
