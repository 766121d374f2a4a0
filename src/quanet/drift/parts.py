"""Parts of the training data that differ from the rest: clusters of descriptions, or groups that the user names.

A classifier that has not seen a part shows how large the bias of a quantifier is on data like it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.drift.descriptions import Descriptions
from quanet.errors import InvalidData
from quanet.simplex import count, order_of_appearance, to_counts

PARTS = 8
MIN_INSTANCES = 1000  # of the training data; with fewer, parts are too small to show a bias
MIN_OF_CLASS = 10  # instances of a class in a part
MIN_PARTS = 3
MISSING = ("nan", "NaT", "<NA>")  # how missing groups are written
SPLITS, REPEATS, SIZE = 2, 2, 400  # halves of a part, bags from each half at each prevalence, and instances per bag
MANY = 10  # classes, above which bags are drawn at the prevalences of some classes only


@dataclass(frozen=True, slots=True, eq=False)
class TrainingParts:
    """Disjoint parts of the training data.

    Attributes
    ----------
    used : (m,) positions of the instances that parts are made of.
    members : (m,) the part of each of them; -1 for instances that are never left out.
    kind : "clusters" or "groups".
    """

    used: IntArray
    members: IntArray
    kind: str

    def folds(self, codes: IntArray, k: int) -> list[tuple[IntArray, IntArray]]:
        """For each part that can be left out: the other instances, and its own, as positions in `used`."""
        found = []
        for part in np.unique(self.members[self.members >= 0]).tolist():
            seen, held_out = np.flatnonzero(self.members != part), np.flatnonzero(self.members == part)
            present = count(codes[self.used[held_out]], k) >= MIN_OF_CLASS
            if count(codes[self.used[seen]], k).min() >= MIN_OF_CLASS and present.sum() >= 2:
                found.append((seen, held_out))
        return found


def find_parts(descriptions: Descriptions, codes: IntArray, k: int, groups: Any, most: int) -> TrainingParts | str:
    """Parts of the training data, from at most so many instances; or why there are none.

    Parameters
    ----------
    descriptions : (n, e) of the instances, which are clustered if there are no groups.
    codes : (n,) their classes.
    k : number of classes.
    groups : (n,) the group of every instance, such as its product or month, "" if it has none; None for clusters.
    most : number of instances used.
    """
    n, rng = len(codes), np.random.default_rng(0)
    if n < MIN_INSTANCES:
        return f"there are {n:,} training instances, fewer than {MIN_INSTANCES:,}"
    used = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    if groups is not None:
        names = check_groups(groups, n)[used]
        values, members, sizes = np.unique(names, return_inverse=True, return_counts=True)
        largest = np.argsort(-sizes, kind="stable")[:PARTS]
        # The other groups are in no part that is left out.
        members = np.where(np.isin(members, largest) & (names != ""), members, -1)
        named = values[values != ""]
        return TrainingParts(used, members, "groups") if len(named) > 1 else f"there is one group only{_only(named)}"
    # Without the difference between classes, so that every part contains all of them.
    values = np.asarray(descriptions, dtype=float)[used]
    means = np.array([values[codes[used] == c].mean(axis=0) for c in range(k)])
    values = values - means[codes[used]]
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    if len(np.unique(values[:: max(1, len(values) // 1000)], axis=0)) < 10 * PARTS:
        return "too many instances are alike"
    return TrainingParts(used, KMeans(PARTS, n_init=2, random_state=0).fit_predict(values), "clusters")


def _only(names: LabelArray) -> str:
    return f", {names[0]!s:.40}" if len(names) else ""


def check_groups(groups: Any, n: int) -> LabelArray:
    """The groups as an array (n,) of strings, "" where one is missing; `InvalidData` if their number is wrong."""
    values = np.asarray(groups, dtype=object)
    if values.shape != (n,):
        raise InvalidData(f"groups must have shape ({n},), one group per instance; its shape is {values.shape}.")
    return np.array(["" if value is None or str(value) in MISSING else str(value) for value in values])


def bias_variance(quantifier: Any, rows: FloatArray, codes: IntArray, rng: np.random.Generator) -> float:
    r"""The squared bias of a quantifier on a part, relative to p (1 - p), without the noise of the part's size.

    Bags are drawn from two random halves of the part at the same prevalences p. The noise of the halves is independent,
    so that the product of their mean errors estimates the squared bias:

    .. math:: v = \frac{\sum_p \sum_c b_c b'_c}{\sum_p \sum_c p_c (1 - p_c)}

    Parameters
    ----------
    quantifier : fitted.
    rows : (m, d) of the part's instances, by a classifier that has not seen it.
    codes : (m,) their classes.
    rng : random numbers.
    """
    k = len(quantifier.classes_)
    present = _present(codes, k)
    counts = counts_to_try(present, k)
    wanted = np.repeat(counts / SIZE, REPEATS, axis=0)
    products = []
    for _ in range(SPLITS):
        errors = []
        for half in _halves(codes, present, rng):
            positions = _draw(half, np.repeat(counts, REPEATS, axis=0), present, rng)
            found = quantifier.aggregate(rows[positions]) - wanted
            errors.append(found.reshape(len(counts), REPEATS, k).mean(axis=1))
        products.append(float((errors[0] * errors[1]).sum()))
    shares = counts / SIZE
    return float(np.mean(products)) / float((shares * (1 - shares)).sum())


def draw_bags_of_part(codes: IntArray, k: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Positions (b, n) of bags of a part with classes (m,), from few to many of each class; and prevalences (b, k)."""
    present = _present(codes, k)
    counts = np.repeat(counts_to_try(present, k), 2 * REPEATS, axis=0)
    return _draw([np.flatnonzero(codes == c) for c in present.tolist()], counts, present, rng), counts / SIZE


def _present(codes: IntArray, k: int) -> IntArray:
    """The classes with enough instances, in an order that does not depend on their names."""
    order = order_of_appearance(codes, k)
    return order[count(codes, k)[order] >= MIN_OF_CLASS]


def counts_to_try(present: IntArray, k: int) -> IntArray:
    """Numbers of instances (g, k) of the classes that are present: from few to many of each class.

    Examples
    --------
    >>> counts_to_try(np.array([0, 1]), 2)[:, 1] / SIZE
    array([0.1, 0.3, 0.5, 0.7, 0.9])
    """
    found = len(present)
    if found == 2:
        second = np.arange(0.1, 1, 0.2)
        among = np.column_stack([1 - second, second])
    else:
        corners = np.eye(found)[: min(found, MANY)]
        among = np.vstack([corners * (0.7 - 0.3 / (found - 1)) + 0.3 / (found - 1), np.full((1, found), 1 / found)])
    counts = np.zeros((len(among), k), dtype=np.intp)
    counts[:, present] = to_counts(among, SIZE)
    return counts


def _halves(codes: IntArray, present: IntArray, rng: np.random.Generator) -> list[list[IntArray]]:
    """Two random halves of a part: the positions of each class that is present."""
    shuffled = [rng.permutation(np.flatnonzero(codes == c)) for c in present.tolist()]
    return [[one[: len(one) // 2] for one in shuffled], [one[len(one) // 2 :] for one in shuffled]]


def _draw(half: list[IntArray], counts: IntArray, present: IntArray, rng: np.random.Generator) -> IntArray:
    """Positions (b, n) drawn with replacement from the classes of a half, to give the class counts (b, k)."""
    return np.array(
        [
            np.concatenate([rng.choice(one, number) for one, number in zip(half, row[present].tolist(), strict=True)])
            for row in counts
        ]
    )
