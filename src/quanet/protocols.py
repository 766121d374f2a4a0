"""Protocols: how bags are drawn from a labelled pool. They produce only row numbers.

The instances of a bag are ordered by class; quantifiers must not depend on their order. An instance occurs once in a
bag, unless its class has fewer instances than the bag needs. The class is then drawn with replacement.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.data.grouping import ByGroup as ByGroup
from quanet.errors import InvalidBags, InvalidSetting, QuanetWarning
from quanet.parameters import Constraints, check_parameters, whole
from quanet.simplex import (
    check_prevalences,
    classes_of,
    count,
    draw_uniformly,
    encode,
    grid,
    grid_size,
    to_counts,
)

Seed = np.random.Generator | int

# Prevalences of the second of two classes, as in the paper of QuaNet.
BINARY_GRID = (0.01, *(step / 20 for step in range(1, 20)), 0.99)
MAX_GRID_POINTS = 2000  # of the grid for more classes, whose step is at least 1/20
BATCH = 2**15  # random numbers drawn at a time: they fit into the cache of a core


class Protocol(ABC):
    """A way to draw bags. A subclass defines `counts`: how many instances of each class every bag has."""

    allowed_values: ClassVar[Constraints] = {"bag_size": whole(1), "repeats": whole(1)}

    @abstractmethod
    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Number of instances of each class in every bag, (b, k), for a pool with `available` (k,) of each class."""

    def draw(self, y: ArrayLike, *, rng: Seed, classes: ArrayLike | None = None) -> Bags:
        """Draw bags from a pool with labels `y`.

        Parameters
        ----------
        y : (n,) labels of the pool.
        rng : a generator, or the seed of one.
        classes : (k,) sorted classes, if `y` does not contain all of them.
        """
        bags = self.draw_quietly(y, rng=rng, classes=classes)
        _check_size(int(bags.sizes[0]), np.size(y))
        return bags

    def draw_quietly(self, y: ArrayLike, *, rng: Seed, classes: ArrayLike | None = None) -> Bags:
        """Draw bags as `draw` does, but do not warn if they are larger than the pool."""
        check_parameters(self)
        rng = np.random.default_rng(rng)
        names = classes_of(y) if classes is None else np.asarray(classes)
        codes = encode(y, names)
        available = count(codes, len(names))
        counts = self.counts(available, rng=rng)
        _check_counts(type(self).__name__, counts, available, names)
        indices = _draw_instances(codes, counts, rng)
        return Bags(indices, counts / counts.sum(axis=1, keepdims=True), pool_size=len(codes))


@dataclass(frozen=True, kw_only=True, slots=True)
class APP(Protocol):
    """Artificial prevalence protocol: every prevalence of a grid, `repeats` times each [1]_.

    For experiments that cover all prevalences alike, whatever those of the pool.

    Parameters
    ----------
    bag_size : instances in a bag.
    repeats : bags of every prevalence.
    prevalences : (m, k), or (m,) for the second of two classes. None means, for two classes, the 21 values 0.01, 0.05,
        0.10, ..., 0.95, 0.99, and for more classes a grid over the simplex: multiples of 1/20, or of the smallest 1/m
        whose grid has at most 2,000 points.

    References
    ----------
    .. [1] G. Forman, "Quantifying counts and costs via classification", Data Mining and Knowledge Discovery 17, 2008.

    Examples
    --------
    >>> bags = APP(bag_size=10, repeats=1, prevalences=[0.2, 0.8]).draw(["a", "b"] * 20, rng=0)
    >>> bags.prevalences
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """

    bag_size: int = 500
    repeats: int = 100
    prevalences: ArrayLike | None = None

    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Every prevalence of the grid, rounded to whole instances, `repeats` times."""
        return np.repeat(to_counts(self.grid(len(available)), self.bag_size), self.repeats, axis=0)

    def grid(self, k: int) -> FloatArray:
        """The prevalences that are drawn, (m, k)."""
        if self.prevalences is not None:
            given = np.asarray(self.prevalences, dtype=float)
            if given.ndim == 1 and k == 2:
                given = np.column_stack([1 - given, given])
            return np.atleast_2d(check_prevalences(given, k=k))
        if k == 2:
            positive = np.array(BINARY_GRID)
            return np.column_stack([1 - positive, positive])
        steps = next((m for m in range(20, 1, -1) if grid_size(k, m) <= MAX_GRID_POINTS), 1)
        return grid(k, steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomProtocol(Protocol):
    """Base of protocols that draw `repeats` bags of `bag_size` instances at random prevalences."""

    bag_size: int = 500
    repeats: int = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class UPP(RandomProtocol):
    r"""Uniform prevalence protocol: the prevalences of every bag are drawn uniformly from the simplex [1]_.

    .. math:: p \sim \text{Dirichlet}(1, \ldots, 1)

    For more than two classes, where the grid of `APP` grows too large.

    Parameters
    ----------
    bag_size : instances in a bag.
    repeats : number of bags.

    References
    ----------
    .. [1] A. Esuli, A. Moreo, F. Sebastiani and G. Sperduti, "A concise overview of LeQua@CLEF 2022: learning to
           quantify", CLEF 2022.

    Examples
    --------
    >>> UPP(bag_size=100, repeats=20).draw(["a", "b", "c"] * 50, rng=0)
    Bags(20 bags of 100 instances)
    """

    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Uniform prevalences, rounded to whole instances."""
        return to_counts(draw_uniformly(self.repeats, len(available), rng=rng), self.bag_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class NPP(RandomProtocol):
    """Natural prevalence protocol: bags are drawn at random from the pool, regardless of the classes [1]_.

    The prevalences vary around those of the pool: use it if no prior shift is expected.

    Parameters
    ----------
    bag_size : instances in a bag.
    repeats : number of bags.

    References
    ----------
    .. [1] A. Esuli and F. Sebastiani, "Optimizing text quantifiers for multivariate loss functions", ACM Transactions
           on Knowledge Discovery from Data 9(4), 2015.

    Examples
    --------
    >>> bags = NPP(bag_size=100, repeats=200).draw(["a", "b", "b", "b"] * 50, rng=0)
    >>> bags.prevalences.mean(axis=0).round(2)
    array([0.25, 0.75])
    """

    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Class counts of a random draw, without replacement if the pool is large enough."""
        if self.bag_size <= available.sum():
            # The method "marginals" is exact for pools of any size; the other one needs memory linear in it.
            return rng.multivariate_hypergeometric(available, self.bag_size, size=self.repeats, method="marginals")
        return rng.multinomial(self.bag_size, available / available.sum(), size=self.repeats)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dirichlet(Protocol):
    r"""Dirichlet protocol: the prevalences of every bag are drawn from a Dirichlet distribution, as in [1]_.

    .. math:: p \sim \text{Dirichlet}(\alpha_1, \ldots, \alpha_k)

    They are near its mean for a large `alpha`, and near the vertices of the simplex for a small one.

    Parameters
    ----------
    alpha : one concentration for all classes, or one for each, (k,).
    bag_size : instances in a bag.
    repeats : number of bags.

    References
    ----------
    .. [1] Z. C. Lipton, Y.-X. Wang and A. Smola, "Detecting and correcting for label shift with black box predictors",
           ICML 2018.

    Examples
    --------
    >>> bags = Dirichlet(alpha=[90, 10], bag_size=100).draw([0, 1] * 200, rng=0)
    >>> bags.prevalences.mean(axis=0).round(1)
    array([0.9, 0.1])
    """

    alpha: float | Sequence[float] = 1.0
    bag_size: int = 500
    repeats: int = 1000

    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Dirichlet prevalences, rounded to whole instances."""
        k = len(available)
        alpha = np.asarray(self.alpha, dtype=float)
        if alpha.shape not in {(), (k,)} or not (alpha > 0).all():
            raise InvalidSetting(f"alpha must be a positive number, or one for each of {k} classes; got {self.alpha}.")
        return to_counts(rng.dirichlet(np.broadcast_to(alpha, k), size=self.repeats), self.bag_size)


def _check_size(size: int, pool: int) -> None:
    if size > pool:
        warnings.warn(
            f"The bags have {size:,} instances, but the pool has {pool:,}. So instances occur several times in a bag, "
            f"and all bags are similar. Use a bag_size of {max(1, pool // 2):,} or less.",
            QuanetWarning,
            stacklevel=3,
        )


def _check_counts(protocol: str, counts: IntArray, available: IntArray, names: LabelArray) -> None:
    missing = (counts > 0).any(axis=0) & (available == 0)
    if missing.any():
        name = names[missing].tolist()[0]
        raise InvalidBags(
            f"{protocol} needs at least one instance of every class in the pool; class {name!r} has none. "
            "Add instances of it, pass prevalences without it, or use NPP."
        )


def _draw_instances(codes: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """Row numbers (b, n) of bags with the given class counts (b, k)."""
    from quanet import kernels

    pool = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(count(codes, counts.shape[1]))])
    indices = np.empty((len(counts), counts[0].sum()), dtype=np.intp)
    batch = max(1, BATCH // indices.shape[1])
    uniforms = np.empty(batch * indices.shape[1])
    for start in range(0, len(counts), batch):
        chunk = slice(start, start + batch)
        out = indices[chunk].reshape(-1)
        rng.random(out=uniforms[: len(out)])
        kernels.draw_by_class(pool, starts, counts[chunk], uniforms, out)
    return indices
