"""What rows of a state look like, how many are kept, and what is known exactly about those that are not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quanet.arrays import FloatArray
from quanet.state.fixed_point import COUNTS, VALUES, WEIGHTED, FixedPoint

MOST_ROWS = 2**17  # kept of a group
# Kept of one among very many groups, and of all groups unless they are very many: methods that read means or a
# likelihood of two classes are precise with few cells, others need more (benchmarks/results/summaries.md).
SMOOTH_ROWS, ALL_SMOOTH_ROWS = 2**8, 2**20
OTHER_ROWS, ALL_OTHER_ROWS = 2**12, 2**22
MOST_CLASSES = 3  # whose posteriors are kept as cells; a lattice of more classes would be too coarse
MANY_CLASSES = 10  # with more, fewer control variates
NEAR = (0.9, 0.99)  # shares of one class at the points where scores are computed


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
    """

    d: int
    classes: int
    prior: tuple[float, ...]
    weighted: bool
    smooth: bool

    @property
    def has_cells(self) -> bool:
        """Whether rows above the cap are kept as cells; otherwise as a sample."""
        return 0 < self.classes <= MOST_CLASSES

    @property
    def sums(self) -> FixedPoint:
        """How sums of rows are written; features and scores may be large."""
        return VALUES if self.has_cells and not self.weighted else WEIGHTED

    @property
    def totals(self) -> FixedPoint:
        """How sums of weights are written."""
        return WEIGHTED if self.weighted else COUNTS

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
        return self.d + self.classes + len(self._anchors()) * (self.classes - 1)

    def control_variates(self, rows: NDArray[np.floating]) -> FloatArray:
        r"""What is summed exactly over rows (n, d) of which only a sample is kept: (n, controls).

        Posteriors, predicted classes, and the scores of the likelihood at a few prevalences a: an estimate by maximum
        likelihood depends on the rows mainly through these. Of features, the values and their squares.

        .. math:: s_c(a) = \frac{p_c / \pi_c}{\sum_j a_j p_j / \pi_j}
        """
        values = np.asarray(rows, dtype=float)
        if not self.controls:
            return np.empty((len(values), 0))
        if not self.classes:
            return np.hstack([values, values**2])
        posteriors = values[:, : self.classes]
        ratios = posteriors / np.maximum(self.prior, 1e-9)
        predicted = np.eye(self.classes)[posteriors.argmax(axis=1)]
        scores = [ratios[:, 1:] / np.maximum(ratios @ anchor, 1e-9)[:, None] for anchor in self._anchors()]
        return np.hstack([values, predicted, *scores])

    def _anchors(self) -> FloatArray:
        """The prevalences (m, k) at which scores are computed."""
        uniform = np.full((1, self.classes), 1 / self.classes)
        if self.classes > MANY_CLASSES:
            return uniform
        return np.vstack([uniform, *(near * np.eye(self.classes) + (1 - near) * uniform for near in NEAR)])
