"""Evaluate a model on labelled instances: the answer of `quanet evaluate`."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, LabelArray
from quanet.base import Quantifier
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.data.instances import Inputs
from quanet.errors import QuanetWarning
from quanet.evaluation.evaluate import Results
from quanet.evaluation.findings import Diagnosis
from quanet.evaluation.limits import Limit, pool_limit
from quanet.simplex import count, encode
from quanet.uncertainty.intervals import predict_interval, predict_interval_bags
from quanet.uncertainty.regions import ROUNDING, Interval
from quanet.uncertainty.widening import STATES
from quanet.workflows.drawing import LabelledBags
from quanet.workflows.predict import diagnose_reading

MIN_PER_CLASS = 10  # instances of each class in the pool; fewer cannot calibrate posteriors for the error limit


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Estimates of a model for bags of labelled instances, next to simpler methods.

    Attributes
    ----------
    results : results by method on the same bags: the model, then CC (a plain count of its classifier's labels), then
        TrainPrevalence.
    interval : the model's intervals, arrays (b, k), with drift unless that was not wanted.
    covered : (b, k) 1 if the interval contains the truth, else 0.
    prior : (k,) training prevalences.
    whole_truth, whole : prevalences (k,) and interval of all labelled instances as one bag.
    diagnosis : diagnosis of all labelled instances as one bag.
    limit : smallest possible error with the model's classifier; None if unknown.
    protocol : how the bags were drawn, in one line.
    source, model : name of the data, and facts about the model.
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

    @property
    def plain_covered(self) -> FloatArray:
        """(b, k) 1 if the interval without drift contains the truth, else 0."""
        return covers(self.interval.without_drift, next(iter(self.results.values())).truth)

    @property
    def states(self) -> dict[str, float]:
        """Share of the bags in each state (`quanet.uncertainty.widening`); empty if drift is not included."""
        drift = self.interval.drift
        return {} if drift is None else {state: float((drift.state == state).mean()) for state in STATES}


def covers(interval: Interval, truth: FloatArray) -> FloatArray:
    """1 where an interval contains the true prevalence, else 0: (b, k)."""
    inside = (truth >= interval.lower - ROUNDING) & (truth <= interval.upper + ROUNDING)
    return inside.astype(float)


def evaluate_model(
    quantifier: Quantifier,
    reading: GroupedInputs,
    labels: ArrayLike,
    drawn: LabelledBags,
    *,
    name: str = "",
    level: float = 0.95,
    drift: bool = True,
    rng: int = 0,
    source: str = "",
    model: dict[str, Any] | None = None,
) -> Evaluation:
    """Estimates and intervals of a fitted quantifier for bags of labelled instances, next to simpler methods.

    Parameters
    ----------
    quantifier : fitted quantifier.
    reading : the pool as the quantifier reads it; its groups are not used. With weights, all shares are shares of the
        weight.
    labels : (n,) labels of the pool.
    drawn : bags of the pool, see `draw_bags`.
    name : name of the quantifier in the results; by default the name of its class.
    level : confidence level of the intervals.
    drift : whether the intervals include drift.
    rng : seed of the intervals.
    source, model : name of the data, and facts about the model.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> from quanet.workflows.drawing import Drawing, draw_bags
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> quantifier = EMQ().fit(X, y)
    >>> X, y = Gaussians().draw([0.3, 0.7], 600, rng=1)
    >>> drawn = draw_bags(Drawing(repeats=5), y, quantifier.classes_, rng=2)
    >>> reading = GroupedInputs(quantifier.read(X), np.zeros(600, dtype=np.int32), [()], {}, None)
    >>> found = evaluate_model(quantifier, reading, y, drawn)
    >>> list(found.results), bool(found.covered.mean() > 0.85)
    (['EMQ', 'CC', 'TrainPrevalence'], True)
    """
    named = name or type(quantifier).__name__
    quantifier = quantifier.chosen()
    classes, bags, read = quantifier.classes_, drawn.bags, reading.instances
    codes, weights = encode(labels, classes), reading.weights
    size, weighted = drawn.bag_size, ""
    if weights is not None:
        bags = bags.weighted_by(weights, codes, len(classes))
        weighted = f", weighted by {reading.weight or 'weights'}"
    with warnings.catch_warnings():
        # The diagnosis reports missing held-out instances once, instead of a warning for every bag.
        warnings.simplefilter("ignore", QuanetWarning)
        interval = predict_interval_bags(quantifier, read, bags, level, rng=rng, drift=drift)
        whole = predict_interval(quantifier, read, level, weights=weights, rng=rng, drift=drift)
    truth = bags.prevalences
    estimates = {named: interval.estimate}
    posteriors = posteriors_in(quantifier, read)
    if interval.counted is not None:
        estimates.setdefault("CC", interval.counted)
    estimates.setdefault("TrainPrevalence", np.tile(quantifier.prior_, (len(bags), 1)))
    return Evaluation(
        results={key: Results(truth, one, classes, bags.sizes, bags.labels) for key, one in estimates.items()},
        interval=interval,
        covered=covers(interval, truth),
        prior=quantifier.prior_,
        whole_truth=reading.whole().shares(codes, len(classes))[0],
        whole=whole,
        diagnosis=diagnose_reading(quantifier, reading, interval=whole, level=level, seed=rng),
        limit=None if posteriors is None or weights is not None else known_limit(posteriors, labels, classes, size),
        protocol=f"{drawn.protocol}{weighted}",
        source=source,
        model=model or {},
    )


def posteriors_in(quantifier: Quantifier, read: Inputs) -> FloatArray | None:
    """Posteriors (n, k) of instances that a quantifier has read; None if it does not use posteriors."""
    return read.values[:, : len(quantifier.classes_)] if quantifier.reads_posteriors else None


def known_limit(posteriors: FloatArray, labels: ArrayLike, classes: LabelArray, bag_size: int | None) -> Limit | None:
    """Smallest possible error with a pool's posteriors; None for bags of several sizes or with too few instances."""
    if bag_size is None or count(encode(labels, classes), len(classes)).min() < MIN_PER_CLASS:
        return None
    return pool_limit(posteriors, labels, classes, bag_size=bag_size)
