"""Shares of classes in groups of instances: estimates, intervals, plain counts, checks: `quanet predict`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.corpus.workers import return_memory
from quanet.data.copies import count_copies
from quanet.data.instances import Inputs
from quanet.data.periods import Key
from quanet.errors import InvalidData
from quanet.evaluation.accuracy import ExpectedAccuracy, predict_accuracy
from quanet.evaluation.contents import contents_findings, training_overlap_findings, unknown_words_finding
from quanet.evaluation.diagnose import diagnose, quiet_interval
from quanet.evaluation.findings import (
    WIDE,
    Diagnosis,
    Finding,
    copies_findings,
    shrinkage_findings,
    weights_findings,
    zero_shares,
)
from quanet.uncertainty.intervals import IntervalOptions, predict_interval_bags
from quanet.uncertainty.policy import SMALL_BAG
from quanet.uncertainty.regions import Interval
from quanet.uncertainty.widening import FEW_ROWS

FEWEST_HELD_OUT = 10  # held-out instances of a class, to know how it is labelled
LARGEST = 100_000  # instances that a diagnosis uses; of more, as many that are spread evenly over them

# Columns of the tidy table.
RESERVED = {"class", "estimate", "lower", "upper", "n", "counted", "drift", "state", "labels", "note"}
WEIGHTED = {"weight", "effective_n"}  # further columns, if instances have weights


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Class shares of groups of instances and of all instances, with intervals.

    Attributes
    ----------
    classes : (k,) labels.
    keys : columns to group by; empty if all instances form one group.
    groups : (g, keys) values of the keys as strings, sorted; periods are ISO (2024-05, 2024-W07, 2024-Q2), so that they
        sort by time. (1, 0) without keys.
    sizes : (g,) instances.
    interval : estimates and intervals of every group, arrays (g, k); its `drift` has the state of every group.
    counted : (g, k) shares of the predicted labels (plain count, not corrected).
    small : (g,) groups that are too small, or whose interval without drift is too wide, to be informative.
    total : estimates and intervals of all instances, arrays (k,).
    total_counted : (k,) plain count of all instances.
    diagnosis : findings about all instances, and about the drift of groups.
    skipped : rows skipped, by reason.
    source : name of the data.
    model : facts about the model.
    weight : the column of weights, such as "views": shares are then shares of the weight. Empty without weights.
    totals : (g,) the weight of every group; None without weights.
    accuracy : expected accuracy of the classifier's labels in all instances; None if unknown.
    clusters, cluster : number of clusters, and the name of their column: intervals are then those of the source of the
        instances. 0 and "" without clusters.
    """

    classes: LabelArray
    keys: tuple[Key, ...]
    groups: tuple[tuple[str, ...], ...]
    sizes: IntArray
    interval: Interval
    counted: FloatArray
    small: BoolArray
    total: Interval
    total_counted: FloatArray
    diagnosis: Diagnosis
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    model: dict[str, Any] = field(default_factory=dict)
    weight: str = ""
    totals: FloatArray | None = None
    accuracy: ExpectedAccuracy | None = None
    clusters: int = 0
    cluster: str = ""

    @property
    def states(self) -> list[str]:
        """(g,) one of `STATES`; "" if intervals do not include drift."""
        drift = self.interval.drift
        return [""] * len(self.groups) if drift is None else [str(state) for state in drift.state.tolist()]

    @property
    def labels(self) -> IntArray:
        """(g,) number of random rows of a group to label; 0 if it is trusted."""
        drift = self.interval.drift
        return np.zeros(len(self.groups), dtype=np.intp) if drift is None else drift.labels

    @property
    def widening(self) -> FloatArray:
        """(g,) by how much drift widens the interval to each side, for the class with the largest difference."""
        return (self.interval.width - self.interval.without_drift.width).max(axis=1) / 2

    @property
    def notes(self) -> list[str]:
        """(g,) what limits a group's estimate: "few" instances, a state other than "trusted", both, or nothing."""
        marks = zip(self.small.tolist(), self.states, strict=True)
        return [
            ", ".join(["few"] * (small and state != FEW_ROWS) + [state] * (state not in ("", "trusted")))
            for small, state in marks
        ]

    @property
    def key_names(self) -> list[str]:
        """Column names of the keys; those that would be ambiguous include the period."""
        columns = [key.column for key in self.keys]
        taken = RESERVED | WEIGHTED if self.weight else RESERVED
        return [
            f"{key.column}:{key.period}" if columns.count(key.column) > 1 or key.column in taken else key.column
            for key in self.keys
        ]

    def rows(self) -> dict[str, Any]:
        """The tidy table, by column: a row for every group and class."""
        k = len(self.classes)
        keys = {name: np.repeat([group[at] for group in self.groups], k) for at, name in enumerate(self.key_names)}
        return keys | {
            "class": np.tile(self.classes, len(self.groups)),
            "estimate": self.interval.estimate.ravel(),
            "lower": self.interval.lower.ravel(),
            "upper": self.interval.upper.ravel(),
            "n": np.repeat(self.sizes, k),
            **self._weights(k),
            "counted": self.counted.ravel(),
            "drift": self._cost().ravel(),
            "state": np.repeat(self.states, k),
            "labels": np.repeat(self.labels, k),
            "note": np.repeat(self.notes, k),
        }

    def _weights(self, k: int) -> dict[str, Any]:
        effective = self.interval.effective_sizes
        if self.totals is None or effective is None:
            return {}
        return {"weight": np.repeat(self.totals, k), "effective_n": np.repeat(effective, k)}

    def _cost(self) -> FloatArray:
        drift = self.interval.drift
        return np.full(self.interval.estimate.shape, np.nan) if drift is None else drift.cost


def estimate_shares(
    quantifier: Quantifier,
    reading: GroupedInputs,
    *,
    keys: Sequence[Key] = (),
    level: float = 0.95,
    seed: int = 0,
    drift: bool = True,
    source: str = "",
    model: dict[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Shares:
    """Estimate the shares of every group, and of all instances.

    With clusters, intervals are those of the source of the instances instead of the instances themselves.

    Parameters
    ----------
    quantifier : the fitted quantifier that has read the instances.
    reading : instances, with their groups.
    keys : columns that instances are grouped by.
    level : confidence level of the intervals.
    seed : random seed.
    drift : whether intervals include drift.
    source, model : facts for the reader.
    progress : called with what is done next.
    """
    report = progress or (lambda _: None)
    return_memory()
    instances = reading.instances
    bags = reading.bags()
    report("intervals")
    whole = reading.as_one()
    options: IntervalOptions = {"rng": seed, "drift": drift}
    if reading.clusters is not None:
        options |= {"clusters": reading.clusters, "target": "source"}
    total = predict_interval_bags(quantifier, whole.instances, whole.bags(), level, **options)
    return_memory()
    several = len(bags) > 1
    interval = predict_interval_bags(quantifier, instances, bags, level, **options) if several else total
    counted = np.full(interval.estimate.shape, np.nan) if interval.counted is None else interval.counted
    totals = bags.totals / bags.totals.sum()
    report("diagnosis")
    return Shares(
        classes=quantifier.classes_,
        keys=tuple(keys),
        groups=tuple(reading.groups),
        sizes=bags.sizes,
        interval=interval,
        counted=counted,
        small=(bags.effective_sizes < SMALL_BAG) | (interval.without_drift.width.max(axis=1) > 2 * WIDE),
        total=total.of_bag(0),
        total_counted=totals @ counted,
        diagnosis=diagnose_reading(
            quantifier,
            reading,
            interval=total.of_bag(0),
            bags=bags if several else None,
            groups=interval if several else None,
            level=level,
            seed=seed,
        ),
        skipped=reading.skipped,
        source=source,
        model=model or {},
        weight=reading.weight,
        totals=None if reading.weights is None else bags.totals,
        accuracy=_accuracy(quantifier, reading, total.of_bag(0), seed),
        clusters=0 if reading.clusters is None else len(set(reading.clusters.tolist())),
        cluster=reading.cluster,
    )


def _accuracy(quantifier: Quantifier, reading: GroupedInputs, interval: Interval, seed: int) -> ExpectedAccuracy | None:
    """Expected accuracy of the labels of all instances; None without held-out posteriors of every class."""
    held_out = quantifier.held_out_
    if not quantifier.reads_posteriors or held_out is None or held_out.counts.min() < FEWEST_HELD_OUT:
        return None
    whole = reading.as_one()
    weights, merged = whole.row_weights, whole.merged
    return predict_accuracy(
        quantifier, whole.instances, interval.level, interval=interval, weights=weights, merged=merged, rng=seed
    )


def diagnose_reading(
    quantifier: Quantifier,
    reading: GroupedInputs,
    *,
    interval: Interval | None = None,
    bags: Bags | None = None,
    groups: Interval | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Diagnosis:
    """Findings about all instances, including their words, and about the drift of groups.

    Parameters
    ----------
    quantifier, reading : the quantifier, and the instances that it has read.
    interval : that of all instances, if already computed.
    bags, groups : the groups, if there are several, and their intervals.
    level, seed : as in `diagnose`.
    """
    if interval is None:
        interval = quiet_interval(quantifier, reading.instances, level, weights=reading.weights, rng=seed)
    findings = _diagnosis(quantifier, *_some_instances(reading.as_one()), interval, level, seed)
    findings += zero_shares(interval, groups)
    if reading.unknown_words is not None:
        findings.append(unknown_words_finding(reading.unknown_words))
    findings += training_overlap_findings(reading.training_texts, reading.total)
    texts = reading.some_texts
    if reading.weights is not None:
        findings += weights_findings(reading.whole(), bags, weight=reading.weight)
    findings += copies_findings(reading.instances, reading.whole(), bags)
    findings += contents_findings(quantifier, reading.instances, interval, texts, bags=bags, groups=groups)
    return Diagnosis(findings)


def _some_instances(reading: GroupedInputs) -> tuple[Inputs, FloatArray | None]:
    """At most `LARGEST` single instances of a group that is like all its instances, and their weights."""
    if reading.merged is None and reading.total <= LARGEST:
        return reading.instances, reading.weights
    values, weights, counts = reading.instances.values, reading.weights, np.ones(len(reading.codes))
    given = reading.instances.hashes
    if reading.merged is not None:
        counts = reading.merged.counts.astype(float)
    bag, most = Bags(np.arange(len(values))[None], weights=None if reading.merged is None else counts), reading.total
    if reading.merged is not None:  # without rows, copies are not known one by one
        most = max(round(most / float(count_copies(given, reading.whole()).factor[0])), 2)
    chosen = bag.unweighted(values, np.array([min(most, LARGEST)])).flat
    hashes = None if reading.merged is not None or given is None else given[chosen]
    return Inputs(values[chosen], hashes=hashes), None if weights is None else (weights / counts)[chosen]


def _diagnosis(
    quantifier: Quantifier, instances: Inputs, weights: FloatArray | None, interval: Interval, level: float, seed: int
) -> list[Finding]:
    try:
        # Drift and weights are reported separately, with words and groups.
        without = replace(interval, drift=None)
        found = diagnose(quantifier, instances, weights=weights, interval=without, level=level, random_state=seed)
        return [finding for finding in found if finding.name not in ("weights", "copies")]
    except InvalidData as error:  # too few instances, here or in the training data
        return [*shrinkage_findings(quantifier), Finding("diagnosis", "note", f"Not checked: {error}")]
