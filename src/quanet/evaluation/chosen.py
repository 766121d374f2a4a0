"""What searches over quantifiers share: they answer by the one that they have chosen."""

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray
from quanet.base import Quantifier


class Chooser(Quantifier):
    """Base of the searches. A subclass writes `fit`, which sets `quantifier_`, the fitted one that was chosen."""

    quantifier_: Quantifier

    def represent(self, X: Any) -> FloatArray:
        """The rows of the chosen quantifier: (n, d)."""
        check_is_fitted(self, "quantifier_")
        return self.quantifier_.represent(X)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """What the chosen quantifier makes of bags of rows: (..., n, d) -> (..., k)."""
        return self.quantifier_.aggregate(rows)

    def _inputs(self, X: Any) -> FloatArray:
        return self.quantifier_._inputs(X)  # noqa: SLF001

    def _rows(self, inputs: FloatArray) -> FloatArray:
        return self.quantifier_._rows(inputs)  # noqa: SLF001
