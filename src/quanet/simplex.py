"""Prevalence vectors: encode labels, count classes, check, smooth, project and draw prevalences."""

import math

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.errors import InvalidBags, InvalidData, brief

SEARCH_POINTS = 4001  # prevalences at which the ends of an interval are searched


def label_array(labels: ArrayLike) -> LabelArray:
    """Labels as an array in which different labels stay different: numbers and strings of a list are not converted.

    Numbers and booleans of dtype object get their own dtype, because scikit-learn does not accept them otherwise.

    Examples
    --------
    >>> label_array([1, "b"]), label_array(np.array([1, 0], dtype=object))
    (array([1, 'b'], dtype=object), array([1, 0]))
    """
    values = np.asarray(labels)
    if values.dtype.kind in "US" and isinstance(labels, list | tuple):
        plain = str if values.dtype.kind == "U" else bytes
        if not all(isinstance(one, plain) for one in labels):
            values = np.asarray(labels, dtype=object)
    if values.dtype != object or values.ndim != 1 or (len(values) and isinstance(values[0], str)):
        return values
    try:
        natural = np.array(values.tolist())
    except ValueError:  # lists of different lengths
        return values
    return natural if natural.dtype.kind in "biuf" and natural.shape == values.shape else values


def encode(labels: ArrayLike, classes: LabelArray) -> IntArray:
    """Position of every label in `classes`, which are sorted: (...) -> (...).

    Examples
    --------
    >>> encode(["pos", "neg", "pos"], np.array(["neg", "pos"]))
    array([1, 0, 1])
    """
    values = label_array(labels)
    if values.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        codes = np.minimum(np.searchsorted(classes, values), len(classes) - 1)
        codes = np.where(classes[codes] == values, codes, -1)
    else:
        known = {value: position for position, value in enumerate(classes.tolist())}
        positions = [known.get(value, -1) for value in values.ravel().tolist()]
        codes = np.array(positions, dtype=np.intp).reshape(values.shape)
    if (codes < 0).any():
        unknown = values[codes < 0].tolist()[0]
        raise InvalidData(
            f"Label {unknown!r} is not one of the classes {classes.tolist()}. "
            "Drop these instances, or fit to data that contain them."
        )
    return codes


def classes_of(labels: ArrayLike) -> LabelArray:
    """The distinct labels, sorted: (n,) -> (k,).

    Examples
    --------
    >>> classes_of([True, False, True])
    array([False,  True])
    """
    values = label_array(labels)
    objects = values.ravel().tolist() if values.dtype == object else []
    odd = next((one for one in objects if isinstance(one, list | dict)), None)
    if odd is not None:
        raise InvalidData(f"Label {brief(odd)} is a {type(odd).__name__}. Labels must be names, numbers or booleans.")
    try:
        return np.unique(values)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise InvalidData(
            f"The labels mix {' and '.join(kinds)}, which have no common order. Convert them to one type."
        ) from None


def count(codes: IntArray, k: int) -> IntArray:
    """Number of instances of each of `k` classes in every bag: (..., n) -> (..., k).

    Examples
    --------
    >>> count(np.array([[0, 2, 2], [1, 1, 1]]), 3)
    array([[1, 0, 2],
           [0, 3, 0]])
    """
    bags = codes.reshape(math.prod(codes.shape[:-1]), codes.shape[-1])  # also correct for empty bags
    shifted = bags + k * np.arange(len(bags))[:, None]
    return np.bincount(shifted.ravel(), minlength=len(bags) * k).reshape(*codes.shape[:-1], k)


def prevalence_of(labels: ArrayLike, classes: ArrayLike) -> FloatArray:
    """Prevalence of every class among the labels: (..., n), (k,) -> (..., k).

    Examples
    --------
    >>> prevalence_of(["b", "a", "b", "b"], ["a", "b"])
    array([0.25, 0.75])
    """
    names = np.asarray(classes)
    codes = encode(labels, names)
    if codes.shape[-1] == 0:
        raise InvalidBags("A bag without instances has no prevalence. Leave empty bags out.")
    return count(codes, len(names)) / codes.shape[-1]


def check_prevalences(prevalences: ArrayLike, *, k: int | None = None) -> FloatArray:
    """Return `prevalences` as floats (..., k), or raise an error that names the first invalid vector."""
    values = np.asarray(prevalences, dtype=float)
    if values.ndim == 0 or (k is not None and values.shape[-1] != k):
        raise InvalidData(f"Prevalences must have {k or 'k'} classes on the last axis; got shape {values.shape}.")
    off = ~(np.isfinite(values).all(axis=-1) & (values >= 0).all(axis=-1))
    off |= np.abs(values.sum(axis=-1) - 1) > 1e-6
    if off.any():
        invalid = values.reshape(-1, values.shape[-1])[off.ravel()][0]
        raise InvalidData(
            f"{invalid.tolist()} is not a prevalence vector: its elements must be at least 0 and sum to 1."
        )
    return values


def smooth(prevalences: FloatArray, eps: float | FloatArray) -> FloatArray:
    r"""Move prevalences away from zero: :math:`(p + \epsilon) / (1 + k \epsilon)`; `eps` is one number or one per bag.

    Examples
    --------
    >>> smooth(np.array([0.0, 1.0]), 0.125)
    array([0.1, 0.9])
    """
    per_bag = np.asarray(eps, dtype=float)[..., None]
    return (prevalences + per_bag) / (1 + prevalences.shape[-1] * per_bag)


def project(points: FloatArray) -> FloatArray:
    """Nearest point of the simplex, in Euclidean distance: (..., k) -> (..., k) (Held, Wolfe and Crowder 1974).

    Examples
    --------
    >>> project(np.array([1.2, -0.4]))
    array([1., 0.])
    """
    descending = -np.sort(-points, axis=-1)
    excess = descending.cumsum(axis=-1) - 1
    rank = np.arange(1, points.shape[-1] + 1)
    last = (descending * rank > excess).sum(axis=-1, keepdims=True)
    return np.maximum(points - np.take_along_axis(excess, last - 1, axis=-1) / last, 0)


def grid(k: int, steps: int) -> FloatArray:
    """Every prevalence vector of `k` classes whose elements are multiples of 1 / steps: (C(steps + k - 1, k - 1), k).

    Examples
    --------
    >>> grid(2, 2)
    array([[0. , 1. ],
           [0.5, 0.5],
           [1. , 0. ]])
    """
    if steps == 1:  # a fast path, for many classes
        return np.ascontiguousarray(np.eye(k)[::-1])
    counts = np.arange(steps + 1)[:, None]  # built one class at a time
    for _ in range(k - 2):
        left = steps - counts.sum(axis=1)
        repeated = np.repeat(counts, left + 1, axis=0)
        following = np.concatenate([np.arange(most + 1) for most in left])
        counts = np.column_stack([repeated, following])
    return np.column_stack([counts, steps - counts.sum(axis=1)]) / steps


def grid_size(k: int, steps: int) -> int:
    """Number of points of `grid`."""
    return math.comb(steps + k - 1, k - 1)


def draw_uniformly(b: int, k: int, *, rng: np.random.Generator) -> FloatArray:
    """Prevalence vectors uniform on the simplex: (b, k)."""
    return rng.dirichlet(np.ones(k), size=b)


def to_counts(prevalences: FloatArray, n: int) -> IntArray:
    """Whole numbers nearest to ``n * prevalences`` that sum to `n`, by largest remainder: (..., k) -> (..., k).

    Examples
    --------
    >>> to_counts(np.array([[0.26, 0.37, 0.37], [0.01, 0.0, 0.99]]), 10)
    array([[ 2,  4,  4],
           [ 0,  0, 10]])
    """
    exact = prevalences * n
    floors = np.floor(exact + 1e-9)
    missing = (n - floors.sum(axis=-1, keepdims=True)).astype(np.intp)
    rank = np.argsort(np.argsort(floors - exact, axis=-1, kind="stable"), axis=-1, kind="stable")
    counts: IntArray = floors.astype(np.intp) + (rank < missing)
    return counts


def draw_bags(codes: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """Positions (b, n) of instances of classes (m,), drawn with replacement to give the class counts (b, k)."""
    sizes = count(codes, counts.shape[1])
    size, first = (np.repeat(np.tile(each, len(counts)), counts.ravel()) for each in (sizes, np.cumsum(sizes) - sizes))
    within = (rng.random(len(size)) * size).astype(np.intp)
    return np.argsort(codes, kind="stable").take(first + within).reshape(len(counts), -1)


def order_of_appearance(codes: IntArray, k: int) -> IntArray:
    """The k classes in the order of their first instances (m,), so that their names decide no random draw.

    Examples
    --------
    >>> order_of_appearance(np.array([2, 2, 0, 1, 0]), 4)
    array([2, 0, 1, 3])
    """
    first = np.full(k, len(codes))
    found, at = np.unique(codes, return_index=True)
    first[found] = at
    return first.argsort(kind="stable")


def orders_of_content(rows: FloatArray, k: int) -> tuple[IntArray, IntArray]:
    """Order (k,) of classes by their mean posteriors, and order (n,) of rows by their columns: (n, d), k posteriors.

    Random draws from a bag that use both depend neither on the names of classes nor on the order of its instances.

    Examples
    --------
    >>> orders_of_content(np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]), 2)
    (array([1, 0]), array([0, 2, 1]))
    """
    # Numbers are summed in ascending order, because the last digits of a sum depend on the order.
    classes = np.sort(rows[:, :k], axis=0).sum(axis=0).argsort(kind="stable")
    columns = [*rows[:, k:].T, *rows[:, classes].T[::-1]]
    return classes, np.lexsort(columns) if columns else np.arange(len(rows))


def row_keys(rows: FloatArray) -> list[FloatArray]:
    """Keys (n,) for `np.lexsort`, by which rows are sorted by the number of their largest column, it, and the smallest.

    Examples
    --------
    >>> np.lexsort(row_keys(np.array([[0.1, 0.9], [0.2, 0.8], [0.6, 0.4]])))
    array([2, 1, 0])
    """
    return [rows.min(axis=1), rows.max(axis=1), rows.argmax(axis=1)] if rows.shape[1] else []


def spread_counts(weights: FloatArray, totals: IntArray) -> IntArray:
    """Whole numbers nearly proportional to weights, which sum to `totals`: (b, n), (b,) -> (b, n).

    The sum of neighbouring numbers differs from the exact sum by less than 1 (systematic sampling; Madow 1949).

    Examples
    --------
    >>> spread_counts(np.array([[1.0, 1.0, 1.0, 1.0, 6.0]]), np.array([5]))
    array([[1, 0, 1, 0, 3]])
    """
    reached = weights.cumsum(axis=-1)
    edges = np.floor(reached * (totals[:, None] / reached[:, -1:]) + 0.5).astype(np.intp)
    return np.diff(edges, axis=-1, prepend=0)


def ranked_by_weight(numbers: FloatArray, weights: FloatArray) -> FloatArray:
    """Numbers of columns (b, n), replaced by their ranks by weight (b, n) in each bag: names of classes decide nothing.

    Examples
    --------
    >>> ranked_by_weight(np.array([[0, 1, 0, 2]]), np.array([[1.0, 1.0, 1.0, 9.0]]))
    array([[1., 0., 1., 2.]])
    """
    columns = numbers.astype(np.intp)
    b, d = len(columns), int(columns.max()) + 1
    cells = np.arange(b)[:, None] * d + columns
    totals = np.bincount(cells.ravel(), weights.ravel(), minlength=b * d).reshape(b, d)
    # Rounded, because the last digits of a sum depend on the order of the rows.
    ranks = np.round(totals / totals.sum(axis=1, keepdims=True), 9).argsort(axis=1, kind="stable").argsort(axis=1)
    return np.take_along_axis(ranks, columns, axis=1).astype(float)


def spread_in_order(weights: FloatArray, totals: IntArray, keys: list[FloatArray]) -> IntArray:
    """`spread_counts` along the weights sorted by keys (b, n), the last one first: (b, n), (b,) -> (b, n)."""
    order = np.lexsort([weights, *keys], axis=-1)
    found = np.empty_like(order)
    np.put_along_axis(found, order, spread_counts(np.take_along_axis(weights, order, axis=-1), totals), axis=-1)
    return found


def one_hot(posteriors: FloatArray) -> FloatArray:
    """Predicted labels as rows of 0 and 1, from posteriors: (m, k) -> (m, k)."""
    return np.asarray(np.eye(posteriors.shape[1])[posteriors.argmax(axis=1)])


def log_softmax(logits: FloatArray) -> FloatArray:
    """Logarithms of shares in proportion to exp(logits), over the last axis.

    The numbers of scipy.special.log_softmax, in less than a third of its time on small arrays.
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def whole_counts(weights: FloatArray, most: IntArray, limit: int) -> tuple[BoolArray, IntArray]:
    """Whether weights (b, n) below a limit are multiples of a unit that sum to `most` (b,) at most; the multiples."""
    least = np.where(weights > 0, weights, np.inf).min(axis=1)
    whole = ((weights == np.rint(weights)) & (weights < limit)).all(axis=1)
    unit = np.where(whole, np.gcd.reduce(np.where(whole[:, None], weights, 0).astype(np.intp), axis=1), least)
    counts = np.minimum(np.rint(weights / unit[:, None]), most[:, None] + 1.0)
    exact = (np.abs(weights - counts * unit[:, None]) <= 1e-9 * weights).all(axis=1) & (counts.sum(axis=1) <= most)
    return exact, counts.astype(np.intp)


def share_grid(points: int) -> FloatArray:
    """Prevalences from 0 to 1, denser near 0 and 1: (points,)."""
    return np.sin(np.linspace(0, np.pi / 2, points)) ** 2


def invert(
    estimate: FloatArray, shares: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest true prevalence that is compatible with each estimate (b,).

    A true prevalence is compatible if the error of the estimate lies in the range that is usual there.

    Parameters
    ----------
    estimate : (b,) estimates of one class.
    shares : (g,) true prevalences, ascending.
    low, high : (g,) range of the usual errors at each of them.

    Examples
    --------
    >>> invert(np.array([0.0, 0.5]), np.array([0.0, 1.0]), np.array([-0.1, -0.1]), np.array([0.1, 0.1]))
    (array([0. , 0.4]), array([0.1, 0.6]))
    """
    fine = share_grid(SEARCH_POINTS)
    # Estimates increase with the true prevalence. Where noise contradicts this, the wider interval is used.
    highest = np.maximum.accumulate(fine + np.interp(fine, shares, high))
    lowest = np.minimum.accumulate((fine + np.interp(fine, shares, low))[::-1])[::-1]
    lower = fine[np.minimum(np.searchsorted(highest, estimate - 1e-12), SEARCH_POINTS - 1)]
    upper = fine[np.maximum(np.searchsorted(lowest, estimate + 1e-12, side="right") - 1, 0)]
    return lower, upper
