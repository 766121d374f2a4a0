"""Distribution matching of features, without a classifier: energy distances, kernel means, Hellinger distances."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.base import Quantifier
from quanet.classifiers.text import TextClassifier, is_text
from quanet.errors import InvalidData
from quanet.methods.about import About
from quanet.methods.divergences import DIVERGENCE, Divergence
from quanet.methods.matching import MANY_BINS, STEP, Matcher, median_over_bins
from quanet.methods.representations import (
    BINS,
    GAMMA,
    METRIC,
    REPRESENTATION,
    Distances,
    GaussianKernel,
    Histogram,
    Representation,
)
from quanet.parameters import Constraint, Constraints, none_or


class FeatureQuantifier(Quantifier):
    """Base of the quantifiers whose rows are made from features, with no posteriors in between.

    A subclass writes `_fit_rows`, `_encode` and `aggregate`.

    Parameters
    ----------
    features : what turns instances into numbers: anything with `fit` and `transform`, or a fitted one in
        ``FrozenEstimator``. None uses a matrix of numbers as it is, and the embedding of `TextClassifier` for texts.
    """

    allowed_values: ClassVar[Constraints] = {
        "features": none_or(Constraint("an estimator with transform", lambda value: hasattr(value, "transform")))
    }

    def __init__(self, features: Any = None) -> None:
        self.features = features

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Learn what the features of each class look like from instances X and labels y (n,)."""
        codes = self._learn_labels(X, y)
        features = TextClassifier() if self.features is None and is_text(X) else self.features
        if features is None or isinstance(features, FrozenEstimator):
            self.features_ = features
        else:
            self.features_ = clone(features).fit(X, self.classes_[codes])
        self.columns_: int | None = None
        rows = self._numbers(X)
        self.columns_ = rows.shape[1]
        self._fit_rows(rows, codes)

    def _read(self, X: Any) -> FloatArray:
        """What bags are summarised from, for every instance: (n, d)."""
        check_is_fitted(self, "columns_")
        return self._encode(self._numbers(X))

    def _numbers(self, X: Any) -> FloatArray:
        values = X if self.features_ is None else self.features_.transform(X)
        if self.features_ is None and is_text(values):
            raise InvalidData(f"{type(self).__name__} was fitted to numbers, but X contains texts. Fit it to texts.")
        if hasattr(values, "toarray"):
            values = values.toarray()
        try:
            rows = np.asarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            raise InvalidData(
                f"{type(self).__name__} reads numbers, but X contains other values: {error}. "
                "Pass features=, a transformer that turns them into numbers."
            ) from error
        if rows.ndim != 2:
            raise InvalidData(f"{type(self).__name__} reads a matrix (n, d) of numbers; X has shape {rows.shape}.")
        if self.columns_ is not None and rows.shape[1] != self.columns_:
            raise InvalidData(f"X has {rows.shape[1]} features, but had {self.columns_} in fit.")
        if not np.isfinite(rows).all():
            at = np.argwhere(~np.isfinite(rows))[0]
            raise InvalidData(
                f"feature {at[1]} of instance {at[0]} is {rows[at[0], at[1]]}. Fill it in or drop the instance."
            )
        return rows

    @abstractmethod
    def _fit_rows(self, rows: FloatArray, codes: IntArray) -> None:
        """Learn from features (m, d) and classes (m,)."""

    @abstractmethod
    def _encode(self, rows: FloatArray) -> FloatArray:
        """What bags are summarised from: (n, d) -> (n, w)."""


class MatchingX(FeatureQuantifier):
    r"""Distribution matching of features (x) with parts of your choice [1]_ [2]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} D\Big(\sum_c p_c\, \phi(\text{class } c),\ \phi(\text{bag})\Big)

    As `Matching`, with features instead of posteriors: no classifier is needed.

    Parameters
    ----------
    features : what turns instances into numbers: anything with `fit` and `transform`, or a fitted one in
        ``FrozenEstimator``. None uses a matrix of numbers as it is, and the embedding of `TextClassifier` for texts.
    representation : as in `Matching`; a histogram takes ``span=None``. None means ``Distances("euclidean")``.
    divergence : as in `Matching`.

    References
    ----------
    .. [1] A. Firat, "Unified framework for quantification", arXiv:1606.00868, 2016.
    .. [2] A. Castaño, J. Alonso, P. González and J. J. del Coz, "An equivalence analysis of binary quantification
           methods", AAAI 2023.

    Examples
    --------
    >>> from quanet import Gaussians, Histogram
    >>> X, y = Gaussians(distance=3).draw([0.5, 0.5], 2000, rng=0)
    >>> new, _ = Gaussians(distance=3).draw([0.2, 0.8], 1000, rng=1)
    >>> MatchingX(representation=Histogram(10, span=None), divergence="topsoe").fit(X, y).predict(new).round(1)
    array([0.2, 0.8])
    """

    about: ClassVar[About] = About(
        "matching", "Firat (2016); Castaño et al. (2023)", "any", "features", "O(n d + search)"
    )

    allowed_values: ClassVar[Constraints] = {"representation": none_or(REPRESENTATION), "divergence": DIVERGENCE}

    def __init__(
        self,
        features: Any = None,
        *,
        representation: Representation | None = None,
        divergence: str | Divergence = "hellinger",
    ) -> None:
        super().__init__(features)
        self.representation = representation
        self.divergence = divergence

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return (Distances("euclidean") if self.representation is None else self.representation), self.divergence

    def _fit_rows(self, rows: FloatArray, codes: IntArray) -> None:
        representation, divergence = self._parts()
        self.matcher_ = Matcher(representation, divergence, self.prior_, type(self).__name__).fit(rows, codes)

    def _encode(self, rows: FloatArray) -> FloatArray:
        return self.matcher_.representation.encode(rows)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Summarise every bag and find the nearest mixture: (..., n, w) -> (..., k)."""
        matcher = self.matcher_
        return matcher(matcher.representation.summarise(check_rows(rows, width=matcher.width)))


class EDx(MatchingX):
    r"""Energy distance x: the mixture whose features are nearest in energy distance [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} 2\, \mathbb E\|X_p - X\| - \mathbb E\|X_p - X_p'\|

    with :math:`X_p` drawn from the mixture and X from the bag: a quadratic function of p.

    Parameters
    ----------
    features : see `MatchingX`.
    metric : "euclidean" or "manhattan", see `Distances`; QuaPy's EDx has the latter by default.

    References
    ----------
    .. [1] H. Kawakubo, M. C. du Plessis and M. Sugiyama, "Computationally efficient class-prior estimation under class
           balance change using energy distance", IEICE Transactions on Information and Systems E99-D, 2016.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 1500, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 1500, rng=1)
    >>> EDx().fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About(
        "matching", "Kawakubo et al. (2016)", "any", "features", "O(n m d), once for a pool; O(n k) a bag"
    )

    allowed_values: ClassVar[Constraints] = {"metric": METRIC}

    def __init__(self, features: Any = None, *, metric: str = "euclidean") -> None:
        FeatureQuantifier.__init__(self, features)
        self.metric = metric

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return Distances(self.metric), "l2"


class KMM(MatchingX):
    r"""Kernel mean matching: the mixture of features with the least maximum mean discrepancy [1]_ [2]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \Big\| \sum_c p_c \mu_c - \mu \Big\|_{\mathcal H}

    with :math:`\mu` the mean of a Gaussian kernel's features over a class or the bag: a quadratic function of p.

    Parameters
    ----------
    features : see `MatchingX`.
    gamma : of the kernel, see `GaussianKernel`.

    Notes
    -----
    mlquantify's MMD_RKHS matches the means of the features themselves for every kernel: that is
    ``MatchingX(representation=Moments(), divergence="l2")``.

    References
    ----------
    .. [1] K. Zhang, B. Schölkopf, K. Muandet and Z. Wang, "Domain adaptation under target and conditional shift", ICML
           2013.
    .. [2] A. Iyer, S. Nath and S. Sarawagi, "Maximum mean discrepancy for class ratio estimation: convergence bounds
           and kernel selection", ICML 2014.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 1500, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 1500, rng=1)
    >>> KMM().fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About(
        "matching",
        "Zhang et al. (2013); Iyer et al. (2014)",
        "any",
        "features",
        "O(n m d), once for a pool; O(n k) a bag",
    )

    allowed_values: ClassVar[Constraints] = {"gamma": GAMMA}

    def __init__(self, features: Any = None, *, gamma: float | None = None) -> None:
        FeatureQuantifier.__init__(self, features)
        self.gamma = gamma

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return GaussianKernel(self.gamma), "l2"


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
