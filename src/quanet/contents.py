r"""What texts are about: whether words of a bag are those of training, beyond what another prevalence explains.

Of texts that are mixtures of the training classes, mean rows of terms are :math:`\sum_c p_c \mu_c` for some
prevalences p. How far a bag's mean lies from the nearest such mixture is a distance between distributions, the maximum
mean discrepancy of a linear kernel (Gretton et al. 2012): it is zero on average for such bags, once the chance of the
bag and of the training texts is taken off, and needs no density and no covariance matrix.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_matrix

from quanet.arrays import FloatArray, IntArray
from quanet.simplex import count, project

MOST_TERMS = 5000  # the most frequent ones
FEWEST_TEXTS = 10  # that a term is in, so that it tells of more than a few texts
FEWEST_TERMS = 50
FEWEST_OF_CLASS = 10
COMPARED = 1000  # texts of a class whose products with others are taken


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What the training texts of each class are about.

    Attributes
    ----------
    means : (k, w) of the texts' rows of the w most frequent terms, each of length one.
    traces : (k,) of their covariances.
    products : (k, k), traces of products of two classes' covariances.
    counts : (k,) texts.
    """

    means: NDArray[np.float32]
    traces: FloatArray
    products: FloatArray
    counts: IntArray

    @classmethod
    def fit(cls, matrix: csr_matrix, codes: IntArray, k: int, rng: np.random.Generator) -> "Contents | None":
        """Learn from rows of terms, the most frequent first: (n, d); None where there are too few texts or terms."""
        counts = count(codes, k)
        often = np.bincount(matrix.indices, minlength=matrix.shape[1]) >= FEWEST_TEXTS
        width = min(MOST_TERMS, matrix.shape[1] if often.all() else int(often.argmin()))
        if width < FEWEST_TERMS or counts.min() < FEWEST_OF_CLASS:
            return None
        rows = of_length_one(matrix[:, :width])
        parts = [np.flatnonzero(codes == c) for c in range(k)]
        means = np.array([_mean(rows[part]) for part in parts])
        squares = np.asarray(rows.multiply(rows).sum(axis=1), dtype=float).ravel()
        traces = np.array([squares[part].mean() - mean @ mean for part, mean in zip(parts, means, strict=True)])
        some = [rows[rng.permutation(part)[:COMPARED]] for part in parts]
        products = np.empty((k, k))
        for a in range(k):
            for b in range(a, k):
                together = np.asarray((some[a] @ some[b].T).toarray(), dtype=float)
                together -= (some[a] @ means[b])[:, None] + (some[b] @ means[a])[None, :] - means[a] @ means[b]
                if a == b:
                    np.fill_diagonal(together, 0)
                pairs = together.size - (len(together) if a == b else 0)
                products[a, b] = products[b, a] = float((together**2).sum()) / pairs
        return cls(means.astype(np.float32), traces * counts / (counts - 1), products, counts)

    def compare(self, total: FloatArray, squares: float, n: int) -> "Likeness":
        """How unlike training a bag of n texts is: sum of their rows (w,), and of the rows' squares."""
        means = self.means.astype(float)
        k = len(means)
        mean = total / n
        # The nearest mixture, whose own chance is taken off.
        inner = means @ means.T - np.diag(self.traces / self.counts)
        inner += 1e-9 * np.trace(inner) * np.eye(k)
        system = np.block([[inner, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
        prevalences = project(np.linalg.solve(system, np.append(means @ mean, 1.0))[:k])
        surplus = mean - prevalences @ means
        spread = max((squares / n - float(mean @ mean)) * n / (n - 1), 1e-12)
        weights = prevalences / n + prevalences**2 / self.counts
        by_chance = spread / n + float((prevalences**2 / self.counts) @ self.traces)
        square = float(weights @ self.products @ weights)
        distance = float(surplus @ surplus) - by_chance
        return Likeness(distance / spread, spread, by_chance, square, prevalences, surplus)


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """How far a bag of texts is from the nearest mixture of the training classes.

    Attributes
    ----------
    distance : squared, as a share of how far the bag's texts are from each other; 0 on average for such a mixture.
    spread : of the bag's texts.
    by_chance : the squared distance that chance alone brings, already taken off.
    square : the trace of its covariance's square, half the variance of that distance.
    prevalences : (k,) of the nearest mixture.
    surplus : (w,) mean rows of the bag less those of the mixture, term by term.
    """

    distance: float
    spread: float
    by_chance: float
    square: float
    prevalences: FloatArray
    surplus: FloatArray

    def p_value(self, tolerance: float = 0.0) -> float:
        """How often a bag as far as `tolerance` from training looks at least as far as this one."""
        # A sum of squares: chi-square in so many degrees as have its mean and variance (Satterthwaite 1946).
        scale, degrees = self.square / self.by_chance, self.by_chance**2 / self.square
        found = (self.distance - tolerance) * self.spread + self.by_chance
        return float(stats.chi2.sf(max(found, 0.0) / scale, degrees))


def of_length_one(rows: Any) -> csr_matrix:
    """Rows (n, d) scaled to length one; one without terms stays empty."""
    rows = csr_matrix(rows, dtype=np.float32, copy=True)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1), dtype=float).ravel())
    rows.data /= np.repeat(np.maximum(lengths, 1e-12), np.diff(rows.indptr)).astype(np.float32)
    return rows


def _mean(rows: csr_matrix) -> FloatArray:
    return np.asarray(rows.sum(axis=0), dtype=float).ravel() / rows.shape[0]
