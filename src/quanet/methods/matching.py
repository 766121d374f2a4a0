r"""Distribution matching: the prevalences whose mixture of classes looks most like the bag.

What a bag looks like (a representation), how far two looks are apart (a divergence) and the search for the nearest
mixture are three parts that combine freely (Firat 2016; Castaño et al. 2023):

.. math:: \hat p = \arg\min_{p \in \Delta} D\Big(\sum_c p_c\, \phi(\text{class } c),\ \phi(\text{bag})\Big)

`Matching` combines any of them; the published methods are named combinations.
"""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import QuanetWarning
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.counting import PACC
from quanet.methods.divergences import DIVERGENCE, Divergence, find_divergence
from quanet.methods.representations import BINS, REPRESENTATION, Histogram, KernelMean, Representation
from quanet.methods.solvers import nearest_mixtures, simplex_quadratic_minimum
from quanet.parameters import Constraints, between, none_or

MANY_BINS = tuple(range(10, 111, 10))  # González-Castro et al. (2013)
FEW_BINS = (*range(2, 21, 2), 30)  # Maletzke et al. (2019)
STEP = between(0, 0.5, including="high")


def posterior_columns(posteriors: FloatArray, representation: Representation | None = None) -> FloatArray:
    """The posteriors that are needed: usually the second's of two classes, all of more."""
    if posteriors.shape[1] > 2 or (representation is not None and representation.needs_both):
        return posteriors
    return posteriors[:, 1:]


class Matcher:
    """A fitted representation, and the search for mixtures in it.

    Parameters
    ----------
    representation : of the columns; fitted to them here.
    divergence : ignored by kernel means, which are compared by their own quadratic form.
    prior : (k,) the estimate where classes cannot be separated.
    name : of the method, for warnings.
    """

    def __init__(self, representation: Any, divergence: str | Divergence, prior: FloatArray, name: str) -> None:
        REPRESENTATION.check("representation", representation, name)
        self.representation: Representation = clone(representation)
        self.divergence = find_divergence(divergence).name if isinstance(divergence, str) else divergence
        self.prior = prior
        self.name = name

    def fit(self, columns: FloatArray, codes: IntArray) -> Self:
        """Learn what each class looks like from columns (m, c) and classes (m,)."""
        self.representation.fit(columns, codes)
        self.templates = self.representation.templates(columns, codes)
        self.width = self.representation.encode(columns[:1]).shape[1]
        spread = self.templates - self.templates.mean(axis=1, keepdims=True)
        if np.linalg.matrix_rank(spread, tol=1e-9 * max(1.0, np.abs(self.templates).max())) < len(self.prior) - 1:
            warnings.warn(
                f"{self.name} cannot separate all classes: some look alike, or like a mixture of others. "
                "Their prevalences follow the training data.",
                QuanetWarning,
                stacklevel=5,
            )
        return self

    def __call__(self, summaries: FloatArray, *, penalty: FloatArray | None = None) -> FloatArray:
        """Prevalences of bags that look like this: (..., J) -> (..., k); the penalty R (k, k) adds p R p / 2."""
        if isinstance(self.representation, KernelMean):
            return nearest_kernel_means(self.templates, summaries, self.prior, penalty)
        blocks = self.representation.blocks_ or [(0, len(self.templates))]
        found = [self._nearest(self.templates[a:b], summaries[..., a:b], penalty) for a, b in blocks]
        return found[0] if len(found) == 1 else middle(np.stack(found))

    def _nearest(self, templates: FloatArray, summaries: FloatArray, penalty: FloatArray | None) -> FloatArray:
        if self.divergence == "l2":
            return nearest_by_squares(templates, summaries, self.prior, penalty)
        return nearest_mixtures(templates, summaries, find_divergence(self.divergence), self.prior, penalty=penalty)


def middle(estimates: FloatArray) -> FloatArray:
    """Median over estimates, class by class, scaled to sum to one: (e, ..., k) -> (..., k).

    Examples
    --------
    >>> middle(np.array([[0.1, 0.9], [0.2, 0.8], [0.6, 0.4]]))
    array([0.2, 0.8])
    """
    medians = np.median(estimates, axis=0)
    total = medians.sum(axis=-1, keepdims=True)
    return np.where(total > 0, medians / np.where(total > 0, total, 1), estimates.mean(axis=0))


def nearest_by_squares(
    templates: FloatArray, summaries: FloatArray, prior: FloatArray, penalty: FloatArray | None = None
) -> FloatArray:
    """Mixtures nearest in squared distance, plus p R p / 2 for a penalty R: (J, k), (..., J), (k,) -> (..., k).

    Examples
    --------
    >>> nearest_by_squares(np.array([[0.2, 0.8]]), np.array([0.35]), np.array([0.5, 0.5]))
    array([0.75, 0.25])
    """
    return _settled(templates.T @ templates, summaries @ templates, prior, penalty)


def nearest_kernel_means(
    gram: FloatArray, means: FloatArray, prior: FloatArray, penalty: FloatArray | None = None
) -> FloatArray:
    r"""Mixtures nearest in a kernel's space: (k, k), (..., k), (k,) -> (..., k).

    .. math:: \arg\min_{p \in \Delta} p^\top K p - 2 p^\top a + \tfrac12 p^\top R p

    where K are the classes' mean kernel values with each other, a those of a bag with them, and R the penalty. With
    minus a distance as the kernel, the first two terms are the energy distance.
    """
    # The kernel may be positive definite between mixtures alone; seen from the first class it is so everywhere.
    centred = gram - gram[:, :1] - gram[:1] + gram[0, 0]
    return _settled((centred + centred.T) / 2, means - gram[0], prior, penalty)


def _settled(
    quadratic: FloatArray, linears: FloatArray, prior: FloatArray, penalty: FloatArray | None = None
) -> FloatArray:
    """Least points over the simplex; where they are not unique, the one nearest to the prior."""
    k = len(prior)
    scale = max(float(np.trace(quadratic)) / k, 0.0) or 1.0  # rounding alone can leave it below 0
    quadratic = quadratic + scale  # adds a constant wherever the shares sum to one
    if penalty is not None:
        quadratic = quadratic + penalty / 2
    if np.linalg.eigvalsh(quadratic)[0] < 1e-9 * scale:
        quadratic = quadratic + 1e-8 * scale * np.eye(k)
        linears = linears + 1e-8 * scale * prior
    return simplex_quadratic_minimum(quadratic, linears)


class MatchingQuantifier(AggregativeQuantifier):
    """Base of the methods that match distributions of posteriors; a subclass chooses the parts."""

    allowed_values: ClassVar[Constraints] = {"representation": none_or(REPRESENTATION), "divergence": DIVERGENCE}

    matcher_: Matcher

    @abstractmethod
    def _parts(self) -> tuple[Representation, str | Divergence]:
        """The representation and the divergence."""

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        representation, divergence = self._parts()
        matcher = Matcher(representation, divergence, self.prior_, type(self).__name__)
        self.matcher_ = matcher.fit(posterior_columns(posteriors, representation), codes)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """What bags are summarised from, for every instance: (n, k) -> (n, d)."""
        representation = self.matcher_.representation
        return representation.encode(posterior_columns(super().rows(inputs), representation))

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Summarise every bag and find the nearest mixture: (..., n, d) -> (..., k)."""
        matcher = self.matcher_
        return matcher(matcher.representation.summarise(check_rows(rows, width=matcher.width)))


class Matching(MatchingQuantifier):
    r"""Distribution matching with parts of your choice: the mixture of classes that looks most like the bag [1]_ [2]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} D\Big(\sum_c p_c\, \phi(\text{class } c),\ \phi(\text{bag})\Big)

    Combine any representation :math:`\phi` with any divergence D; the published methods are named combinations.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    representation : `Histogram`, `Moments`, `Labels`, `FourierFeatures`, `Distances`, `GaussianKernel`; None means
        ``Histogram(8)``.
    divergence : "hellinger", "topsoe", "jensen-shannon", "likelihood", "l2", or a `Divergence`. `Distances` and
        `GaussianKernel` bring their own: the energy distance and the maximum mean discrepancy.
    cv : see `AggregativeQuantifier`.

    See Also
    --------
    MatchingX : the same for features instead of posteriors.

    References
    ----------
    .. [1] A. Firat, "Unified framework for quantification", arXiv:1606.00868, 2016.
    .. [2] A. Castaño, J. Alonso, P. González and J. J. del Coz, "An equivalence analysis of binary quantification
           methods", AAAI 2023.

    Examples
    --------
    >>> from quanet import FourierFeatures, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> new, _ = Gaussians().draw([0.2, 0.8], 1000, rng=1)
    >>> Matching(representation=FourierFeatures(100), divergence="l2").fit(X, y).predict(new).round(1)
    array([0.2, 0.8])
    """

    about: ClassVar[About] = About(
        "matching", "Firat (2016); Castaño et al. (2023)", "any", "posteriors", "O(n k + search)"
    )

    def __init__(
        self,
        classifier: Any = None,
        *,
        representation: Representation | None = None,
        divergence: str | Divergence = "hellinger",
        cv: Any = 5,
    ) -> None:
        super().__init__(classifier, cv=cv)
        self.representation = representation
        self.divergence = divergence

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return (Histogram() if self.representation is None else self.representation), self.divergence


class DMy(MatchingQuantifier):
    r"""Distribution matching of posteriors (y): one histogram of equal bins for every class [1]_ [2]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \sum_j D\Big(\sum_c p_c H_{jc}, h_j\Big)

    with H the histograms of the classes' posteriors and h the bag's. Two classes need one histogram. It needs no
    calibrated posteriors, and uses more of them than the means that `PACC` uses.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    bins : see `Histogram`.
    divergence : see `Matching`; "hellinger" is the squared distance, summed over the histograms, which is convex.
    cumulative : see `Histogram`.
    cv : see `AggregativeQuantifier`.

    Notes
    -----
    With two classes this is QuaPy's DMy; with more and "topsoe" too. QuaPy's Hellinger distance is averaged over
    histograms after taking roots, which is not convex; quantificationlib's DFy sums the squares, as done here.

    References
    ----------
    .. [1] A. Firat, "Unified framework for quantification", arXiv:1606.00868, 2016.
    .. [2] A. Moreo, A. Esuli and F. Sebastiani, "QuaPy: a Python-based framework for quantification", CIKM 2021.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 1500, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 1500, rng=1)
    >>> DMy().fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About(
        "matching", "Firat (2016); Moreo et al. (2021)", "any", "posteriors", "O(n k + bins k^3)"
    )

    def __init__(
        self,
        classifier: Any = None,
        *,
        bins: int | Sequence[int] = 8,
        divergence: str | Divergence = "hellinger",
        cumulative: bool = False,
        cv: Any = 5,
    ) -> None:
        super().__init__(classifier, cv=cv)
        self.bins = bins
        self.divergence = divergence
        self.cumulative = cumulative

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return Histogram(self.bins, cumulative=self.cumulative), self.divergence


class DyS(MatchingQuantifier):
    r"""Distribution y-similarity: mixtures of two histograms of posteriors, by any divergence [1]_.

    .. math:: \hat p = \operatorname{median}_b \arg\min_p D\big((1 - p) H^-_b + p H^+_b, h_b\big)

    The median is over the published bin numbers 2, 4, ..., 20 and 30. The published ternary search finds the minimum to
    a tolerance; Newton's method finds the same one exactly.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    bins : bin numbers, or a single one.
    divergence : "topsoe", the best of the published comparison, or another one of `Matching`.
    cv : see `AggregativeQuantifier`.

    Notes
    -----
    QuaPy's DyS is ``DyS(bins=8, divergence="hellinger")``: one bin number, no median. mlquantify's matches all
    histograms together and takes the median only with ``bin_strategy="median"``.

    References
    ----------
    .. [1] A. Maletzke, D. dos Reis, E. Cherman and G. Batista, "DyS: a framework for mixture models in quantification",
           AAAI 2019.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> DyS("precomputed", bins=2).fit(posteriors, labels).predict([[0.8, 0.2], [0.2, 0.8], [0.3, 0.7], [0.1, 0.9]])
    array([0.25, 0.75])
    """

    about: ClassVar[About] = About("matching", "Maletzke et al. (2019)", "two", "posteriors", "O(n + bins)")

    def __init__(
        self,
        classifier: Any = None,
        *,
        bins: int | Sequence[int] = FEW_BINS,
        divergence: str | Divergence = "topsoe",
        cv: Any = 5,
    ) -> None:
        super().__init__(classifier, cv=cv)
        self.bins = bins
        self.divergence = divergence

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return Histogram(self.bins), self.divergence


class SMM(PACC):
    r"""Sample mean matching: the mixture of two classes with the bag's mean posterior [1]_.

    .. math:: \hat p = \frac{\bar \pi - \bar \pi^-}{\bar \pi^+ - \bar \pi^-}, \text{ clipped to } [0, 1]

    with :math:`\bar \pi` the mean posterior of the second class in the bag and in each class. The estimate is the same
    as that of `PACC`.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    rates_ : (2, 2), as in `PACC`.

    References
    ----------
    .. [1] W. Hassan, A. Maletzke and G. Batista, "Accurately quantifying a billion instances per second", DSAA 2020.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> SMM("precomputed").fit(posteriors, labels).predict([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]])
    array([0.4, 0.6])
    """

    about: ClassVar[About] = About("matching", "Hassan et al. (2020)", "two", "posteriors", "O(n)")


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
