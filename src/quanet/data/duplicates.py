"""Find copies of an instance: the same text or the same row of numbers more than once.

If a copy of a held-out instance is in the training data, a classifier looks better than it is. So copies stay together
when data are split, and count as one instance when instances are counted.

Texts are copies if they are equal up to case, Unicode form, white space and the addresses in them (links and e-mail).
Rows of numbers are copies if they are equal, unless the values are so coarse that rows are equal by chance.

Hashes of the content also give instances an order that does not depend on the file (`canonical_order`). Whether the
order of a file is related to its labels is counted, too (`RowOrder`).
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.data.instances import check_texts, column_names, is_text
from quanet.errors import InvalidData
from quanet.wording import percent

Hashes = NDArray[np.uint64]
MAX_HASHES = 2**16  # kept of training texts: half a megabyte
CHUNK = 2**22  # numbers hashed at a time, to bound memory
MAX_COMPARED = 2000  # distinct rows used to see how coarse the values are
BY_CHANCE = 0.1  # if chance explains at least this share of the pairs of equal rows, none is a copy
MANY_COPIES = 4  # per row, on average; with coarse values, more copies are not a mistake in the data
DIGITS = 4  # decimals; values with more decimals identify a row
ADDRESS = re.compile(r"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.[\w.-]+")  # of a page or a mailbox
RELATED = 5.0  # standard deviations by which equal neighbours must exceed what chance explains
NOTABLE = 0.05  # share of the neighbours
MIXER, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


def normalize_text(text: str) -> str:
    r"""Normalize case, Unicode form and white space, and leave out addresses.

    A text that consists of addresses alone keeps them.

    Examples
    --------
    >>> normalize_text("  Good\n film ")
    'good film'
    >>> normalize_text("Good film https://t.co/x1"), normalize_text("https://t.co/x1")
    ('good film', 'https://t.co/x1')
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = text.casefold()
    if "://" in text or "www." in text or "@" in text:
        text = ADDRESS.sub(" ", text).strip() or text
    if text.isprintable() and "  " not in text and text == text.strip():  # all white space is single blanks
        return text
    return " ".join(text.split())


def hash_texts(texts: list[str], *, exact: bool = False) -> Hashes:
    """A hash of every text (n,), equal for copies, or with `exact` for equal texts alone; the same in every process."""
    written = texts if exact else map(normalize_text, texts)
    digests = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in written]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def hash_training_texts(texts: list[str]) -> Hashes:
    """Hashes of the distinct texts, sorted; if they are many, the smallest ones, which are a random subset."""
    return np.unique(hash_texts(texts))[:MAX_HASHES]


def hash_instances(X: Any) -> Hashes | None:
    """A hash of every instance (n,), equal for copies; None if X is neither texts nor a matrix."""
    if is_text(X):
        try:
            return hash_texts(check_texts(X))
        except InvalidData:  # some are missing; the caller that reads them raises
            return None
    if hasattr(X, "tocsr"):
        return _hash_sparse(X.tocsr())
    if column_names(X) is not None:
        return _hash_table(X)
    try:
        values = np.asarray(X)
    except ValueError:  # lists of different lengths
        return None
    if values.ndim < 2 or values.dtype.kind not in "biuf":
        return None
    return hash_numbers(values.reshape(len(values), -1))


def canonical_order(X: Any, *keys: LabelArray | None, apart: bool = False) -> IntArray | None:
    """Positions (n,) that put instances into an order given by their content; None if they are in it, or have no hash.

    The order is that of hashes, so that it is related neither to labels nor to topics. Copies of an instance are next
    to each other, in the order of the keys (n,), such as their labels. Rows that are equal by chance are numbered in
    this order, and their numbers are hashed, too, so that they are spread. Instances that are equal in content and keys
    may be exchanged.

    Parameters
    ----------
    X : the instances.
    keys : (n,) what orders equal instances; None is left out.
    apart : whether equal instances are different ones, as equal posteriors are.

    Examples
    --------
    >>> texts = ["good", "bad", "poor", "fine"]
    >>> order = canonical_order(texts)
    >>> again = canonical_order(texts[::-1])
    >>> [texts[at] for at in order] == [texts[::-1][at] for at in again]
    True
    """
    hashes = hash_instances(X)
    if hashes is None:
        return None
    ranks: list[Any] = [np.unique(key, return_inverse=True)[1] for key in reversed(keys) if key is not None]
    ranks += [hash_texts(check_texts(X), exact=True)] if is_text(X) else []
    order = np.lexsort((*ranks, hashes))
    if apart or (not is_text(X) and _find_distinct(X, hashes) is None):
        hashes = hashes[order]
        first = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        number = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
        order = order[np.argsort(_mixed(hashes, number.astype(np.uint64) * MIXER), kind="stable")]
    return None if (np.diff(order) > 0).all() else order


def take_instances(X: Any, positions: IntArray | None) -> Any:
    """The instances at these positions, in this order; all of them, as they are, if it is None."""
    if positions is None:
        return X
    if is_text(X) and not hasattr(X, "iloc"):  # columns of polars and pyarrow, too
        texts = check_texts(X)
        return [texts[at] for at in positions]
    return _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, positions)


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """The distinct instances among n.

    Attributes
    ----------
    first : (m,) where each first occurs, ascending.
    owner : (n,) the distinct instance that each instance is a copy of, as a position in `first`.
    """

    first: IntArray
    owner: IntArray

    @property
    def copies(self) -> int:
        """Number of instances that are copies of an earlier one."""
        return len(self.owner) - len(self.first)

    def representatives(self, codes: IntArray) -> IntArray:
        """One class for every distinct instance (m,): if its copies have several, the rarest in the data.

        A rare class then has as many distinct instances as possible. Of equally rare ones, most copies decide.
        """
        rarity = np.bincount(codes)[codes]
        alike = np.unique(self.owner * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
        often = np.bincount(alike)[alike]
        order = np.lexsort((np.arange(len(codes)), -often, rarity, self.owner))
        starts = np.flatnonzero(np.diff(self.owner[order], prepend=-1))
        return codes[order[starts]]

    def without(self, apart: IntArray) -> "Distinct | None":
        """Treat the copies of some distinct instances as different instances; None if no copies remain."""
        alone = np.isin(self.owner, apart)
        keys = np.where(alone, len(self.first) + np.arange(len(self.owner)), self.owner)
        return _distinct(keys)


def find_distinct(X: Any) -> Distinct | None:
    """The distinct instances of X, or None if X has no copies.

    Examples
    --------
    >>> find_distinct(["Good film", "bad film", "good  film"])
    Distinct(first=array([0, 1]), owner=array([0, 1, 0]))
    >>> find_distinct(["good", "bad"]) is None
    True
    """
    hashes = hash_instances(X)
    return None if hashes is None else _find_distinct(X, hashes)


def _find_distinct(X: Any, hashes: Hashes) -> Distinct | None:
    found = _distinct(hashes)
    if found is None or is_text(X):
        return found
    return None if _equal_by_chance(X, found) else found


def split_distinct(X: Any, codes: IntArray, split: Callable[[IntArray], IntArray]) -> IntArray:
    """Split instances into numbered parts (n,), with all copies of an instance in the same part.

    Parameters
    ----------
    X : the instances.
    codes : (n,) their classes.
    split : maps classes (m,) to parts (m,). It is called once, with one copy of each instance.
    """
    distinct = find_distinct(X)
    return split_groups(None if distinct is None else distinct.owner, codes, split)


def split_groups(groups: IntArray | None, codes: IntArray, split: Callable[[IntArray], IntArray]) -> IntArray:
    """As `split_distinct`, for known copies: the instances with the same value in `groups` (n,)."""
    distinct = None if groups is None else _distinct(groups)
    if distinct is None:
        return split(codes)
    return split(distinct.representatives(codes))[distinct.owner]


def independent_size(groups: IntArray) -> float:
    r"""Effective number of independent instances, given groups (n,) of copies.

    .. math:: \frac{(\sum_g n_g)^2}{\sum_g n_g^2}

    for groups of :math:`n_g` copies (Kish 1965): their mean is as uncertain as the mean of that many instances.

    Examples
    --------
    >>> independent_size(np.array([0, 0, 0, 1, 1, 1]))
    2.0
    """
    sizes = np.unique(groups, return_counts=True)[1].astype(float)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def first_copies(groups: IntArray, codes: IntArray) -> IntArray:
    """Positions of instances without later copies of the same class, ascending; copies have the same group (n,).

    Examples
    --------
    >>> first_copies(np.array([0, 0, 1, 0]), np.array([0, 0, 1, 1]))
    array([0, 2, 3])
    """
    return np.sort(np.unique(groups * (codes.max() + 1) + codes, return_index=True)[1])


def _distinct(keys: NDArray[Any]) -> Distinct | None:
    _, first, owner = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == len(keys):
        return None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Distinct(first[order], rank[owner.ravel()])


def _mixed(values: Hashes, keys: Hashes) -> Hashes:
    """Hashes that depend on all bits of a value and on its key; their sum identifies a row."""
    mixed = (values ^ keys) * MIXER
    mixed ^= mixed >> SHIFT
    mixed *= keys | np.uint64(1)
    return mixed ^ (mixed >> SHIFT)


def _keys(d: int) -> Hashes:
    return np.random.default_rng(0).integers(2**63, size=d, dtype=np.uint64)


def _bits(values: Any) -> Hashes:
    numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # so that -0 equals 0
    return numbers.view(np.uint64)


def hash_numbers(values: Any) -> Hashes:
    """A hash of every row (n,) of a matrix of numbers, equal for equal rows and in every process."""
    n, d = values.shape
    keys, hashes = _keys(d), np.empty(n, dtype=np.uint64)
    step = max(1, CHUNK // max(1, d))
    for start in range(0, n, step):
        chunk = slice(start, start + step)
        hashes[chunk] = _mixed(_bits(values[chunk]), keys).sum(axis=1, dtype=np.uint64)
    return hashes


def _hash_sparse(matrix: Any) -> Hashes:
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    mixed = _mixed(_bits(matrix.data), _keys(matrix.shape[1])[matrix.indices])
    mixed[matrix.data == 0] = 0  # a stored zero equals one that is not stored
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return np.diff(ends[matrix.indptr])


def _hash_table(X: Any) -> Hashes | None:
    import pandas as pd

    values = np.asarray(X)
    if values.dtype.kind in "biuf":  # as an array of the same numbers
        return hash_numbers(values)
    try:
        hashes: Hashes = pd.util.hash_pandas_object(_as_pandas(X), index=False).to_numpy().astype(np.uint64)
    except TypeError:  # cells such as lists
        return None
    return hashes


def _as_pandas(X: Any) -> Any:
    return X if hasattr(X, "iloc") else X.to_pandas()


def _equal_by_chance(X: Any, found: Distinct) -> bool:
    """Whether rows are equal about as often as if the values of each column were shuffled."""
    n, sizes = len(found.owner), np.bincount(found.owner)
    observed = float((sizes * (sizes - 1.0)).sum()) / (n * (n - 1.0))
    some = found.first
    if len(some) > MAX_COMPARED:
        some = np.sort(np.random.default_rng(0).choice(some, MAX_COMPARED, replace=False))
    if hasattr(X, "tocsr"):
        rows = X.tocsr()[some]
        empty = 1 - np.bincount(rows.indices, minlength=X.shape[1]) / len(some)
        ties = empty**2 + (1 - empty) ** 2 * _chance_of_a_tie(rows.data)
        return float(np.prod(ties)) >= BY_CHANCE * observed
    values = _as_pandas(X).iloc[some] if column_names(X) is not None else np.asarray(X).reshape(n, -1)[some]
    columns = [np.asarray(values[name]) for name in values] if hasattr(values, "iloc") else list(values.T)
    # One column, or columns that determine one another, have no ties between distinct rows.
    if (len(columns) == 1 or n > MANY_COPIES * len(found.first)) and all(map(_is_coarse, columns)):
        return True
    chance = 1.0
    for column in columns:
        chance *= _chance_of_a_tie(column)
        if chance < BY_CHANCE * observed:
            return False
    return True


def _chance_of_a_tie(column: NDArray[Any]) -> float:
    """The probability that two different rows have the same value."""
    m = len(column)
    if m < 2:
        return 1.0
    try:
        counts = np.unique(column, return_counts=True)[1].astype(float)
    except TypeError:  # a column of mixed types
        counts = np.unique([repr(value) for value in column.tolist()], return_counts=True)[1].astype(float)
    return float((counts * (counts - 1)).sum()) / (m * (m - 1))


def _is_coarse(values: NDArray[Any]) -> bool:
    if values.dtype.kind not in "fiub":
        return True
    numbers: FloatArray = values.astype(float)
    return bool((np.round(numbers, DIGITS) == numbers).mean() > 0.5)


class RowOrder:
    r"""Counts neighbouring rows with the same label, a part of a file at a time.

    In random order, neighbours have the same label with probability :math:`\sum_c p_c^2` (runs test; Mood 1940).

    Examples
    --------
    >>> RowOrder().add(["good"] * 50 + ["bad"] * 50).sentence
    'The labels are related to the order of the rows: 99 % of neighbouring rows have the same label, 50 % by chance.'
    >>> RowOrder().add(["good", "bad"] * 50).sentence
    ''
    """

    advice = (
        "The file seems to be sorted. Estimates do not depend on its order. If neighbouring rows belong together, such "
        "as posts of one author or reviews of one product, name their column with --groups."
    )

    def __init__(self) -> None:
        self.counts = Counter[Any]()
        self.alike = 0
        self._last: Any = None

    def add(self, labels: Iterable[Any]) -> "RowOrder":
        """Count the next rows; None is a row without a label, which is left out."""
        for label in labels:
            if label is not None:
                self.counts[label] += 1
                self.alike += label == self._last
                self._last = label
        return self

    @property
    def sentence(self) -> str:
        """What was found; empty if labels are not related to the order, or not noticeably."""
        n = self.counts.total()
        if n < 2:
            return ""
        squares, cubes = (sum((number / n) ** power for number in self.counts.values()) for power in (2, 3))
        found, deviation = self.alike / (n - 1), (max(squares + squares**2 - 2 * cubes, 0.0) / n) ** 0.5
        if found - squares <= max(NOTABLE, RELATED * deviation):
            return ""
        return (
            f"The labels are related to the order of the rows: {percent(found, digits=0)} of neighbouring rows have "
            f"the same label, {percent(squares, digits=0)} by chance."
        )
