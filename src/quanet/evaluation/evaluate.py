"""Evaluate a quantifier: draw bags, estimate, compare with the truth; in an experiment, once in each cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples, check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels
from quanet.drift.scale import without_drift
from quanet.methods.order import ladder_of
from quanet.metrics import absolute_error, find_metric

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Results of an evaluation: true and estimated prevalences of bags.

    Attributes
    ----------
    truth, estimate : (b, k) prevalences.
    classes : (k,) the classes.
    sizes : (b,) instances per bag.
    labels : (b,) names of the bags: group names, or numbers.

    Examples
    --------
    >>> results = Results(np.array([[0.5, 0.5]]), np.array([[0.4, 0.6]]), np.array(["no", "yes"]),
    ...                   np.array([100]), np.array([0]))
    >>> results.error(), results.error("rae")
    (array([0.1]), array([0.2]))
    >>> results.frame()
       label  size class  truth  estimate
    0      0   100    no    0.5       0.4
    1      0   100   yes    0.5       0.6
    """

    truth: FloatArray
    estimate: FloatArray
    classes: LabelArray
    sizes: IntArray
    labels: LabelArray

    def __len__(self) -> int:
        return len(self.truth)

    def error(
        self,
        metric: str | Callable[..., FloatArray] = absolute_error,
        *,
        eps: float | FloatArray | None = None,
        order: Sequence[Any] | None = None,
    ) -> FloatArray:
        """The error of each bag (b,).

        Parameters
        ----------
        metric : a function of `quanet.metrics`, its short name ("ae", "rae", "kld", ...), or your own function.
        eps : smoothing, for metrics that need it; default: ``1 / (2 * bag_size)``.
        order : the classes from the lowest to the highest, for "md"; default: the order of numeric classes.
        """
        found = find_metric(metric)
        settings: dict[str, Any] = {}
        if found.ordered and len(self.classes) > 2:
            ladder = ladder_of(self.classes, order, found.name, f"Results.error({found.name!r}, ")
            return found.function(self.truth[:, ladder], self.estimate[:, ladder])
        if found.smoothed:
            settings["eps"] = 1 / (2 * self.sizes) if eps is None else eps
        return found.function(self.truth, self.estimate, **settings)

    def frame(self) -> "pd.DataFrame":
        """One row per bag and class: label, size, class, truth, estimate."""
        import pandas as pd

        b, k = self.truth.shape
        return pd.DataFrame(
            {
                "label": np.repeat(self.labels, k),
                "size": np.repeat(self.sizes, k),
                "class": np.tile(self.classes, b),
                "truth": self.truth.ravel(),
                "estimate": self.estimate.ravel(),
            }
        )


class Cell(NamedTuple):
    """One dataset, one method, one run."""

    dataset: str
    method: str
    run: int


@dataclass(frozen=True, slots=True, eq=False)
class CellOutcome:
    """The results of a cell.

    Attributes
    ----------
    results : truth and estimate of each bag; all methods of a dataset and run have the same bags.
    prior : (k,) training prevalences, in the order of `results.classes`.
    seconds : time to fit, without the work that methods share.
    """

    results: Results
    prior: FloatArray
    seconds: float


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
