"""Descriptions: a few numbers per instance that show what it is about, learned without labels.

Every describer maps instances to rows (n, e) of at most `DIMENSIONS` columns with variance about 1, so that distances
between bags mean the same for texts and for numbers.

==================  ==================================================================================
texts               directions of the frequent words: a truncated SVD of TF-IDF rows
numbers             principal components of standardised columns
posteriors          which of a few bins each posterior lies in; for instances that are posteriors
==================  ==================================================================================
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import _safe_indexing
from sklearn.utils.extmath import randomized_svd

from quanet.arrays import FloatArray, IntArray
from quanet.classifiers.terms import Terms, characters, in_batches, inverse_frequency, project_terms
from quanet.data.instances import check_texts, is_text
from quanet.kernels.term_counts import weigh

DIMENSIONS = 50
PER_DIMENSION = 20  # instances for each dimension
MAX_FITTED = 20_000  # instances that a describer learns from
MAX_WORDS = 5000
MIN_WORDS = 10
MIN_TEXTS = 10  # texts with a word, in large data
FEWEST_TEXTS = 3  # in small data
LARGEST_VALUE = 5.0  # standardised numbers are cut there, so that one outlier does not decide
LEAST_SPREAD = 0.02  # of a principal component, relative to the first
BINS = {2: 10}  # bins of a posterior for two classes
BINS_OF_MANY = 4  # for each of more classes

WORD = re.compile(r"\w\w+")  # at least two letters, as in the vectorizers of scikit-learn

Descriptions = NDArray[np.floating[Any]]
Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TextDescriber:
    """Texts as positions along directions of their frequent words.

    Attributes
    ----------
    terms : the frequent words.
    directions : (w, e) weights of each word.
    """

    terms: Terms
    directions: Floats32
    of_values: ClassVar[bool] = False

    @classmethod
    def fit(cls, texts: list[str], rng: np.random.Generator) -> "TextDescriber | None":
        """Learn from texts; None if they share too few words."""
        texts = [texts[at] for at in _some(len(texts), rng)]
        terms = Terms("words", 1, repeats=False)
        matrix = terms.fit_transform(texts)
        # The most frequent words come first.
        words = _frequent(np.bincount(matrix.indices, minlength=matrix.shape[1]), len(texts))
        terms.hashes, terms.idf = terms.hashes[:words].copy(), terms.idf[:words].copy()
        directions = None if words < MIN_WORDS else _text_directions(terms.transform(texts))
        return None if directions is None else cls(terms, directions)

    def __call__(self, X: Any) -> Floats32:
        """Descriptions of texts: (n, e)."""
        batches = in_batches(check_texts(X))
        parts = [project_terms(self.terms, characters(batch), (), self.directions)[1] for batch in batches]
        return np.concatenate(parts)

    @property
    def weights(self) -> FloatArray:
        """(e,) spread of the training texts along each direction, before it was made 1."""
        return 1 / np.linalg.norm(self.directions, axis=0)

    def words(self, texts: list[str], by_class: FloatArray, most: int = 3) -> list[str]:
        """The words that are more frequent in texts than in training, beyond what class prevalences explain.

        Parameters
        ----------
        texts : new texts.
        by_class : (e,) shift of the mean description that class prevalences explain.
        most : number of words.
        """
        rows, size = self.terms.transform(texts), len(self.terms.idf)
        found = np.bincount(rows.indices, minlength=size)
        weight = np.bincount(rows.indices, rows.data, minlength=size) / np.maximum(found, 1)
        usual = np.exp(1 - self.terms.idf)  # share of the training texts with each word
        expected = (self.directions / (self.directions**2).sum(axis=0)) @ by_class
        excess = weight * (found / len(texts) - usual) - expected
        words = sorted({word for text in texts for word in WORD.findall(text.lower())})
        place = self.terms.transform(words).tocoo()
        gains = {words[row]: float(excess[column]) for row, column in zip(place.row, place.col, strict=True)}
        return sorted((word for word in gains if gains[word] > 0), key=lambda word: -gains[word])[:most]


@dataclass(frozen=True, slots=True, eq=False)
class NumberDescriber:
    """Rows of numbers as principal components of their standardised columns.

    Attributes
    ----------
    centre, scale : (d,) of the columns; the centre is 0 for sparse columns.
    directions : (d, e) weights of each column.
    skipped : leading columns of the rows that are not described.
    of_values : whether the rows are the classifier's output (`Inputs.values`) instead of the instances.
    """

    centre: FloatArray
    scale: FloatArray
    directions: Floats32
    skipped: int = 0
    of_values: bool = False

    @classmethod
    def fit(
        cls, X: Any, rng: np.random.Generator, *, skipped: int = 0, of_values: bool = False
    ) -> "NumberDescriber | None":
        """Learn from a matrix (n, d); None if all its rows are equal."""
        matrix = _numbers(X)
        if matrix is None:
            return None
        matrix = matrix[_some(matrix.shape[0], rng)][:, skipped:]
        if isinstance(matrix, csr_matrix):
            centre: FloatArray = np.zeros(matrix.shape[1])
            squares = np.asarray(matrix.multiply(matrix).mean(axis=0), dtype=float).ravel()
            spread = np.sqrt(squares)
        else:
            centre, spread = np.nan_to_num(np.nanmean(matrix, axis=0)), np.nan_to_num(np.nanstd(matrix, axis=0))
        scale = np.where(spread > 1e-12, 1 / np.maximum(spread, 1e-12), 0.0)
        size = min(DIMENSIONS, matrix.shape[1], matrix.shape[0] // PER_DIMENSION)
        if size < 1 or not scale.any():
            return None
        rows = _standardised(matrix, centre, scale)
        axes = randomized_svd(rows, size, random_state=0)[2]
        directions = _whitened(axes.T, rows @ axes.T)
        return None if directions.shape[1] == 0 else cls(centre, scale, directions, skipped, of_values)

    def __call__(self, X: Any) -> Floats32:
        """Descriptions of rows: (n, d) -> (n, e)."""
        matrix = _numbers(X)
        assert matrix is not None
        rows = _standardised(matrix[:, self.skipped :], self.centre, self.scale)
        return np.asarray(rows @ self.directions, dtype=np.float32)

    @property
    def weights(self) -> FloatArray:
        """(e,) spread of the training instances along each direction, before it was made 1."""
        return 1 / np.linalg.norm(self.directions, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorDescriber:
    """Posteriors as the bins that they lie in. Their means alone would tell nothing: any mean fits some prevalences.

    Attributes
    ----------
    edges : (c, bins - 1) between the bins of each described class.
    first : the first described class; of two classes, only the second.
    """

    edges: FloatArray
    first: int
    of_values: ClassVar[bool] = True

    @classmethod
    def fit(cls, posteriors: FloatArray, codes: IntArray) -> "PosteriorDescriber | None":
        """Bins in which every class, weighted equally, is spread evenly; from posteriors (n, k) of classes (n,)."""
        k = posteriors.shape[1]
        bins, first = BINS.get(k, BINS_OF_MANY), 1 if k == 2 else 0
        weights = (1 / np.maximum(np.bincount(codes, minlength=k), 1))[codes]
        edges = np.empty((k - first, bins - 1))
        for at, column in enumerate(posteriors.T[first:]):
            order = np.argsort(column, kind="stable")
            heights = weights[order].cumsum()
            edges[at] = column[order][np.searchsorted(heights, heights[-1] * np.arange(1, bins) / bins)]
        if (edges == edges[:, :1]).all():
            return None
        return cls(edges, first)

    @property
    def weights(self) -> FloatArray:
        """(c * bins,) ones: all bins count equally."""
        return np.ones(self.edges.shape[0] * (self.edges.shape[1] + 1))

    def __call__(self, values: Any) -> Floats32:
        """Descriptions of posteriors: (n, k + ...) -> (n, c * bins)."""
        columns = np.asarray(values, dtype=float)[:, self.first : self.first + len(self.edges)]
        bins = self.edges.shape[1] + 1
        inside = [np.eye(bins)[np.searchsorted(cut, column)] for cut, column in zip(self.edges, columns.T, strict=True)]
        return np.hstack(inside).astype(np.float32)


Describer = TextDescriber | NumberDescriber | PosteriorDescriber


def fit_describer(X: Any, values: FloatArray, codes: IntArray, *, precomputed: bool) -> Describer | None:
    """The describer for instances X, or None if they are neither texts nor numbers, or all alike.

    Parameters
    ----------
    X : instances.
    values : (n, d) what `Quantifier.read` returns for them; described if X are posteriors.
    codes : (n,) their classes.
    precomputed : whether X are posteriors, perhaps with further columns.
    """
    rng = np.random.default_rng(0)
    if precomputed:
        k = int(codes.max()) + 1
        if values.shape[1] > k:
            return NumberDescriber.fit(values, rng, skipped=k, of_values=True)
        return PosteriorDescriber.fit(values, codes)
    return TextDescriber.fit(check_texts(X), rng) if is_text(X) else NumberDescriber.fit(X, rng)


def describe_left_out(
    X: Any, values: FloatArray, codes: IntArray, folds: list[tuple[IntArray, IntArray]], *, precomputed: bool
) -> Iterator[Descriptions | None]:
    """Descriptions (n, e) of all instances for each fold, learned from its first part only; None as in `fit_describer`.

    The second part is then described as new instances are: by what others have in common.

    Parameters
    ----------
    X, values, codes, precomputed : as for `fit_describer`.
    folds : positions of the instances to learn from, and of those left out.
    """
    if not precomputed and is_text(X):
        terms = Terms("words", 1, repeats=False)
        matrix = terms.fit_transform(check_texts(X))  # once, as it takes as long as all the rest
        for seen, _ in folds:
            yield _describe_texts(matrix, seen)
        return
    for seen, _ in folds:
        describer = fit_describer(_safe_indexing(X, seen), values[seen], codes[seen], precomputed=precomputed)
        yield None if describer is None else describer(values if describer.of_values else X)


def _describe_texts(matrix: csr_matrix, seen: IntArray) -> Floats32 | None:
    """Descriptions (n, e) of texts with these terms (n, d), as `TextDescriber` learns them from the texts seen."""
    frequency = np.bincount(matrix[seen].indices, minlength=matrix.shape[1])
    words = _frequent(frequency, len(seen))
    if words < MIN_WORDS:
        return None
    kept = np.argsort(-frequency, kind="stable")[:words]
    rows = csr_matrix(matrix[:, kept])
    rows.data = np.ones_like(rows.data)
    weigh(rows.data, rows.indices, rows.indptr, inverse_frequency(frequency[kept], len(seen)))
    directions = _text_directions(rows, seen)
    return None if directions is None else np.asarray(rows @ directions, dtype=np.float32)


def _frequent(frequency: IntArray, texts: int) -> int:
    """The number of words that are frequent enough to describe texts, from the number of texts with each word."""
    return min(MAX_WORDS, int((frequency >= np.clip(texts // 100, FEWEST_TEXTS, MIN_TEXTS)).sum()))


def _text_directions(rows: csr_matrix, seen: IntArray | None = None) -> Floats32 | None:
    """Directions (w, e) of rows (n, w), learned from those seen (None: all); None if the texts are all alike."""
    learned = rows if seen is None else rows[seen]
    size = min(DIMENSIONS, rows.shape[1] - 1, learned.shape[0] // PER_DIMENSION)
    if size < 1:
        return None
    axes = randomized_svd(learned, size, random_state=0)[2]
    directions = _whitened(axes.T, learned @ axes.T)
    return None if directions.shape[1] == 0 else directions


def _some(n: int, rng: np.random.Generator) -> IntArray:
    """Positions of all of n instances, or of `MAX_FITTED` of them."""
    return np.arange(n) if n <= MAX_FITTED else np.sort(rng.choice(n, MAX_FITTED, replace=False))


def _numbers(X: Any) -> Any:
    """X as a matrix of numbers, dense or sparse; None if it is not one."""
    if hasattr(X, "tocsr"):
        return csr_matrix(X)
    try:
        matrix = np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        return None
    return matrix if matrix.ndim == 2 else None


def _standardised(matrix: Any, centre: FloatArray, scale: FloatArray) -> Any:
    if isinstance(matrix, csr_matrix):
        return csr_matrix(matrix.multiply(scale[None, :]))
    return np.clip(np.nan_to_num((matrix - centre) * scale), -LARGEST_VALUE, LARGEST_VALUE)


def _whitened(axes: FloatArray, positions: FloatArray) -> Floats32:
    """Axes (d, e) divided by the spread of the positions (n, e) along them; axes with hardly any spread are dropped."""
    spread = np.asarray(positions).std(axis=0)
    kept = spread > LEAST_SPREAD * max(float(spread.max(initial=0.0)), 1e-12)
    return np.asarray(axes[:, kept] / spread[kept], dtype=np.float32)
