r"""Is a bag a mixture of the training classes? A goodness-of-fit test for prior shift.

Under prior shift, the posteriors of a bag are distributed as :math:`\sum_c p_c f_c`, with the densities :math:`f_c` of
held-out training instances, for some prevalences p. Both are counted in cells of posterior space. The best p is fitted,
and its residuals are compared with those of bags that are such mixtures.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from quanet.arrays import FloatArray, IntArray
from quanet.simplex import project

STEPS = 4  # of reweighted least squares; the fit converges earlier
# Largest fold gap that is not drift: with all data, log odds of the true class may grow by this much, and all log odds
# by this fraction. On halves of the training part of IMDB the gap is up to 0.25.
MAX_FOLD_GAP = 0.35
SMALL = 0.1  # change for numerical derivatives
MAX_CHANGED = 20  # classes whose log odds may grow; of more classes, those that are most of the bag
MAX_BYTES = 2**28  # of the arrays of one block of resamples
MAX_WORK = 4e9  # resamples times cells times the square of the columns; with more, fewer are drawn
FEWEST_RESAMPLES = 199  # a p-value of .01 needs 99


@dataclass(frozen=True, slots=True, eq=False)
class MixtureFit:
    """How well a mixture of the classes explains a bag.

    Attributes
    ----------
    p_value : the probability that a bag that is such a mixture fits as badly.
    statistic : Cramér-von Mises distance of the bag from the best mixture.
    prevalences : (k,) prevalences of the best mixture.
    worst : the cell where the bag differs most: the most probable class, and the range of its posterior.
    surplus : observed minus expected instances in this cell, as a share of the bag.
    misfit : share of the instances that do not fit, about: the root of the distance beyond what chance contributes.
    """

    p_value: float
    statistic: float
    prevalences: FloatArray
    worst: tuple[int, float, float]
    surplus: float
    misfit: float


def mixture_test(
    bag: FloatArray,
    held_out: FloatArray,
    codes: IntArray,
    *,
    refitted: bool = False,
    resamples: int = 999,
    rng: np.random.Generator,
) -> MixtureFit:
    r"""Test whether a bag is a mixture of the held-out classes: (n, k), (m, k), (m,) -> a p-value.

    The prevalences minimise a weighted distance,

    .. math:: \hat p = \arg\min_p \sum_j \frac{(b_j - \sum_c p_c h_{cj})^2}{(q_j + n \sum_c p_c^2 h_{cj} / m_c) / n},
              \qquad q = \sum_c p_c h_c

    with the shares b of the bag's n instances and :math:`h_c` of the :math:`m_c` held-out instances of a class in cells
    j. The statistic of Cramér and von Mises is the sum of squared cumulative residuals, from the most confident
    instances of each predicted class. Drift affects neighbouring cells alike, which a sum over single cells hardly
    detects. Its distribution comes from a parametric bootstrap that resamples the bag and the held-out instances.

    Parameters
    ----------
    bag : posteriors of the bag.
    held_out, codes : posteriors of held-out training instances, and their classes.
    refitted : whether the classifier of the bag was fitted to all data, and those of the held-out posteriors to parts
        of it, as in cross-fitting. With more data it is a little better for each class. This is not drift, so it is
        fitted, too, within bounds.
    resamples, rng : for the bootstrap; of many classes, fewer are drawn.

    References
    ----------
    Z. Lipton, Y.-X. Wang and A. Smola, "Detecting and correcting for label shift with black box predictors", 2018, for
    the assumption; B. Efron and R. Tibshirani, "An introduction to the bootstrap", 1993, chapter 16.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> held_out, codes = np.repeat([[0.9, 0.1], [0.2, 0.8]], 500, axis=0), np.repeat([0, 1], 500)
    >>> held_out = np.clip(held_out + rng.normal(scale=0.05, size=(1000, 1)) * [1, -1], 0, 1)
    >>> mixture_test(held_out[250:600], held_out, codes, rng=rng).p_value > 0.05
    True
    >>> mixture_test(np.full((350, 2), 0.5), held_out, codes, rng=rng).p_value
    0.001
    """
    n, k = bag.shape
    weights = _rough_mixture(bag, held_out, codes)
    cells = _Cells.fit(held_out, weights, max(4 * k, round(2 * n**0.4)))
    counted = np.bincount(cells.of(bag), minlength=cells.size)
    changed = np.argsort(-np.bincount(codes, weights, minlength=k), kind="stable")[:MAX_CHANGED]
    model = _Model(cells, held_out, codes, np.sort(changed) if refitted else None)
    fit = model.fit(counted[None], model.counts[None])
    resamples = min(resamples, max(FEWEST_RESAMPLES, int(MAX_WORK / model.work)))
    drawn = rng.multinomial(n, fit.expected[0] / fit.expected[0].sum(), size=resamples)
    redrawn = model.redraw(resamples, rng)
    blocks = np.array_split(np.arange(resamples), math.ceil(resamples * model.bytes_each / MAX_BYTES))
    by_chance = np.concatenate([cells.cumulated(model.fit(drawn[at], redrawn[at]).residual) for at in blocks])
    statistic = float(cells.cumulated(fit.residual)[0])
    worst = int((fit.residual[0] ** 2 / fit.variance[0]).argmax())
    return MixtureFit(
        p_value=float((1 + (by_chance >= statistic - 1e-12).sum()) / (1 + resamples)),
        statistic=n * statistic,
        prevalences=fit.prevalences[0],
        worst=cells.range_of(worst),
        surplus=float(fit.residual[0, worst]),
        misfit=max(0.0, statistic - float(by_chance.mean())) ** 0.5,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fits:
    """The best mixture of each resample: prevalences (r, k); per cell (r, j): expected share, residual, variance."""

    prevalences: FloatArray
    expected: FloatArray
    residual: FloatArray
    variance: FloatArray


class _Model:
    """Held-out instances counted in cells, before and after small changes of their posteriors.

    Instances of a class that share their cell in every case are counted, and resampled, together.

    Parameters
    ----------
    cells, held_out, codes : of the test.
    changed : classes whose log odds may grow; None if nothing has changed.
    """

    def __init__(self, cells: "_Cells", held_out: FloatArray, codes: IntArray, changed: IntArray | None) -> None:
        k = held_out.shape[1]
        cases = [held_out]
        if changed is not None:
            truth = np.eye(k)[codes]
            cases.append(_normalised(held_out ** (1 + SMALL)))
            cases += [_normalised(held_out * np.exp(SMALL * truth * (np.arange(k) == c))) for c in changed.tolist()]
        numbers = np.stack([cells.of(case) for case in cases], axis=1)
        distinct, groups = np.unique(numbers, axis=0, return_inverse=True)
        self.k, self.cells = k, cells.size
        self.changes = len(cases) - 1
        # Most groups have instances of one class only: what is counted is a class in a group, one entry for each.
        self.fine = csr_matrix((np.ones(len(codes)), (codes, groups.ravel())), shape=(k, len(distinct)))
        self.fine.sort_indices()
        self.owner, self.counts = np.repeat(np.arange(k), np.diff(self.fine.indptr)), self.fine.data
        in_case = distinct[self.fine.indices]
        # Entries to the cells of their class, and to the cells in each changed case.
        self.to_class = self._join(self.owner[:, None] * self.cells + in_case[:, :1], k * self.cells)
        later = np.arange(self.changes) * self.cells
        self.to_changed = self._join(in_case[:, 1:] + later, self.changes * self.cells)
        self.to_plain = self._join(in_case[:, :1], self.cells)

    def _join(self, columns: IntArray, size: int) -> csr_matrix:
        """The sum of the entries (e,) in each of so many cells, with the cells (e, c) of every entry."""
        rows = np.repeat(np.arange(len(columns)), columns.shape[1])
        return csr_matrix((np.ones(columns.size), (rows, columns.ravel())), shape=(len(columns), size))

    @property
    def bytes_each(self) -> int:
        """What a resample needs while it is fitted: some arrays of classes, changes and cells."""
        return 8 * self.cells * (6 * self.k + 6 * self.changes)

    @property
    def work(self) -> int:
        """Operations of a fit, about."""
        return self.cells * (self.k + self.changes) ** 2

    def redraw(self, resamples: int, rng: np.random.Generator) -> IntArray:
        """Entries (r, e) of resampled held-out instances."""
        drawn = []
        for row in self.fine:
            shares = row.toarray().ravel()
            total = int(shares.sum())
            drawn.append(rng.multinomial(total, shares / total, size=resamples)[:, row.indices])
        return np.concatenate(drawn, axis=1)

    def fit(self, bags: IntArray, entries: FloatArray | IntArray) -> _Fits:
        """Fit the mixture and the changes: (r, j), (r, e)."""
        n = bags.sum(axis=1)[:, None]
        r, k = len(entries), self.k
        plain = (entries @ self.to_class).reshape(r, k, self.cells)
        sizes = plain.sum(axis=2, keepdims=True)
        plain /= sizes
        observed = bags / n
        prevalences = np.full((r, k), 1 / k)
        amounts = np.zeros((r, self.changes))
        slopes = np.empty((r, 0, self.cells))
        sums = np.r_[np.ones(k), np.zeros(self.changes)][:, None]
        for _ in range(STEPS):
            variance = _variance(prevalences, plain, sizes, n)
            if self.changes:
                mixed = entries * (prevalences / sizes[..., 0])[:, self.owner]
                slopes = (mixed @ self.to_changed).reshape(r, self.changes, self.cells)
                slopes -= (mixed @ self.to_plain)[:, None]
            columns = np.concatenate([plain, slopes], axis=1)
            weighted = columns / variance[:, None]
            quadratic = weighted @ columns.swapaxes(1, 2)
            # The ridge splits the weight evenly between classes with the same distribution.
            quadratic += 1e-9 * np.trace(quadratic, axis1=1, axis2=2)[:, None, None] * np.eye(len(sums))
            linear = weighted @ observed[..., None]
            both = np.linalg.solve(quadratic, np.concatenate([linear, np.broadcast_to(sums, linear.shape)], axis=2))
            free, one = both[..., 0], both[..., 1]
            free = free - (free[:, :k].sum(axis=1, keepdims=True) - 1) / one[:, :k].sum(axis=1, keepdims=True) * one
            prevalences, amounts = project(free[:, :k]), np.clip(free[:, k:], 0, MAX_FOLD_GAP / SMALL)
        expected = np.maximum(_mixed(prevalences, plain) + np.einsum("rc,rcj->rj", amounts, slopes), 0)
        return _Fits(prevalences, expected, observed - expected, _variance(prevalences, plain, sizes, n))


def _normalised(posteriors: FloatArray) -> FloatArray:
    return posteriors / posteriors.sum(axis=1, keepdims=True)


def _mixed(prevalences: FloatArray, shares: FloatArray) -> FloatArray:
    """Shares of mixtures per cell: (r, k), (r, k, j) -> (r, j)."""
    return np.einsum("rk,rkj->rj", prevalences, shares)


def _variance(prevalences: FloatArray, shares: FloatArray, sizes: FloatArray, n: IntArray) -> FloatArray:
    """Variance of the residuals per cell, from sampling the bag and the held-out instances."""
    expected = _mixed(prevalences, shares)
    held_out_variance = _mixed(prevalences**2, shares / sizes)
    # Half an instance is added, so that an empty cell has a positive variance.
    rare = np.einsum("rk,rk->r", prevalences**2, 0.5 / sizes[..., 0] ** 2)[:, None] + 0.5 / n**2
    return (expected + n * held_out_variance) / n + rare


def _rough_mixture(bag: FloatArray, held_out: FloatArray, codes: IntArray) -> FloatArray:
    """Weight of each held-out instance (m,) in a mixture with the mean posteriors of the bag."""
    k = held_out.shape[1]
    counts = np.bincount(codes, minlength=k)
    means = np.array([held_out[codes == c].mean(axis=0) for c in range(k)])
    prevalences = project(np.linalg.lstsq(means.T, bag.mean(axis=0), rcond=None)[0])
    # Each class keeps some weight, so that it has cells.
    prevalences = (prevalences + 0.1 / k) / 1.1
    return (prevalences / counts)[codes]


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """A partition of posterior space: by the most probable class, and by its posterior."""

    edges: tuple[FloatArray, ...]  # of the posterior, for each class
    firsts: IntArray  # number of the first cell of each class

    @property
    def size(self) -> int:
        return int(self.firsts[-1] + len(self.edges[-1]) + 1)

    @classmethod
    def fit(cls, held_out: FloatArray, weights: FloatArray, size: int) -> "_Cells":
        """About `size` cells of equal weight."""
        k = held_out.shape[1]
        best = held_out.argmax(axis=1)
        edges = []
        for c in range(k):
            inside = best == c
            cells = max(1, round(size * float(weights[inside].sum())))
            order = np.argsort(held_out[inside, c], kind="stable")
            values, heights = held_out[inside, c][order], weights[inside][order].cumsum()
            if len(values):
                cuts = np.searchsorted(heights, heights[-1] * np.arange(1, cells) / cells)
                edges.append(np.unique(values[np.minimum(cuts, len(values) - 1)]))
            else:
                edges.append(np.empty(0))
        return cls(tuple(edges), np.cumsum([0, *(len(cut) + 1 for cut in edges[:-1])]))

    def of(self, posteriors: FloatArray) -> IntArray:
        """The cell of each instance: (n, k) -> (n,)."""
        best = posteriors.argmax(axis=1)
        cells = np.empty(len(posteriors), dtype=np.intp)
        for c, cuts in enumerate(self.edges):
            inside = best == c
            cells[inside] = self.firsts[c] + np.searchsorted(cuts, posteriors[inside, c], side="right")
        return cells

    def cumulated(self, residual: FloatArray) -> FloatArray:
        """Mean square of residuals, cumulated from the most confident cell of each class: (r, j) -> (r,)."""
        ends = [*self.firsts[1:].tolist(), self.size]
        parts = [residual[:, first:end][:, ::-1].cumsum(axis=1) for first, end in zip(self.firsts, ends, strict=True)]
        squares: FloatArray = np.concatenate(parts, axis=1) ** 2
        return squares.mean(axis=1)

    def range_of(self, cell: int) -> tuple[int, float, float]:
        """The class of a cell, and the range of its posterior."""
        c = int(np.searchsorted(self.firsts, cell, side="right") - 1)
        cuts = np.r_[1 / len(self.edges), self.edges[c], 1.0]
        at = cell - int(self.firsts[c])
        return c, float(cuts[at]), float(cuts[at + 1])
