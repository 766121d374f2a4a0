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

LEAST, MOST = 0.2, 5.0  # limits of a weight, relative to the weight before
ROUNDS = 20
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
    totals, sums = layout.totals.floats(whole.totals), layout.sums.floats(whole.sums)
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
    posteriors = rows[:, : layout.classes]
    ratios = posteriors * (np.average(posteriors, axis=0, weights=weights) / np.maximum(layout.prior, 1e-9))
    responsibilities = ratios / np.maximum(ratios.sum(axis=1, keepdims=True), 1e-300)
    for _ in range(STEPS):  # of expectation and maximisation
        ratios = posteriors * (np.average(responsibilities, axis=0, weights=weights) / np.maximum(layout.prior, 1e-9))
        responsibilities = ratios / np.maximum(ratios.sum(axis=1, keepdims=True), 1e-300)
    root = np.sqrt(weights / weights.sum())[:, None]
    columns = root * np.column_stack([np.ones(len(known)), known / np.maximum(np.abs(known).max(axis=0), 1e-300)])
    wanted = root * (responsibilities - np.average(responsibilities, axis=0, weights=weights))
    left = wanted - columns @ np.linalg.lstsq(columns.T @ columns, columns.T @ wanted, rcond=1e-12)[0]
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
    found = base
    for _ in range(ROUNDS):  # more than one if weights reach their limits
        missing = wanted - found @ known
        if np.abs(missing).max() < 1e-9 * total:
            break
        factor = 1 + known @ np.linalg.lstsq((known * found[:, None]).T @ known, missing, rcond=1e-10)[0]
        found = np.clip(found * factor, LEAST * base, MOST * base)
    return found * (total / found.sum())
