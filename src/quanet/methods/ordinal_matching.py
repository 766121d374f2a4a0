"""Distribution matching of ordered classes, whose shares are smooth."""

from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.methods.about import About
from quanet.methods.divergences import Divergence
from quanet.methods.matching import DMy
from quanet.methods.order import smoothness
from quanet.parameters import Constraints, at_least


class ODMy(DMy):
    r"""Ordinal distribution matching of posteriors (o-HDy): `DMy` with smooth shares along ordered classes [1]_.

    .. math:: \hat p = \arg\min_{p \in \Delta} \sum_j D\Big(\sum_c p_c H_{jc}, h_j\Big) + \frac{\tau}{2} \| C p \|^2

    with H the histograms of the classes' posteriors, h the bag's, and C as in `OACC`.

    Parameters
    ----------
    classifier, bins, divergence, cumulative, cv : see `DMy`.
    strength : :math:`\tau`; 0 is `DMy`. ``GridSearchQ(ODMy(), {"strength": [1e-4, 1e-3, 1e-2, 0.1]}, metric="md")``
        chooses it on held-out training data.
    order : the classes from the lowest to the highest; None takes numbers as they are.

    Attributes
    ----------
    ladder_ : as in `OACC`.

    Notes
    -----
    Published with the mean of Hellinger distances, which is not convex; here they are squared and summed, as in `DMy`,
    so that the minimum is the only one.

    References
    ----------
    .. [1] M. Bunse, A. Moreo, F. Sebastiani and M. Senz, "Regularization-based methods for ordinal quantification",
           Data Mining and Knowledge Discovery 38, 2024.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(k=4, distance=1.5).draw([0.25] * 4, 2000, rng=0)
    >>> new, _ = Gaussians(k=4, distance=1.5).draw([0.1, 0.2, 0.3, 0.4], 1000, rng=1)
    >>> ODMy(strength=1.0).fit(X, y).predict(new).round(1)
    array([0.1, 0.2, 0.3, 0.4])
    """

    about: ClassVar[About] = About("ordered", "Bunse et al. (2024)", "ordered", "posteriors", "O(n k + bins k^3)")
    allowed_values: ClassVar[Constraints] = {"strength": at_least(0)}

    ladder_: IntArray

    def __init__(
        self,
        classifier: Any = None,
        *,
        bins: int | Sequence[int] = 8,
        divergence: str | Divergence = "hellinger",
        cumulative: bool = False,
        cv: Any = 5,
        strength: float = 0.01,
        order: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(classifier, bins=bins, divergence=divergence, cumulative=cumulative, cv=cv)
        self.strength = strength
        self.order = order

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Summarise every bag and find the nearest smooth mixture: (..., n, d) -> (..., k)."""
        matcher = self.matcher_
        summaries = matcher.representation.summarise(check_rows(rows, width=matcher.width))
        if self.strength == 0 or len(self.classes_) < 3:
            return matcher(summaries)
        smooth = smoothness(self.ladder_)
        return matcher(summaries, penalty=self.strength * smooth.T @ smooth)
