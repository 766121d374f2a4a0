"""What searches over quantifiers share: they answer by the one that they have chosen."""

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.drift.scale import DriftScale
from quanet.held_out import HeldOut


class DelegatingSearch(Quantifier):
    """Base of the searches. A subclass writes `_fit`, which ends with `_answer_by`.

    A fitted search can do what the chosen quantifier can. Methods that every quantifier has are passed on one by one
    below; any other attribute that the search itself does not have, such as `classifier_`, is
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

    def read(self, X: Any) -> Inputs:
        """What the chosen quantifier reads."""
        return self.quantifier_.read(X)

    def _read(self, X: Any) -> FloatArray:
        return self.quantifier_.read(X).values

    def learn_drift(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> None:
        """Learn the drift scale of the chosen quantifier."""
        self.quantifier_.learn_drift(X, y, groups)

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """The rows of the chosen quantifier: (n, d) -> (n, d')."""
        return self.quantifier_.rows(inputs)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """What the chosen quantifier makes of bags of rows: (..., n, d) -> (..., k)."""
        check_is_fitted(self, "quantifier_")
        return self.quantifier_.aggregate(rows)

    def chosen(self) -> Quantifier:
        """The chosen quantifier, once there is one."""
        return self.quantifier_ if "quantifier_" in vars(self) else self

    @property
    def reads_posteriors(self) -> bool:  # type: ignore[override]
        """Whether the chosen quantifier reads posteriors."""
        return "quantifier_" in vars(self) and self.quantifier_.reads_posteriors

    @property
    def held_out_(self) -> HeldOut | None:  # type: ignore[override]
        """Held-out instances of the chosen quantifier."""
        return self.quantifier_.held_out_ if "quantifier_" in vars(self) else None

    @property
    def drift_(self) -> DriftScale | None:  # type: ignore[override]
        """The drift scale of the chosen quantifier."""
        return self.quantifier_.drift_ if "quantifier_" in vars(self) else None

    def _answer_by(self, chosen: Quantifier) -> None:
        """Use a fitted quantifier from now on; what the search has learnt itself gives way to what that has learnt."""
        if isinstance(chosen, DelegatingSearch):
            self.search_, chosen = chosen, chosen.quantifier_
        self.quantifier_ = chosen
        self.classes_, self.prior_, self.n_instances_ = chosen.classes_, chosen.prior_, chosen.n_instances_

    def aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Prevalences of bags by the chosen quantifier: (b, k)."""
        return self.quantifier_.aggregate_bags(rows, bags)

    def relearn(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        """The chosen quantifier, relearned from other held-out inputs."""
        return self.quantifier_.relearn(inputs, codes)
