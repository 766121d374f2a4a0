"""Whether a judge errs differently from group to group, and which labels say how it errs in each of them."""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.uncertainty.judges import FEWEST

ENOUGH = 20  # human labels of every class from which on a group is corrected by its own labels alone
PER_CELL = 5  # and that many for every label or bin of scores that the judge uses
LEVEL = 0.05  # of the test
PERMUTATIONS, FEWEST_PERMUTATIONS = 999, 199
WORK = 20_000_000  # labels that are shuffled, over all permutations


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTest:
    """Whether a judge's errors differ between groups.

    Attributes
    ----------
    p_value : of the hypothesis that they do not; NaN where there are too few labels to test it.
    p_values : (g,) of every group against the others together, corrected for the number of groups.
    """

    p_value: float
    p_values: FloatArray

    @property
    def tested(self) -> bool:
        """Whether there were enough labels for a test."""
        return bool(np.isfinite(self.p_value))

    @property
    def differ(self) -> bool:
        """Whether the errors differ significantly."""
        return self.tested and self.p_value <= LEVEL


def compare_errors(tables: IntArray, *, random_state: int = 0) -> ErrorTest:
    """Test whether a judge errs alike in all groups: (g, k, j) human-labelled instances by human and judged label.

    The statistic is the largest likelihood ratio of one group against the others together, so that a single group that
    differs is found among many. Its distribution comes from permuting groups among instances of the same human label,
    which needs no large numbers.

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
    if ((tables.sum(axis=2) >= FEWEST).sum(axis=0) < 2).all():
        return ErrorTest(float("nan"), np.full(g, np.nan))
    observed = _against_the_rest(tables)
    human, group, cell = (axis.ravel() for axis in np.indices((k, g, j)))
    numbers = tables.swapaxes(0, 1).ravel()
    place, cell = np.repeat(group * k + human, numbers), np.repeat(cell, numbers)
    bounds = np.cumsum(tables.sum(axis=(0, 2)))[:-1]
    rng = np.random.default_rng(random_state)
    rounds = int(np.clip(WORK // max(len(cell), 1), FEWEST_PERMUTATIONS, PERMUTATIONS))
    largest = np.empty(rounds)
    for number in range(rounds):
        shuffled = np.concatenate([rng.permutation(part) for part in np.split(cell, bounds)])
        drawn = np.bincount(place * j + shuffled, minlength=g * k * j).reshape(g, k, j)
        largest[number] = _against_the_rest(drawn).max()
    beyond = (largest[:, None] >= observed - 1e-9).sum(axis=0)
    p_values = (1 + beyond) / (1 + rounds)
    return ErrorTest(float(p_values.min()), p_values)


def _against_the_rest(tables: IntArray) -> FloatArray:
    """Log-likelihood ratio of every group having its own rates against all having the same: (g, k, j) -> (g,)."""
    every = tables.sum(axis=0)

    def fit(counts: IntArray) -> FloatArray:
        cells, rows = counts, counts.sum(axis=-1)
        return np.asarray(_x_log_x(cells).sum(axis=(-2, -1)) - _x_log_x(rows).sum(axis=-1))

    return 2 * (fit(tables) + fit(every - tables) - fit(every))


def _x_log_x(counts: IntArray) -> FloatArray:
    return np.asarray(counts * np.log(np.maximum(counts, 1)), dtype=float)


def uses_own_labels(tables: IntArray, *, differ: bool) -> BoolArray:
    """Groups that are corrected by their own human labels alone: (g, k, j) -> (g,).

    These need `ENOUGH` of every class. Where the judge's errors are known to differ between groups, `FEWEST` will do:
    a wide interval is better than a wrong one.
    """
    j = tables.shape[2]
    needed = max(FEWEST, 2 * j) if differ else max(ENOUGH, PER_CELL * j)
    return np.asarray((tables.sum(axis=2) >= needed).all(axis=1))
