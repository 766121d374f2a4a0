"""How well a model does on labelled instances: what `quanet evaluate` answers."""

import warnings
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from quanet.answers.drawing import Drawn
from quanet.answers.estimating import diagnose_reading
from quanet.answers.reading import Reading
from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.diagnostics.findings import Diagnosis
from quanet.errors import QuanetWarning
from quanet.evaluation.limits import Limit, pool_limit
from quanet.evaluation.results import Results
from quanet.instances import ReadInstances
from quanet.simplex import count, encode, prevalence_of
from quanet.uncertainty.intervals import predict_interval, predict_interval_bags
from quanet.uncertainty.regions import ROUNDING, Interval

FEWEST = 10  # of a class, to calibrate posteriors on the pool for the limit


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Estimates of a model for bags of labelled instances, beside those of simpler ones.

    Attributes
    ----------
    results : by name, the model first, then CC (a plain count of its labels) and TrainPrevalence, on the same bags.
    interval : of the model, arrays (b, k).
    covered : (b, k) whether the truth lies in it.
    prior : (k,) training prevalences.
    whole : truth (k,) and interval, arrays (k,), of all labelled instances as one bag.
    diagnosis : of all labelled instances as one bag.
    limit : the least error that the model's classifier allows; None where it is not known.
    protocol : how bags were drawn, as one line.
    source, model : where the instances come from, and what is known of the model.
    """

    results: dict[str, Results]
    interval: Interval
    covered: FloatArray
    prior: FloatArray
    whole_truth: FloatArray
    whole: Interval
    diagnosis: Diagnosis
    limit: Limit | None
    protocol: str
    source: str = ""
    model: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Errors of many methods on the same bags, best first.

    Attributes
    ----------
    results : by method.
    errors : metric -> (methods,) mean errors, in the order of `results`.
    p_values : metric -> (methods,) of a paired test against the best one, NaN for itself; adjusted for their number.
    seconds : (methods,) to fit and to estimate.
    failed : method -> why it could not run on these data.
    prior, counts : (k,) training prevalences, and instances of every class in the test file.
    protocol, train, test : how bags were drawn, and the files.
    """

    classes: LabelArray
    results: dict[str, Results]
    errors: dict[str, FloatArray]
    p_values: dict[str, FloatArray]
    seconds: FloatArray
    failed: dict[str, str]
    prior: FloatArray
    counts: IntArray
    limit: Limit | None
    protocol: str
    train: str
    test: str


def evaluate_model(
    quantifier: Quantifier,
    reading: Reading,
    labels: ArrayLike,
    drawn: Drawn,
    *,
    name: str = "",
    level: float = 0.95,
    rng: int = 0,
    source: str = "",
    model: dict[str, Any] | None = None,
) -> Evaluation:
    """Estimates and intervals of a fitted quantifier for bags of labelled instances, beside those of simpler ones.

    Parameters
    ----------
    quantifier : fitted.
    reading : of the pool, which its groups say nothing about here.
    labels : (n,) of the pool.
    drawn : bags of the pool, see `draw_bags`.
    name : of the quantifier among the results; its class's where none is given.
    level : of the intervals.
    rng : seed of what is random in intervals.
    source, model : for the reader.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> from quanet.answers.drawing import Drawing, draw_bags
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> quantifier = EMQ().fit(X, y)
    >>> X, y = Gaussians().draw([0.3, 0.7], 600, rng=1)
    >>> drawn = draw_bags(Drawing(repeats=5), y, quantifier.classes_, rng=2)
    >>> reading = Reading(quantifier.read(X), np.zeros(600, dtype=np.int32), [()], {}, None)
    >>> found = evaluate_model(quantifier, reading, y, drawn)
    >>> list(found.results), bool(found.covered.mean() > 0.85)
    (['EMQ', 'CC', 'TrainPrevalence'], True)
    """
    named = name or type(quantifier).__name__
    quantifier = cast("Quantifier", getattr(quantifier, "quantifier_", quantifier))  # what a search has chosen
    classes, bags, read = quantifier.classes_, drawn.bags, reading.instances
    with warnings.catch_warnings():
        # That a method has kept no held-out rows is said once, in the diagnosis, and not for every bag.
        warnings.simplefilter("ignore", QuanetWarning)
        interval = predict_interval_bags(quantifier, read, bags, level, rng=rng)
        whole = predict_interval(quantifier, read, level, rng=rng)
    truth = bags.prevalences
    estimates = {named: interval.estimate}
    posteriors = posteriors_in(quantifier, read)
    if interval.counted is not None:
        estimates.setdefault("CC", interval.counted)
    estimates.setdefault("TrainPrevalence", np.tile(quantifier.prior_, (len(bags), 1)))
    inside = (truth >= interval.lower - ROUNDING) & (truth <= interval.upper + ROUNDING)
    return Evaluation(
        results={key: Results(truth, one, classes, bags.sizes, bags.labels) for key, one in estimates.items()},
        interval=interval,
        covered=inside.astype(float),
        prior=quantifier.prior_,
        whole_truth=prevalence_of(labels, classes),
        whole=whole,
        diagnosis=diagnose_reading(quantifier, reading, level=level, seed=rng),
        limit=None if posteriors is None else known_limit(posteriors, labels, classes, drawn.bag_size),
        protocol=drawn.protocol,
        source=source,
        model=model or {},
    )


def posteriors_in(quantifier: Quantifier, read: ReadInstances) -> FloatArray | None:
    """Posteriors (n, k) among what a quantifier has read, if it reads such."""
    reads = quantifier._reads_posteriors  # noqa: SLF001
    return read.inputs[:, : len(quantifier.classes_)] if reads else None


def known_limit(posteriors: FloatArray, labels: ArrayLike, classes: LabelArray, bag_size: int | None) -> Limit | None:
    """The least error that posteriors of a pool allow; None for bags of many sizes, or too few of a class to say."""
    if bag_size is None or count(encode(labels, classes), len(classes)).min() < FEWEST:
        return None
    return pool_limit(posteriors, labels, classes, bag_size=bag_size)
