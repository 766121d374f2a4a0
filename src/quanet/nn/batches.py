"""Rows and labels to a stream of training bags: drawn, summarised, pooled, as tensors on the device."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.duplicates import split_groups
from quanet.nn.statistics import Statistics
from quanet.protocols import UPP
from quanet.simplex import smooth

CERTAIN = 1e-4  # group means are kept this far from 0 and 1 before their log-odds are taken


@dataclass(frozen=True, slots=True)
class BagPool:
    """Rows (m, k + e), posteriors first, and classes (m,) of the instances that bags are drawn from.

    `groups` (m,) are equal for copies of an instance; None where all are different.
    """

    rows: FloatArray
    codes: IntArray
    k: int
    groups: IntArray | None = None

    def draw(self, b: int, n: int, *, rng: np.random.Generator) -> Bags:
        """Bags of n instances at prevalences uniform on the simplex."""
        return UPP(bag_size=n, repeats=b).draw_quietly(self.codes, rng=rng, classes=np.arange(self.k))

    def parts(self, shares: tuple[float, ...], *, rng: np.random.Generator, runs: int | None = None) -> list["BagPool"]:
        """Disjoint pools with these shares of every class, drawn at random; copies of an instance are in the same.

        With a number of runs, each class is cut into so many runs of neighbours, and these are drawn, not instances:
        one run makes every pool a stretch of the data.
        """
        bounds = np.cumsum(shares) / sum(shares)

        def parts_of(codes: IntArray) -> IntArray:
            member = np.empty(len(codes), dtype=np.intp)
            for c in range(self.k):
                positions = np.flatnonzero(codes == c)
                pieces = np.array_split(positions, min(runs or len(positions), max(1, len(positions))))
                positions = np.concatenate([pieces[at] for at in rng.permutation(len(pieces))])
                # Half an instance off, so that rounding favours no part.
                member[positions] = np.searchsorted(bounds, (np.arange(len(positions)) + 0.5) / len(positions))
            return member

        member = split_groups(self.groups, self.codes, parts_of)
        return [self._take(member == part) for part in range(len(shares))]

    def _take(self, chosen: BoolArray) -> "BagPool":
        groups = None if self.groups is None else self.groups[chosen]
        return BagPool(self.rows[chosen], self.codes[chosen], self.k, groups)


def base_estimate(posteriors: FloatArray, statistics: Statistics) -> FloatArray:
    """Calibrated maximum likelihood, smoothed by half an instance a class: (b, n, k) -> (b, k).

    No bag proves that a class is absent; smoothing accounts for that and keeps logarithms finite.
    """
    found = statistics.maximum_likelihood(statistics.calibration(posteriors))
    return smooth(found, 1 / (2 * posteriors.shape[-2]))


def pooled_inputs(rows: FloatArray, statistics: Statistics, groups: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What the residual network reads of bags (b, n, k + e).

    Groups (b, k, g, 2 + e), statistics (b, k, 8), and the logarithm of the base estimate (b, k).
    """
    from quanet import kernels

    b, n, width = rows.shape
    k = len(statistics.prior)
    calibrated = np.ascontiguousarray(rows).copy()
    calibrated[..., :k] = statistics.calibration(rows[..., :k])
    estimates = statistics.estimates(np.ascontiguousarray(rows[..., :k]), np.ascontiguousarray(calibrated[..., :k]))
    pooled = np.empty((b, k, groups, 2 + width - k))
    part = np.empty((b, groups, width))
    for c in range(k):
        if k == 2 and c == 1:  # the same order, from the other end
            part = part[:, ::-1]
        else:
            kernels.pool_in_order(calibrated, np.argsort(calibrated[..., c], axis=1), part)
        share = np.clip(part[..., c], CERTAIN, 1 - CERTAIN)
        pooled[:, c, :, 0] = part[..., c]
        pooled[:, c, :, 1] = np.log(share / (1 - share)) / 4
        pooled[:, c, :, 2:] = part[..., k:]
    log_base = np.log(smooth(estimates[..., 0], 1 / (2 * n)))
    size = np.full((b, k, 1), np.log(n) / 10)
    prior = np.broadcast_to(statistics.prior[:, None], (b, k, 1))
    return pooled, np.concatenate([estimates, log_base[..., None] / 4, prior, size], axis=-1), log_base


def sorted_inputs(table: Tensor, indices: Tensor, statistics: Statistics) -> tuple[Tensor, Tensor]:
    """What the paper's network reads of bags of rows of a table (m, 2 + e), given by their numbers (b, n).

    Rows in order (b, n, 1 + e) and statistics (b, 8). Only posteriors leave the device.
    """
    posteriors = table[:, :2][indices]
    order = indices.gather(1, posteriors[..., 1].argsort(dim=1, stable=True))
    numbers = statistics.of_the_paper(posteriors.cpu().numpy())
    return table[:, 1:][order], torch.as_tensor(numbers, device=table.device)


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
