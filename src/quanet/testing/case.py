"""What the laws of the contract are tried on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from sklearn.base import clone

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.errors import InvalidSetting
from quanet.methods.aggregative import AggregativeQuantifier

LabelKind = Literal["string", "integer", "boolean"]
CLOSE = 1e-9  # what rounding in another order may change


@dataclass(frozen=True)
class ContractCase:
    """A quantifier, data to fit it to, and a pool to draw bags from."""

    quantifier: Quantifier
    X: FloatArray
    codes: IntArray
    names: LabelArray
    pool: FloatArray

    @property
    def y(self) -> LabelArray:
        """Labels of the data."""
        return self.names[self.codes]

    def fit(self) -> Quantifier:
        """A new copy, fitted to the data."""
        return clone(self.quantifier).fit(self.X, self.y)

    @cached_property
    def fitted(self) -> Quantifier:
        """One that all laws share which only look at it."""
        return self.fit()

    @property
    def reads_posteriors(self) -> bool:
        """Whether posteriors can be given instead of numbers."""
        return isinstance(self.quantifier, AggregativeQuantifier)


def names_of(k: int, kind: LabelKind) -> LabelArray:
    """Labels (k,) of one kind, in sorted order."""
    if kind == "boolean":
        if k != 2:
            raise InvalidSetting(f"boolean labels have two classes, not {k}.")
        return np.array([False, True])
    return np.array([f"class {c:02}" for c in range(k)]) if kind == "string" else 10 * (np.arange(k) + 1)
