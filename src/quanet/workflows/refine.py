"""Shares refined with labels of some rows: the answer of `quanet refine`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.data.columns import match_labels
from quanet.data.periods import Key
from quanet.errors import InvalidData
from quanet.evaluation.findings import Finding
from quanet.labels.group_labels import GroupLabels, RefinedGroups, refine_groups
from quanet.labels.prediction_powered import BagExposure, ExposedDesign, PoweredMean, design_labels, prediction_powered
from quanet.labels.refine import (
    CHOSEN,
    MIN_LABELS,
    fixed_label_em,
    in_one_place,
    likelihood_ratios,
    random_part,
    responsibilities,
)
from quanet.simplex import count, encode, project
from quanet.uncertainty.policy import Target
from quanet.wording import many, p_value, percent
from quanet.workflows.diff import GroupDifferences
from quanet.workflows.label_sheet import GivenLabels
from quanet.workflows.predict import Shares, estimate_shares
from quanet.workflows.refined_differences import compare_refined

MORE = 50  # labels, of which the answer says what they would bring
SINGLE_CLASS = 30  # labels needed if all are of one class
FEW = 5  # labels of a class, of which the answer warns
FEWER = 0.5  # of the labels; labels of equal weight that say less than this part of them are worth a note


@dataclass(frozen=True, slots=True, eq=False)
class Refinement:
    """Refined shares of all instances and of groups, next to the estimates without labels.

    Attributes
    ----------
    unlabelled : the estimates without labels, with their intervals; also the classes, keys, groups and sizes.
    total : the refined estimate of all instances.
    estimate, lower, upper : (k,) refined shares of all instances.
    groups : refined shares of the groups; None without keys.
    differences : between groups with labels of their own; None if there are fewer than two.
    level : confidence level.
    counts : (k,) labels of every class.
    more : (k,) expected width of the intervals with `MORE` more labels.
    planned : number of rows in the plan; None for labels in the data.
    findings : what a reader of the answer must know.
    """

    unlabelled: Shares
    total: PoweredMean
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    groups: RefinedGroups | None
    level: float
    counts: IntArray
    more: FloatArray
    planned: int | None = None
    findings: tuple[Finding, ...] = field(default=())
    differences: GroupDifferences | None = None

    @property
    def classes(self) -> LabelArray:
        """(k,) labels."""
        return self.unlabelled.classes

    @property
    def labelled(self) -> int:
        """Number of labels."""
        return int(self.counts.sum())

    @property
    def labels_used(self) -> list[str]:
        """(g,) labels that corrected each group: "own" or "all"."""
        return [] if self.groups is None else ["own" if own else "all" for own in self.groups.own.tolist()]

    @property
    def changed(self) -> BoolArray:
        """(k,) whether the estimate without labels is outside the refined interval."""
        before = self.unlabelled.total.estimate
        return np.asarray((before < self.lower) | (before > self.upper))

    def rows(self) -> dict[str, Any]:
        """The tidy table, by column: a row for every group and class; without groups, a row for every class."""
        k, before = len(self.classes), self.unlabelled
        if self.groups is None:
            interval = before.total
            parts = [self.estimate, self.lower, self.upper, interval.estimate, interval.lower, interval.upper]
            counts, used, n = np.full(k, self.labelled), np.repeat("own", k), np.full(k, before.sizes.sum())
            keys, classes = {}, self.classes
        else:
            found, interval = self.groups, before.interval
            parts = [found.estimate, found.lower, found.upper, interval.estimate, interval.lower, interval.upper]
            counts, used, n = (np.repeat(one, k) for one in (found.labelled, self.labels_used, before.sizes))
            values = [np.repeat([group[at] for group in before.groups], k) for at in range(len(before.keys))]
            keys = dict(zip(before.key_names, values, strict=True))
            classes = np.tile(self.classes, len(before.groups))
        columns = ("estimate", "lower", "upper", "without_labels", "without_labels_lower", "without_labels_upper")
        return (
            keys
            | {"class": classes}
            | dict(zip(columns, (np.ravel(one) for one in parts), strict=True))
            | {"n": n, "labelled": counts, "labels_used": used}
        )


def refine_shares(
    reader: BatchReader,
    reading: GroupedInputs,
    labels: GivenLabels,
    *,
    keys: Sequence[Key] = (),
    level: float = 0.95,
    seed: int = 0,
    source: str = "",
    labels_source: str = "",
    target: Target = "source",
    model: dict[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Refinement:
    """Refine the shares of all instances and of groups.

    Parameters
    ----------
    reader, reading : what reads rows with the model, and what it has read.
    labels : labels of some rows, of a plan or of a random part.
    keys, level, seed, source, model, progress : as in `estimate_shares`.
    labels_source : name of the file with the labels, for messages.
    target : what differences between groups are of, as in `quanet.difference`; shares are of exactly these instances.
    """
    quantifier = reader.quantifier
    read = reader.read(reader.prepare(labels.cells))
    kept = read.left_out == 0
    names = [name for name, keep in zip(labels.names, kept, strict=True) if keep]
    codes = encode(match_labels(names, quantifier.classes_, source=labels_source or source), quantifier.classes_)
    counts = count(codes, len(quantifier.classes_))
    _check_number(counts, quantifier.classes_, labels_source or source)
    ratios, known = (likelihood_ratios(quantifier, one) for one in (reading.instances, read.inputs))
    merged, exposure = reading.merged, reading.row_weights
    exposed = None if read.weights is None else _exposed(read.weights, source)
    design = design_labels(
        len(codes),
        reading.total,
        weights=None if labels.weights is None else labels.weights[kept],
        strata=None if labels.strata is None else labels.strata[kept],
        exposure=exposed,
        bag=_bag_exposure(reading) if exposed is not None else None,
    )
    instances = None if merged is None else exposure if reading.weights is None else merged.counts.astype(float)
    shares = fixed_label_em(ratios, known, codes, instances)
    posteriors, theirs = responsibilities(ratios, shares), responsibilities(known, shares)
    findings = [] if labels.planned else _check_random(posteriors, theirs, instances, labels, source)
    powered = prediction_powered(posteriors, theirs, codes, design=design, exposure=exposure)
    lower, upper = powered.interval(level)
    groups = None
    if keys:
        owner, places = np.asarray(reading.codes, dtype=np.intp), {name: at for at, name in enumerate(reading.groups)}
        of_known = np.array([places[name] for name in read.groups], dtype=np.intp)[read.codes]
        squares = None if merged is None else merged.squares
        known_labels = GroupLabels(ratios, owner, known, of_known, codes, design, exposure, instances, squares)
        groups = refine_groups(known_labels, shares, level=level)
    before = estimate_shares(
        quantifier, reading, keys=keys, level=level, seed=seed, source=source, model=model, progress=progress
    )
    return Refinement(
        unlabelled=before,
        total=powered,
        estimate=project(powered.estimate),
        lower=lower,
        upper=upper,
        groups=groups,
        level=level,
        counts=counts,
        more=powered.after(MORE, reading.total, level),
        planned=labels.planned,
        differences=None if groups is None else compare_refined(groups, before, level, target),
        findings=(
            *findings,
            *(_few_weigh_most(powered, reading.weight) if isinstance(design, ExposedDesign) else []),
            *_few_of_a_class(counts, quantifier.classes_, upper),
            *_left_out(kept),
        ),
    )


def _exposed(weights: FloatArray, source: str) -> FloatArray:
    if not weights.any():
        raise InvalidData(f"{source}: all labelled rows have weight 0. Label rows with a weight above 0.")
    return weights


def _bag_exposure(reading: GroupedInputs) -> BagExposure | None:
    exposure, merged = reading.row_weights, reading.merged
    if exposure is None or merged is None:
        return None if exposure is None else BagExposure(exposure)
    return BagExposure(exposure, merged.counts.astype(float), merged.squares)


def _few_weigh_most(powered: PoweredMean, weight: str) -> list[Finding]:
    """A note if few labels carry most of the exposure."""
    if powered.equivalent >= FEWER * powered.n:
        return []
    sentence = (
        f"A few rows have most of the {weight or 'weight'}: the interval rests on the equivalent of "
        f"{max(round(powered.equivalent), 1):,} of the {powered.n:,} labels."
    )
    return [Finding("labels", "note", sentence, f"Plan labels with quanet label plan --weight {weight or 'COLUMN'}.")]


def _check_number(counts: IntArray, classes: LabelArray, source: str) -> None:
    n = int(counts.sum())
    if n < MIN_LABELS:
        raise InvalidData(f"{source}: {n} labels are too few for an interval. Label at least {MIN_LABELS}, better 50.")
    if n < SINGLE_CLASS and (counts > 0).sum() == 1:
        only = classes[int(counts.argmax())]
        raise InvalidData(
            f"{source}: all {n} labels are {str(only)!r}, too few labels of the other classes. Label at least "
            f"{SINGLE_CLASS} rows."
        )


def _check_random(
    posteriors: FloatArray, known: FloatArray, instances: FloatArray | None, labels: GivenLabels, source: str
) -> list[Finding]:
    """Raise if the labelled instances differ from the others, and warn if they are next to each other."""
    p = random_part(posteriors, known, instances)
    if p < CHOSEN:
        raise InvalidData(
            f"{source}: the labelled rows are not a random part; the model sees them differently from the others "
            f"({p_value(p)}). Choose the rows with quanet label plan."
        )
    if not in_one_place(labels.rows, labels.total):
        return []
    sentence = "The labelled rows are close together in the file. If the file is sorted, they are no random part."
    return [Finding("labels", "warning", sentence, "Choose the rows with quanet label plan.")]


def _few_of_a_class(counts: IntArray, classes: LabelArray, upper: FloatArray) -> list[Finding]:
    found = []
    for name, number, most in zip(classes.tolist(), counts.tolist(), upper.tolist(), strict=True):
        if number < FEW:
            few = f"Only {number}" if number else "None"
            labels = f"{few} of {many(int(counts.sum()), 'label')} {'are' if number > 1 else 'is'} {str(name)!r}"
            sentence = f"{labels}; its share may be up to {percent(most)}."
            found.append(Finding("labels", "note", sentence, "More labels would narrow the interval."))
    return found


def _left_out(kept: BoolArray) -> list[Finding]:
    missing = int((~kept).sum())
    if not missing:
        return []
    sentence = f"{many(missing, 'label was', 'labels were')} not used, because the rows are skipped."
    return [Finding("labels", "note", sentence)]
