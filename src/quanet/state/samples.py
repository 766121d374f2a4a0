"""Samples of large groups, with weights whose sums are those of all instances.

The mean of a sample differs from the mean of the group, which is known exactly. Weights are changed as little as
possible so that both agree (calibration; Deville and Sarndal 1992). An estimate that depends on the rows mostly through
their means is then nearly that of all instances: exact sums serve as control variates.
"""

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.simplex import spread_counts
from quanet.state.kept_rows import Cells
from quanet.state.layout import Layout

LEAST = 1e-6  # of a weight, relative to the weight before
ROUNDS, HALVINGS = 40, 20  # of Newton's method, and of one of its steps
FARTHEST = 12.0  # logarithm of the largest weight, relative to the weight before
CLOSE = 1e-9  # a difference of means that is none
RIDGE = 1e-10
RIDGES = (RIDGE, 1e-7, 1e-5, 1e-3)  # tried in this order, until few rows do not get most of the weight
FEWEST = 0.25  # of the effective size, that is left after calibration
STEPS = 20


def calibrate_samples(
    cells: Cells, rows: FloatArray, weights: FloatArray, whole: Cells, layout: Layout
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Weights and squared weights (n, 2) and instances (n,) that rows of samples stand for, and their noise (n,).

    Parameters
    ----------
    cells : the distinct rows of the samples, sorted by group.
    rows, weights : their values (n, d), and the weights (n,) of their instances in the sample.
    whole : the same groups, sorted, with the sums of their control variates.
    layout : of the rows.
    """
    totals, sums = whole.floats(layout), layout.control_sums.floats(whole.sums)
    found, instances, noise = np.empty((len(rows), 2)), np.empty(len(rows), dtype=np.intp), np.empty(len(rows))
    starts = np.searchsorted(cells.groups, whole.groups)
    ends = np.searchsorted(cells.groups, whole.groups, side="right")
    for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        part, total = slice(start, end), float(totals[at, 0])
        known = layout.control_variates(rows[part])
        calibrated = _calibrated(known, weights[part], total, sums[at])
        # Squares in proportion, so that the effective size is that of all instances.
        found[part] = np.column_stack([calibrated, calibrated * (totals[at, 1] / total)])
        instances[part] = spread_counts(calibrated[None], np.array([whole.counts[at]]))[0]
        kept = int(cells.counts[part].sum()) / int(whole.counts[at])
        drawn = weights[part].sum() ** 2 / (weights[part] ** 2).sum()
        noise[part] = (1 - kept) / drawn * _unexplained(rows[part], known, weights[part], layout)
    return found, instances, noise


def _unexplained(rows: FloatArray, known: FloatArray, weights: FloatArray, layout: Layout) -> float:
    """The part of the variance of responsibilities that control variates (n, c) do not explain, for the worst class.

    Responsibilities are posteriors at the prevalences of the sample, where they differ most from what is known exactly.
    """
    if not layout.classes:
        return 1.0
    likelihoods, shares = layout.likelihoods_of(rows), np.array(layout.prior)
    for _ in range(STEPS):  # of expectation and maximisation
        joint = likelihoods * shares
        responsibilities = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        shares = np.average(responsibilities, axis=0, weights=weights)
    root = np.sqrt(weights / weights.sum())[:, None]
    columns = root * np.column_stack([np.ones(len(known)), known / np.maximum(np.abs(known).max(axis=0), 1e-300)])
    wanted = root * (responsibilities - np.average(responsibilities, axis=0, weights=weights))
    gram = columns.T @ columns + RIDGE * np.eye(columns.shape[1])
    left = wanted - columns @ np.linalg.solve(gram, columns.T @ wanted)
    spread = (wanted**2).sum(axis=0)
    return float(np.max((left**2).sum(axis=0)[spread > 1e-12] / spread[spread > 1e-12], initial=0.0))


def _calibrated(rows: FloatArray, weights: FloatArray, total: float, sums: FloatArray) -> FloatArray:
    """Weights (n,) close to the given ones, relative to their sum, with which rows (n, c) have the given sums (c,)."""
    base = weights * (total / weights.sum())
    spread = rows.std(axis=0)
    columns = (rows - sums / total)[:, spread > 1e-9] / spread[spread > 1e-9]
    known = np.column_stack([np.ones(len(rows)), columns])
    wanted = np.zeros(known.shape[1])
    wanted[0] = total
    for ridge in RIDGES:
        found = _raked(known, base, wanted, ridge * total)
        if _effective_size(found) >= FEWEST * _effective_size(base):
            break
    return found * (total / found.sum())


def _effective_size(weights: FloatArray) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def _raked(known: FloatArray, base: FloatArray, wanted: FloatArray, ridge: float) -> FloatArray:
    """Weights with the wanted sums (c,) of columns (n, c) that are closest in entropy: exp(known @ at) times the base.

    Columns are nearly dependent, hence the ridge. The function is convex, so Newton's method finds its minimum.
    """
    at, found, total = np.zeros(len(wanted)), base, float(wanted[0])
    for _ in range(ROUNDS):
        missing = wanted - found @ known - ridge * at
        if np.abs(missing).max() < CLOSE * total:
            break
        step = np.linalg.solve((known * found[:, None]).T @ known + ridge * np.eye(len(at)), missing)
        linear, square = float(wanted @ step - ridge * at @ step), float(ridge * step @ step)
        length = _step_length(known @ at, known @ step, base, linear, square)
        if not length:
            break
        at = at + length * step
        found = base * np.exp(known @ at)
    return np.maximum(found, LEAST * base)


def _step_length(here: FloatArray, step: FloatArray, base: FloatArray, linear: float, square: float) -> float:
    """The length of a step of Newton's method, halved until the function decreases; 0 if it does not.

    Parameters
    ----------
    here, step : (n,) logarithms of relative weights, and their change with a length of 1.
    base : (n,) weights that these are relative to.
    linear, square : coefficients of the length, and of half its square, in what is subtracted and added.
    """
    before, length = (base * np.exp(here)).sum(), 1.0
    for _ in range(HALVINGS):
        there = here + length * step
        if there.max() < FARTHEST:
            after = (base * np.exp(there)).sum() - length * linear + length**2 * square / 2
            if after < before:
                return length
        length /= 2
    return 0.0
