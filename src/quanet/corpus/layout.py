"""What rows of a state look like, how many are kept, and what is known exactly about those that are not.

If only a sample of the rows is kept, some numbers of each row are summed exactly over all rows: control variates of the
sample. Methods read bags through a few kinds of numbers, such as likelihoods and histograms. If the weights of a sample
are calibrated on these sums (`calibrate_samples`), its estimate is nearly that of all rows.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray
from quanet.corpus.fixed_point import COUNTS, VALUES, WEIGHTED, FixedPoint

MOST_ROWS = 2**17  # kept of a group
# Kept of one among very many groups, and of all groups unless they are very many: cells of methods that read means or a
# likelihood, which are precise with few; cells of other methods; rows of a sample, of all groups in bytes
# (benchmarks/results/summaries.md).
SMOOTH_ROWS, ALL_SMOOTH_ROWS = 2**8, 2**20
OTHER_ROWS, ALL_OTHER_ROWS = 2**13, 2**23
SAMPLED_ROWS, ALL_SAMPLED_BYTES = 2**15, 2**31
OF_ROW = 24  # bytes of a row of a sample, besides its numbers
MOST_CONTROLS = 2**25  # control variates of the sample of a group, which a reader computes at once
FEW_CLASSES = 2  # whose posteriors are kept as cells; a lattice of more classes would be too coarse
# Sums by content, of a group above the cap and of all groups: with 64, copies are seen that halve the effective size.
MOST_SUMS, FEWEST_SUMS, ALL_SUMS = 2**14, 2**6, 2**22
MOST_SQUARED = 5  # classes of which products of posteriors are summed for methods without likelihoods

# Prevalences at which posteriors are summed lie between the centre and corners, or sides without one class; this far
# from the centre. At the first ones, their products are summed, too.
TO_CORNERS_SQUARED = 0.8
TO_CORNERS, TO_SIDES = 0.99, 0.97
MOST_CLASSES = 10  # of more, posteriors are summed at the centre alone: there would be too many sums
# Where the bins of histograms begin: those of published methods, and finer ones near 0 and 1, where posteriors are.
NEAR_0 = np.array([1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2])
EDGES = np.concatenate([NEAR_0, np.arange(1, 32) / 32, 1 - NEAR_0[::-1]])
# The same for numbers of any size; whole ones are numbers of bins.
FEATURE_EDGES = np.concatenate([[-4, -3, -2, -1.5, -1, -0.5, -0.25, 0], EDGES, [1, 1.5], np.arange(2, 17), [32]])
MOST_BINS = 1500  # of all columns
FEW_EDGES = np.array([0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])  # of posteriors, to sum embeddings by
OTHER_PREVALENCES = (0.05, 0.95)  # of two classes


@dataclass(frozen=True, slots=True)
class Layout:
    """What rows look like.

    Attributes
    ----------
    d : columns.
    classes : the first columns are their posteriors; 0 if rows are no posteriors.
    prior : training prevalences of the classes.
    weighted : whether instances have weights.
    smooth : whether the method reads means or a likelihood.
    own : what the last columns are, which the method computes from the others: "likelihoods" of the classes, or numbers
        of which it reads the "means"; "" if there are none.
    own_columns : how many.
    """

    d: int
    classes: int
    prior: tuple[float, ...]
    weighted: bool
    smooth: bool
    own: str = ""
    own_columns: int = 0

    @property
    def inputs(self) -> int:
        """How many columns are what the classifier says: those before the method's own."""
        return self.d - self.own_columns

    @property
    def has_cells(self) -> bool:
        """Whether rows above the cap are kept as cells, with the mean of each; otherwise as a sample."""
        return 0 < self.classes <= FEW_CLASSES and self.inputs == self.classes

    @property
    def sums(self) -> FixedPoint:
        """How sums over rows are written; features may be large."""
        return WEIGHTED if self.weighted or not self.classes or self.inputs > self.classes else VALUES

    @property
    def totals(self) -> FixedPoint:
        """How sums of weights are written."""
        return WEIGHTED if self.weighted else COUNTS

    @property
    def total_columns(self) -> int:
        """How many sums of weights a cell has: weights and their squares, or none if all instances count alike."""
        return 2 if self.weighted else 0

    def most_rows(self, groups: int) -> int:
        """How many rows are kept of each of so many groups.

        Examples
        --------
        >>> smooth = Layout(2, 2, (0.5, 0.5), weighted=False, smooth=True)
        >>> [smooth.most_rows(groups) for groups in (1, 10, 1000, 100_000)]
        [131072, 104857, 1048, 256]
        """
        groups = max(groups, 1)
        if self.has_cells:
            least, every = (SMOOTH_ROWS, ALL_SMOOTH_ROWS) if self.smooth else (OTHER_ROWS, ALL_OTHER_ROWS)
            return int(np.clip(every // groups, least, MOST_ROWS))
        every, most = ALL_SAMPLED_BYTES // (4 * self.inputs + OF_ROW), MOST_CONTROLS // max(self.controls, 1)
        return int(min(max(min(every // groups, most), SAMPLED_ROWS), MOST_ROWS))

    def copy_sums(self, groups: int) -> int:
        """How many sums by content are kept of each of so many groups above the cap: a power of two.

        Examples
        --------
        >>> smooth = Layout(2, 2, (0.5, 0.5), weighted=False, smooth=True)
        >>> [smooth.copy_sums(groups) for groups in (1, 1000, 100_000)]
        [16384, 4096, 64]
        """
        many = ALL_SUMS // (max(groups, 1) * self.totals.limbs)
        return int(np.clip(2 ** (max(many, 1).bit_length() - 1), FEWEST_SUMS, MOST_SUMS))

    @property
    def controls(self) -> int:
        """The number of control variates; none if cells are kept, whose sums are exact anyway."""
        return sum(_count_controls(self))

    @property
    def main_controls(self) -> int:
        """How many of them, the first ones, the estimate depends on most: those that are not histograms."""
        return _count_controls(self)[0]

    def control_variates(self, rows: NDArray[np.floating]) -> FloatArray:
        """What is summed exactly over rows (n, d) of which only a sample is kept: (controls, n).

        Posteriors, predicted classes, and what the method reads besides: nothing, means or likelihoods of its own, or
        else likelihoods and histograms. Of features, values, squares, scores and histograms.
        """
        return np.vstack([*self.main_variates(rows), *self._histograms(rows)])

    def main_variates(self, rows: NDArray[np.floating]) -> list[FloatArray]:
        """The first of them, in parts: all but histograms."""
        values = np.asarray(rows, dtype=float)
        if self.has_cells or not self.d:
            return [np.empty((0, len(values)))]
        inputs, own, k = values[:, : self.inputs], values[:, self.inputs :], self.classes
        if not k:
            return [inputs.T, inputs.T**2, *two_class_scores(inputs)]
        found = [inputs.T, np.eye(k)[inputs[:, :k].argmax(axis=1)].T]
        if self.own == "means":
            found.append(own.T)
        elif self.own == "likelihoods":
            found += scores(own, products=True)
        elif not self.smooth:
            found += scores(self.likelihoods_of(values), products=k <= MOST_SQUARED)
        return found

    def _histograms(self, rows: NDArray[np.floating]) -> list[FloatArray]:
        if self.has_cells or not self.d or self.smooth or self.own:
            return []
        values, k = np.asarray(rows, dtype=float), self.classes
        if not k:
            return histograms(values, [FEATURE_EDGES] * self.d)
        embeddings = values[:, k : self.inputs]
        bins = histograms(values[:, :k], [np.unique([*EDGES, prior]) for prior in self.prior])
        return bins + embedded(values[:, :k], embeddings)

    def likelihoods_of(self, values: FloatArray) -> FloatArray:
        """Likelihoods (n, k) of rows (n, d): the method's own, or posteriors over the prior."""
        if self.own == "likelihoods":
            return values[:, self.inputs :]
        return values[:, : self.classes] / np.maximum(self.prior, 1e-9)


@cache
def _count_controls(layout: Layout) -> tuple[int, int]:
    """How many control variates are no histograms, and how many are."""
    none = np.empty((0, layout.d))
    main, every = sum(map(len, layout.main_variates(none))), len(layout.control_variates(none))
    return main, every - main


def scores(likelihoods: FloatArray, *, products: bool) -> list[FloatArray]:
    r"""Posteriors (k - 1, n) that likelihoods L (n, k) give at a few prevalences a; products of all pairs at some.

    .. math:: r_c = \frac{a_c L_c}{\sum_j a_j L_j}

    An estimate by maximum likelihood depends on the rows mainly through these, and through their products, which say
    how they change with a.
    """
    k, by_class = likelihoods.shape[1], likelihoods.T.copy()
    squared, plain = _references(k, products=products)
    found = []
    for prevalence in squared:
        posteriors = _posteriors_at(prevalence, by_class)
        found += [posteriors[first:] * posteriors[first] for first in range(k)]
    return found + [_posteriors_at(prevalence, by_class)[1:] for prevalence in plain]


def _references(k: int, *, products: bool) -> tuple[FloatArray, FloatArray]:
    """The prevalences at which products of posteriors are summed (m, k), and those of posteriors alone."""
    centre, corners = np.full((1, k), 1 / k), np.eye(k)
    if k > MOST_CLASSES:
        return centre[:0], centre
    near = [(corners, TO_CORNERS_SQUARED), (corners, TO_CORNERS), ((1 - corners) / (k - 1), TO_SIDES)]
    around, *plain = (far * ends + (1 - far) * centre for ends, far in near)
    if products:
        return np.vstack([centre, around]), np.vstack(plain)
    return centre[:0], np.vstack([centre, around, *plain])


def _posteriors_at(prevalence: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """Posteriors (k, n) at a prevalence (k,). A row is never rounded according to the rows next to it."""
    joint = likelihoods * prevalence[:, None]
    return joint / joint.sum(axis=0)


def histograms(columns: FloatArray, edges: list[FloatArray]) -> list[FloatArray]:
    """Whether each row is in each bin of each column (n, c) but the last bin; nothing if there are too many bins.

    Examples
    --------
    >>> histograms(np.array([[0.1], [0.6], [0.9]]), [np.array([0.5, 0.75])])[0]
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    if sum(map(len, edges)) > MOST_BINS:
        return []
    numbers = (np.searchsorted(starts, column, side="right") for column, starts in zip(columns.T, edges, strict=True))
    return [
        (bins == np.arange(len(starts))[:, None]).astype(float) for bins, starts in zip(numbers, edges, strict=True)
    ]


def two_class_scores(columns: FloatArray) -> list[FloatArray]:
    """Posteriors of two classes at two prevalences, if columns (n, c) are posteriors of one class at equal prevalences.

    Members of ensembles have such columns. Other numbers are clipped to [0, 1], which does no harm.
    """
    values = np.clip(columns, 0, 1).T
    return [share * values / (share * values + (1 - share) * (1 - values)) for share in OTHER_PREVALENCES]


def embedded(posteriors: FloatArray, embeddings: FloatArray) -> list[FloatArray]:
    """Squares of embeddings (n, e), and embeddings in each bin of each posterior (n, k) unless these are too many."""
    if not embeddings.shape[1]:
        return []
    found = [embeddings.T**2]
    if posteriors.shape[1] * len(FEW_EDGES) * embeddings.shape[1] <= MOST_BINS:
        bins = np.vstack(histograms(posteriors, [FEW_EDGES] * posteriors.shape[1]))
        found += [bins * column for column in embeddings.T]
    return found
