"""Differences between groups whose shares were refined with labels of their own."""

from dataclasses import replace

import numpy as np

from quanet.arrays import FloatArray, LabelArray
from quanet.labels.group_labels import RefinedGroups
from quanet.uncertainty.contrasts import combined_reaches, p_values
from quanet.uncertainty.differences import Differences
from quanet.uncertainty.policy import Target
from quanet.workflows.diff import GroupDifferences, series_of
from quanet.workflows.predict import Shares

MOST_GROUPS = 500  # of more, each against the rest would need much memory


def compare_refined(
    groups: RefinedGroups, shares: Shares, level: float, target: Target = "source"
) -> GroupDifferences | None:
    """Differences between periods, or of each group from the rest; None with fewer than two groups to compare.

    Only groups with enough labels of their own are compared. Their labels are independent, and no drift can mislead
    them. The interval of a difference combines those of both sides (MOVER; Newcombe 1998).

    Parameters
    ----------
    groups : the refined shares.
    shares : the shares without labels, with the names of the groups.
    level : confidence level.
    target : "source" for differences between the sources that the instances were drawn from, whose intervals include
        the variance of drawing them; "bag" for those of exactly these instances. As in `quanet.difference`.
    """
    if target == "source":
        lower, upper = groups.interval_of_sources(level)
        groups = replace(groups, lower=lower, upper=upper)
    own = np.flatnonzero(groups.own)
    if not 2 <= len(own) <= MOST_GROUPS:
        return None
    at = next((place for place, key in enumerate(shares.keys) if key.period), None)
    members = [part for part, _ in series_of([shares.groups[place] for place in own], shares.keys, at)]
    if len(own) == 2 and not members:
        members = [np.arange(2)]
    names = np.array([", ".join(shares.groups[place]) for place in own], dtype=object)
    pairs = [pair for part in members for pair in zip(part[:-1].tolist(), part[1:].tolist(), strict=True)]
    if members and not pairs:
        return None
    ends = [(int(part[0]), int(part[-1])) for part in members if len(part) > 2]
    return GroupDifferences(
        shares.classes,
        _between(groups, shares, names, pairs, level) if pairs else _from_the_rest(groups, shares, names, level),
        "previous" if pairs else "rest",
        keys=shares.keys,
        changes=_between(groups, shares, names, ends, level) if ends else None,
        target=target,
    )


def _between(
    groups: RefinedGroups, shares: Shares, names: LabelArray, pairs: list[tuple[int, int]], level: float
) -> Differences:
    """Differences from the first to the second group of each pair."""
    first, second = np.array(pairs).T
    one_hot = np.eye(len(names))
    return _differences(groups, shares, (one_hot[first], one_hot[second]), (names[first], names[second]), level)


def _from_the_rest(groups: RefinedGroups, shares: Shares, names: LabelArray, level: float) -> Differences:
    """The difference of every group from all others together."""
    sizes = shares.sizes[groups.own].astype(float)
    others = (1 - np.eye(len(names))) * sizes
    rest = np.full(len(names), "rest", dtype=object)
    return _differences(
        groups, shares, (others / others.sum(axis=1, keepdims=True), np.eye(len(names))), (rest, names), level
    )


def _differences(
    groups: RefinedGroups,
    shares: Shares,
    sides: tuple[FloatArray, FloatArray],
    names: tuple[LabelArray, LabelArray],
    level: float,
) -> Differences:
    """Differences of the second side, a mean of groups with weights (m, g), from the first side."""
    estimate, lower, upper = (part[groups.own] for part in (groups.estimate, groups.lower, groups.upper))
    weights = (sides[1] - sides[0])[:, :, None]
    shape = (*weights.shape[:2], estimate.shape[1])
    low, high = (np.broadcast_to(part, shape) for part in (estimate - lower, upper - estimate))
    alike, whole = np.eye(shape[1])[None], np.zeros(shape, dtype=bool)
    below, above = combined_reaches(weights, np.maximum(low, 0.0), np.maximum(high, 0.0), alike, whole)
    first, second = (side @ estimate for side in sides)
    value = second - first
    reach = np.where(value > 0, below, above)
    return Differences.of(
        *names,
        value,
        np.maximum(value - below, -1),
        np.minimum(value + above, 1),
        p_values(np.abs(value), reach, np.zeros_like(reach), level, 1.0, np.inf),
        level=level,
        classes=shares.classes,
        first_estimate=first,
        second_estimate=second,
        sizes=np.stack([(side > 0) @ shares.sizes[groups.own] for side in sides], axis=1),
    )
