"""Labelled texts as a training stream: what is held out, what is drawn, and batches gathered on the device."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.data.duplicates import find_distinct
from quanet.errors import InvalidData, QuanetWarning
from quanet.nn.loop import Batch
from quanet.nn.vocabulary import IdMatrix
from quanet.simplex import count, draw_uniformly, to_counts

READ_AT_ONCE = 1024  # texts in a batch without gradients: a few hundred megabytes at most


@dataclass(frozen=True, slots=True)
class TextPool:
    """Labelled texts on their device: the ids of their words (n, t), their lengths (n,) and classes (n, k), one-hot."""

    ids: Tensor
    lengths: Tensor
    truth: Tensor
    known_lengths: IntArray  # the same lengths where reading them does not wait for the device

    @classmethod
    def on(cls, device: torch.device, ids: IdMatrix, lengths: IntArray, codes: IntArray) -> Self:
        """Move texts with these classes (n,) to a device."""
        truth = np.eye(int(codes.max()) + 1, dtype=np.float32)[codes]
        here, lengths_here, truth_here = (torch.from_numpy(array).to(device) for array in (ids, lengths, truth))
        return cls(here, lengths_here, truth_here, lengths)

    def batches(self, chosen: IntArray, weights: FloatArray) -> Iterator[Batch]:
        """Batches of the chosen texts (s, b) and their weights (s, b), gathered on the device, as wide as needed."""
        device = self.ids.device
        widths = self.known_lengths[chosen].max(axis=1).clip(1).tolist()
        rows = torch.from_numpy(chosen).to(device)  # once for all batches: a copy for each would make the device wait
        shares = torch.from_numpy(weights.astype(np.float32)).to(device)
        for row, share, width in zip(rows, shares, widths, strict=True):
            yield self.ids[row, :width].long(), self.lengths[row], self.truth[row], share

    def all_of(self, chosen: IntArray, weights: FloatArray) -> Iterator[Batch]:
        """The chosen texts (n,) once, in batches whose mean loss is the one weighted by `weights`, of sum one."""
        parts = list(alike_in_length(self.known_lengths[chosen]))
        for part in parts:
            yield from self.batches(chosen[None, part], weights[None, part] * len(parts))


def alike_in_length(lengths: IntArray) -> Iterator[IntArray]:
    """Positions of texts in parts of bounded size, the shortest texts first, so that little padding is read."""
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), READ_AT_ONCE):
        yield order[start : start + READ_AT_ONCE]


def hold_out(
    codes: IntArray,
    classes: LabelArray,
    share: float,
    *,
    texts: list[str] | None = None,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Positions to train on and to hold out, the same share of every class: at least one where a class has two.

    Copies of one of the `texts` (n,) are on the same side.
    """
    distinct = None if texts is None else find_distinct(texts)
    if distinct is not None:
        parts = hold_out(distinct.representatives(codes), classes, share, rng=rng)
        first, second = (np.flatnonzero(np.isin(distinct.owner, part)) for part in parts)
        return first, second
    sizes = count(codes, len(classes))
    single = classes[sizes == 1].tolist()
    if len(single) == len(classes):
        raise InvalidData(f"every class has one text, so none can be held out for early stopping: {single}. Add texts.")
    if single:
        warnings.warn(
            f"class {single[0]!r} has one text. It is used for training, and none is held out for early stopping.",
            QuanetWarning,
            stacklevel=3,
        )
    shuffled = rng.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    rank = np.arange(len(codes)) - np.repeat(sizes.cumsum() - sizes, sizes)
    held_sizes = np.minimum(np.rint(share * sizes).astype(np.intp).clip(1), sizes - 1)
    held = rank < np.repeat(held_sizes, sizes)
    return by_class[~held], by_class[held]


def draw_balanced(codes: IntArray, shape: tuple[int, int], *, rng: np.random.Generator) -> IntArray:
    """Positions (s, b) of s batches of b instances, each batch at a prevalence uniform on the simplex.

    Examples
    --------
    >>> codes = np.array([0, 1, 1, 1, 1, 1, 1, 1])
    >>> chosen = draw_balanced(codes, (2000, 10), rng=np.random.default_rng(0))
    >>> float((codes[chosen] == 0).mean())
    0.5
    """
    steps, size = shape
    sizes = count(codes, int(codes.max()) + 1)
    wanted = to_counts(draw_uniformly(steps, len(sizes), rng=rng), size)
    drawn = np.repeat(np.tile(np.arange(len(sizes)), steps), wanted.ravel()).reshape(shape)
    within = (rng.random(shape) * sizes[drawn]).astype(np.intp)
    return np.argsort(codes, kind="stable")[(sizes.cumsum() - sizes)[drawn] + within]


def held_out_weights(codes: IntArray, *, balanced: bool) -> FloatArray:
    """What every held-out instance counts for, of sum one: the same, or the same for every class."""
    if not balanced:
        return np.full(len(codes), 1 / len(codes))
    sizes = count(codes, int(codes.max()) + 1)
    return 1 / (sizes[codes] * np.count_nonzero(sizes))
