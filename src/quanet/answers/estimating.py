"""From instances that were read to the shares of their groups: estimates, intervals, plain counts, diagnoses."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from quanet.answers.reading import Reading
from quanet.answers.shares import Key, Shares
from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier, ReadInstances
from quanet.diagnostics.contents import familiar_contents, unlike_training
from quanet.diagnostics.diagnose import WIDE, diagnose, prior_shift_p_value, words_finding
from quanet.diagnostics.findings import Diagnosis, Finding, shrinkage_findings
from quanet.diagnostics.overlap import seen_finding
from quanet.errors import InvalidData, InvalidSetting
from quanet.uncertainty.intervals import predict_interval_bags
from quanet.uncertainty.regions import Interval

TEXTS = 2_000  # whose contents are compared with training's
LARGEST = 100_000  # instances that a diagnosis looks at; of more, as many drawn at random
DRAWS = 20_000  # of a bootstrap, over all groups together
FEW = 20  # instances, below which a formula for many promises too much
FEWEST = 100  # instances of a group that is diagnosed by itself
MOST = 100  # groups that are diagnosed by themselves, the largest
FALSE = 0.05  # share of groups among those found to have drifted that may be found so by chance


def estimate_shares(
    quantifier: Quantifier,
    reading: Reading,
    *,
    keys: Sequence[Key] = (),
    level: float = 0.95,
    seed: int = 0,
    source: str = "",
    model: dict[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Shares:
    """Shares of all groups of a reading, and of all instances together.

    Parameters
    ----------
    quantifier : the one that has read.
    reading : what it has read.
    keys : what instances are grouped by.
    level : of intervals.
    seed : of draws.
    source, model : for the reader.
    progress : told what is being done.
    """
    say = progress or (lambda _: None)
    instances = reading.instances
    bags = _bags(reading.codes)
    say("intervals")
    everything = Bags(np.arange(len(instances))[None])
    total = _intervals(quantifier, instances, everything, level, seed)
    interval = _intervals(quantifier, instances, bags, level, seed) if len(bags) > 1 else total
    counted = _counted(quantifier, instances, reading.codes, len(bags))
    weights = bags.sizes / bags.sizes.sum()
    say("diagnosis")
    return Shares(
        classes=quantifier.classes_,
        keys=tuple(keys),
        groups=tuple(reading.groups),
        sizes=bags.sizes,
        interval=interval,
        counted=counted,
        small=(bags.sizes < FEW) | (interval.width.max(axis=1) > 2 * WIDE),
        total=_first(total),
        total_counted=weights @ counted,
        diagnosis=diagnose_reading(quantifier, reading, level=level, seed=seed),
        diagnoses=_diagnoses(quantifier, reading, bags, seed) if len(bags) > 1 else ("",),
        skipped=reading.skipped,
        source=source,
        model=model or {},
    )


def diagnose_reading(quantifier: Quantifier, reading: Reading, *, level: float = 0.95, seed: int = 0) -> Diagnosis:
    """Findings about all instances together, their words included."""
    instances = reading.instances
    if len(instances) > LARGEST:
        chosen = np.random.default_rng(seed).choice(len(instances), LARGEST, replace=False)
        instances = instances.take(np.sort(chosen))
    findings = list(_diagnosis(quantifier, instances, level, seed))
    if reading.unknown_words is not None:
        findings.append(words_finding(reading.unknown_words))
    findings += seen_finding(reading.training_texts, len(reading.instances))
    if len(reading.texts) >= FEW:
        findings += familiar_contents(quantifier, reading.texts[:TEXTS], 1 - level)
    return Diagnosis(findings)


def _diagnosis(quantifier: Quantifier, instances: ReadInstances, level: float, seed: int) -> Diagnosis:
    try:
        return diagnose(quantifier, instances, level=level, random_state=seed)
    except InvalidData as error:  # too few instances, here or in training
        return Diagnosis([*shrinkage_findings(quantifier), Finding("diagnosis", "note", f"Not checked: {error}")])


def _first(found: Interval) -> Interval:
    return replace(
        found,
        estimate=found.estimate[0],
        lower=found.lower[0],
        upper=found.upper[0],
        covariance=found.covariance[0],
        sizes=found.sizes[0],
    )


def _bags(codes: Any) -> Bags:
    """The instances of every group."""
    order = np.argsort(codes, kind="stable")
    return Bags(np.split(order, np.cumsum(np.bincount(codes))[:-1]))


def _intervals(quantifier: Quantifier, instances: ReadInstances, bags: Bags, level: float, seed: int) -> Interval:
    """Intervals of bags; of one instance, which says nothing of how instances differ, everything from 0 to 1."""
    k, sizes = len(quantifier.classes_), bags.sizes
    estimate = quantifier.predict_bags(instances, bags)
    lower, upper = np.zeros_like(estimate), np.ones_like(estimate)
    covariance, method = np.broadcast_to(np.eye(k) / 4, (len(bags), k, k)).copy(), "none"
    members = np.split(bags.flat, np.cumsum(sizes)[:-1])
    # Formulas are for many instances; a few are compared with bags of as few.
    for chosen, ways in (((sizes > 1) & (sizes < FEW), ("conformal", "auto")), (sizes >= FEW, ("auto",))):
        places = np.flatnonzero(chosen)
        if len(places):
            some = Bags([members[at] for at in places])
            found = _by_first(quantifier, instances, some, level, seed, (*ways, "bootstrap"))
            lower[places], upper[places], covariance[places] = found.lower, found.upper, found.covariance
            method = found.method
    return Interval(estimate, lower, upper, covariance, sizes, level, method, quantifier.classes_)


def _by_first(
    quantifier: Quantifier, instances: ReadInstances, bags: Bags, level: float, seed: int, ways: tuple[Any, ...]
) -> Interval:
    """Intervals by the first way that the held-out instances are enough for."""
    # A bootstrap takes its time for every bag, so that each of many gets fewer draws.
    resamples = max(min(1000, DRAWS // len(bags)), 100, math.ceil(4 / (1 - level)))
    for way in ways[:-1]:
        with suppress(InvalidData, InvalidSetting):
            return predict_interval_bags(quantifier, instances, bags, level, method=way, resamples=resamples, rng=seed)
    return predict_interval_bags(quantifier, instances, bags, level, method=ways[-1], resamples=resamples, rng=seed)


def _counted(quantifier: Quantifier, instances: ReadInstances, codes: Any, groups: int) -> FloatArray:
    """Shares of predicted labels (g, k); NaN for a quantifier that predicts none."""
    k = len(quantifier.classes_)
    if not quantifier._reads_posteriors:  # noqa: SLF001
        return np.full((groups, k), np.nan)
    labels = instances.inputs[:, :k].argmax(axis=1)
    counts = np.bincount(codes * k + labels, minlength=groups * k).reshape(groups, k)
    return counts / counts.sum(axis=1, keepdims=True)


def _diagnoses(quantifier: Quantifier, reading: Reading, bags: Bags, seed: int) -> tuple[str, ...]:
    """Whether every group may be a mixture of the classes as training knew them: "ok" or "alarm", "" if not looked at.

    Both its posteriors and its texts may say that it is none.

    With many groups some would look like drift by chance: an alarm counts only if it is among those that keep the
    share of false ones down (Benjamini and Hochberg 1995).
    """
    chosen = np.argsort(-bags.sizes, kind="stable")[:MOST]
    chosen = chosen[bags.sizes[chosen] >= FEWEST]
    members = np.split(bags.flat, np.cumsum(bags.sizes)[:-1])
    severities = [""] * len(bags)
    owners = np.asarray(reading.codes)[reading.places]
    p_values: list[tuple[int, float | None]] = []
    for at in chosen.tolist():
        texts = [reading.texts[place] for place in np.flatnonzero(owners == at)[:TEXTS]]
        p_values.append((at, unlike_training(quantifier, texts) if len(texts) >= FEW else None))
        with suppress(InvalidData):  # too few held-out instances
            p_values.append((at, _p_value(quantifier, reading.instances.take(members[at][:LARGEST]), seed)))
    known = [(at, p) for at, p in p_values if p is not None]
    for (at, _), real in zip(known, _discoveries([p for _, p in known]), strict=True):
        severities[at] = "alarm" if real or severities[at] == "alarm" else "ok"
    return tuple(severities)


def _p_value(quantifier: Quantifier, instances: ReadInstances, seed: int) -> float | None:
    """Roughly, and exactly where that may matter."""
    p_value = prior_shift_p_value(quantifier, instances, resamples=199, random_state=seed)
    if p_value is None or p_value > FALSE:
        return p_value
    return prior_shift_p_value(quantifier, instances, resamples=3999, random_state=seed)


def _discoveries(p_values: Sequence[float]) -> BoolArray:
    """Which hypotheses are given up, so that the share of those wrongly given up stays below `FALSE`.

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
