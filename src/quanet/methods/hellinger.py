"""Hellinger distances between histograms, as first published: of posteriors (HDy) and of features (HDx)."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.methods.about import About
from quanet.methods.divergences import Divergence
from quanet.methods.features import FeatureQuantifier
from quanet.methods.matching import MANY_BINS, MatchingQuantifier
from quanet.methods.representations import BINS, Histogram, Representation
from quanet.parameters import Constraints, between, none_or

STEP = between(0, 0.5, including="high")


def prevalence_grid(step: float) -> FloatArray:
    """From 0 to 1 in equal steps, the nearest to `step` that divide 1.

    Examples
    --------
    >>> prevalence_grid(0.25)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    STEP.check("step", step)
    return np.linspace(0, 1, round(1 / step) + 1)


def nearest_on_grid(templates: FloatArray, summaries: FloatArray, grid: FloatArray, *, columns: int = 1) -> FloatArray:
    r"""The first share of the grid with the least mean Hellinger distance over columns: (J, 2), (..., J) -> (...).

    .. math:: \frac1c \sum_{i=1}^c \sqrt{\sum_j \big(\sqrt{(1 - p) H^-_{ij} + p H^+_{ij}} - \sqrt{h_{ij}}\big)^2}

    Examples
    --------
    >>> templates = np.array([[0.9, 0.3], [0.1, 0.7]])
    >>> nearest_on_grid(templates, np.array([[0.6, 0.4], [0.5, 0.5]]), prevalence_grid(0.1))
    array([0.5, 0.7])
    """
    roots = np.sqrt(templates @ np.stack([1 - grid, grid]))  # (J, g)
    flat = np.sqrt(summaries.reshape(-1, len(templates)))
    width = len(templates) // columns
    total: Any = 0.0
    for first in range(0, len(templates), width):
        part = slice(first, first + width)
        likeness = flat[:, part] @ roots[part]  # sums of products; the distance falls as they rise
        # One column's root changes nothing in the order; it matters where distances are added.
        total = total - likeness if columns == 1 else total + np.sqrt(np.maximum(2 - 2 * likeness, 0))
    return grid[np.argmin(total, axis=1)].reshape(summaries.shape[:-1])


class HDy(MatchingQuantifier):
    r"""Hellinger distance y: the nearest mixture of two histograms of posteriors [1]_.

    .. math:: \hat p = \operatorname{median}_b \arg\min_p \sum_j \Big(\sqrt{(1 - p) H^-_{bj} + p H^+_{bj}}
        - \sqrt{h_{bj}}\Big)^2

    for b = 10, 20, ..., 110, with H the histograms of the two classes' posteriors in b bins and h the bag's.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    bins : bin numbers, or a single one.
    step : of the search; 0.01 is the published one, over 0, 0.01, ..., 1. None finds the minimum itself, of which the
        search's is the nearest or so: no estimate is then off by rounding.
    cv : see `AggregativeQuantifier`.

    Notes
    -----
    QuaPy's HDy searches 100 points from 0 to 1, so in steps of 1/99: ``HDy(step=1 / 99)``.

    References
    ----------
    .. [1] V. González-Castro, R. Alaiz-Rodríguez and E. Alegre, "Class distribution estimation based on the Hellinger
           distance", Information Sciences 218, 2013.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 2000, rng=0)
    >>> new, _ = Gaussians().draw([0.2, 0.8], 1000, rng=1)
    >>> HDy(step=0.01).fit(X, y).predict(new).round(1)
    array([0.2, 0.8])
    """

    about: ClassVar[About] = About("matching", "González-Castro et al. (2013)", "two", "posteriors", "O(n + bins)")
    allowed_values: ClassVar[Constraints] = {"bins": BINS, "step": none_or(STEP)}

    def __init__(
        self, classifier: Any = None, *, bins: int | Sequence[int] = MANY_BINS, step: float | None = None, cv: Any = 5
    ) -> None:
        super().__init__(classifier, cv=cv)
        self.bins = bins
        self.step = step

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return Histogram(self.bins), "hellinger"

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Summarise every bag and find the nearest mixture: (..., n, 1) -> (..., 2)."""
        if self.step is None:
            return super()._aggregate(rows)
        matcher = self.matcher_
        summaries = matcher.representation.summarise(check_rows(rows, width=matcher.width))
        return median_over_bins(matcher.representation, matcher.templates, summaries, self.step, columns=1)


def median_over_bins(
    histogram: Representation, templates: FloatArray, summaries: FloatArray, step: float, *, columns: int
) -> FloatArray:
    """Prevalences (..., 2) by the published search, the median over the histogram's bin numbers."""
    grid = prevalence_grid(step)
    found = [
        nearest_on_grid(templates[a:b], summaries[..., a:b], grid, columns=columns)
        for a, b in histogram.blocks_ or [(0, len(templates))]
    ]
    positive = np.median(found, axis=0)
    return np.stack([1 - positive, positive], axis=-1)


class HDx(FeatureQuantifier):
    r"""Hellinger distance x: the nearest mixture of two histograms of each feature [1]_.

    .. math:: \hat p = \operatorname{median}_b \arg\min_{p \in \{0, .01, \ldots, 1\}} \frac1d \sum_{i=1}^d
        HD\big((1 - p) H^-_{bi} + p H^+_{bi}, h_{bi}\big)

    The mean Hellinger distance HD over features takes the place of that in `HDy`; no classifier is needed. Bins lie
    between the least and the largest value of the training data, and what lies outside is in the outermost ones.

    Parameters
    ----------
    features : see `FeatureQuantifier`.
    bins : bin numbers, or a single one.
    step : of the search, as published.

    Notes
    -----
    QuaPy's HDx searches 100 points from 0 to 1 (``step=1 / 99``), and leaves out values outside the range. mlquantify's
    lays 2 to 30 bins between 0 and 1, for all features, and matches them together.

    References
    ----------
    .. [1] V. González-Castro, R. Alaiz-Rodríguez and E. Alegre, "Class distribution estimation based on the Hellinger
           distance", Information Sciences 218, 2013.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(distance=3).draw([0.5, 0.5], 2000, rng=0)
    >>> new, _ = Gaussians(distance=3).draw([0.2, 0.8], 1000, rng=1)
    >>> HDx().fit(X, y).predict(new).round(1)
    array([0.2, 0.8])
    """

    about: ClassVar[About] = About("matching", "González-Castro et al. (2013)", "two", "features", "O(n d + bins d)")
    allowed_values: ClassVar[Constraints] = {"bins": BINS, "step": STEP}

    def __init__(self, features: Any = None, *, bins: int | Sequence[int] = MANY_BINS, step: float = 0.01) -> None:
        super().__init__(features)
        self.bins = bins
        self.step = step

    def _fit_rows(self, rows: FloatArray, codes: IntArray) -> None:
        self.histogram_ = Histogram(self.bins, span=None).fit(rows, codes)
        self.templates_ = self.histogram_.templates(rows, codes)
        self.width_ = rows.shape[1]

    def _encode(self, rows: FloatArray) -> FloatArray:
        return self.histogram_.encode(rows)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Summarise every bag and find the nearest mixture: (..., n, d) -> (..., 2)."""
        summaries = self.histogram_.summarise(check_rows(rows, width=self.width_))
        return median_over_bins(self.histogram_, self.templates_, summaries, self.step, columns=self.width_)
