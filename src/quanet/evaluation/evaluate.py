"""Evaluate a quantifier: draw bags, estimate, compare with the truth."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels
from quanet.drift.scale import without_drift
from quanet.evaluation.results import Results


class DrawsBags(Protocol):
    """A protocol: any object that draws bags from labels, such as those of `quanet.protocols`."""

    def draw(self, y: ArrayLike, *, rng: np.random.Generator | int, classes: ArrayLike | None = None) -> Bags:
        """Draw bags from a pool with labels `y`."""


def evaluate(
    quantifier: Quantifier,
    X: Any,
    y: ArrayLike,
    protocol: DrawsBags,
    *,
    rng: np.random.Generator | int,
) -> Results:
    """Evaluate a fitted quantifier: compare its estimates with the truth on bags drawn from a labelled pool.

    The pool is represented once; all bags are drawn and aggregated as arrays. With the same seed, all methods get the
    same bags. Returns `Results`.

    Parameters
    ----------
    quantifier : fitted.
    X, y : the pool: instances and labels (n,).
    protocol : how bags are drawn: `APP`, `UPP`, `NPP`, `Dirichlet`, `ByGroup`.
    rng : a generator or a seed.

    Examples
    --------
    >>> from quanet import APP, EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 2000, rng=0)
    >>> X_test, y_test = Gaussians().draw([0.5, 0.5], 2000, rng=1)
    >>> results = evaluate(EMQ().fit(X, y), X_test, y_test, APP(bag_size=100, repeats=10), rng=2)
    >>> len(results), bool(results.error().mean() < 0.05)
    (210, True)
    """
    check_is_fitted(quantifier, "classes_")
    bags = protocol.draw(check_labels(y, _num_samples(X)), rng=rng, classes=quantifier.classes_)
    return Results(
        bags.prevalences,
        np.asarray(quantifier.predict_bags(X, bags)),
        quantifier.classes_,
        bags.sizes,
        bags.labels,
    )


def fit_for_estimates(quantifier: Quantifier, X: Any, y: ArrayLike, **options: Any) -> Quantifier:
    """Fit a quantifier whose intervals are not needed: without a drift scale, which takes time."""
    with without_drift():
        return quantifier.fit(X, y, **options)
