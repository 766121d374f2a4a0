"""Which bags are compared: pairs of positions, and that the bags of a pair share no instances."""

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import IntArray
from quanet.bags import Bags
from quanet.errors import InvalidBags, InvalidSetting

PAIRS = ("rest", "previous")


def check_pairs(pairs: ArrayLike | str, b: int) -> IntArray:
    """Positions (m, 2) of the bags to compare, of b bags; `InvalidSetting` if there are none."""
    if b < 2:
        raise InvalidBags("There is one bag only, so there is nothing to compare it with.")
    if isinstance(pairs, str):
        if pairs not in PAIRS:
            raise InvalidSetting(f"pairs must be {' or '.join(map(repr, PAIRS))}, or positions (m, 2); got {pairs!r}.")
        return np.stack([np.arange(b - 1), np.arange(1, b)], axis=1)
    chosen = np.asarray(pairs)
    if chosen.ndim != 2 or chosen.shape[1:] != (2,) or not len(chosen) or chosen.dtype.kind not in "iu":
        raise InvalidSetting(f"pairs must be whole numbers of shape (m, 2); got shape {chosen.shape}.")
    if chosen.min() < 0 or chosen.max() >= b:
        raise InvalidSetting(f"pairs must be positions from 0 to {b - 1}; got {chosen.min()} to {chosen.max()}.")
    return chosen.astype(np.intp)


def check_disjoint(bags: Bags, pairs: IntArray | None = None) -> None:
    """Raise `InvalidBags` if bags that are compared share instances; `pairs` None: if any do."""
    if len(np.unique(bags.flat)) == len(bags.flat):
        return
    parts = [np.unique(part) for part in bags.members]
    shared: list[int] = []
    if pairs is None:
        values, counts = np.unique(np.concatenate(parts), return_counts=True)
        shared, which = values[counts > 1].tolist(), "Some bags"
    for first, second in [] if pairs is None else pairs.tolist():
        shared = np.intersect1d(parts[first], parts[second], assume_unique=True).tolist()
        which = f"Bags {' and '.join(map(repr, bags.labels[[first, second]].tolist()))}"
        if shared:
            break
    if shared:
        raise InvalidBags(
            f"{which} share instances (row {shared[0]}), so they are not independent. Compare disjoint bags, such as a "
            "group with the rest: pairs='rest'."
        )
