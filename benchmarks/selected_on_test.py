"""QuaNet.paper() CHEATING: its weights are selected on bags of the TEST set. For measuring what that is worth, only.

The authors' published code keeps, of all the weights met in training, those with the least error on test bags. An error
that was minimised over the test set says little about new data, so quanet never does this: its early stopping sees
held-out training data alone. `benchmarks/paper.toml` runs this class beside `QuaNet.paper`, which is the same in all
else, so that the difference between the two is what the selection gains. It is no part of the library, cannot be
reached from it, and takes the test rows from a plan that says ``leak = true``.
"""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from quanet import QuaNet
from quanet.nn.batches import Pool
from quanet.simplex import encode


class SelectedOnTest(QuaNet):
    """As `QuaNet.paper`, but early stopping and the choice of weights look at bags of the test set."""

    def fit(self, X: Any, y: ArrayLike, *, leaked: tuple[Any, ArrayLike]) -> Self:  # type: ignore[override]
        """Learn from rows X and labels y (n,), and keep the weights that do best on `leaked`: the test set."""
        self._leaked = leaked
        try:
            return super().fit(X, y)
        finally:
            del self._leaked

    def _train(self, train_pool: Pool, stop_pool: Pool, device: torch.device, rng: np.random.Generator) -> None:
        rows, labels = self._leaked
        # Not the held-out quarter. The training pool stays as it is, so that the selection alone differs.
        del stop_pool
        test_pool = Pool(self.rows_.transform(rows), encode(labels, self.classes_), len(self.classes_))
        super()._train(train_pool, test_pool, device, rng)
