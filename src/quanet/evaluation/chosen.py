"""What searches over quantifiers share: they answer by the one that they have chosen."""

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier


class Chooser(Quantifier):
    """Base of the searches. A subclass writes `fit`, which ends with `_answer_by`.

    A fitted search can do what the chosen quantifier can. Methods that every quantifier has are passed on one by one
    below; any other attribute that the search itself does not have, such as `held_rows_`, `lead_` or `classifier_`, is
    looked up in the chosen quantifier.

    Attributes
    ----------
    quantifier_ : the fitted quantifier that was chosen.
    search_ : the fitted search that chose it, where searches were searched; otherwise there is none.
    """

    quantifier_: Quantifier

    def __getattr__(self, name: str) -> Any:
        """An attribute of the chosen quantifier, once there is one."""
        chosen = vars(self).get("quantifier_")
        if chosen is None or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(chosen, name)

    def represent(self, X: Any) -> FloatArray:
        """The rows of the chosen quantifier: (n, d)."""
        check_is_fitted(self, "quantifier_")
        return self.quantifier_.represent(X)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """What the chosen quantifier makes of bags of rows: (..., n, d) -> (..., k)."""
        check_is_fitted(self, "quantifier_")
        return self.quantifier_.aggregate(rows)

    @property
    def _reads_posteriors(self) -> bool:  # type: ignore[override]
        return "quantifier_" in vars(self) and self.quantifier_._reads_posteriors  # noqa: SLF001

    def _answer_by(self, chosen: Quantifier) -> None:
        """Use a fitted quantifier from now on; what the search has learnt itself gives way to what that has learnt."""
        if isinstance(chosen, Chooser):
            self.search_, chosen = chosen, chosen.quantifier_
        self.quantifier_ = chosen
        self.classes_, self.prior_, self.n_instances_ = chosen.classes_, chosen.prior_, chosen.n_instances_

    def _inputs(self, X: Any) -> FloatArray:
        return self.quantifier_._inputs(X)  # noqa: SLF001

    def _rows(self, inputs: FloatArray) -> FloatArray:
        return self.quantifier_._rows(inputs)  # noqa: SLF001

    def _aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        return self.quantifier_._aggregate_bags(rows, bags)  # noqa: SLF001

    def _relearnt(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        return self.quantifier_._relearnt(inputs, codes)  # noqa: SLF001
