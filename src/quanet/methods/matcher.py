"""The search for the nearest mixture of classes, in any representation and by any divergence."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from quanet.arrays import FloatArray, IntArray
from quanet.errors import QuanetWarning
from quanet.methods.divergences import Divergence, find_divergence
from quanet.methods.kernel_means import KernelMean
from quanet.methods.representations import REPRESENTATION, Representation
from quanet.methods.solvers import nearest_mixtures, simplex_quadratic_minimum


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
