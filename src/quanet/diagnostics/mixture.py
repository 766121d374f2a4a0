r"""Is a bag a mixture of the classes as training knew them? A goodness-of-fit test for prior shift.

Under prior shift a bag's posteriors are distributed as :math:`\sum_c p_c f_c`, with the densities :math:`f_c` of
held-out training instances, for some prevalences p. Both sides are counted in cells of posterior space; the p that
fits best is found, and what is left over is compared with what is left over in bags that are such mixtures.
"""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.simplex import project

STEPS = 4  # of reweighted least squares; the fit moves by less than its error long before


@dataclass(frozen=True, slots=True, eq=False)
class MixtureFit:
    """How well a mixture of the classes explains a bag.

    Attributes
    ----------
    p_value : how often a bag that is such a mixture fits as badly.
    statistic : Cramér-von Mises distance of the bag from the best mixture.
    prevalences : (k,) of that mixture.
    worst : where the bag differs most: the most probable class, and from where to where its posterior lies.
    surplus : how many instances more than expected are there, as a share of the bag.
    """

    p_value: float
    statistic: float
    prevalences: FloatArray
    worst: tuple[int, float, float]
    surplus: float


def mixture_test(
    bag: FloatArray, held: FloatArray, codes: IntArray, *, resamples: int = 999, rng: np.random.Generator
) -> MixtureFit:
    r"""Test whether a bag is a mixture of the held-out classes: (n, k), (m, k), (m,) -> a p-value.

    Prevalences are those of the least weighted distance,

    .. math:: \hat p = \arg\min_p \sum_j \frac{(b_j - \sum_c p_c h_{cj})^2}{(q_j + n \sum_c p_c^2 h_{cj} / m_c) / n},
              \qquad q = \sum_c p_c h_c

    with shares b of the bag's n instances and :math:`h_c` of a class's :math:`m_c` held-out ones in cells j. The
    statistic is that of Cramér and von Mises, the sum of squares of what is left over, cumulated from the surest
    instances of every predicted class on: drift moves neighbouring cells together, which a sum over single cells hardly
    sees. Its distribution comes from a parametric bootstrap that draws the bag and the held-out part anew, all at once.

    Parameters
    ----------
    bag : its posteriors.
    held, codes : posteriors of held-out training instances, and their classes.
    resamples : of the bootstrap.
    rng : of the bootstrap.

    References
    ----------
    Z. Lipton, Y.-X. Wang and A. Smola, "Detecting and correcting for label shift with black box predictors", 2018, for
    the assumption; B. Efron and R. Tibshirani, "An introduction to the bootstrap", 1993, chapter 16.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> held, codes = np.repeat([[0.9, 0.1], [0.2, 0.8]], 500, axis=0), np.repeat([0, 1], 500)
    >>> held = np.clip(held + rng.normal(scale=0.05, size=(1000, 1)) * [1, -1], 0, 1)
    >>> mixture_test(held[250:600], held, codes, rng=rng).p_value > 0.05
    True
    >>> mixture_test(np.full((350, 2), 0.5), held, codes, rng=rng).p_value
    0.001
    """
    n, k = bag.shape
    cells = _Cells.fit(held, _rough_mixture(bag, held, codes), max(2 * k, round(2 * n**0.4)))
    counted = np.bincount(cells.of(bag), minlength=cells.size)
    classes = np.array([np.bincount(cells.of(held[codes == c]), minlength=cells.size) for c in range(k)])
    prevalences, left, distances = _fit(counted[None], classes[None])
    shares = classes / classes.sum(axis=1, keepdims=True)
    expected = prevalences[0] @ shares
    drawn = rng.multinomial(n, expected / expected.sum(), size=resamples)
    redrawn = np.stack(
        [rng.multinomial(int(row.sum()), row / row.sum(), size=resamples) for row in classes.astype(float)], axis=1
    )
    by_chance = cells.cumulated(_fit(drawn, redrawn)[1])
    statistic = float(cells.cumulated(left)[0])
    at = int(distances[0].argmax())
    return MixtureFit(
        p_value=float((1 + (by_chance >= statistic - 1e-12).sum()) / (1 + resamples)),
        statistic=n * statistic,
        prevalences=prevalences[0],
        worst=cells.range_of(at),
        surplus=float(counted[at] / n - expected[at]),
    )


def _fit(bags: IntArray, held: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The best mixture of every resample, what it leaves over by cell, and that squared in units of its variance.

    (r, j), (r, k, j) -> (r, k), (r, j), (r, j).
    """
    n = bags.sum(axis=1)[:, None]
    sizes = held.sum(axis=2, keepdims=True)
    shares = held / sizes
    observed = bags / n
    k = held.shape[1]
    prevalences = np.full((len(bags), k), 1 / k)
    for _ in range(STEPS):
        variance = _variance(prevalences, shares, sizes, n)
        weighted = shares / variance[:, None]
        quadratic = weighted @ shares.swapaxes(1, 2)
        # Classes that look alike in the cells share what they cannot tell apart.
        quadratic += 1e-9 * np.trace(quadratic, axis1=1, axis2=2)[:, None, None] * np.eye(k)
        linear = weighted @ observed[..., None]
        both = np.linalg.solve(quadratic, np.concatenate([linear, np.ones_like(linear)], axis=2))
        free, ones = both[..., 0], both[..., 1]
        free = free - (free.sum(axis=1, keepdims=True) - 1) / ones.sum(axis=1, keepdims=True) * ones
        prevalences = project(free)
    residual = observed - np.einsum("rk,rkj->rj", prevalences, shares)
    return prevalences, residual, residual**2 / _variance(prevalences, shares, sizes, n)


def _variance(prevalences: FloatArray, shares: FloatArray, sizes: IntArray, n: IntArray) -> FloatArray:
    """Of the shares that are left over, by cell: the bag's chance and the held-out part's."""
    expected = np.einsum("rk,rkj->rj", prevalences, shares)
    of_held = np.einsum("rk,rkj->rj", prevalences**2, shares / sizes)
    # A cell that no held-out instance of a class is in may still have some: half an instance keeps it from infinity.
    rare = np.einsum("rk,rk->r", prevalences**2, 0.5 / sizes[..., 0] ** 2)[:, None] + 0.5 / n**2
    return (expected + n * of_held) / n + rare


def _rough_mixture(bag: FloatArray, held: FloatArray, codes: IntArray) -> FloatArray:
    """Weight of every held-out instance in a mixture like the bag: (m,), by the mean posteriors alone."""
    k = held.shape[1]
    counts = np.bincount(codes, minlength=k)
    means = np.array([held[codes == c].mean(axis=0) for c in range(k)])
    prevalences = project(np.linalg.lstsq(means.T, bag.mean(axis=0), rcond=None)[0])
    # Every class keeps some weight, so that no cell is built without it.
    prevalences = (prevalences + 0.1 / k) / 1.1
    return (prevalences / counts)[codes]


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Posterior space cut by the most probable class, and there by how probable it is."""

    edges: tuple[FloatArray, ...]  # of every class's posterior
    firsts: IntArray  # number of every class's first cell

    @property
    def size(self) -> int:
        return int(self.firsts[-1] + len(self.edges[-1]) + 1)

    @classmethod
    def fit(cls, held: FloatArray, weights: FloatArray, size: int) -> "_Cells":
        """About `size` cells of equal weight."""
        k = held.shape[1]
        best = held.argmax(axis=1)
        edges = []
        for c in range(k):
            inside = best == c
            cells = max(1, round(size * float(weights[inside].sum())))
            order = np.argsort(held[inside, c], kind="stable")
            values, heights = held[inside, c][order], weights[inside][order].cumsum()
            if len(values):
                cuts = np.searchsorted(heights, heights[-1] * np.arange(1, cells) / cells)
                edges.append(np.unique(values[np.minimum(cuts, len(values) - 1)]))
            else:
                edges.append(np.empty(0))
        return cls(tuple(edges), np.cumsum([0, *(len(cut) + 1 for cut in edges[:-1])]))

    def of(self, posteriors: FloatArray) -> IntArray:
        """The cell of every instance: (n, k) -> (n,)."""
        best = posteriors.argmax(axis=1)
        cells = np.empty(len(posteriors), dtype=np.intp)
        for c, cuts in enumerate(self.edges):
            inside = best == c
            cells[inside] = self.firsts[c] + np.searchsorted(cuts, posteriors[inside, c], side="right")
        return cells

    def cumulated(self, left: FloatArray) -> FloatArray:
        """Mean square of what is left over, summed from the surest cell of every class on: (r, j) -> (r,)."""
        ends = [*self.firsts[1:].tolist(), self.size]
        parts = [left[:, first:end][:, ::-1].cumsum(axis=1) for first, end in zip(self.firsts, ends, strict=True)]
        squares: FloatArray = np.concatenate(parts, axis=1) ** 2
        return squares.mean(axis=1)

    def range_of(self, cell: int) -> tuple[int, float, float]:
        """Class, and from where to where its posterior lies in a cell."""
        c = int(np.searchsorted(self.firsts, cell, side="right") - 1)
        cuts = np.r_[1 / len(self.edges), self.edges[c], 1.0]
        at = cell - int(self.firsts[c])
        return c, float(cuts[at]), float(cuts[at + 1])
