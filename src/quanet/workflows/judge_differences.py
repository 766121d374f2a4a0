"""Differences between the corrected rates of groups."""

from collections.abc import Sequence

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.errors import InvalidData
from quanet.labels.judge_covariance import contrast_rates
from quanet.uncertainty.differences import Differences
from quanet.workflows.correct import Correction

REST, PREVIOUS = "rest", "previous"


def compare_rates(
    correction: Correction,
    names: Sequence[str],
    *,
    against: str | None = None,
    between: tuple[str, str] | None = None,
) -> Differences:
    """Differences between groups, with intervals that account for what groups share, and Holm's correction.

    Groups corrected by the same human labels share the errors of these labels, which cancel in part.

    Parameters
    ----------
    correction : the answer, with `spread`.
    names : (g,) of the groups.
    against : "rest": each group against all other rows; "previous": against the group before it; or the name of a group
        that all others are compared with.
    between : the names of two groups: the second minus the first.
    """
    assert correction.spread is not None
    g = len(names)
    if g < 2:
        raise InvalidData(f"differences need at least two groups, but there is {g}. Choose other columns with --by.")
    eye = np.eye(g)
    if between is not None:
        first, second = (_position(name, names) for name in between)
        if first == second:
            raise InvalidData(f"--between names the group {between[0]!r} twice. Name two groups.")
        pairs = [first], [second]
        weights, baseline = eye[[second]] - eye[[first]], [between[0]]
    elif against == REST:
        others = np.where(eye > 0, 0, correction.sizes.astype(float))
        weights, baseline = eye - others / others.sum(axis=1, keepdims=True), [REST] * g
        pairs = list(range(g)), list(range(g))
    elif against == PREVIOUS:
        pairs = list(range(g - 1)), list(range(1, g))
        weights, baseline = eye[1:] - eye[:-1], list(names[:-1])
    else:
        base = _position(against or "", names)
        pairs = [base] * (g - 1), [one for one in range(g) if one != base]
        weights, baseline = eye[pairs[1]] - eye[base], [names[base]] * (g - 1)
    spread = correction.spread.of_groups()
    return contrast_rates(
        weights,
        (baseline, [names[one] for one in pairs[1]]),
        (correction.estimate, correction.lower, correction.upper),
        spread,
        level=correction.level,
        classes=correction.classes,
        sizes=_sizes(weights, correction.sizes),
    )


def _sizes(weights: FloatArray, sizes: IntArray) -> IntArray:
    """Rows of the first and of the second side of each difference: (m, 2)."""
    return np.stack([(weights < 0).astype(np.intp) @ sizes, (weights > 0).astype(np.intp) @ sizes], axis=1)


def _position(name: str, names: Sequence[str]) -> int:
    if name not in names:
        shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise InvalidData(f"no group is named {name!r}. Groups are {shown}; or use {REST!r} or {PREVIOUS!r}.")
    return list(names).index(name)
