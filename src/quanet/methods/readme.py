"""ReadMe: shares of texts from the words that occur together in them, without a classifier."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from quanet import kernels
from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.base import Quantifier
from quanet.classifiers.text import check_texts, is_text
from quanet.data.duplicates import find_distinct
from quanet.errors import InvalidData
from quanet.methods.about import About
from quanet.methods.svm import check_features
from quanet.parameters import Constraints, between, whole
from quanet.simplex import project
from quanet.wording import level_text

MOST_WORDS = 25  # a profile of more words is hardly ever seen twice
RIDGE = 1e-6  # of the quadratic, so that classes with the same profiles share what they explain


def profile_tables(profiles: IntArray, codes: IntArray, k: int, size: int, weights: FloatArray) -> FloatArray:
    r"""Share of every profile among the instances of each class: (n, m), (n,) -> (size + 1, k); the last row is zero.

    Examples
    --------
    >>> profile_tables(np.array([[0], [0], [1]]), np.array([0, 1, 1]), 2, 2, np.ones(3))
    array([[1. , 0.5],
           [0. , 0.5],
           [0. , 0. ]])
    """
    cells = profiles * k + codes[:, None]
    counted = np.bincount(cells.ravel(), weights=np.repeat(weights, profiles.shape[1]), minlength=(size + 1) * k)
    members = np.bincount(codes, weights=weights, minlength=k)
    return counted.reshape(size + 1, k) / np.where(members > 0, members, 1)


class ReadMe(Quantifier):
    r"""ReadMe: prevalences whose mixture of word profiles is nearest to the bag's [1]_.

    A profile lists which of a few words occur in a text. Of every one of many random sets of words,

    .. math:: \hat p_s = \arg\min_{p \in \Delta} \| P_s(\text{profile} \mid \text{class})\, p - P_s(\text{profile}) \|^2

    is found, and their mean is the estimate. It needs no classifier. Reads texts, or numbers (n, d), where a word is
    present above its training mean: ones, of zeros and ones.

    Parameters
    ----------
    subsets : random sets of words; 300 in the authors' program.
    words : in a set; 15 there.
    rare : words in less than this share of the texts, or in all but less, are left out.
    random_state : seed of the sets.

    Attributes
    ----------
    words_ : (m, w), the words of every set, as columns.
    groups_ : (n,) equal for copies of a text (`quanet.data.duplicates`), or None where all are different.
    tables_ : (s + 1, k), the share of every profile in each class, one set after another; the last row is of profiles
        that were never seen.

    Notes
    -----
    Each set's shares are found on the simplex, as published; QuaPy 0.2 bounds each by 0 and 1 and then scales them.

    References
    ----------
    .. [1] D. J. Hopkins and G. King, "A method of automated nonparametric content analysis for social science",
           American Journal of Political Science 54, 2010.

    Examples
    --------
    >>> texts = ["good film", "a good one", "bad film", "a bad one"] * 5
    >>> quantifier = ReadMe(subsets=50, words=2).fit(texts, ["yes", "yes", "no", "no"] * 5)
    >>> quantifier.predict(["good film", "a bad one", "bad film", "bad film"]).round(1)
    array([0.7, 0.3])
    """

    about: ClassVar[About] = About(
        "words", "Hopkins and King (2010)", "any", "text", "O(n m k + m k^3), m sets of words"
    )

    allowed_values: ClassVar[Constraints] = {
        "subsets": whole(1),
        "words": whole(1, MOST_WORDS),
        "rare": between(0, 0.5, including="low"),
    }

    def __init__(self, *, subsets: int = 300, words: int = 15, rare: float = 0.01, random_state: int = 0) -> None:
        self.subsets = subsets
        self.words = words
        self.rare = rare
        self.random_state = random_state

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Learn the profiles of texts X, or of numbers (n, d), with labels y (n,)."""
        codes = self._learn_labels(X, y)
        distinct = find_distinct(X)
        self.groups_ = None if distinct is None else distinct.owner
        self.terms_: Any = None
        if is_text(X):
            self.terms_ = CountVectorizer(binary=True, dtype=np.float64)
            presence = self._vocabulary(check_texts(X))
        else:
            # Of zeros and ones the mean lies between them; zeros of a sparse matrix stay absent.
            features = check_features(X)
            means = np.asarray(features.mean(axis=0), dtype=float).ravel()
            self.cuts_: FloatArray = np.maximum(means, 0) if isinstance(features, csr_matrix) else means
            presence = self._presence(X)
        share = np.asarray(presence.mean(axis=0)).ravel()
        frequent = np.flatnonzero((share >= self.rare) & (share <= 1 - self.rare))
        if not len(frequent):
            raise InvalidData(
                f"no word occurs in {level_text(self.rare)} to {level_text(1 - self.rare)} of the {len(codes):,} "
                "texts. Lower `rare`, or pass texts that share words."
            )
        self._draw_words(frequent)
        numbers = self._numbers(presence)
        found = [np.unique(column) for column in numbers.T]
        self.profiles_: IntArray = np.concatenate(found)
        self.starts_: IntArray = np.cumsum([0, *(len(one) for one in found)])
        self.known_: IntArray = self._places(numbers)
        self.codes_: IntArray = codes
        self.tables_: FloatArray = self._tables(np.ones(len(codes)))
        self.quadratics_: FloatArray
        self.inverses_: FloatArray
        self.quadratics_, self.inverses_ = self._problems(self.tables_)

    def _read(self, X: Any) -> FloatArray:
        """The profile of every instance in every set, as its row in `tables_`: (n, m)."""
        check_is_fitted(self, "tables_")
        return self._places(self._numbers(self._presence(X))).astype(float)

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Explain the profiles of each set by those of the classes, then average: (..., n, m) -> (..., k)."""
        profiles = check_rows(rows, width=len(self.words_))
        return explain(profiles, self.tables_, self.quadratics_, self.inverses_)

    def bootstrap(self, X: Any, *, repeats: int = 300, rng: np.random.Generator | int) -> FloatArray:
        """Estimates for texts X from labelled and new texts drawn again, with replacement: (repeats, k).

        Their standard deviation is the standard error that the authors report, and their quantiles an interval.
        """
        rng = np.random.default_rng(rng)
        rows = check_rows(self.represent(X))
        n, m = len(self.codes_), len(rows)
        groups: IntArray | None = getattr(self, "groups_", None)  # not kept by versions before it was
        owner = np.arange(n) if groups is None else groups  # copies of a text are drawn together
        texts = int(owner.max()) + 1
        estimates = np.empty((repeats, len(self.classes_)))
        for at in range(repeats):
            weights = rng.multinomial(texts, np.full(texts, 1 / texts)).astype(float)[owner]
            tables = self._tables(weights)
            estimates[at] = explain(rows[rng.integers(m, size=m)], tables, *self._problems(tables))
        return estimates

    def _vocabulary(self, texts: list[str]) -> csr_matrix:
        try:
            return csr_matrix(self.terms_.fit_transform(texts))
        except ValueError as error:
            raise InvalidData(
                f"no words were found in the {len(texts)} texts, such as {texts[0][:40]!r}. Check the column."
            ) from error

    def _presence(self, X: Any) -> csr_matrix:
        """Which words occur in which text: (n, v), of zeros and ones."""
        if self.terms_ is not None:
            return csr_matrix(self.terms_.transform(check_texts(X)))
        features = check_features(X)
        if features.shape[1] != len(self.cuts_):
            raise InvalidData(f"X has {features.shape[1]} columns; the training data had {len(self.cuts_)}.")
        if not isinstance(features, csr_matrix):
            return csr_matrix(features > self.cuts_, dtype=np.float64)
        present = features.data > self.cuts_[features.indices]
        return csr_matrix((present.astype(float), features.indices, features.indptr), shape=features.shape)

    def _draw_words(self, frequent: IntArray) -> None:
        rng = np.random.default_rng(self.random_state)
        w = min(self.words, len(frequent))
        # If there are no more words than a set has, only one set exists.
        m = self.subsets if len(frequent) > w else 1
        self.words_: IntArray = np.stack([np.sort(rng.choice(frequent, w, replace=False)) for _ in range(m)])

    def _numbers(self, presence: csr_matrix) -> IntArray:
        """Every text's profile in every set as a binary number: (n, m)."""
        m, w = self.words_.shape
        used, columns = np.unique(self.words_, return_inverse=True)
        digits = csr_matrix(
            (np.tile(2.0 ** np.arange(w), m), (columns.ravel(), np.repeat(np.arange(m), w))), shape=(len(used), m)
        )
        return np.asarray((presence[:, used] @ digits).toarray(), dtype=np.intp)

    def _places(self, numbers: IntArray) -> IntArray:
        """The row of `tables_` that each profile has: (n, m) -> (n, m)."""
        places = np.full(numbers.shape, len(self.profiles_))
        for s, (start, stop) in enumerate(zip(self.starts_[:-1], self.starts_[1:], strict=True)):
            known = self.profiles_[start:stop]
            at = np.minimum(np.searchsorted(known, numbers[:, s]), len(known) - 1)
            places[:, s] = np.where(known[at] == numbers[:, s], start + at, len(self.profiles_))
        return places

    def _tables(self, weights: FloatArray) -> FloatArray:
        return profile_tables(self.known_, self.codes_, len(self.classes_), len(self.profiles_), weights)

    def _problems(self, tables: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The quadratic of every set's least squares, and its inverse: (m, k, k) each."""
        k = len(self.classes_)
        blocks = np.split(tables[:-1], self.starts_[1:-1])
        quadratics = np.stack([block.T @ block for block in blocks])
        quadratics += (RIDGE * np.trace(quadratics, axis1=1, axis2=2) / k)[:, None, None] * np.eye(k)
        return quadratics, np.asarray(np.linalg.inv(quadratics), dtype=np.float64)


def explain(profiles: FloatArray, tables: FloatArray, quadratics: FloatArray, inverses: FloatArray) -> FloatArray:
    """The mean over sets of the shares nearest to the profiles' own: (..., n, m) -> (..., k)."""
    m, k = inverses.shape[:2]
    bags = np.ascontiguousarray(profiles).reshape(-1, *profiles.shape[-2:])
    linear = np.empty((len(bags), m, k))
    kernels.mean_entries(bags, tables, linear)
    # Stationarity with the sum held at one, as in `simplex_least_squares`, for every set at once.
    ones = inverses.sum(axis=-1)
    free = np.einsum("sij,bsj->bsi", inverses, linear)
    free -= ((free.sum(axis=-1) - 1) / ones.sum(axis=-1))[..., None] * ones
    outside = (free < 0).any(axis=-1)
    if outside.any():
        corrected = project(free[outside])
        kernels.simplex_quadratics_of(quadratics, np.nonzero(outside)[1], linear[outside], corrected)
        free[outside] = corrected
    return np.asarray(free.mean(axis=-2).reshape(*profiles.shape[:-2], k))
