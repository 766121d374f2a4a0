"""Synthetic data with known densities, to compare an estimate with the best possible one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from quanet.arrays import FloatArray, IntArray
from quanet.parameters import Constraints, at_least, check_parameters, whole
from quanet.simplex import check_prevalences, to_counts

Seed = np.random.Generator | int


@dataclass(frozen=True, kw_only=True, slots=True)
class Gaussians:
    r"""Classes with spherical Gaussian densities, all at the same distance from each other.

    Use it for examples and tests: bags of any prevalence can be drawn, and the true posteriors are known.

    .. math:: x \mid c \sim \mathcal N(\mu_c, I), \qquad \mu_c = \frac{\text{distance}}{\sqrt 2}\, e_c

    Parameters
    ----------
    k : number of classes and of dimensions.
    distance : between two centres, in standard deviations; 0 makes all classes identical.

    Examples
    --------
    >>> X, y = Gaussians(k=3).draw([0.5, 0.3, 0.2], 10, rng=0)
    >>> X.shape, np.bincount(y).tolist()
    ((10, 3), [5, 3, 2])
    """

    allowed_values: ClassVar[Constraints] = {"k": whole(2), "distance": at_least(0)}

    k: int = 2
    distance: float = 2.0

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def centres(self) -> FloatArray:
        """The centre of each class: (k, k)."""
        return np.eye(self.k) * self.distance / np.sqrt(2)

    def draw(self, prevalence: ArrayLike, n: int, *, rng: Seed) -> tuple[FloatArray, IntArray]:
        """Draw `n` instances with exactly these prevalences, up to rounding: (n, k) and classes (n,)."""
        rng = np.random.default_rng(rng)
        y = _shuffled_classes(prevalence, self.k, n, rng)
        return self.centres[y] + rng.standard_normal((n, self.k)), y

    def log_density(self, X: FloatArray) -> FloatArray:
        """Log density of each instance in each class: (n, k) -> (n, k)."""
        squares = np.square(X[:, None, :] - self.centres).sum(axis=-1)
        return np.asarray(-squares / 2 - self.k * np.log(2 * np.pi) / 2)

    def posteriors(self, X: FloatArray, prior: ArrayLike) -> FloatArray:
        """The true posteriors under a prior: (n, k)."""
        return _bayes(self.log_density(X), check_prevalences(prior, k=self.k))


@dataclass(frozen=True, kw_only=True, slots=True)
class WordBags:
    r"""Texts of independent words. Each class has some words that it uses more often than the other classes.

    Use it for examples and tests with texts: the true posteriors are known.

    .. math:: P(\text{text} \mid c) = \prod_{w \in \text{text}} \theta_{cw}

    Parameters
    ----------
    k : number of classes.
    words : size of the vocabulary.
    length : words per text.
    preference : how many times more often a class uses its own words.

    Examples
    --------
    >>> texts, y = WordBags(length=5).draw([0.5, 0.5], 2, rng=0)
    >>> len(texts), len(texts[0].split())
    (2, 5)
    """

    k: int = 2
    words: int = 60
    length: int = 12
    preference: float = 3.0

    @property
    def word_probabilities(self) -> FloatArray:
        """Probability of each word in each class: (k, words)."""
        own = np.arange(self.words) % (self.k + 1) == np.arange(self.k)[:, None]
        weights = np.where(own, self.preference, 1.0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def draw(self, prevalence: ArrayLike, n: int, *, rng: Seed) -> tuple[list[str], IntArray]:
        """Draw `n` texts with exactly these prevalences, up to rounding: texts and classes (n,)."""
        rng = np.random.default_rng(rng)
        y = _shuffled_classes(prevalence, self.k, n, rng)
        cumulated = np.cumsum(self.word_probabilities, axis=1)[y]
        chosen = (rng.random((n, self.length, 1)) > cumulated[:, None, :-1]).sum(axis=-1)
        return [" ".join(f"word{w}" for w in text) for text in chosen.tolist()], y

    def log_density(self, texts: list[str]) -> FloatArray:
        """Log probability of each text in each class: (n, k)."""
        logs = np.log(self.word_probabilities)
        return np.stack([logs[:, [int(word[4:]) for word in text.split()]].sum(axis=1) for text in texts])

    def posteriors(self, texts: list[str], prior: ArrayLike) -> FloatArray:
        """The true posteriors under a prior: (n, k)."""
        return _bayes(self.log_density(texts), check_prevalences(prior, k=self.k))


def _shuffled_classes(prevalence: ArrayLike, k: int, n: int, rng: np.random.Generator) -> IntArray:
    counts = to_counts(check_prevalences(prevalence, k=k), n)
    return rng.permutation(np.repeat(np.arange(k), counts))


def _bayes(log_density: FloatArray, prior: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):  # a class with prior 0 has posterior 0
        return np.asarray(softmax(log_density + np.log(prior), axis=1))
