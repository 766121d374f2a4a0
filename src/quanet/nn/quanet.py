"""QuaNet: estimates of prevalences from calibrated posteriors. Neither this module nor the method needs PyTorch."""

import os
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, check_rows
from quanet.base import Quantifier
from quanet.errors import needing_torch
from quanet.methods.about import About
from quanet.methods.em import Calibrated
from quanet.methods.solvers import maximum_likelihood
from quanet.simplex import smooth


class QuaNet(Calibrated):
    r"""Calibrated maximum likelihood, smoothed by half an instance per class.

    .. math:: \hat p_c = \frac{\hat p_c^{ML} + \frac{1}{2n}}{1 + \frac{k}{2n}}

    As published, with a network of its own for every dataset: `QuaNet.paper` [1]_.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    References
    ----------
    .. [1] A. Esuli, A. Moreo and F. Sebastiani, "A recurrent neural network for sentiment quantification", CIKM 2018.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 400, rng=0)
    >>> QuaNet().fit(X, y).predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("networks", "Esuli, Moreo and Sebastiani (2018)", "any", "posteriors", "O(n log n)")

    _exact: ClassVar[bool] = False
    _closed_form: ClassVar[str] = "likelihood"

    def __init__(self, classifier: Any = None, *, cv: Any = 5) -> None:
        super().__init__(classifier, cv=cv, calibration="bcts")

    @classmethod
    def paper(
        cls,
        classifier: Any = None,
        *,
        max_epochs: int = 200,
        patience: int = 20,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> Quantifier:
        """The network of the paper, for two classes, with its training: a `PaperQuaNet`, which needs PyTorch.

        Its docstring, in `quanet.nn.paper`, describes the parameters and how it departs from the authors' code.
        """
        with needing_torch("QuaNet.paper"):
            from quanet.nn.paper import PaperQuaNet
        return PaperQuaNet(
            classifier,
            max_epochs=max_epochs,
            patience=patience,
            device=device,
            random_state=random_state,
            checkpoint=checkpoint,
            progress=progress,
        )

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Maximum likelihood of every bag, smoothed: (..., n, k) -> (..., k)."""
        posteriors = check_rows(rows, width=len(self.classes_))
        return smooth(maximum_likelihood(posteriors, self.prior_)[0], 1 / (2 * posteriors.shape[-2]))
