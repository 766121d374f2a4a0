"""From instances that were read to the shares of their groups: estimates, intervals, plain counts, diagnoses."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from quanet.answers.reading import Reading
from quanet.answers.shares import Key, Shares
from quanet.arrays import BoolArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.diagnostics.checks import WIDE
from quanet.diagnostics.contents import familiar_contents, unlike_training
from quanet.diagnostics.diagnose import diagnose, prior_shift_p_value
from quanet.diagnostics.findings import Diagnosis, Finding, shrinkage_findings
from quanet.diagnostics.overlap import seen_finding
from quanet.diagnostics.words import words_finding
from quanet.errors import InvalidData
from quanet.instances import ReadInstances
from quanet.uncertainty.choice import FEW
from quanet.uncertainty.intervals import predict_interval_bags

TEXTS = 2_000  # whose contents are compared with training's
LARGEST = 100_000  # instances that a diagnosis looks at; of more, as many drawn at random
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
    bags = _bags(reading)
    say("intervals")
    everything = Bags(np.arange(len(instances))[None])
    total = predict_interval_bags(quantifier, instances, everything, level, rng=seed)
    interval = predict_interval_bags(quantifier, instances, bags, level, rng=seed) if len(bags) > 1 else total
    counted = np.full(interval.estimate.shape, np.nan) if interval.counted is None else interval.counted
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
        total=total.of_bag(0),
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


def _bags(reading: Reading) -> Bags:
    """The instances of every group, with its name."""
    order = np.argsort(reading.codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(reading.codes))[:-1])
    return Bags(members, labels=[", ".join(group) or "all" for group in reading.groups])


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
