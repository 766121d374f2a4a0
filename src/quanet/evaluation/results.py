"""The results of an evaluation: truth and estimate of each bag."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.arrays import FloatArray, IntArray, LabelArray
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
