"""Bags of rows as tensors on the device: a stream to train on, and what a network reads."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from quanet.arrays import FloatArray
from quanet.nn.bag_pools import BagPool, pooled_inputs
from quanet.nn.statistics import Statistics
from quanet.simplex import smooth


def sorted_inputs(table: Tensor, indices: Tensor, statistics: Statistics) -> tuple[Tensor, Tensor]:
    """What the paper's network reads of bags of rows of a table (m, 2 + e), given by their numbers (b, n).

    Numbers in the order of their posteriors (b, n) and statistics (b, 8). Only posteriors leave the device.
    """
    posteriors = table[:, :2][indices]
    order = indices.gather(1, posteriors[..., 1].argsort(dim=1, stable=True))
    numbers = statistics.of_the_paper(posteriors.cpu().numpy())
    return order, torch.as_tensor(numbers, device=table.device)


def normalised(found: Tensor) -> FloatArray:
    """Estimates of a network as prevalences that sum to one, as exactly as floats can: (b, k) -> (b, k)."""
    estimate: FloatArray = found.cpu().numpy()
    return estimate / estimate.sum(axis=-1, keepdims=True)


def to_tensors(device: torch.device, *arrays: FloatArray) -> tuple[Tensor, ...]:
    """The arrays as 32-bit tensors on the device, for training."""
    return tuple(torch.as_tensor(array, dtype=torch.float32).to(device, non_blocking=True) for array in arrays)


def training_batches(
    pool: BagPool,
    statistics: Statistics,
    device: torch.device,
    *,
    batches: int,
    bags: int,
    sizes: tuple[int, int],
    groups: int | None,
    rng: np.random.Generator,
) -> Iterator[tuple[Tensor, ...]]:
    """Batches of bags of one random size each, with their true prevalences last; `groups` None is the paper's input."""
    # Whole rows are gathered on the device, from a table that is sent there once; only row numbers travel.
    table = None if groups else to_tensors(device, pool.rows[:, 1:])[0]
    for _ in range(batches):
        n = int(np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1] + 1))))
        drawn = pool.draw(bags, n, rng=rng)
        if table is None:
            pooled, numbers, log_base = pooled_inputs(pool.rows[drawn.indices], statistics, groups or 1)
            yield to_tensors(device, pooled, numbers, log_base, smooth(drawn.prevalences, 1 / (2 * n)))
        else:
            posteriors = pool.rows[:, :2].take(drawn.indices, axis=0)
            order = np.take_along_axis(drawn.indices, np.argsort(posteriors[..., 1], axis=1), axis=1)
            rows = table[torch.as_tensor(order, device=device)]
            yield rows, *to_tensors(device, statistics.of_the_paper(posteriors), drawn.prevalences)


def row_batches(
    pool: BagPool, device: torch.device, *, batches: int, bags: int, sizes: tuple[int, int], rng: np.random.Generator
) -> Iterator[tuple[Tensor, ...]]:
    """Batches of bags of one random size each, as whole rows (b, n, k + e), and their true prevalences (b, k)."""
    table = to_tensors(device, pool.rows)[0]  # sent once; only row numbers travel
    for _ in range(batches):
        drawn = pool.draw(bags, int(np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1] + 1)))), rng=rng)
        yield table[torch.as_tensor(drawn.indices, device=device)], *to_tensors(device, drawn.prevalences)
