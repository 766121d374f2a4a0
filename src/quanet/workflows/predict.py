"""Shares of classes in groups of instances: estimates, intervals, plain counts, checks: `quanet predict`."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.data.periods import Key
from quanet.diagnostics.diagnose import diagnose, prior_shift_p_value
from quanet.diagnostics.findings import WIDE, Diagnosis, Finding, shrinkage_findings
from quanet.diagnostics.text_drift import (
    topics_findings,
    topics_p_value,
    training_overlap_findings,
    unknown_words_finding,
)
from quanet.errors import InvalidData
from quanet.uncertainty.intervals import predict_interval_bags
from quanet.uncertainty.policy import SMALL_BAG
from quanet.uncertainty.regions import Interval
from quanet.workflows.reading import GroupedInputs

TEXTS = 2_000  # compared with the training texts
LARGEST = 100_000  # instances that a diagnosis uses; of more, as many are drawn at random
FEWEST = 100  # instances of a group that gets its own diagnosis
MOST = 100  # groups that get their own diagnosis: the largest ones
FALSE = 0.05  # expected share of false alarms among the groups reported as drifted

RESERVED = {"class", "estimate", "lower", "upper", "n", "counted", "note"}  # columns of the tidy table


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
    interval : estimates and intervals of every group, arrays (g, k).
    counted : (g, k) shares of the predicted labels (plain count, not corrected).
    small : (g,) groups that are too small, or whose interval is too wide, to be informative.
    total : estimates and intervals of all instances, arrays (k,).
    total_counted : (k,) plain count of all instances.
    diagnosis : findings about all instances.
    diagnoses : (g,) "alarm" if a group is not a mixture of the training classes, else "ok"; "" if it was not checked.
    skipped : rows skipped, by reason.
    source : name of the data.
    model : facts about the model.
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
    diagnoses: tuple[str, ...]
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    model: dict[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """(g,) what limits a group's estimate: "few" instances, "drift" from the training data, both, or nothing."""
        marks = zip(self.small.tolist(), self.diagnoses, strict=True)
        return [", ".join(["few"] * small + ["drift"] * (severity == "alarm")) for small, severity in marks]

    @property
    def key_names(self) -> list[str]:
        """Column names of the keys; those that would be ambiguous include the period."""
        columns = [key.column for key in self.keys]
        return [
            f"{key.column}:{key.period}" if columns.count(key.column) > 1 or key.column in RESERVED else key.column
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
            "counted": self.counted.ravel(),
            "note": np.repeat(self.notes, k),
        }


def estimate_shares(
    quantifier: Quantifier,
    reading: GroupedInputs,
    *,
    keys: Sequence[Key] = (),
    level: float = 0.95,
    seed: int = 0,
    source: str = "",
    model: dict[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Shares:
    """Estimate the shares of every group, and of all instances.

    Parameters
    ----------
    quantifier : the fitted quantifier that has read the instances.
    reading : instances, with their groups.
    keys : columns that instances are grouped by.
    level : confidence level of the intervals.
    seed : random seed.
    source, model : facts for the reader.
    progress : called with what is done next.
    """
    report = progress or (lambda _: None)
    instances = reading.instances
    bags = _bags(reading)
    report("intervals")
    everything = Bags(np.arange(len(instances))[None])
    total = predict_interval_bags(quantifier, instances, everything, level, rng=seed)
    interval = predict_interval_bags(quantifier, instances, bags, level, rng=seed) if len(bags) > 1 else total
    counted = np.full(interval.estimate.shape, np.nan) if interval.counted is None else interval.counted
    weights = bags.sizes / bags.sizes.sum()
    report("diagnosis")
    return Shares(
        classes=quantifier.classes_,
        keys=tuple(keys),
        groups=tuple(reading.groups),
        sizes=bags.sizes,
        interval=interval,
        counted=counted,
        small=(bags.sizes < SMALL_BAG) | (interval.width.max(axis=1) > 2 * WIDE),
        total=total.of_bag(0),
        total_counted=weights @ counted,
        diagnosis=diagnose_reading(quantifier, reading, estimate=total.estimate[0], level=level, seed=seed),
        diagnoses=_diagnoses(quantifier, reading, bags, seed) if len(bags) > 1 else ("",),
        skipped=reading.skipped,
        source=source,
        model=model or {},
    )


def diagnose_reading(
    quantifier: Quantifier,
    reading: GroupedInputs,
    *,
    estimate: FloatArray | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Diagnosis:
    """Findings about all instances, including their words; `estimate` is that of all instances, if known."""
    instances = reading.instances
    if len(instances) > LARGEST:
        chosen = np.random.default_rng(seed).choice(len(instances), LARGEST, replace=False)
        instances, estimate = instances.take(np.sort(chosen)), None
    findings = list(_diagnosis(quantifier, instances, estimate, level, seed))
    if reading.unknown_words is not None:
        findings.append(unknown_words_finding(reading.unknown_words))
    findings += training_overlap_findings(reading.training_texts, len(reading.instances))
    if len(reading.texts) >= SMALL_BAG:
        findings += topics_findings(quantifier, reading.texts[:TEXTS], 1 - level)
    return Diagnosis(findings)


def _diagnosis(
    quantifier: Quantifier, instances: Inputs, estimate: FloatArray | None, level: float, seed: int
) -> Diagnosis:
    try:
        return diagnose(quantifier, instances, estimate=estimate, level=level, random_state=seed)
    except InvalidData as error:  # too few instances, here or in the training data
        return Diagnosis([*shrinkage_findings(quantifier), Finding("diagnosis", "note", f"Not checked: {error}")])


def _bags(reading: GroupedInputs) -> Bags:
    """A bag for every group, with its name."""
    order = np.argsort(reading.codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(reading.codes))[:-1])
    return Bags(members, labels=[", ".join(group) or "all" for group in reading.groups])


def _diagnoses(quantifier: Quantifier, reading: GroupedInputs, bags: Bags, seed: int) -> tuple[str, ...]:
    """Whether each group may be a mixture of the training classes: "ok" or "alarm", "" if not checked.

    Both posteriors and texts are tested. The expected share of false alarms stays below `FALSE` (Benjamini and
    Hochberg 1995).
    """
    chosen = np.argsort(-bags.sizes, kind="stable")[:MOST]
    chosen = chosen[bags.sizes[chosen] >= FEWEST]
    members = np.split(bags.flat, np.cumsum(bags.sizes)[:-1])
    severities = [""] * len(bags)
    owners = np.asarray(reading.codes)[reading.places]
    p_values: list[tuple[int, float | None]] = []
    for at in chosen.tolist():
        texts = [reading.texts[place] for place in np.flatnonzero(owners == at)[:TEXTS]]
        p_values.append((at, topics_p_value(quantifier, texts) if len(texts) >= SMALL_BAG else None))
        with suppress(InvalidData):  # too few held-out instances
            p_values.append((at, _p_value(quantifier, reading.instances.take(members[at][:LARGEST]), seed)))
    known = [(at, p) for at, p in p_values if p is not None]
    for (at, _), real in zip(known, _discoveries([p for _, p in known]), strict=True):
        severities[at] = "alarm" if real or severities[at] == "alarm" else "ok"
    return tuple(severities)


def _p_value(quantifier: Quantifier, instances: Inputs, seed: int) -> float | None:
    """A rough p-value, computed more precisely if it is small."""
    p_value = prior_shift_p_value(quantifier, instances, resamples=199, random_state=seed)
    if p_value is None or p_value > FALSE:
        return p_value
    return prior_shift_p_value(quantifier, instances, resamples=3999, random_state=seed)


def _discoveries(p_values: Sequence[float]) -> BoolArray:
    """Which hypotheses are rejected, so that the expected share of false rejections stays below `FALSE`.

    Examples
    --------
    >>> _discoveries([0.001, 0.04, 0.9, 0.02])
    array([ True, False, False,  True])
    """
    values = np.asarray(p_values, dtype=float)
    order: IntArray = np.argsort(values)
    passed = np.flatnonzero(values[order] <= FALSE * np.arange(1, len(values) + 1) / max(1, len(values)))
    found = np.zeros(len(values), dtype=bool)
    found[order[: passed[-1] + 1 if len(passed) else 0]] = True
    return found
