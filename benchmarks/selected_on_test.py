"""QuaNet.paper() CHEATING: its weights are selected on bags of the TEST set. Only to measure the effect of this.

The authors' published code keeps, of all weights during training, those with the lowest error on test bags. An error
that was minimised over the test set says little about new data, so quanet never does this: its early stopping uses
held-out training data alone. `benchmarks/paper.toml` runs this class and `QuaNet.paper`, which is the same in every
other respect, so the difference between the two is the gain of the selection. It is not part of the library, cannot be
reached from it, and gets the test rows only from a plan with ``leak = true``.
"""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from quanet.nn.paper import PaperQuaNet
from quanet.nn.training import BagPool
from quanet.simplex import encode


class SelectedOnTest(PaperQuaNet):
    """Like `QuaNet.paper`, but early stopping and the choice of weights use bags of the test set."""

    def fit(self, X: Any, y: ArrayLike, *, leaked: tuple[Any, ArrayLike]) -> Self:  # type: ignore[override]
        """Learn from rows X and labels y (n,), and keep the weights that do best on `leaked`: the test set."""
        self._leaked = leaked
        try:
            return super().fit(X, y)
        finally:
            del self._leaked

    def _train(self, train_pool: BagPool, stop_pool: BagPool, device: torch.device, rng: np.random.Generator) -> None:
        rows, labels = self._leaked
        # Not the held-out quarter. The training pool stays as it is, so that the selection alone differs.
        del stop_pool
        test_pool = BagPool(self.rows_.transform(rows), encode(labels, self.classes_), len(self.classes_))
        super()._train(train_pool, test_pool, device, rng)
