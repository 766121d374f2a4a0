"""Protocols: how bags are drawn from a labelled pool. They produce only row numbers.

A bag's instances come class by class, in no order that a quantifier may use. Within a bag an instance occurs once,
unless its class has fewer instances than the bag needs: then the class is drawn from with replacement.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.errors import InvalidBags, InvalidSetting, QuanetWarning
from quanet.grouping import ByGroup as ByGroup
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

BINARY_GRID = (
    0.01,
    *(step / 20 for step in range(1, 20)),
    0.99,
)  # of the second class, as in the paper
GRID_POINTS = 2000  # a grid over more classes is as fine as this many points allow, and no finer than 1/20
AT_A_TIME = 2**15  # random numbers drawn at a time: they stay in a core's cache


class Protocol(ABC):
    """A way to draw bags. Subclasses say how many instances of each class go into every bag."""

    @abstractmethod
    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Instances of every class in every bag, (b, k), for a pool that has `available` (k,) of each."""

    def draw(self, y: ArrayLike, *, rng: Seed, classes: ArrayLike | None = None) -> Bags:
        """Draw bags from a pool with labels `y`.

        Parameters
        ----------
        y : (n,) labels of the pool.
        rng : a generator, or the seed of one.
        classes : (k,) sorted, when they are more than those in `y`.
        """
        bags = self._drawn(y, rng=rng, classes=classes)
        _check_size(int(bags.sizes[0]), np.size(y))
        return bags

    def _drawn(self, y: ArrayLike, *, rng: Seed, classes: ArrayLike | None = None) -> Bags:
        """As `draw`, without a warning where bags are larger than the pool."""
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
    """Artificial prevalence protocol: every prevalence of a grid, `repeats` times each (Forman 2008).

    Parameters
    ----------
    bag_size : instances in a bag.
    repeats : bags of every prevalence.
    prevalences : (m, k), or (m,) shares of the second of two classes. None takes the paper's 21 values for two classes,
        0.01, 0.05, 0.10, ..., 0.95, 0.99, and for more classes a grid over the simplex: multiples of 1/20, or of the
        smallest 1/m whose grid has at most 2,000 points.

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
        _check_positive(bag_size=self.bag_size, repeats=self.repeats)
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
        steps = next((m for m in range(20, 1, -1) if grid_size(k, m) <= GRID_POINTS), 1)
        return grid(k, steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class UPP(Protocol):
    """Uniform prevalence protocol: prevalences uniform on the simplex, each another one.

    Parameters
    ----------
    bag_size : instances in a bag.
    repeats : number of bags.

    Examples
    --------
    >>> UPP(bag_size=100, repeats=20).draw(["a", "b", "c"] * 50, rng=0)
    Bags(20 bags of 100 instances)
    """

    bag_size: int = 500
    repeats: int = 1000

    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Uniform prevalences, rounded to whole instances."""
        _check_positive(bag_size=self.bag_size, repeats=self.repeats)
        return to_counts(draw_uniformly(self.repeats, len(available), rng=rng), self.bag_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class NPP(Protocol):
    """Natural prevalence protocol: bags drawn at random from the pool, whatever their classes.

    Parameters
    ----------
    bag_size : instances in a bag.
    repeats : number of bags.

    Examples
    --------
    >>> NPP(bag_size=100, repeats=20).draw(["a", "b", "c"] * 50, rng=0)
    Bags(20 bags of 100 instances)
    """

    bag_size: int = 500
    repeats: int = 1000

    def counts(self, available: IntArray, *, rng: np.random.Generator) -> IntArray:
        """Class counts of a random draw: without replacement where the pool is large enough."""
        _check_positive(bag_size=self.bag_size, repeats=self.repeats)
        if self.bag_size <= available.sum():
            # The marginal method is exact for pools of any size; the other one needs memory linear in it.
            return rng.multivariate_hypergeometric(available, self.bag_size, size=self.repeats, method="marginals")
        return rng.multinomial(self.bag_size, available / available.sum(), size=self.repeats)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dirichlet(Protocol):
    """Prevalences from a Dirichlet distribution: a large `alpha` keeps them near its mean, a small one near a corner.

    Parameters
    ----------
    alpha : one concentration for all classes, or one for each, (k,).
    bag_size : instances in a bag.
    repeats : number of bags.

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
        _check_positive(bag_size=self.bag_size, repeats=self.repeats)
        k = len(available)
        alpha = np.asarray(self.alpha, dtype=float)
        if alpha.shape not in {(), (k,)} or not (alpha > 0).all():
            raise InvalidSetting(f"alpha is one positive number or {k} of them, one for each class; got {self.alpha}.")
        return to_counts(rng.dirichlet(np.broadcast_to(alpha, k), size=self.repeats), self.bag_size)


def _check_positive(**settings: int) -> None:
    for name, value in settings.items():
        if value < 1:
            raise InvalidSetting(f"{name} must be at least 1; got {value}.")


def _check_size(size: int, pool: int) -> None:
    if size > pool:
        warnings.warn(
            f"The bags have {size:,} instances, but the pool has {pool:,}: instances occur several times in a bag, "
            f"and all bags are alike. Use a bag_size of {max(1, pool // 2):,} or less.",
            QuanetWarning,
            stacklevel=3,
        )


def _check_counts(protocol: str, counts: IntArray, available: IntArray, names: LabelArray) -> None:
    missing = (counts > 0).any(axis=0) & (available == 0)
    if missing.any():
        name = names[missing].tolist()[0]
        raise InvalidBags(
            f"{protocol} needs at least one instance of every class in the pool; class {name!r} has none. "
            "Add instances of it, give prevalences without it, or draw with NPP."
        )


def _draw_instances(codes: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """Row numbers (b, n) of bags with the given class counts (b, k)."""
    from quanet import kernels

    pool = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(count(codes, counts.shape[1]))])
    indices = np.empty((len(counts), counts[0].sum()), dtype=np.intp)
    together = max(1, AT_A_TIME // indices.shape[1])
    uniforms = np.empty(together * indices.shape[1])
    for start in range(0, len(counts), together):
        chunk = slice(start, start + together)
        out = indices[chunk].reshape(-1)
        rng.random(out=uniforms[: len(out)])
        kernels.draw_by_class(pool, starts, counts[chunk], uniforms, out)
    return indices
