"""Nearest neighbours, whose votes count for more the rarer their class is."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray, check_rows
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import check_labels
from quanet.classifiers.text import check_texts, fit_terms, is_text
from quanet.errors import InvalidData
from quanet.methods.about import About
from quanet.methods.svm import check_features
from quanet.parameters import Constraints, check_parameters, positive, whole
from quanet.simplex import classes_of, count, encode

ALLOWED: Constraints = {"n_neighbors": whole(1), "alpha": positive()}
TIE = 1e-10  # what the nearest neighbour's vote counts for more: of classes with equal votes its class wins


class WeightedNeighbours(ClassifierMixin, BaseEstimator):
    r"""Proportion-weighted k nearest neighbours [1]_: the classifier behind `PWK`.

    A vote of class c has the weight

    .. math:: w_c = \Big( \frac{m_c}{\min_j m_j} \Big)^{-1 / \alpha}

    where :math:`m_c` is how many training instances the class has.

    Parameters
    ----------
    n_neighbors : number of neighbours that vote; all instances if fewer.
    alpha : at 1 all classes have the same weight in total; larger values correct less.

    Attributes
    ----------
    classes_ : (k,) sorted labels.
    weights_ : (k,) the weight of a vote of each class.

    References
    ----------
    .. [1] J. Barranquero, P. González, J. Díez and J. J. del Coz, "On the study of nearest neighbor algorithms for
           prevalence estimation in binary problems", Pattern Recognition 46, 2013.

    Examples
    --------
    >>> classifier = WeightedNeighbours(3).fit([[0.0], [0.1], [0.2], [0.3], [1.0], [0.25]], list("aaaabb"))
    >>> classifier.predict([[0.2], [0.9]]).tolist(), classifier.weights_
    (['a', 'b'], array([0.5, 1. ]))
    """

    allowed_values: ClassVar[Constraints] = ALLOWED

    classes_: LabelArray

    def __init__(self, n_neighbors: int = 10, *, alpha: float = 1.0) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Keep instances X (n, d) and labels y (n,)."""
        check_parameters(self)
        features = check_features(X)
        labels = check_labels(y, features.shape[0])
        self.classes_ = classes_of(labels)
        self.codes_: IntArray = encode(labels, self.classes_)
        sizes = count(self.codes_, len(self.classes_))
        self.weights_: FloatArray = (sizes / sizes.min()) ** (-1 / self.alpha)
        # Searched without a tree: as fast for a pool at once, and nothing but the instances to keep.
        self.neighbours_ = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(labels)), algorithm="brute")
        self.neighbours_.fit(features)
        self.n_features_in_ = features.shape[1]
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Each class's share of the votes: (n, d) -> (n, k)."""
        check_is_fitted(self, "weights_")
        features = check_features(X)
        if features.shape[1] != self.n_features_in_:
            raise InvalidData(f"X has {features.shape[1]} columns; the training data had {self.n_features_in_}.")
        found = self.codes_[self.neighbours_.kneighbors(features, return_distance=False)]
        votes, everyone = np.zeros((len(found), len(self.classes_))), np.arange(len(found))
        for rank, codes in enumerate(found.T):
            votes[everyone, codes] += self.weights_[codes] + TIE * 0.5**rank
        return votes / votes.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> LabelArray:
        """The class of every instance: (n, d) -> (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class PWK(Quantifier):
    r"""Proportion-weighted k nearest neighbours: count what neighbours vote for, rare classes weighing more [1]_.

    .. math:: \hat p_c = \frac1n \sum_{i=1}^n \Big[ c = \arg\max_j w_j v_{ij} \Big], \qquad
        w_c = \Big( \frac{m_c}{\min_j m_j} \Big)^{-1 / \alpha}

    with :math:`v_{ij}` the neighbours of instance i in class j. Reads numbers (n, d), dense or sparse, or texts, which
    become TF-IDF weighted words.

    Parameters
    ----------
    n_neighbors, alpha : see `WeightedNeighbours`.

    Attributes
    ----------
    classifier_ : the fitted `WeightedNeighbours`.
    terms_ : the vectorizer of texts; None for numbers.

    Notes
    -----
    The same as mlquantify 0.5's, which gives a tie to the first class, and this to that of the nearest neighbour.
    quantificationlib 0.1 adjusts the count by the confusion matrix of training instances that vote for themselves; an
    honest adjustment is ``ACC(WeightedNeighbours())``.

    References
    ----------
    .. [1] J. Barranquero, P. González, J. Díez and J. J. del Coz, "On the study of nearest neighbor algorithms for
           prevalence estimation in binary problems", Pattern Recognition 46, 2013.

    Examples
    --------
    >>> PWK(3).fit([[0.0], [0.1], [0.2], [0.9], [1.0]], ["no", "no", "no", "yes", "yes"]).predict([[0.05], [0.95]])
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About(
        "counting", "Barranquero et al. (2013)", "any", "features", "O(n m d), m training instances"
    )

    allowed_values: ClassVar[Constraints] = ALLOWED

    classifier_: WeightedNeighbours
    terms_: Any

    def __init__(self, n_neighbors: int = 10, *, alpha: float = 1.0) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Keep instances X, texts or numbers (n, d), and labels y (n,)."""
        codes = self._learn_labels(X, y)
        self.terms_, features = fit_terms(check_texts(X), longest=1) if is_text(X) else (None, X)
        self.classifier_ = WeightedNeighbours(self.n_neighbors, alpha=self.alpha).fit(features, self.classes_[codes])

    def _read(self, X: Any) -> FloatArray:
        """Decisions, 1 for the class that each instance is given to: (n, k)."""
        check_is_fitted(self, "classifier_")
        features = X if self.terms_ is None else self.terms_.transform(check_texts(X))
        return np.eye(len(self.classes_))[self.classifier_.predict_proba(features).argmax(axis=1)]

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Count the decisions: (..., n, k) -> (..., k)."""
        return np.asarray(check_rows(rows, width=len(self.classes_)).mean(axis=-2))
