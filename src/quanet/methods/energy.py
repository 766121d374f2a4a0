"""Posteriors matched without bins: energy distance, Cramér-von Mises, ordered scores, quantiles."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet import kernels
from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.methods.about import About
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.methods.divergences import Divergence
from quanet.methods.matching import MatchingQuantifier, posterior_columns
from quanet.methods.representations import METRIC, Distances, Representation
from quanet.parameters import Constraints, whole

FINE = 1000  # steps of prevalence at which a mixture's quantiles are tabled; between them they are nearly straight


class EDy(MatchingQuantifier):
    r"""Energy distance y: the mixture whose posteriors are nearest in energy distance [1]_ [2]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} 2\, \mathbb E\|S_p - S\| - \mathbb E\|S_p - S_p'\|

    with :math:`S_p` drawn from the mixture of the classes' posteriors and S from the bag's: a quadratic function of p.
    It needs no bins.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    metric : "manhattan", as in QuaPy and quantificationlib, or "euclidean", as in mlquantify; the same for two classes.
    cv : see `AggregativeQuantifier`.

    References
    ----------
    .. [1] H. Kawakubo, M. C. du Plessis and M. Sugiyama, "Computationally efficient class-prior estimation under class
           balance change using energy distance", IEICE Transactions on Information and Systems E99-D, 2016.
    .. [2] A. Castaño, L. Morán-Fernández, J. Alonso, V. Bolón-Canedo, A. Alonso-Betanzos and J. J. del Coz, "An
           analysis of quantification methods based on matching distributions", 2019 (as cited by quantificationlib).

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 1500, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 1500, rng=1)
    >>> EDy().fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About(
        "matching",
        "Kawakubo et al. (2016); Castaño et al. (2019)",
        "any",
        "posteriors",
        "O(k^2 log m) an instance, once; O(n k) a bag",
    )

    allowed_values: ClassVar[Constraints] = {"metric": METRIC}

    def __init__(self, classifier: Any = None, *, metric: str = "manhattan", cv: Any = 5) -> None:
        super().__init__(classifier, cv=cv)
        self.metric = metric

    def _parts(self) -> tuple[Representation, str | Divergence]:
        return Distances(self.metric), "l2"


class CvMy(AggregativeQuantifier):
    r"""Cramér-von Mises y: distribution functions of posteriors, compared at every instance [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \sum_j \int \Big(\sum_c p_c F_{cj} - G_j\Big)^2 dH_j

    with F and G the distribution functions of the classes' and the bag's posteriors of class j, and H that of training
    and bag together: the energy distance of ranks. At a jump, the squares on both sides are averaged. Only the order of
    posteriors matters.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    References
    ----------
    .. [1] A. Castaño, L. Morán-Fernández, J. Alonso, V. Bolón-Canedo, A. Alonso-Betanzos and J. J. del Coz, "An
           analysis of quantification methods based on matching distributions", 2019 (as cited by quantificationlib).

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=3).draw([0.4, 0.3, 0.3], 1500, rng=0)
    >>> new, _ = Gaussians(k=3).draw([0.1, 0.3, 0.6], 1500, rng=1)
    >>> CvMy().fit(X, y).predict(new).round(1)
    array([0.1, 0.3, 0.6])
    """

    about: ClassVar[About] = About("matching", "Castaño et al. (2019)", "any", "posteriors", "O(n k (log n + k^2))")

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        k = len(self.classes_)
        columns = posterior_columns(posteriors)
        members = np.eye(k)[codes] / np.bincount(codes, minlength=k)
        self.sorted_ = np.sort(columns, axis=0)
        tables, above, beyond = [], [], []
        for column, values in zip(columns.T, self.sorted_.T, strict=True):
            table = np.concatenate([np.zeros((1, k)), members[np.argsort(column, kind="stable")].cumsum(axis=0)])
            upto = table[np.searchsorted(values, values, side="right")]
            under = table[np.searchsorted(values, values, side="left")]
            tables.append(table)
            above.append(_from_here_on(upto))
            beyond.append(_from_here_on(under))
        self.table_, self.above_, self.beyond_ = np.stack(tables), np.stack(above), np.stack(beyond)
        both = [-np.diff(sums, axis=1) for sums in (self.above_, self.beyond_)]
        self.base_ = 0.5 * sum(np.einsum("jma,jmb->ab", part, part) for part in both)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Posteriors, and how many training posteriors are not above and how many are below them: (n, 3 c)."""
        columns = posterior_columns(super().rows(inputs))
        pairs = list(zip(columns.T, self.sorted_.T, strict=True))
        ranks = [
            np.stack([np.searchsorted(values, column, side=side) for column, values in pairs], axis=1)
            for side in ("right", "left")
        ]
        return np.concatenate([columns, *ranks], axis=1)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Compare distribution functions, and solve for the mixture: (..., n, 3 c) -> (..., k)."""
        values = check_rows(rows, width=3 * len(self.table_))
        k = len(self.classes_)
        bags = np.ascontiguousarray(values).reshape(-1, *values.shape[-2:])
        quadratics, linears = np.tile(self.base_, (len(bags), 1, 1)), np.zeros((len(bags), k))
        kernels.rank_quadratics(bags, self.table_, self.above_, self.beyond_, quadratics, linears)
        scale = np.trace(quadratics, axis1=1, axis2=2)[:, None, None] / k
        # A hair's pull to the prior decides where classes look alike; the constant changes nothing on the simplex.
        quadratics += scale * (1 + 1e-10 * np.eye(k))
        linears += 1e-10 * scale[:, 0] * self.prior_
        found = np.tile(self.prior_, (len(bags), 1))
        kernels.simplex_quadratics_of(quadratics, np.arange(len(quadratics)), linears, found)
        return found.reshape(*values.shape[:-2], k)


def _from_here_on(values: FloatArray) -> FloatArray:
    """Sums of all values from each on, and of none: (m, k) -> (m + 1, k)."""
    return np.concatenate([values[::-1].cumsum(axis=0)[::-1], np.zeros((1, values.shape[1]))])


class _OfScores(AggregativeQuantifier):
    """Base of SORD and QUANTy: two classes, and the second's posterior as a score."""

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Posterior of the second class: (n, k) -> (n, 1)."""
        return super().rows(inputs)[:, 1:]

    def _sorted_bags(self, rows: ArrayLike) -> FloatArray:
        values = check_rows(rows, width=1)
        return np.sort(values[..., 0], axis=-1)


class SORD(_OfScores):
    r"""Sample ordinal distance: the mixture of scores that least work moves onto the bag's [1]_.

    .. math:: \hat p = \arg\min_p \int_0^1 \big| (1 - p) F^-(s) + p F^+(s) - G(s) \big| ds

    with F and G the distribution functions of the scores in each class and in the bag. A weighted median solves it
    exactly; the published ternary search and mlquantify's grid of 101 points approach it.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    References
    ----------
    .. [1] A. Maletzke, D. dos Reis, E. Cherman and G. Batista, "DyS: a framework for mixture models in quantification",
           AAAI 2019.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> SORD("precomputed").fit(posteriors, labels).predict([[0.8, 0.2], [0.2, 0.8], [0.3, 0.7], [0.1, 0.9]])
    array([0.25, 0.75])
    """

    about: ClassVar[About] = About("matching", "Maletzke et al. (2019)", "two", "posteriors", "O(n log n + m)")

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        order = np.argsort(posteriors[:, 1], kind="stable")
        self.scores_ = posteriors[order, 1]
        self.shares_ = (np.eye(2)[codes[order]] / np.bincount(codes, minlength=2)).cumsum(axis=0)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Sort every bag and find the mixture that takes least work: (..., n, 1) -> (..., 2)."""
        ordered = self._sorted_bags(rows)
        bags = ordered.reshape(-1, ordered.shape[-1])
        positive = np.empty(len(bags))
        kernels.nearest_by_order(self.scores_, self.shares_, bags, float(self.prior_[1]), positive)
        return np.stack([1 - positive, positive], axis=-1).reshape(*ordered.shape[:-1], 2)


def part_means(ordered: FloatArray, weights: FloatArray, parts: int) -> FloatArray:
    """Means of the values in parts of equal weight, in their order: (..., m), (m,) -> (..., parts).

    A value that lies across the border of two parts counts in both, by its share.

    Examples
    --------
    >>> part_means(np.array([0.1, 0.2, 0.6]), np.ones(3) / 3, 2)
    array([0.133, 0.467])
    """
    reached = np.concatenate([[0.0], weights.cumsum()])
    reached /= reached[-1]
    sums = np.concatenate([np.zeros((*ordered.shape[:-1], 1)), (ordered * weights).cumsum(axis=-1)], axis=-1)
    borders = np.linspace(0, 1, parts + 1)
    right = np.clip(np.searchsorted(reached, borders), 1, len(reached) - 1)
    width = reached[right] - reached[right - 1]
    share = np.where(width > 0, (borders - reached[right - 1]) / np.where(width > 0, width, 1), 0.0)
    at_borders = sums[..., right - 1] * (1 - share) + sums[..., right] * share
    return np.diff(at_borders, axis=-1) * parts / weights.sum()


def nearest_on_path(path: FloatArray, points: FloatArray) -> FloatArray:
    """Where on a path of straight pieces, from 0 to 1 by their number, each point is nearest: (g, d), (b, d) -> (b,).

    Examples
    --------
    >>> nearest_on_path(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[0.5, -1.0], [2.0, 0.5]]))
    array([0.25, 0.75])
    """
    nearest = np.argmin(np.square(path).sum(axis=1) - 2 * points @ path.T, axis=1)
    best, least = np.zeros(len(points)), np.full(len(points), np.inf)
    for first in (np.maximum(nearest - 1, 0), np.minimum(nearest, len(path) - 2)):
        start, piece = path[first], path[first + 1] - path[first]
        length = np.square(piece).sum(axis=1)
        share = np.clip(((points - start) * piece).sum(axis=1) / np.where(length > 0, length, 1), 0, 1)
        distance = np.square(start + share[:, None] * piece - points).sum(axis=1)
        better = distance < least
        best, least = np.where(better, first + share, best), np.where(better, distance, least)
    return best / (len(path) - 1)


class QUANTy(_OfScores):
    r"""Quantiles y: the mixture of scores whose parts of equal size have the bag's means [1]_.

    .. math:: \hat p = \arg\min_p \sum_{i=1}^q \big( \bar s_i(p) - \bar s_i \big)^2

    with :math:`\bar s_i(p)` the mean score in the i-th of q parts of the mixture, in the order of scores. One part is
    `SMM`.

    Parameters
    ----------
    classifier : see `AggregativeQuantifier`.
    quantiles : how many parts.
    cv : see `AggregativeQuantifier`.

    References
    ----------
    .. [1] A. Castaño, P. González, J. Alonso, P. Pérez and J. J. del Coz, quantificationlib 0.1.2 (software), which
           names no publication of it.

    Examples
    --------
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> bag = [[0.8, 0.2], [0.2, 0.8], [0.3, 0.7], [0.3, 0.7]]
    >>> QUANTy("precomputed", quantiles=4).fit(posteriors, labels).predict(bag).round(2)
    array([0.25, 0.75])
    """

    about: ClassVar[About] = About("matching", "Castaño et al., quantificationlib", "two", "posteriors", "O(n log n)")

    allowed_values: ClassVar[Constraints] = {"quantiles": whole(1)}

    def __init__(self, classifier: Any = None, *, quantiles: int = 8, cv: Any = 5) -> None:
        super().__init__(classifier, cv=cv)
        self.quantiles = quantiles

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        order = np.argsort(posteriors[:, 1], kind="stable")
        scores, members = posteriors[order, 1], np.eye(2)[codes[order]] / np.bincount(codes, minlength=2)
        mixed = [members @ [1 - share, share] for share in np.linspace(0, 1, FINE + 1)]
        self.path_ = np.stack([part_means(scores, weights, int(self.quantiles)) for weights in mixed])

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Sort every bag, average its parts and find the nearest mixture: (..., n, 1) -> (..., 2)."""
        ordered = self._sorted_bags(rows)
        means = part_means(ordered, np.ones(ordered.shape[-1]), int(self.quantiles))
        positive = nearest_on_path(self.path_, means.reshape(-1, means.shape[-1])).reshape(ordered.shape[:-1])
        return np.stack([1 - positive, positive], axis=-1)
