r"""The likelihood of a judge's counts: maximum-likelihood prevalences and likelihood-ratio intervals.

With :math:`b_j` instances that the judge labels j, :math:`t_{cj}` human-labelled instances with human label c and
judge's label j, and :math:`o_c` human labels that are a random part of the instances to correct, the log-likelihood is

.. math:: \sum_j b_j \log \sum_c p_c \theta_{cj} + \sum_{cj} t_{cj} \log \theta_{cj} + \sum_c o_c \log p_c

It is maximized over the judge's rates θ and the prevalences p by Newton's method on their logits. The curvature is that
of the complete data minus the variance of the missing data, the true classes (Louis 1982).
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import stats

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.simplex import log_softmax, project

# Added to every cell of the table of human and judged labels, for the interval only. With 10 labels per class, the
# intervals cover at worst 90 % without it and 93 % with it (benchmarks/judges.py, 500 trials per setting).
PSEUDO_COUNT = 0.1
MAX_STEPS = 100  # Newton steps
MAX_LOGIT_STEP = 3.0  # largest change of a logit in one step
BISECTIONS = 25  # steps that locate each limit of an interval
MIN_START = 1e-9  # smallest prevalence at the start of a search
MIN_CURVATURE = 1e-6


def likelihood_intervals(
    bags: IntArray,
    tables: IntArray,
    own: IntArray,
    *,
    level: float,
    added: float = 0.0,
    stretch: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Maximum-likelihood prevalences and likelihood-ratio intervals: (r, j), (r, k, j), (r, k) -> three of (r, k).

    Parameters
    ----------
    bags : judged instances by the judge's label.
    tables : human-labelled instances by human label (rows) and judge's label (columns).
    own : human labels that are a random part of the bag; otherwise zeros.
    level : confidence level.
    added : count added to every cell of `tables` for the interval, not for the estimate.
    stretch : (r, k) factor of the critical value, such as a design effect; None for 1.
    """
    r, k, _ = tables.shape
    counts = _Counts(np.asarray(bags, float), np.asarray(tables, float), np.asarray(own, float))
    start, exact = _start(counts)
    estimate = np.where(exact[:, None], start, _climb(counts, np.maximum(start, MIN_START)).shares)
    # Two classes need one interval. With more classes, each class is a separate problem: (r * classes, ...).
    classes = np.arange(k) if k > 2 else np.array([1])
    fixed = np.tile(classes, r)
    repeated = _Counts(*(np.repeat(one, len(classes), axis=0) for one in (bags, tables + added, own)))
    best = _climb(repeated, np.repeat(np.maximum(estimate, MIN_START), len(classes), axis=0))
    critical = stats.chi2.ppf(level, 1) * (np.ones((r, k)) if stretch is None else stretch)[:, classes].ravel()
    # Both ends of an interval are problems of their own, too, and all are solved together.
    twice = np.tile(np.arange(len(fixed)), 2)
    sides = np.repeat([0.0, 1.0], len(fixed))
    ends = _ends(repeated.take(twice), fixed[twice], best.take(twice), sides, critical[twice])
    lower, upper = ends.reshape(2, r, -1)
    if k == 2:
        lower, upper = np.hstack([1 - upper, lower]), np.hstack([1 - lower, upper])
    return estimate, np.minimum(lower, estimate), np.maximum(upper, estimate)


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Counts of r problems: (r, j), (r, k, j), (r, k); and a fixed prevalence: `free` (r, k) is False for its class."""

    bags: FloatArray
    tables: FloatArray
    own: FloatArray
    free: BoolArray | None = None
    given: FloatArray | None = None  # (r,)

    def take(self, rows: IntArray) -> "_Counts":
        free = None if self.free is None else self.free[rows]
        given = None if self.given is None else self.given[rows]
        return _Counts(self.bags[rows], self.tables[rows], self.own[rows], free, given)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Parameters of r problems, logits (r, k), log rates (r, k, j), shares (r, k), and their log-likelihood (r,)."""

    logits: FloatArray
    log_rates: FloatArray
    shares: FloatArray
    value: FloatArray

    def take(self, rows: IntArray) -> "_Point":
        return _Point(self.logits[rows], self.log_rates[rows], self.shares[rows], self.value[rows])

    def put(self, rows: IntArray, others: "_Point") -> None:
        for one in fields(self):
            getattr(self, one.name)[rows] = getattr(others, one.name)


def _start(counts: _Counts) -> tuple[FloatArray, BoolArray]:
    """Prevalences (r, k) from the formula of Rogan and Gladen, and whether they maximize the likelihood (r,).

    They do if the solution is on the simplex and there are no own human labels; for two classes, the nearest point of
    the simplex does.
    """
    k, j = counts.tables.shape[1:]
    rates = counts.tables / np.maximum(counts.tables.sum(axis=2, keepdims=True), 1)
    seen = counts.bags / np.maximum(counts.bags.sum(axis=1, keepdims=True), 1)
    solved = (np.linalg.pinv(rates.swapaxes(1, 2), rcond=1e-6) @ seen[..., None])[..., 0]
    solved = solved + (1 - solved.sum(axis=1, keepdims=True)) / k
    human, judged = (one.sum(axis=1, keepdims=True) for one in (counts.own, counts.bags))
    weight = human / np.maximum(human + judged, 1)
    start = (1 - weight) * project(solved) + weight * counts.own / np.maximum(human, 1)
    exact = (human[:, 0] == 0) & (j == k) & ((k == 2) | (solved >= 0).all(axis=1))
    return start, exact


def _ends(counts: _Counts, fixed: IntArray, best: _Point, sides: FloatArray, critical: FloatArray) -> FloatArray:
    """The limits, towards `sides` (0 or 1), of the prevalences that a likelihood-ratio test accepts: (r,)."""
    cut = best.value - critical / 2
    rows = np.arange(len(fixed))
    free = np.ones(best.shares.shape, dtype=bool)
    free[rows, fixed] = False
    inside, outside = best.shares[rows, fixed], sides
    near = best

    def accepted(given: FloatArray) -> BoolArray:
        nonlocal near
        found = _climb(replace(counts, free=free, given=given), near.logits, near.log_rates)
        good = found.value >= cut
        near = _chosen(good, found, near)
        return np.asarray(good)

    reached = accepted(outside)
    for _ in range(BISECTIONS):
        middle = np.where(reached, sides, (inside + outside) / 2)
        good = accepted(middle)
        inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
    return np.where(reached, sides, inside)


def _chosen(first: BoolArray, one: _Point, other: _Point) -> _Point:
    """The first of two points where `first` is True, else the second: (r,)."""
    wide, widest = first[:, None], first[:, None, None]
    return _Point(
        np.where(wide, one.logits, other.logits),
        np.where(widest, one.log_rates, other.log_rates),
        np.where(wide, one.shares, other.shares),
        np.where(first, one.value, other.value),
    )


def _climb(counts: _Counts, start: FloatArray, log_rates: FloatArray | None = None) -> _Point:
    """Maximize the likelihood, from prevalences (r, k) or from logits and log rates of an earlier point."""
    if log_rates is None:
        filled = counts.tables + 1e-3
        start, log_rates = np.log(start), np.log(filled / filled.sum(axis=2, keepdims=True))
    now = _point(counts, start, log_rates)
    moving = np.arange(len(start))
    for _ in range(MAX_STEPS):
        some = counts.take(moving)
        before = now.take(moving)
        slope, curvature = _slope_and_curvature(some, before)
        values, vectors = np.linalg.eigh(curvature)
        along = (vectors.swapaxes(1, 2) @ slope[..., None])[..., 0] / np.maximum(np.abs(values), MIN_CURVATURE)
        step = (vectors @ along[..., None])[..., 0]
        step *= np.minimum(1, MAX_LOGIT_STEP / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        after, moved = _line_search(some, before, step)
        now.put(moving, after)
        moving = moving[moved & ((slope * step).sum(axis=1) > 1e-8)]
        if not len(moving):
            break
    return now


def _line_search(counts: _Counts, now: _Point, step: FloatArray) -> tuple[_Point, BoolArray]:
    """Halve the step until the likelihood does not decrease; also return which problems (r,) succeeded."""
    r, k, j = now.log_rates.shape
    length, still = np.ones(r), np.ones(r, dtype=bool)
    for _ in range(20):
        ahead = _point(
            counts,
            now.logits + length[:, None] * step[:, k * j :],
            now.log_rates + length[:, None, None] * step[:, : k * j].reshape(r, k, j),
        )
        good = still & (ahead.value >= now.value - 1e-9)
        now = _chosen(good, ahead, now)
        still &= ~good
        if not still.any():
            break
        length = np.where(still, length / 2, 0.0)
    return now, ~still


def _point(counts: _Counts, logits: FloatArray, log_rates: FloatArray) -> _Point:
    log_rates = log_softmax(log_rates)
    if counts.free is None or counts.given is None:
        logits = log_softmax(logits)
        shares = np.exp(logits)
    else:
        # The logit of the fixed class is kept as a starting point for later; it does not affect the other classes.
        among = log_softmax(np.where(counts.free, logits, -np.inf))
        shares = np.where(counts.free, (1 - counts.given)[:, None] * np.exp(among), counts.given[:, None])
        logits = np.where(counts.free, among, logits)
    mixed = np.einsum("rk,rkj->rj", shares, np.exp(log_rates))
    value = (counts.bags * np.log(np.maximum(mixed, 1e-300))).sum(axis=1)
    value += (counts.tables * log_rates).sum(axis=(1, 2))
    value += (counts.own * np.log(np.maximum(shares, 1e-300))).sum(axis=1)
    return _Point(logits, log_rates, shares, value)


def _slope_and_curvature(counts: _Counts, now: _Point) -> tuple[FloatArray, FloatArray]:
    """Gradient (r, k j + k) and information (r, k j + k, k j + k) in the logits of the rates and of the shares."""
    r, k, j = now.log_rates.shape
    rates, shares = np.exp(now.log_rates), now.shares
    free = np.ones((r, k)) if counts.free is None else counts.free.astype(float)
    among = shares * free / np.maximum((shares * free).sum(axis=1, keepdims=True), 1e-300)
    joint = shares[:, :, None] * rates
    weights = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    expected = weights * counts.bags[:, None]  # of class c and label j: (r, k, j)
    by_class = expected.sum(axis=2)
    seen = counts.tables + expected
    known = free * (counts.own + by_class)
    slope_rates = seen - seen.sum(axis=2, keepdims=True) * rates
    slope_shares = known - known.sum(axis=1, keepdims=True) * among
    # Derivative of the complete data's score with respect to the missing counts: (r, k j + k, k j).
    eye_k, eye_j = np.eye(k), np.eye(j)
    turn = np.zeros((r, k * j + k, k * j))
    within = eye_j[None, None] - rates[..., None]  # (r, k, j, j)
    turn[:, : k * j] = np.einsum("rcab,cd->rcadb", within, eye_k).reshape(r, k * j, k * j)
    between = (eye_k[None] - among[:, :, None]) * free[:, None, :] * free[:, :, None]
    turn[:, k * j :] = np.repeat(between, j, axis=2)
    spread = np.einsum("rcj,cd,jl->rcjdl", expected, eye_k, eye_j)
    spread -= np.einsum("rcj,rdj,jl->rcjdl", expected, weights, eye_j)
    missing = turn @ spread.reshape(r, k * j, k * j) @ turn.swapaxes(1, 2)
    complete = np.zeros_like(missing)
    blocks = seen.sum(axis=2)[:, :, None, None] * (rates[..., None] * (eye_j - rates[:, :, None, :]))
    complete[:, : k * j, : k * j] = np.einsum("rcab,cd->rcadb", blocks, eye_k).reshape(r, k * j, k * j)
    complete[:, k * j :, k * j :] = known.sum(axis=1)[:, None, None] * (
        among[:, :, None] * (eye_k - among[:, None, :]) * free[:, :, None]
    )
    slope = np.concatenate([slope_rates.reshape(r, -1), slope_shares], axis=1)
    return slope, complete - missing
