"""What a bag looks like, in numbers that a mixture of classes mixes: histograms, moments, distances, kernels.

A representation does its work in two steps, as quantifiers do: `encode` is done once for every instance of a pool,
`summarise` for every bag. Columns are posteriors, of which two classes need one, or features.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

from quanet import kernels
from quanet.arrays import FloatArray, IntArray
from quanet.methods.counting import mean_posterior
from quanet.parameters import Constraint, Constraints, check_parameters, instance_of, none_or, one_of, positive, whole

GAMMA = none_or(positive(finite=True))
METRIC = one_of("manhattan", "euclidean")
TOGETHER = 2**22  # comparisons made at a time


class Representation(BaseEstimator, ABC):
    """Base of the representations. `fit` learns from columns (m, c) and classes (m,), all of them among the latter."""

    blocks_: list[tuple[int, int]] | None = None  # parts (first, last) that are matched each for itself; None: one part

    @property
    def needs_both(self) -> bool:
        """Whether two classes need the posteriors of both."""
        return False

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:  # noqa: ARG002
        """Learn what `encode` needs."""
        check_parameters(self)
        return self

    @abstractmethod
    def encode(self, columns: FloatArray) -> FloatArray:
        """One row for every instance: (n, c) -> (n, d)."""

    def summarise(self, rows: FloatArray) -> FloatArray:
        """One vector for every bag: (..., n, d) -> (..., J); by default the mean row."""
        return mean_posterior(rows)

    def templates(self, columns: FloatArray, codes: IntArray) -> FloatArray:
        """What each class looks like: (m, c), (m,) -> (J, k)."""
        rows = self.encode(columns)
        return np.stack([self.summarise(rows[codes == c]) for c in range(int(codes.max()) + 1)], axis=1)


REPRESENTATION = instance_of(Representation, "a representation of quanet").such_as("Histogram(8)")


def _are_bin_numbers(bins: Any) -> bool:
    sizes = np.atleast_1d(np.asarray(bins))
    return sizes.ndim == 1 and sizes.dtype.kind in "iu" and sizes.size > 0 and sizes.min() >= 2


def _is_span(span: Any) -> bool:
    low, high = span
    return bool(low < high)


BINS = Constraint("a whole number of at least 2, or a list of them", _are_bin_numbers)


class Histogram(Representation):
    r"""Histogram: shares of the instances in bins of equal width, column by column.

    .. math:: h_j = \frac1n \sum_{i=1}^n \big[ x_i \in \text{bin } j \big]

    Use it in `Matching` and `MatchingX`.

    Parameters
    ----------
    bins : how many; or several numbers, which are matched each for itself and whose median is the estimate.
    cumulative : whether a bin counts the ones below it too.
    span : from where to where; None for the range of the training data. What lies outside is in the first or last bin.

    See Also
    --------
    HDy, DyS, DMy : published methods that match histograms.

    Examples
    --------
    >>> histogram = Histogram(4).fit(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> histogram.summarise(histogram.encode(np.array([[0.1], [0.3], [0.4], [1.0]])))
    array([0.25, 0.5 , 0.  , 0.25])
    """

    allowed_values: ClassVar[Constraints] = {
        "bins": BINS,
        "span": none_or(Constraint("two numbers, the smaller one first", _is_span)),
    }

    def __init__(
        self, bins: int | Sequence[int] = 8, *, cumulative: bool = False, span: tuple[float, float] | None = (0.0, 1.0)
    ) -> None:
        self.bins = bins
        self.cumulative = cumulative
        self.span = span

    @property
    def needs_both(self) -> bool:
        """Bins add up from below, so that the other class's do so from above."""
        return self.cumulative

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Lay the bins over the columns."""
        super().fit(columns, codes)
        sizes = np.atleast_1d(np.asarray(self.bins))
        spans = [self.span] * columns.shape[1] if self.span is not None else _ranges(columns)
        inner = [[np.linspace(low, high, size + 1)[1:-1] for size in sizes] for low, high in spans]
        # All bin numbers at once: cells between any two neighbouring edges are counted, and then added up to bins.
        self.edges_ = [np.unique(np.concatenate(one)) for one in inner]
        self.starts_ = np.cumsum([0, *(len(edges) + 1 for edges in self.edges_)])
        ends = np.cumsum(sizes * columns.shape[1])
        self.blocks_ = list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))
        bins = np.empty((len(sizes), int(self.starts_[-1])), dtype=np.intp)
        for column, (edges, one) in enumerate(zip(self.edges_, inner, strict=True)):
            cells = slice(self.starts_[column], self.starts_[column + 1])
            for block, (size, cuts) in enumerate(zip(sizes, one, strict=True)):
                last = np.searchsorted(edges, cuts)  # the last cell before each cut
                home = self.blocks_[block][0] + column * size
                bins[block, cells] = home + np.searchsorted(last, np.arange(len(edges) + 1))
        self.bins_of_cells_ = bins
        return self

    def encode(self, columns: FloatArray) -> FloatArray:
        """The cell of every instance in every column: (n, c) -> (n, c)."""
        cells = [np.searchsorted(edges, columns[:, at], side="right") for at, edges in enumerate(self.edges_)]
        return np.stack(cells, axis=1).astype(float)

    def summarise(self, rows: FloatArray) -> FloatArray:
        """Shares in the bins, the bin numbers one after the other: (..., n, c) -> (..., J)."""
        n, columns = rows.shape[-2:]
        bags = np.ascontiguousarray(rows).reshape(-1, n, columns)
        counts = np.zeros((len(bags), int(self.starts_[-1])))
        kernels.count_cells(bags, self.starts_[:-1], counts)
        if len(self.bins_of_cells_) > 1:
            cells, counts = counts, np.zeros((len(bags), self._blocks()[-1][1]))
            kernels.add_cells(cells, self.bins_of_cells_, counts)
        counts /= n
        if self.cumulative:
            parts = [counts[:, a:b].reshape(len(bags), columns, -1).cumsum(axis=2) for a, b in self._blocks()]
            counts = np.concatenate([part.reshape(len(bags), -1) for part in parts], axis=1)
        return counts.reshape(*rows.shape[:-2], -1)

    def _blocks(self) -> list[tuple[int, int]]:
        return self.blocks_ or []


def _ranges(columns: FloatArray) -> list[tuple[float, float]]:
    """Lowest and highest value of every column; a constant one gets some width."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    flat = high <= low
    return list(zip((low - 0.5 * flat).tolist(), (high + 0.5 * flat).tolist(), strict=True))


class Moments(Representation):
    r"""Moments: means of every column and of its powers, taken from the middle of the scale of posteriors.

    .. math:: \phi_r = \frac1n \sum_{i=1}^n (x_i - c)^r, \quad r = 1, \ldots, \text{order}

    Use it in `Matching` and `MatchingX`. With order 1, two classes and "l2", `Matching` is `SMM`.

    Parameters
    ----------
    order : the highest power.
    centre : what is subtracted first; one half treats two classes alike.

    Examples
    --------
    >>> moments = Moments(2)
    >>> moments.summarise(moments.encode(np.array([[0.2], [0.6]])))
    array([-0.1 ,  0.05])
    """

    allowed_values: ClassVar[Constraints] = {"order": whole(1)}

    def __init__(self, order: int = 1, *, centre: float = 0.5) -> None:
        self.order = order
        self.centre = centre

    def encode(self, columns: FloatArray) -> FloatArray:
        """The powers of every column: (n, c) -> (n, c order)."""
        return np.concatenate([(columns - self.centre) ** power for power in range(1, self.order + 1)], axis=1)


class Labels(Representation):
    r"""Labels: shares of the most probable classes, as `CC` counts them; for posteriors.

    .. math:: \phi_c = \frac1n \sum_{i=1}^n \big[ \arg\max_j \pi_{ij} = c \big]

    Use it in `Matching`: with "l2" it is `ACC`.

    Examples
    --------
    >>> labels = Labels()
    >>> labels.summarise(labels.encode(np.array([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])))
    array([0. , 0.5, 0.5])
    """

    def encode(self, columns: FloatArray) -> FloatArray:
        """A one at the most probable class; for two classes, whose column is the second's: (n, c) -> (n, k)."""
        if columns.shape[1] == 1:
            columns = np.column_stack([1 - columns, columns])
        return np.eye(columns.shape[1])[columns.argmax(axis=1)]


class FourierFeatures(Representation):
    r"""Random Fourier features: means whose distance is, nearly, that of kernel means [1]_.

    .. math:: z(x) = \sqrt{1 / s}\, [\cos(\Omega x), \sin(\Omega x)], \quad \Omega_{ij} \sim N(0, 2\gamma)

    Use them in `Matching` and `MatchingX` instead of a `GaussianKernel` if there are many training instances: an
    instance costs O(s), not O(m).

    Parameters
    ----------
    size : how many frequencies s, each of which gives two features.
    gamma : of the kernel :math:`\exp(-\gamma \|x - z\|^2)`; None uses the median distance of training instances.
    random_state : seed of the frequencies. With more than two classes another order of the classes meets others, so
        that estimates follow it as closely as the features follow the kernel.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Examples
    --------
    >>> features = FourierFeatures(2000, gamma=1.0).fit(np.zeros((2, 1)), np.array([0, 1]))
    >>> rows = features.encode(np.array([[0.0], [0.5]]))
    >>> float((rows[0] @ rows[1]).round(1)), float(np.exp(-0.25).round(1))
    (0.8, 0.8)
    """

    allowed_values: ClassVar[Constraints] = {"size": whole(1), "gamma": GAMMA}

    def __init__(self, size: int = 250, *, gamma: float | None = None, random_state: int = 0) -> None:
        self.size = size
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Draw the frequencies."""
        super().fit(columns, codes)
        rng = np.random.default_rng(self.random_state)
        gamma = default_gamma(columns) if self.gamma is None else float(self.gamma)
        self.frequencies_ = rng.normal(scale=np.sqrt(2 * gamma), size=(columns.shape[1], self.size))
        return self

    def encode(self, columns: FloatArray) -> FloatArray:
        """The features of every instance: (n, c) -> (n, 2 size)."""
        angles = columns @ self.frequencies_
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(self.size)


def default_gamma(columns: FloatArray) -> float:
    """A kernel's gamma by default: 1 / (2 median squared distance) of the training instances."""
    some = columns[:: max(1, len(columns) // 500)]
    squares = np.square(some[:, None] - some[None]).sum(axis=2)[np.triu_indices(len(some), 1)]
    middle = float(np.median(squares)) if len(squares) else 0.0
    return 0.5 / (middle or float(squares.mean() if len(squares) else 0.0) or 1.0)


def class_means(
    compare: Callable[[FloatArray, FloatArray], FloatArray], rows: FloatArray, centres: FloatArray, starts: IntArray
) -> FloatArray:
    """Mean comparison of every row with the centres of each class, which follow one another: (n, d) -> (n, k)."""
    sizes = np.diff(np.append(starts, len(centres)))
    means = np.empty((len(rows), len(starts)))
    together = max(1, TOGETHER // len(centres))
    for first in range(0, len(rows), together):
        part = slice(first, first + together)
        means[part] = np.add.reduceat(compare(rows[part], centres), starts, axis=1)
    means /= sizes
    return means


def by_class(columns: FloatArray, codes: IntArray) -> tuple[FloatArray, IntArray]:
    """The instances in the order of their classes, and where each class begins."""
    order = np.argsort(codes, kind="stable")
    return columns[order], np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))


class KernelMean(Representation):
    """Base of the representations that a quadratic form compares: `encode` gives a mean kernel value for each class."""

    centres_: FloatArray
    starts_: IntArray

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Keep the instances, by class."""
        check_parameters(self)
        self.centres_, self.starts_ = by_class(columns, codes)
        return self

    @abstractmethod
    def compare(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        """The kernel of every row and centre: (n, c), (m, c) -> (n, m)."""

    def encode(self, columns: FloatArray) -> FloatArray:
        """Mean kernel value of every instance with the instances of each class: (n, c) -> (n, k)."""
        return class_means(self.compare, columns, self.centres_, self.starts_)


class GaussianKernel(KernelMean):
    r"""Gaussian kernel: its mean over the instances z of each class.

    .. math:: \phi_c(x) = \frac1{m_c} \sum_{z \in \text{class } c} \exp(-\gamma \|x - z\|^2)

    In `Matching` and `MatchingX` bags are compared by the maximum mean discrepancy [1]_, whatever the divergence.

    Parameters
    ----------
    gamma : None takes 1 / (2 median squared distance) of the training instances.

    See Also
    --------
    KMM : kernel mean matching of features.

    References
    ----------
    .. [1] A. Gretton, K. M. Borgwardt, M. J. Rasch, B. Schölkopf and A. Smola, "A kernel two-sample test", Journal of
           Machine Learning Research 13, 2012.

    Examples
    --------
    >>> kernel = GaussianKernel(1.0).fit(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> kernel.encode(np.array([[0.0]]))
    array([[1. , 0.37]])
    """

    allowed_values: ClassVar[Constraints] = {"gamma": GAMMA}

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma = gamma

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Keep the instances, by class."""
        super().fit(columns, codes)
        self.gamma_ = default_gamma(columns) if self.gamma is None else float(self.gamma)
        return self

    def compare(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        """Gaussian kernel: (n, c), (m, c) -> (n, m)."""
        values = scaled_squares(rows, centres, -self.gamma_)
        return np.exp(values, out=values)


def scaled_squares(rows: FloatArray, centres: FloatArray, scale: float) -> FloatArray:
    """Squared distances times a negative number: (n, c), (m, c) -> (n, m)."""
    values = rows @ (-2 * scale * centres.T)
    values += scale * np.einsum("ij,ij->i", rows, rows)[:, None]
    values += scale * np.einsum("ij,ij->i", centres, centres)
    return np.minimum(values, 0, out=values)


class Distances(KernelMean):
    r"""Distances: minus the mean distance to the instances z of each class.

    .. math:: \phi_c(x) = -\frac1{m_c} \sum_{z \in \text{class } c} \|x - z\|

    In `Matching` and `MatchingX` bags are compared by the energy distance [1]_, whatever the divergence.

    Parameters
    ----------
    metric : "manhattan", the sum over columns, which sorting makes fast, or "euclidean".

    See Also
    --------
    EDy, EDx : energy distance of posteriors and of features.

    References
    ----------
    .. [1] G. J. Székely and M. L. Rizzo, "Energy statistics: a class of statistics based on distances", Journal of
           Statistical Planning and Inference 143, 2013.

    Examples
    --------
    >>> distances = Distances().fit(np.array([[0.0], [0.5], [1.0]]), np.array([0, 1, 1]))
    >>> distances.encode(np.array([[0.25], [0.5]]))
    array([[-0.25, -0.5 ],
           [-0.5 , -0.25]])
    """

    allowed_values: ClassVar[Constraints] = {"metric": METRIC}

    def __init__(self, metric: str = "manhattan") -> None:
        self.metric = metric

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Keep the instances, by class; each column sorted."""
        super().fit(columns, codes)
        if self.metric == "manhattan":
            self.centres_ = np.concatenate([np.sort(part, axis=0) for part in self._parts()])
        return self

    def _parts(self) -> list[FloatArray]:
        return np.split(self.centres_, self.starts_[1:])

    def compare(self, rows: FloatArray, centres: FloatArray) -> FloatArray:
        """Minus the distance: (n, c), (m, c) -> (n, m)."""
        return -cdist(rows, centres)

    def encode(self, columns: FloatArray) -> FloatArray:
        """Minus the mean distance of every instance to each class: (n, c) -> (n, k)."""
        if self.metric == "euclidean":
            return super().encode(columns)
        means = np.zeros((len(columns), len(self.starts_)))
        for c, part in enumerate(self._parts()):
            for column, values in zip(columns.T - part[0][:, None], (part - part[0]).T, strict=True):
                # Counted from one of the values, so that distances of equal values are zero without rounding.
                sums = np.concatenate([[0.0], values.cumsum()])
                below = np.searchsorted(values, column)
                # Of m values, those below x lie x - z away and the others z - x.
                means[:, c] -= (column * (2 * below - len(values)) + sums[-1] - 2 * sums[below]) / len(values)
        return means
