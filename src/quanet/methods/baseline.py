"""The baseline that ignores the bag: the training prevalences."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from quanet.arrays import FloatArray, check_rows
from quanet.base import Quantifier
from quanet.methods.about import About


class TrainPrevalence(Quantifier):
    r"""The training prevalences, for every bag; a method that does no better has learned nothing.

    .. math:: \hat p_c = \rho_c = \frac{m_c}{m}

    with :math:`m_c` of m training instances in class c. Also known as maximum likelihood prevalence estimation (MLPE)
    [1]_.

    Parameters
    ----------
    classifier : not used; accepted so that all methods can be built alike.

    References
    ----------
    .. [1] A. Esuli, A. Fabris, A. Moreo and F. Sebastiani, Learning to Quantify, Springer, 2023.

    Examples
    --------
    >>> TrainPrevalence().fit(["x", "y", "z"], ["spam", "ham", "ham"]).predict(["w"])
    array([0.667, 0.333])
    """

    about: ClassVar[About] = About("baseline", "the training prevalences", "any", "nothing", "O(1)")

    def __init__(self, classifier: Any = None) -> None:
        self.classifier = classifier

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Count the labels y (n,)."""
        self._learn_labels(X, y)

    def _read(self, X: Any) -> FloatArray:
        """Rows of no columns: (n, 0)."""
        return np.empty((_num_samples(X), 0))

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """The training prevalences, for every bag: (..., n, 0) -> (..., k)."""
        return np.tile(self.prior_, (*check_rows(rows).shape[:-2], 1))
