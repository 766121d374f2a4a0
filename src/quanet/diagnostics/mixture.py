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
# How far a classifier fitted to all data may be ahead of those of folds: log odds of an instance's true class are
# larger by this at most, and all log odds by this share. Designed on halves of IMDB's training part: up to 0.25 there.
AHEAD = 0.35
SMALL = 0.1  # the change that a slope is measured by


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
    bag: FloatArray,
    held: FloatArray,
    codes: IntArray,
    *,
    refitted: bool = False,
    resamples: int = 999,
    rng: np.random.Generator,
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
    refitted : whether the bag's classifier was fitted to all data, and those of the held-out posteriors to parts of it,
        as in cross-fitting. With more data it is a little better at every class; that is no drift, and is fitted too,
        within bounds.
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
    cells = _Cells.fit(held, _rough_mixture(bag, held, codes), max(4 * k, round(2 * n**0.4)))
    counted = np.bincount(cells.of(bag), minlength=cells.size)
    model = _Model(cells, held, codes, refitted=refitted)
    fit = model.fit(counted[None], model.fine[None])
    drawn = rng.multinomial(n, fit.expected[0] / fit.expected[0].sum(), size=resamples)
    redrawn = np.stack(
        [rng.multinomial(int(row.sum()), row / row.sum(), size=resamples) for row in model.fine], axis=1
    ).astype(float)
    by_chance = cells.cumulated(model.fit(drawn, redrawn).left)
    statistic = float(cells.cumulated(fit.left)[0])
    worst = int((fit.left[0] ** 2 / fit.variance[0]).argmax())
    return MixtureFit(
        p_value=float((1 + (by_chance >= statistic - 1e-12).sum()) / (1 + resamples)),
        statistic=n * statistic,
        prevalences=fit.prevalences[0],
        worst=cells.range_of(worst),
        surplus=float(fit.left[0, worst]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fits:
    """The best mixture of every resample: prevalences (r, k); by cell (r, j) shares expected, left over, variance."""

    prevalences: FloatArray
    expected: FloatArray
    left: FloatArray
    variance: FloatArray


class _Model:
    """Held-out instances counted in cells, as they are and after small changes of their posteriors.

    Two of them that share their cell in every case are alike, so they are counted, and drawn anew, together.
    """

    def __init__(self, cells: "_Cells", held: FloatArray, codes: IntArray, *, refitted: bool) -> None:
        k = held.shape[1]
        cases = [held]
        if refitted:
            truth = np.eye(k)[codes]
            cases.append(_normalised(held ** (1 + SMALL)))
            cases += [_normalised(held * np.exp(SMALL * truth * (np.arange(k) == c))) for c in range(k)]
        numbers = np.stack([cells.of(case) for case in cases], axis=1)
        alike, groups = np.unique(numbers, axis=0, return_inverse=True)
        self.fine = np.array(  # (k, groups)
            [np.bincount(groups.ravel()[codes == c], minlength=len(alike)) for c in range(k)], dtype=float
        )
        self.joins = [np.eye(cells.size)[column] for column in alike.T]  # groups to cells, in every case

    def fit(self, bags: IntArray, fine: FloatArray) -> _Fits:
        """The mixture, and the changes, that leave least over: (r, j), (r, k, groups)."""
        n = bags.sum(axis=1)[:, None]
        sizes = fine.sum(axis=2, keepdims=True)
        plain, *changed = [fine @ join / sizes for join in self.joins]
        observed = bags / n
        r, k = fine.shape[:2]
        prevalences = np.full((r, k), 1 / k)
        amounts = np.zeros((r, len(changed)))
        slopes = np.empty((r, 0, plain.shape[2]))
        sums = np.r_[np.ones(k), np.zeros(len(changed))][:, None]
        for _ in range(STEPS):
            variance = _variance(prevalences, plain, sizes, n)
            if changed:
                slopes = np.stack([_mixed(prevalences, one - plain) for one in changed], axis=1)
            columns = np.concatenate([plain, slopes], axis=1)
            weighted = columns / variance[:, None]
            quadratic = weighted @ columns.swapaxes(1, 2)
            # Classes that look alike in the cells share what they cannot tell apart.
            quadratic += 1e-9 * np.trace(quadratic, axis1=1, axis2=2)[:, None, None] * np.eye(len(sums))
            linear = weighted @ observed[..., None]
            both = np.linalg.solve(quadratic, np.concatenate([linear, np.broadcast_to(sums, linear.shape)], axis=2))
            free, one = both[..., 0], both[..., 1]
            free = free - (free[:, :k].sum(axis=1, keepdims=True) - 1) / one[:, :k].sum(axis=1, keepdims=True) * one
            prevalences, amounts = project(free[:, :k]), np.clip(free[:, k:], 0, AHEAD / SMALL)
        expected = np.maximum(_mixed(prevalences, plain) + np.einsum("rc,rcj->rj", amounts, slopes), 0)
        return _Fits(prevalences, expected, observed - expected, _variance(prevalences, plain, sizes, n))


def _normalised(posteriors: FloatArray) -> FloatArray:
    return posteriors / posteriors.sum(axis=1, keepdims=True)


def _mixed(prevalences: FloatArray, shares: FloatArray) -> FloatArray:
    """Shares of mixtures by cell: (r, k), (r, k, j) -> (r, j)."""
    return np.einsum("rk,rkj->rj", prevalences, shares)


def _variance(prevalences: FloatArray, shares: FloatArray, sizes: FloatArray, n: IntArray) -> FloatArray:
    """Of the shares that are left over, by cell: the bag's chance and the held-out part's."""
    expected = _mixed(prevalences, shares)
    of_held = _mixed(prevalences**2, shares / sizes)
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
