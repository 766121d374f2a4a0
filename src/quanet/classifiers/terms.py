r"""Terms of texts: n-grams of words and of characters, and how the texts of each class use them.

A term is represented by its hash. Different terms sometimes share a hash, mostly rare ones. In return, the vocabulary
is an array of numbers, small on disk and fast to look up.

A `TermProfile` compares the topics of a bag with the training texts, regardless of class prevalence. If a bag is a
mixture of the training classes, its mean row of terms is :math:`\sum_c p_c \mu_c` for some prevalences p. The distance
of the bag's mean from the nearest such mixture is the maximum mean discrepancy of a linear kernel (Gretton et al.
2012). After subtracting what chance in the bag and in the training texts contributes, it is zero on average for such
bags. It needs no density and no covariance matrix.
"""

import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_matrix

from quanet.arrays import FloatArray, IntArray
from quanet.kernels.term_counts import SPACE, WORD, Numbers, count_terms, count_texts, weigh
from quanet.simplex import count, project

MANY_TEXTS = 1000  # with at least this many, terms that occur in one or two texts are dropped
MIN_BITS = 16
MAX_BITS = 22  # of a hash; enough for the terms of 25,000 long reviews
BATCH = 2**21  # characters processed at a time, to bound memory
OTHER = 0  # a kind of characters, as WORD and SPACE
MAX_TERMS = 5000  # the most frequent ones
MIN_TEXTS = 10  # that contain a term
MIN_TERMS = 50
MIN_OF_CLASS = 10  # texts
MAX_COMPARED = 1000  # texts per class for products of covariances


class Terms:
    """Frequent terms of texts, weighted by TF-IDF.

    A row is ``(1 + log count) * idf`` with ``idf = 1 + log((1 + texts) / (1 + texts with the term))``, of length one.

    Parameters
    ----------
    unit : "words", n-grams of words; or "characters", n-grams of characters, within and across words.
    longest : the largest n; n-grams of characters have at least two characters.
    repeats : whether to count how often a text contains a term; otherwise every count is 1.

    Attributes
    ----------
    hashes : (d,) hashes of the terms, the most frequent first.
    idf : (d,) weights of the terms.
    """

    def __init__(self, unit: str, longest: int, *, repeats: bool = True) -> None:
        self.unit = unit
        self.longest = longest
        self.repeats = repeats

    def fit_transform(self, texts: list[str]) -> csr_matrix:
        """Find the frequent terms, and return their weights in each text: (n, d), float32."""
        size = sum(map(len, texts)) * self.longest
        self.bits = min(MAX_BITS, max(MIN_BITS, size.bit_length() + 4))
        frequency = np.zeros(2**self.bits, dtype=np.int32)
        last = np.full(2**self.bits, -1, dtype=np.int32)
        first = 0
        for batch in in_batches(texts):
            count_texts(self.unit == "words", *_characters(batch), self.longest, self.bits, first, last, frequency)
            first += len(batch)
        self.rarest = 3 if len(texts) >= MANY_TEXTS else 1
        kept = np.flatnonzero(frequency >= self.rarest)
        # Frequent terms are then adjacent in memory, which speeds up every pass over the matrix.
        kept = kept[np.argsort(-frequency[kept], kind="stable")]
        self.hashes: IntArray = kept.astype(np.int32)
        self.idf = (1 + np.log((1 + len(texts)) / (1 + frequency[kept]))).astype(np.float32)
        return self.transform(texts)

    def transform(self, texts: list[str]) -> csr_matrix:
        """Weights of terms in texts: (n, d), float32; columns are not sorted within a row."""
        column = np.full(2**self.bits, -1, dtype=np.int32)
        column[self.hashes] = np.arange(len(self.hashes), dtype=np.int32)
        parts = [self._counted(batch, column) for batch in in_batches(texts)]
        ends = np.cumsum([0, *(length for part in parts for length in part[2])])
        indices, data = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1], dtype=np.float32)
        filled = ends[-1]
        while parts:  # from the last one, each freed at once, to save memory
            part = parts.pop()
            start = filled - len(part[0])
            indices[start:filled], data[start:filled] = part[0], part[1]
            filled = start
        weigh(data, indices, ends, self.idf)
        return csr_matrix((data, indices, ends), shape=(len(texts), len(self.hashes)))

    def as_new(self, matrix: csr_matrix, held_out: IntArray) -> csr_matrix:
        """Rows `held_out` of the training matrix, as if the terms had been fitted without them.

        Terms that are too rare in the other rows are dropped, and the rows rescaled to length one, just as new texts
        lose their unknown terms. Otherwise the remaining terms would have smaller weights, and scores would shrink.
        """
        rows = matrix[held_out]
        size = matrix.shape[1]
        elsewhere = np.bincount(matrix.indices, minlength=size) - np.bincount(rows.indices, minlength=size)
        rows.data *= (elsewhere >= self.rarest)[rows.indices]
        squares = np.bincount(np.repeat(np.arange(len(held_out)), np.diff(rows.indptr)), rows.data**2, len(held_out))
        lengths = np.sqrt(np.where(squares > 0, squares, 1)).astype(np.float32)
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        return rows

    def _counted(self, texts: list[str], column: IntArray) -> tuple[Numbers, Numbers, IntArray]:
        """Columns and counts of the terms of all texts, and the number of terms in each text."""
        points, starts, kinds = _characters(texts)
        size = (len(points) + 2 * len(texts)) * self.longest
        indices, counts = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
        ends = np.zeros(len(texts) + 1, dtype=np.int64)
        place = np.full(len(self.hashes), -1, dtype=np.int64)
        how = self.unit == "words", self.repeats
        count_terms(*how, points, starts, kinds, self.longest, self.bits, column, place, indices, counts, ends)
        return indices[: ends[-1]].copy(), counts[: ends[-1]].copy(), np.diff(ends)


def in_batches(texts: list[str]) -> list[list[str]]:
    """Consecutive texts in batches of bounded length; one empty batch if there are no texts."""
    ends = np.cumsum([len(text) for text in texts]) // BATCH
    cuts = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), len(texts)]
    return [texts[start:stop] for start, stop in pairwise(cuts)]


def _characters(texts: list[str]) -> tuple[NDArray[np.uint32], IntArray, NDArray[np.uint8]]:
    """The concatenated texts in lower case, the start of each text, and the kind of each character."""
    lowered = [text.lower() for text in texts]
    starts = np.cumsum([0, *(len(text) for text in lowered)])
    points = np.frombuffer("".join(lowered).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    used = np.bincount(points) if len(points) else np.zeros(1, dtype=int)
    kinds = np.zeros(len(used), dtype=np.uint8)
    for point in np.flatnonzero(used).tolist():
        kinds[point] = _kind(chr(point))
    return points, starts, kinds[points]


def _kind(character: str) -> int:
    if character.isspace():
        return SPACE
    # Marks are vowels in Indic scripts, and accents in decomposed Unicode.
    return WORD if character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M" else OTHER


@dataclass(frozen=True, slots=True, eq=False)
class TermProfile:
    """The terms that the training texts of each class use.

    Attributes
    ----------
    means : (k, w) mean rows of the w most frequent terms; each row has length one.
    traces : (k,) traces of the covariances of these rows.
    products : (k, k) traces of the products of two classes' covariances.
    counts : (k,) number of texts.
    """

    means: NDArray[np.float32]
    traces: FloatArray
    products: FloatArray
    counts: IntArray

    @classmethod
    def fit(cls, matrix: csr_matrix, codes: IntArray, k: int, rng: np.random.Generator) -> "TermProfile | None":
        """Learn from rows of terms (n, d), the most frequent terms first; None if there are too few texts or terms."""
        counts = count(codes, k)
        frequent = np.bincount(matrix.indices, minlength=matrix.shape[1]) >= MIN_TEXTS
        width = min(MAX_TERMS, matrix.shape[1] if frequent.all() else int(frequent.argmin()))
        if width < MIN_TERMS or counts.min() < MIN_OF_CLASS:
            return None
        rows = unit_rows(matrix[:, :width])
        parts = [np.flatnonzero(codes == c) for c in range(k)]
        means = np.array([_mean(rows[part]) for part in parts])
        squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=float).ravel()
        traces = np.array([squares[part].mean() - mean @ mean for part, mean in zip(parts, means, strict=True)])
        some = [rows[rng.permutation(part)[:MAX_COMPARED]] for part in parts]
        products = np.empty((k, k))
        for a in range(k):
            for b in range(a, k):
                inner = np.asarray((some[a] @ some[b].T).toarray(), dtype=float)
                inner -= (some[a] @ means[b])[:, None] + (some[b] @ means[a])[None, :] - means[a] @ means[b]
                if a == b:
                    np.fill_diagonal(inner, 0)
                pairs = inner.size - (len(inner) if a == b else 0)
                products[a, b] = products[b, a] = float((inner**2).sum()) / pairs
        return cls(means.astype(np.float32), traces * counts / (counts - 1), products, counts)

    def compare(self, total: FloatArray, squares: float, n: int) -> "TopicDistance":
        """The distance of a bag of n texts, given the sum of its rows (w,) and the sum of their squares."""
        means = self.means.astype(float)
        k = len(means)
        mean = total / n
        # The nearest mixture, without the noise of the training means.
        gram = means @ means.T - np.diag(self.traces / self.counts)
        gram += 1e-9 * np.trace(gram) * np.eye(k)
        system = np.block([[gram, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
        prevalences = project(np.linalg.solve(system, np.append(means @ mean, 1.0))[:k])
        excess = mean - prevalences @ means
        spread = max((squares / n - float(mean @ mean)) * n / (n - 1), 1e-12)
        weights = prevalences / n + prevalences**2 / self.counts
        by_chance = spread / n + float((prevalences**2 / self.counts) @ self.traces)
        square = float(weights @ self.products @ weights)
        distance = float(excess @ excess) - by_chance
        return TopicDistance(distance / spread, spread, by_chance, square, prevalences, excess)


@dataclass(frozen=True, slots=True, eq=False)
class TopicDistance:
    """The distance of a bag of texts from the nearest mixture of the training classes.

    Attributes
    ----------
    distance : squared, relative to the spread of the bag's texts; 0 on average for such a mixture.
    spread : variance of the bag's texts.
    by_chance : the squared distance that chance alone contributes, already subtracted.
    square : half the variance of the squared distance.
    prevalences : (k,) of the nearest mixture.
    excess : (w,) mean row of the bag minus the mixture's, term by term.
    """

    distance: float
    spread: float
    by_chance: float
    square: float
    prevalences: FloatArray
    excess: FloatArray

    def p_value(self, tolerance: float = 0.0) -> float:
        """The probability that a bag with true distance `tolerance` has at least this distance."""
        # A sum of squares, approximated by a scaled chi-square with the same mean and variance (Satterthwaite 1946).
        scale, degrees = self.square / self.by_chance, self.by_chance**2 / self.square
        found = (self.distance - tolerance) * self.spread + self.by_chance
        return float(stats.chi2.sf(max(found, 0.0) / scale, degrees))


def unit_rows(rows: Any) -> csr_matrix:
    """Rows (n, d) scaled to length one; rows without terms stay empty."""
    rows = csr_matrix(rows, dtype=np.float32, copy=True)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1), dtype=float).ravel())
    rows.data /= np.repeat(np.maximum(lengths, 1e-12), np.diff(rows.indptr)).astype(np.float32)
    return rows


def _mean(rows: csr_matrix) -> FloatArray:
    return np.asarray(rows.sum(axis=0), dtype=float).ravel() / rows.shape[0]
