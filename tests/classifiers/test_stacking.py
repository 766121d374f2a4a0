import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from quanet import EMQ, Gaussians, StackedClassifier, TextClassifier, WordBags, load, save
from quanet.classifiers.cross_fitting import cross_fit
from quanet.errors import InvalidSetting

X, Y = Gaussians(k=3, distance=2.0).draw([0.4, 0.3, 0.3], 400, rng=0)
TEXTS, CODES = WordBags(length=12, preference=4.0).draw([0.5, 0.5], 200, rng=0)
BOTH = StackedClassifier([LogisticRegression(), GaussianNB()])


def test_fitted_alone_logits_are_averaged_evenly():
    fitted = clone(BOTH).fit(X, Y)
    logs = [np.log(member.fit(X, Y).predict_proba(X)) for member in (LogisticRegression(), GaussianNB())]
    mean = np.exp(np.mean(logs, axis=0))
    np.testing.assert_allclose(fitted.predict_proba(X), mean / mean.sum(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[fitted.predict_proba(X).argmax(axis=1)])


def test_a_classifier_that_says_nothing_counts_for_nothing():
    stack = StackedClassifier([DummyClassifier(), LogisticRegression()])
    fitted, posteriors, held = cross_fit(stack, X, Y, np.arange(3), cv=5)
    np.testing.assert_allclose(fitted.shares_, [0, 1], atol=0.02)
    alone = cross_fit(LogisticRegression(), X, Y, np.arange(3), cv=5)[1]
    np.testing.assert_allclose(posteriors, alone, atol=0.02)
    assert sorted(held) == list(range(len(X)))


def test_the_order_of_classifiers_does_not_matter():
    turned = StackedClassifier(BOTH.classifiers[::-1])
    first, second = (cross_fit(stack, X, Y, np.arange(3), cv=5) for stack in (BOTH, turned))
    np.testing.assert_allclose(first[0].shares_, second[0].shares_[::-1], atol=1e-5)
    np.testing.assert_allclose(first[1], second[1], atol=1e-5)


def test_embeddings_that_know_no_labels_stand_side_by_side():
    stack = StackedClassifier([TextClassifier(embedding_size=3), TextClassifier(embedding_size=4, views=["words"])])
    assert stack.fit(TEXTS, CODES).transform(TEXTS[:5]).shape == (5, 7)
    assert clone(BOTH).fit(X, Y).transform(X).shape == (len(X), 0)


def test_a_quantifier_on_a_stack_can_be_saved(tmp_path):
    stack = StackedClassifier([TextClassifier(views=["words"]), TextClassifier(views=["characters"])])
    fitted = EMQ(stack).fit(TEXTS, CODES)
    save(fitted, tmp_path / "stack")
    np.testing.assert_array_equal(load(tmp_path / "stack").predict(TEXTS), fitted.predict(TEXTS))


def test_what_cannot_be_stacked_is_refused():
    with pytest.raises(InvalidSetting, match="at least two classifiers; got"):
        StackedClassifier([GaussianNB()]).fit(X, Y)
    with pytest.raises(InvalidSetting, match=r"LinearSVC\(\) has no predict_proba"):
        StackedClassifier([GaussianNB(), LinearSVC()]).fit(X, Y)


def test_zeros_of_one_classifier_do_not_silence_the_others():
    tree, linear = DecisionTreeClassifier(min_samples_leaf=5, random_state=0), LogisticRegression()
    _, of_stack, _ = cross_fit(StackedClassifier([tree, linear]), X, Y, np.arange(3), cv=5)
    _, of_linear, held = cross_fit(linear, X, Y, np.arange(3), cv=5)
    _, of_tree, _ = cross_fit(tree, X, Y, np.arange(3), cv=5)
    assert (of_tree == 0).any()
    surprises = [-np.log(rows[np.arange(len(held)), Y[held]]).mean() for rows in (of_stack, of_linear)]
    assert surprises[0] < surprises[1] + 0.02
    quadrants = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)  # of which a linear classifier knows little
    stack, _, _ = cross_fit(StackedClassifier([tree, linear]), X, quadrants, np.arange(2), cv=5)
    assert stack.shares_[0] > 0.5
