"""What rows of a state look like, how many are kept, and what is known exactly about those that are not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray
from quanet.state.fixed_point import COUNTS, VALUES, WEIGHTED, FixedPoint

MOST_ROWS = 2**17  # kept of a group
# Kept of one among very many groups, and of all groups unless they are very many: cells of methods that read means or a
# likelihood, which are precise with few; cells of other methods; rows of a sample, of all groups in bytes
# (benchmarks/results/summaries.md).
SMOOTH_ROWS, ALL_SMOOTH_ROWS = 2**8, 2**20
OTHER_ROWS, ALL_OTHER_ROWS = 2**13, 2**23
SAMPLED_ROWS, ALL_SAMPLED_BYTES = 2**15, 2**31
OF_ROW = 24  # bytes of a row of a sample, besides its numbers
MOST_CONTROLS = 2**25  # control variates of the sample of a group, which a reader computes at once
MOST_CLASSES = 2  # whose posteriors are kept as cells; a lattice of more classes would be too coarse
# Prevalences at which posteriors are summed lie between the centre and corners, or sides without one class; this far
# from the centre. At the first ones, their products are summed, too.
TO_CORNERS_SQUARED = 0.8
TO_CORNERS, TO_SIDES = 0.99, 0.97
MOST_SQUARED = 10  # classes; of more, there would be too many products


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
    likelihoods : whether the last columns are likelihoods of the classes, as the method computes them.
    """

    d: int
    classes: int
    prior: tuple[float, ...]
    weighted: bool
    smooth: bool
    likelihoods: bool = False

    @property
    def inputs(self) -> int:
        """How many columns the method reads: those before the likelihoods."""
        return self.d - self.classes * self.likelihoods

    @property
    def has_cells(self) -> bool:
        """Whether rows above the cap are kept as cells; otherwise as a sample."""
        return 0 < self.classes <= MOST_CLASSES

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

    @property
    def controls(self) -> int:
        """The number of control variates; none if cells are kept, whose sums are exact anyway."""
        if self.has_cells or not self.d:
            return 0
        if not self.classes:
            return 2 * self.d
        k = self.classes
        squared, plain = self._references()
        return self.inputs + k + len(squared) * (k * (k + 1) // 2) + len(plain) * (k - 1)

    def control_variates(self, rows: NDArray[np.floating]) -> FloatArray:
        r"""What is summed exactly over rows (n, d) of which only a sample is kept: (controls, n).

        Posteriors, predicted classes, and the posteriors that the likelihoods L give at a few prevalences a: an
        estimate by maximum likelihood depends on the rows mainly through these, and through their products, which say
        how they change with a. Of features, values and squares.

        .. math:: r_c = \frac{a_c L_c}{\sum_j a_j L_j}
        """
        values = np.asarray(rows, dtype=float)
        if not self.controls:
            return np.empty((0, len(values)))
        if not self.classes:
            return np.vstack([values.T, values.T**2])
        squared, plain = self._references()
        likelihoods, k = self.likelihoods_of(values).T.copy(), self.classes
        found = np.empty((self.controls, len(values)))
        found[: self.inputs] = values[:, : self.inputs].T
        at = self.inputs + k
        found[self.inputs : at] = np.eye(k)[values[:, :k].argmax(axis=1)].T
        for prevalence in squared:
            posteriors = _posteriors_at(prevalence, likelihoods)
            for first in range(k):
                np.multiply(posteriors[first:], posteriors[first], out=found[at : at + k - first])
                at += k - first
        for prevalence in plain:
            found[at : at + k - 1] = _posteriors_at(prevalence, likelihoods)[1:]
            at += k - 1
        return found

    def likelihoods_of(self, values: FloatArray) -> FloatArray:
        """Likelihoods (n, k) of rows (n, d): the method's own, or posteriors over the prior."""
        if self.likelihoods:
            return values[:, self.inputs :]
        return values[:, : self.classes] / np.maximum(self.prior, 1e-9)

    def _references(self) -> tuple[FloatArray, FloatArray]:
        """The prevalences at which products of posteriors are summed (m, k), and those of posteriors alone."""
        k = self.classes
        centre, corners = np.full((1, k), 1 / k), np.eye(k)
        if self.smooth and not self.likelihoods:  # a method that reads means
            return centre[:0], centre[:0]
        if k > MOST_SQUARED:
            return centre[:0], centre
        near = [(corners, TO_CORNERS_SQUARED), (corners, TO_CORNERS), ((1 - corners) / (k - 1), TO_SIDES)]
        around, *plain = (far * ends + (1 - far) * centre for ends, far in near)
        return np.vstack([centre, around]), np.vstack(plain)


def _posteriors_at(prevalence: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """Posteriors (k, n) at a prevalence (k,). A row is never rounded according to the rows next to it."""
    joint = likelihoods * prevalence[:, None]
    return joint / joint.sum(axis=0)
