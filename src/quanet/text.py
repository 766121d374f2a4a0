"""Raw text in: checks, and the classifier that every method uses for text when none is given."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.errors import InvalidData

MANY_TEXTS = 1000  # from here on, a word or pair that occurs in one or two texts is left out
EMBEDDED_TERMS = 20_000  # the embedding reads the most frequent terms: nearly as good, and a tenth of the size


def is_text(X: Any) -> bool:
    """Whether X is one column of texts rather than a matrix of numbers."""
    if isinstance(X, str):
        return True
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "tocsr"):
        return False
    dtype = getattr(X, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "O") in "biufc":
        return False
    return any(isinstance(item, str) for item in X)


def check_texts(X: Any) -> list[str]:
    """Return the texts as a list, or say which one is none."""
    if isinstance(X, str):
        raise InvalidData(f"X is one string, {X[:40]!r}; give a list of texts, even for one.")
    texts = list(X)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            wrong = sum(not isinstance(other, str) for other in texts)
            raise InvalidData(
                f"the text at position {position} is {text!r}, not a string, and so are {wrong - 1} others. "
                "Drop those rows, or replace them by ''."
            )
    return texts


def fit_terms(texts: list[str], *, longest: int = 2) -> tuple[TfidfVectorizer, csr_matrix]:
    """Words, and terms of up to `longest` words, weighted by TF-IDF: the fitted vectorizer and rows (n, d)."""
    vectorizer = TfidfVectorizer(
        ngram_range=(1, longest),
        min_df=3 if len(texts) >= MANY_TEXTS else 1,
        sublinear_tf=True,
        dtype=np.float32,
    )
    try:
        return vectorizer, vectorizer.fit_transform(texts)
    except ValueError as error:
        raise InvalidData(
            f"no words were found in the {len(texts)} texts, such as {texts[0][:40]!r}. Is it the right column?"
        ) from error


class TextClassifier(TransformerMixin, ClassifierMixin, BaseEstimator):
    """Logistic regression on TF-IDF weighted words and word pairs; trains in seconds on a CPU.

    Parameters
    ----------
    C : inverse strength of the regularisation.
    embedding_size : dimensions of `transform`: a truncated SVD of the most frequent terms, fitted without labels.
    random_state : seed of that SVD.

    Examples
    --------
    >>> texts = ["good film", "a good one", "bad film", "a bad one"] * 3
    >>> classifier = TextClassifier().fit(texts, ["yes", "yes", "no", "no"] * 3)
    >>> classifier.predict(["so good", "so bad"])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, C: float = 10.0, *, embedding_size: int = 100, random_state: int = 0) -> None:
        self.C = C
        self.embedding_size = embedding_size
        self.random_state = random_state

    def fit(self, X: Iterable[str], y: Any) -> Self:
        """Learn words, weights and embedding from texts (n,) and labels (n,)."""
        self.fit_out_of_fold(X, y, [])
        return self

    def fit_out_of_fold(self, X: Iterable[str], y: Any, folds: list[tuple[IntArray, IntArray]]) -> list[FloatArray]:
        """Fit on everything; return each fold's posteriors, from a regression that has not seen its labels.

        Words and their weights are counted once, over all texts: they know no labels.
        """
        labels = np.asarray(y)
        self.terms_, terms = fit_terms(check_texts(X))
        self._fit_embedding(terms)
        self.head_ = self._new_head().fit(terms, labels)
        self.classes_: LabelArray = self.head_.classes_
        return [self._new_head().fit(terms[seen], labels[seen]).predict_proba(terms[held]) for seen, held in folds]

    def predict_proba(self, X: Iterable[str]) -> FloatArray:
        """Posteriors (n, k), in the order of `classes_`."""
        terms = self._terms(X)
        return np.asarray(self.head_.predict_proba(terms), dtype=float)

    def predict(self, X: Iterable[str]) -> LabelArray:
        """The most probable class of every text (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def transform(self, X: Iterable[str]) -> FloatArray:
        """Embeddings (n, embedding_size), fewer where the training texts have fewer terms."""
        terms = self._terms(X)
        return np.asarray(terms[:, self.embedded_terms_] @ self.directions_.T, dtype=float)

    def _terms(self, X: Iterable[str]) -> csr_matrix:
        check_is_fitted(self, "head_")
        return self.terms_.transform(check_texts(X))

    def _new_head(self) -> LogisticRegression:
        return LogisticRegression(C=self.C, max_iter=1000)

    def _fit_embedding(self, terms: csr_matrix) -> None:
        frequency = np.bincount(terms.indices, minlength=terms.shape[1])
        frequent = np.argsort(-frequency, kind="stable")[:EMBEDDED_TERMS]
        self.embedded_terms_: IntArray = np.sort(frequent)
        size = min(self.embedding_size, *terms[:, frequent].shape)
        _, _, directions = randomized_svd(terms[:, self.embedded_terms_], size, random_state=self.random_state)
        self.directions_: FloatArray = directions
