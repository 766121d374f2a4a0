"""Test whether a judge's errors differ between groups, and choose the human labels that correct each group."""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.labels.judges import MIN_PER_CLASS

ENOUGH = 20  # human labels per class with which a group is corrected by its own labels alone
PER_CELL = 5  # and this many for every label (or bin of scores) of the judge
ALPHA = 0.05  # significance level of the test
MAX_PERMUTATIONS, MIN_PERMUTATIONS = 999, 199
MAX_SHUFFLED = 20_000_000  # labels shuffled over all permutations
AT_A_TIME = 50  # permutations


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTest:
    """Result of a test whether a judge's errors differ between groups.

    Attributes
    ----------
    p_value : p-value of the hypothesis that they are equal; NaN if there are too few labels for a test.
    p_values : (g,) p-value of each group against all others, corrected for the number of groups.
    """

    p_value: float
    p_values: FloatArray

    @property
    def tested(self) -> bool:
        """True if there were enough labels for a test."""
        return bool(np.isfinite(self.p_value))

    @property
    def differ(self) -> bool:
        """True if the errors differ significantly."""
        return self.tested and self.p_value <= ALPHA


def compare_errors(tables: IntArray, *, design_effect: float = 1.0, random_state: int = 0) -> ErrorTest:
    """Test whether a judge errs the same way in all groups: (g, k, j) counts by human label and judge's label.

    The statistic is the largest likelihood ratio of one group against all others, so a single different group is found
    among many. Its distribution is obtained by permuting groups among instances with the same human label, so small
    counts are no problem. If instances come in clusters, the statistic is divided by their `design_effect` (Rao and
    Scott 1984; see `cluster_effect`).

    Examples
    --------
    >>> same, worse = [[45, 5], [10, 40]], [[45, 5], [30, 20]]
    >>> found = compare_errors(np.array([same, same, same, worse]))
    >>> found.differ, (found.p_values < 0.05).tolist()
    (True, [False, False, False, True])
    >>> compare_errors(np.array([same, same, same])).differ
    False
    """
    g, k, j = tables.shape
    if ((tables.sum(axis=2) >= MIN_PER_CLASS).sum(axis=0) < 2).all():
        return ErrorTest(float("nan"), np.full(g, np.nan))
    observed = _against_the_rest(tables) / max(design_effect, 1.0)
    human, group, cell = (axis.ravel() for axis in np.indices((k, g, j)))
    numbers = tables.swapaxes(0, 1).ravel()
    place, cell = np.repeat(group * k + human, numbers), np.repeat(cell, numbers)
    bounds = np.cumsum(tables.sum(axis=(0, 2)))[:-1]
    rng = np.random.default_rng(random_state)
    permutations = int(np.clip(MAX_SHUFFLED // max(len(cell), 1), MIN_PERMUTATIONS, MAX_PERMUTATIONS))
    parts, place, largest = np.split(cell, bounds), place * j, np.empty(permutations)
    for at in range(0, permutations, AT_A_TIME):
        part = largest[at : at + AT_A_TIME]
        shuffled = (np.concatenate([rng.permutation(one) for one in parts]) for _ in part)
        drawn = np.array([np.bincount(place + one, minlength=g * k * j) for one in shuffled])
        part[:] = _against_the_rest(drawn.reshape(-1, g, k, j)).max(axis=1)
    beyond = (largest[:, None] >= observed - 1e-9).sum(axis=0)
    p_values = (1 + beyond) / (1 + permutations)
    return ErrorTest(float(p_values.min()), p_values)


def cluster_effect(tables: IntArray, group: IntArray, cells: IntArray, unit: IntArray | None) -> float:
    """Mean design effect of a judge's error rates: their variance relative to that of independent instances.

    Parameters
    ----------
    tables : (g, k, j) counts by human label and judge's label.
    group, cells, unit : (m,) group, position in a flat (k, j) table, and cluster of each human-labelled instance.
    """
    g, k, j = tables.shape
    if unit is None or not len(unit):
        return 1.0
    grouped = group >= 0
    row = (group * k + cells // j)[grouped]  # a class within a group
    rates = (tables / np.maximum(tables.sum(axis=2, keepdims=True), 1)).reshape(g * k, j)
    gaps = (np.eye(j)[cells[grouped] % j] - rates[row]) / np.sqrt(np.maximum(rates[row], 1e-9))
    _, place = np.unique(unit[grouped] * (g * k) + row, return_inverse=True)
    sums = np.zeros((place.max(initial=-1) + 1, j))
    np.add.at(sums, place, gaps)
    alone = (gaps**2).sum()
    return float((sums**2).sum() / alone) if alone > 0 else 1.0


def _against_the_rest(tables: IntArray) -> FloatArray:
    """Log-likelihood ratio of own rates against common rates, for each group: (..., g, k, j) -> (..., g)."""
    every = tables.sum(axis=-3, keepdims=True)

    def fit(counts: IntArray) -> FloatArray:
        cells, rows = counts, counts.sum(axis=-1)
        return np.asarray(_x_log_x(cells).sum(axis=(-2, -1)) - _x_log_x(rows).sum(axis=-1))

    return 2 * (fit(tables) + fit(every - tables) - fit(every))


def _x_log_x(counts: IntArray) -> FloatArray:
    return np.asarray(counts * np.log(np.maximum(counts, 1)), dtype=float)


def uses_own_labels(tables: IntArray, *, differ: bool) -> BoolArray:
    """Groups to correct by their own human labels alone: (g, k, j) -> (g,).

    They need `ENOUGH` labels per class. If the judge's errors are known to differ between groups, `MIN_PER_CLASS` are
    enough: a wide interval is better than a wrong one.
    """
    j = tables.shape[2]
    needed = max(MIN_PER_CLASS, 2 * j) if differ else max(ENOUGH, PER_CELL * j)
    return np.asarray((tables.sum(axis=2) >= needed).all(axis=1))
