"""The default classifier for texts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers.calibration import fit_weights
from quanet.classifiers.logistic import Floats, fit_logistic, scores, sums
from quanet.classifiers.meaning import fit_meaning
from quanet.classifiers.terms import MANY_TEXTS, Characters, Terms, characters, in_batches, project_terms
from quanet.data.instances import check_texts as check_texts
from quanet.data.instances import is_text as is_text
from quanet.errors import InvalidData, InvalidSetting
from quanet.progress import report

VIEWS = {"words": "words", "weighted words": "words", "characters": "characters", "meaning": "tokens"}  # view -> unit
DEFAULT_VIEWS = ("words", "weighted words", "characters")
LONGEST = {"words": 3, "characters": 5}
REPEATS = {"words": False, "characters": True}  # a repeated word adds little information; characters repeat often
SHRINKAGE = 10.0  # neutral texts added to the texts with a term, for the log odds
WEIGHTED_C = 0.3  # times C: the weights already use the labels, so these regressions need more regularisation
MEANING_C = 0.001  # times C: the features are standardised, not of length one
EMBEDDED_TERMS = 20_000  # most frequent terms for the embedding: nearly as good as all, a tenth of the size
MAX_WEIGHTS = 2**25  # weights fitted at a time, to bound memory


def fit_terms(texts: list[str], *, longest: int = 2) -> tuple[TfidfVectorizer, csr_matrix]:
    """N-grams of up to `longest` words, weighted by TF-IDF: the fitted vectorizer and rows (n, d)."""
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
            f"The {len(texts)} texts contain no words (first: {texts[0][:40]!r}). Check the text column."
        ) from error


class TextClassifier(TransformerMixin, ClassifierMixin, BaseEstimator):
    r"""Text classifier, the default for texts: an average of linear models on several views of a text.

    Each view is a logistic regression, the first three on terms weighted by TF-IDF, with rows of length one:

    ================  ==========================================================================================
    "words"           n-grams of one to three words, each counted once per text
    "weighted words"  the same, each multiplied by its log odds r for the class, as below
    "characters"      n-grams of two to five characters, for inflections, typing errors and any script
    "meaning"         the weighted mean of token vectors, from a sentence encoder for English that reads each token of
                      its vocabulary once (`quanet.classifiers.meaning`); not a default
    ================  ==========================================================================================

    .. math:: r = \log \frac{p + \alpha \pi}{q + \alpha (1 - \pi)} - \log \frac{\pi}{1 - \pi}

    where p texts of the class and q of the others contain the term, and :math:`\pi` is the prevalence of the class. The
    weighting of words follows [1]_, with log odds of rare terms shrunk towards 0. The logits of the views are averaged,
    with weights fitted out of fold when a quantifier cross-fits it, and equal weights otherwise. More than two classes
    are separated one against the others. It fits 25,000 long reviews in about a minute.

    Parameters
    ----------
    C : inverse strength of the regularisation; "weighted words" uses 0.3 times, "meaning" 0.001 times this value.
    views : the views to use; fewer are faster. "meaning" helps most with short texts. To fit it, install
        ``quanet[transformers]``; the first fit takes about a minute longer. A fitted model needs no encoder.
    embedding_size : dimensions of `transform`: a truncated SVD of the most frequent terms, fitted without labels.
    random_state : seed of the SVD, and of the order in which the regressions visit texts.

    Attributes
    ----------
    classes_ : (k,) sorted labels.
    shares_ : the weight of each view; the weights sum to 1.

    References
    ----------
    .. [1] S. Wang and C. D. Manning, "Baselines and bigrams: simple, good sentiment and topic classification", ACL
           2012.

    Examples
    --------
    >>> texts = ["good film", "a good one", "bad film", "a bad one"] * 3
    >>> classifier = TextClassifier().fit(texts, ["yes", "yes", "no", "no"] * 3)
    >>> classifier.predict(["so good", "so bad"])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        C: float = 10.0,
        *,
        views: Sequence[str] = DEFAULT_VIEWS,
        embedding_size: int = 100,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.views = views
        self.embedding_size = embedding_size
        self.random_state = random_state

    def fit(self, X: Iterable[str], y: Any) -> Self:
        """Learn terms, weights and embedding from texts (n,) and labels (n,)."""
        self.fit_out_of_fold(X, y, [])
        return self

    def fit_out_of_fold(self, X: Iterable[str], y: Any, folds: list[tuple[IntArray, IntArray]]) -> list[FloatArray]:
        """Fit to all data; return the posteriors of each fold, by regressions fitted without it.

        Terms and their TF-IDF weights need no labels and are computed once, from all texts. Log odds and regressions
        are fitted for each fold. Only the weights of the views are learned from all folds.
        """
        texts, labels = check_texts(X), np.asarray(y)
        unknown = sorted(set(self.views) - set(VIEWS))
        if unknown or not self.views:
            raise InvalidSetting(f"views must be some of {', '.join(map(repr, VIEWS))}; got {list(self.views)}.")
        if len(labels) != len(texts):
            raise InvalidData(f"Got {len(texts)} texts but {len(labels)} labels. Pass one label per text.")
        self.classes_: LabelArray = np.unique(labels)
        if len(self.classes_) < 2:
            raise InvalidData(f"All texts have the class {self.classes_.tolist()}. A classifier needs two.")
        self.terms_: dict[str, Any] = {}  # Terms by unit, and Tokens
        self.weights_: dict[str, Floats] = {}
        signs = _signs(labels, self.classes_)
        logits = self._fit_meaning(texts, signs, folds)
        # The embedding needs words, even if no view does.
        for unit in dict.fromkeys(["words", *(VIEWS[view] for view in self.views if view != "meaning")]):
            self.terms_[unit] = Terms(unit, LONGEST[unit], repeats=REPEATS[unit])
            matrix = self.terms_[unit].fit_transform(texts)
            if unit == "words":
                self._fit_embedding(matrix)
            for view in self.views:
                if VIEWS[view] == unit:
                    self.weights_[view], logits[view] = self._fit_view(view, matrix, signs, folds)
        if not any(len(terms.hashes) for unit, terms in self.terms_.items() if unit != "tokens"):
            raise InvalidData(f"The {len(texts)} texts contain no words. Check the text column.")
        self.shares_ = dict.fromkeys(self.weights_, 1 / len(self.weights_))
        if folds and len(self.weights_) > 1:
            # A text that several folds hold out counts once.
            positions, first = np.unique(np.concatenate([held_out for _, held_out in folds]), return_index=True)
            views = [_by_class(np.concatenate(logits[view])[first]) for view in self.shares_]
            found = fit_weights(views, np.searchsorted(self.classes_, labels[positions]))
            self.shares_ = dict(zip(self.shares_, found.tolist(), strict=True))
        return [
            _posteriors(sum((share * logits[view][at] for view, share in self.shares_.items()), np.zeros(1)))
            for at in range(len(folds))
        ]

    def predict_proba(self, X: Iterable[str]) -> FloatArray:
        """Posteriors (n, k), in the order of `classes_`. Those of a text do not depend on the other texts."""
        return np.concatenate([self._classify(*batch)[0] for batch in self._batches(X)])

    def predict(self, X: Iterable[str]) -> LabelArray:
        """The most probable class of each text (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def transform(self, X: Iterable[str]) -> FloatArray:
        """Embeddings (n, embedding_size), with fewer columns if the training texts have fewer terms."""
        parts = [
            project_terms(self.terms_["words"], read, (), self.directions_, by_term=False)[1]
            for _, read in self._batches(X)
        ]
        return np.concatenate(parts).astype(float)

    def read(self, X: Iterable[str]) -> tuple[FloatArray, FloatArray]:
        """`predict_proba` and `transform` in one pass over the texts."""
        parts = [self._classify(*batch, embed=True) for batch in self._batches(X)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]).astype(float)

    def _batches(self, X: Iterable[str]) -> Iterator[tuple[list[str], Characters]]:
        """Texts and their characters, batch by batch, in bounded memory."""
        check_is_fitted(self, "weights_")
        for batch in in_batches(check_texts(X)):
            yield batch, characters(batch)

    def _classify(self, texts: list[str], read: Characters, *, embed: bool = False) -> tuple[FloatArray, Floats]:
        """Posteriors (n, k) and, if `embed`, embeddings (n, e)."""
        logits: FloatArray = np.zeros(1)
        embedding: Floats = np.empty((len(texts), 0), dtype=np.float32)
        for unit, terms in self.terms_.items():
            views = [(self.shares_[view], weights) for view, weights in self.weights_.items() if VIEWS[view] == unit]
            if unit == "tokens":
                rows = terms.transform(texts)
                logits = sum((share * scores(rows, weights).astype(float) for share, weights in views), logits)
            elif unit == "words" and embed:
                found, embedding = project_terms(terms, read, views, self.directions_, by_term=False)
                logits = logits + found if views else logits
            elif views:
                logits = logits + project_terms(terms, read, views)[0]
        return _posteriors(logits), embedding

    def _fit_embedding(self, matrix: csr_matrix) -> None:
        frequent = matrix[:, :EMBEDDED_TERMS]
        size = min(self.embedding_size, *frequent.shape)
        self.directions_: Floats = np.empty((0, frequent.shape[1]), dtype=np.float32)
        if size:
            self.directions_ = randomized_svd(frequent, size, random_state=self.random_state)[2].astype(np.float32)

    def _fit_meaning(
        self, texts: list[str], signs: Floats, folds: list[tuple[IntArray, IntArray]]
    ) -> dict[str, list[FloatArray]]:
        """Fit the view "meaning" if it is used; returns the logits of each fold."""
        if "meaning" not in self.views:
            return {}
        self.terms_["tokens"], self.weights_["meaning"], logits = fit_meaning(texts, signs, folds, MEANING_C * self.C)
        return {"meaning": logits}

    def _fit_view(
        self,
        view: str,
        matrix: csr_matrix,
        signs: Floats,
        folds: list[tuple[IntArray, IntArray]],
    ) -> tuple[Floats, list[FloatArray]]:
        """Weights (d + 1, c) fitted to all texts, and for each fold the logits of its held-out texts."""
        logits = [np.zeros((len(held_out), signs.shape[1])) for _, held_out in folds]
        step = max(1, MAX_WEIGHTS // (matrix.shape[1] + 1))
        fitted = []
        for c in range(signs.shape[1]):
            own = signs[:, c : c + 1]
            report(view, c / signs.shape[1])
            weights, dual = self._regress(view, matrix, own)
            report(view, (c + 0.3) / signs.shape[1])
            fitted.append(weights)
            for first in range(0, len(folds), step):
                part = range(first, min(first + step, len(folds)))
                seen = np.zeros((len(own), len(part)), dtype=np.float32)
                for at, fold in enumerate(part):
                    seen[folds[fold][0], at] = 1
                # Starting from the fit to all texts is faster, and leads to the same optimum.
                weights, _ = self._regress(view, matrix, own * seen, start=dual)
                for at, fold in enumerate(part):
                    rows = self.terms_[VIEWS[view]].as_new(matrix, folds[fold][1])
                    logits[fold][:, c] = scores(rows, weights[:, at : at + 1])[:, 0]
        report(view, 1.0)
        return np.hstack(fitted), logits

    def _regress(
        self, view: str, matrix: csr_matrix, signs: Floats, start: Floats | None = None
    ) -> tuple[Floats, Floats]:
        scale, C = None, self.C
        if view == "weighted words":
            scale, C = log_odds(matrix, signs), WEIGHTED_C * self.C
        return fit_logistic(matrix, signs, C, scale=scale, start=start, random_state=self.random_state)


def log_odds(matrix: csr_matrix, signs: Floats) -> Floats:
    """Log odds of terms: matrix (n, d) and signs (n, b), 1 for texts of the class and -1 for others -> (d + 1, b).

    The last row, for the intercept, is 1.
    """
    present = csr_matrix((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    p, q = (sums(present, (signs == sign).astype(np.float32)) for sign in (1, -1))
    share = (p[-1] + 0.5) / (p[-1] + q[-1] + 1)
    p += SHRINKAGE * share
    q += SHRINKAGE * (1 - share)
    ratio: Floats = np.log(p / q) - np.log(share / (1 - share))
    ratio[-1] = 1
    return ratio


def _signs(labels: LabelArray, classes: LabelArray) -> Floats:
    """1 for the texts of a class, -1 for others: (n, k), or (n, 1) for the second of two classes."""
    positive = labels[:, None] == (classes[1:] if len(classes) == 2 else classes)
    return np.where(positive, 1, -1).astype(np.float32)


def _by_class(logits: FloatArray) -> FloatArray:
    """Logits (n, k), from (n, 1) for two classes."""
    return logits if logits.shape[1] > 1 else np.hstack([np.zeros_like(logits), logits])


def _posteriors(logits: FloatArray) -> FloatArray:
    """Posteriors (n, k) from logits (n, k), or (n, 1) for two classes."""
    if logits.shape[1] > 1:
        return np.asarray(softmax(logits, axis=1))
    positive = expit(logits)
    return np.hstack([1 - positive, positive])
