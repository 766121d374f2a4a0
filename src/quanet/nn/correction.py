"""The network of a `QuaNet`: build it, train it, ask it for estimates.

`QuaNet` imports this module when it needs the network: torch takes seconds to import, and a network that is not used
needs none.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.nn.bag_pools import BagPool, pooled_inputs
from quanet.nn.batches import normalised, sorted_inputs, training_batches
from quanet.nn.device import device_of_estimates, on_device
from quanet.nn.loop import Batch, train
from quanet.nn.losses import divergence_from_logs, squared_error
from quanet.nn.networks import PaperNetwork, ResidualNetwork
from quanet.nn.recipes import AT_A_TIME, GROUPS, RECIPES
from quanet.nn.training import checkpoint_of, follow, pace_of

ADVICE = {
    "paper": "It is faster on a GPU, with a smaller max_epochs, or with QuaNet() instead of QuaNet.paper().",
    "residual": "It is faster with a smaller max_epochs; EMQ() needs no network.",
}
MOST_SHARED = 2**17  # rows that are multiplied once for all bags on a CPU
NARROW = 16  # numbers in memory for each row of such a bag


def new_network(quantifier: Any) -> nn.Module:
    """A network of the kind and for the rows of a quantifier, not yet trained."""
    width = quantifier.rows_.width - len(quantifier.classes_)
    return PaperNetwork(1 + width) if quantifier.network == "paper" else ResidualNetwork(2 + width, 8)


def train_network(
    quantifier: Any, train_pool: BagPool, stop_pool: BagPool, device: torch.device, rng: np.random.Generator
) -> None:
    """Train a new network for a quantifier, which gets `network_` and `history_`."""
    recipe = RECIPES[quantifier.network]
    network = quantifier.network_ = new_network(quantifier).to(device)

    def stream(pool: BagPool, batches: int, sizes: tuple[int, int]) -> Iterator[Batch]:
        return training_batches(
            pool,
            quantifier.statistics_,
            device,
            batches=batches,
            bags=recipe.bags,
            sizes=sizes,
            groups=recipe.groups,
            rng=rng,
        )

    settings = (recipe, quantifier.random_state, quantifier.max_epochs, quantifier.patience)
    epochs = train(
        network,
        lambda: stream(train_pool, recipe.batches, recipe.sizes),
        list(stream(stop_pool, recipe.stop_batches, recipe.stop_sizes)),
        squared_error if quantifier.network == "paper" else divergence_from_logs,
        lr=recipe.lr,
        max_epochs=quantifier.max_epochs,
        patience=quantifier.patience,
        checkpoint=checkpoint_of(quantifier, (network, settings, device), (train_pool, stop_pool), rng),
        pace=pace_of(
            "network",
            recipe.batches,
            recipe.stop_batches,
            quantifier.max_epochs,
            quantifier.patience,
            ADVICE[quantifier.network],
        ),
    )
    quantifier.history_ = follow(epochs, "QuaNet", quantifier.max_epochs, visible=quantifier.progress)


def estimate(quantifier: Any, rows: FloatArray) -> FloatArray:
    """Prevalences of bags of rows by the network: (b, n, k + e) -> (b, k)."""
    if quantifier.network == "paper":
        table = torch.as_tensor(rows.reshape(-1, rows.shape[-1]), device=device_of_estimates(quantifier.device))
        return _estimate_in_order(quantifier, table, np.arange(len(table)).reshape(rows.shape[:-1]))
    with torch.no_grad():
        inputs = pooled_inputs(rows, quantifier.statistics_, GROUPS)
        return normalised(quantifier.network_(*map(torch.as_tensor, inputs)).exp())


def estimate_bags(quantifier: Any, rows: FloatArray, bags: Bags) -> FloatArray:
    """Prevalences (b, 2) of bags of rows (n, 2 + e) by the paper's network, a bounded number of bags at a time."""
    table = torch.as_tensor(rows, device=device_of_estimates(quantifier.device))
    estimates = np.empty((len(bags), 2))
    shared = table.device.type == "cpu" and len(table) <= MOST_SHARED and len(bags.flat) >= 2 * len(table)
    for positions, matrix in bags.unweighted(rows).by_size():
        width = NARROW if shared else table.shape[1]
        together = max(1, AT_A_TIME[table.device.type] // (matrix.shape[1] * width))
        for start in range(0, len(positions), together):
            chunk = slice(start, start + together)
            estimates[positions[chunk]] = _estimate_in_order(quantifier, table, matrix[chunk], shared=shared)
    return estimates


@torch.no_grad()
def _estimate_in_order(quantifier: Any, table: Tensor, indices: IntArray, *, shared: bool = False) -> FloatArray:
    """Estimates (b, 2) of the paper's network, for bags of rows of a table (m, 2 + e) with these numbers (b, n).

    If bags share rows, each row is multiplied once: two to three times faster on a CPU, the same to 1e-12.
    """
    order, statistics = sorted_inputs(table, torch.as_tensor(indices, device=table.device), quantifier.statistics_)
    network: Any = on_device(quantifier.network_, table.device)
    if shared:
        return normalised(network.of_shared_rows(table[:, 1:], order, statistics))
    return normalised(network(table[:, 1:][order], statistics))
