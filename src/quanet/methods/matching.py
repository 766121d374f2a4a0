r"""Distribution matching: the prevalences whose mixture of classes looks most like the bag.

What a bag looks like (a representation), how far two looks are apart (a divergence) and the search for the nearest
mixture are three parts that combine freely (Firat 2016; Castaño et al. 2023):

.. math:: \hat p = \arg\min_{p \in \Delta} D\Big(\sum_c p_c\, \phi(\text{class } c),\ \phi(\text{bag})\Big)

`Matching` combines any of them; the published methods are named combinations.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.counting import PACC
from quanet.methods.divergences import DIVERGENCE, Divergence
from quanet.methods.matcher import Matcher, posterior_columns
from quanet.methods.representations import REPRESENTATION, Histogram, Representation
from quanet.parameters import Constraints, none_or

MANY_BINS = tuple(range(10, 111, 10))  # González-Castro et al. (2013)
FEW_BINS = (*range(2, 21, 2), 30)  # Maletzke et al. (2019)


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
