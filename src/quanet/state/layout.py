"""What rows of a state look like, how many are kept, and what is known exactly about those that are not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray
from quanet.state.fixed_point import COUNTS, SHARES, VALUES, WEIGHTED, FixedPoint

MOST_ROWS = 2**17  # kept of a group
# Kept of one among very many groups, and of all groups unless they are very many: methods that read means or a
# likelihood of two classes are precise with few cells, others need more (benchmarks/results/summaries.md).
SMOOTH_ROWS, ALL_SMOOTH_ROWS = 2**8, 2**20
OTHER_ROWS, ALL_OTHER_ROWS = 2**13, 2**23
MOST_CLASSES = 2  # whose posteriors are kept as cells; a lattice of more classes would be too coarse
# Prevalences at which posteriors are summed lie between the centre and some end; how far from the centre, by the
# largest number of classes. Ends are corners, sides without one class, and edges where a second class has a tenth.
TO_CORNERS = {3: (0.6, 0.9, 0.97, 0.99), 5: (0.6, 0.9, 0.98), 10: (0.9, 0.99)}
TO_SIDES = {3: (0.9, 0.99), 5: (0.9, 0.99), 10: (0.97,)}
TO_EDGES = {3: (0.9, 0.98), 5: (0.9,), 10: ()}
SECOND = 0.1


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
        """How sums of rows are written; features may be large."""
        if self.weighted or not self.classes or self.inputs > self.classes:
            return WEIGHTED
        return VALUES if self.has_cells else SHARES

    @property
    def control_sums(self) -> FixedPoint:
        """How sums of control variates are written, of which a few digits fewer are needed."""
        return VALUES if self.sums is SHARES else self.sums

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
        small = self.smooth and self.classes == 2
        least, every = (SMOOTH_ROWS, ALL_SMOOTH_ROWS) if small else (OTHER_ROWS, ALL_OTHER_ROWS)
        return int(np.clip(every // max(groups, 1), least, MOST_ROWS))

    @property
    def controls(self) -> int:
        """The number of control variates; none if cells are kept, whose sums are exact anyway."""
        if self.has_cells or not self.d:
            return 0
        if not self.classes:
            return 2 * self.d
        return self.inputs + self.classes + len(self._anchors()) * (self.classes - 1)

    def control_variates(self, rows: NDArray[np.floating]) -> FloatArray:
        r"""What is summed exactly over rows (n, d) of which only a sample is kept: (n, controls).

        Posteriors, predicted classes, and the posteriors that the likelihoods L give at a few prevalences a: an
        estimate by maximum likelihood depends on the rows mainly through these. Of features, values and squares.

        .. math:: \frac{a_c L_c}{\sum_j a_j L_j}
        """
        values = np.asarray(rows, dtype=float)
        if not self.controls:
            return np.empty((len(values), 0))
        if not self.classes:
            return np.hstack([values, values**2])
        predicted = np.eye(self.classes)[values[:, : self.classes].argmax(axis=1)]
        # One class after the other: a product of matrices would round a row according to the rows next to it.
        likelihoods, anchors = self.likelihoods_of(values), self._anchors()
        joint = [likelihoods[:, at] * anchors[:, at, None] for at in range(self.classes)]
        inverse = 1 / sum(joint)
        return np.hstack([values[:, : self.inputs], predicted, *((one * inverse).T for one in joint[1:])])

    def likelihoods_of(self, values: FloatArray) -> FloatArray:
        """Likelihoods (n, k) of rows (n, d): the method's own, or posteriors over the prior."""
        if self.likelihoods:
            return values[:, self.inputs :]
        return values[:, : self.classes] / np.maximum(self.prior, 1e-9)

    def _anchors(self) -> FloatArray:
        """The prevalences (m, k) at which posteriors are summed."""
        k = self.classes
        uniform, corners, few = np.full((1, k), 1 / k), np.eye(k), next((most for most in TO_CORNERS if k <= most), 0)
        if not few:
            return uniform
        sides = (1 - corners) / (k - 1)
        edges = ((1 - SECOND) * corners[:, None] + SECOND * corners)[~np.eye(k, dtype=bool)]
        ends = ((corners, TO_CORNERS[few]), (sides, TO_SIDES[few]), (edges, TO_EDGES[few]))
        return np.vstack([uniform, *(far * end + (1 - far) * uniform for end, parts in ends for far in parts)])
