"""The order of the training data decides nothing: `fit` uses an order given by their content."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from quanet import APP, EMQ, PACC, Gaussians, TextClassifier, evaluate
from quanet.classifiers.cross_fitting import FOLDS, cross_fit, usual_folds
from quanet.classifiers.folds import make_folds
from quanet.data.duplicates import RowOrder, canonical_order, find_distinct
from quanet.evaluation.searches import GridSearchQ
from quanet.nn.set_networks import SetQuantifier

CLASSES = np.array([0, 1])


def by_topic(topics, rows, rng):
    """Texts of a topic have its words, and one of the words of their class; most of a topic is of one class."""
    texts, labels = [], []
    for topic in range(topics):
        share = rng.beta(0.5, 0.5)
        for label in (rng.random(rows) < share).astype(int).tolist():
            words = [f"topic{topic}w{word}" for word in rng.integers(5, size=8)]
            words += [f"class{label}w{rng.integers(40)}"] if rng.random() < 0.6 else []
            texts.append(" ".join(words))
            labels.append(label)
    return texts, np.array(labels)


def test_a_file_that_is_sorted_by_topic_gives_the_estimates_of_a_shuffled_one():
    rng = np.random.default_rng(0)
    texts, y = by_topic(60, 20, rng)
    order = np.argsort([text.split("w")[0] for text in texts], kind="stable")
    mixed = rng.permutation(len(y))
    new, truth = by_topic(60, 20, np.random.default_rng(1))
    estimates = []
    for chosen in (order, mixed):
        rows = [texts[at] for at in chosen]
        _, posteriors, positions = cross_fit(TextClassifier(), rows, y[chosen], CLASSES, cv=5)
        assert (posteriors.argmax(axis=1) == y[chosen][positions]).mean() > 0.7
        estimates.append(EMQ().fit(rows, y[chosen]).predict(new))
    np.testing.assert_array_equal(*estimates)
    assert abs(estimates[0][1] - truth.mean()) < 0.1


@pytest.mark.parametrize("kind", ["texts", "numbers", "sparse", "table"])
def test_rows_in_any_order_give_the_same_model_to_the_last_bit(kind):
    rng = np.random.default_rng(0)
    numbers, y = Gaussians(distance=1.5).draw([0.6, 0.4], 1200, rng=0)
    products = rng.integers(5, size=len(y))
    numbers = (numbers + 2 * rng.normal(size=(5, 2))[products]).round(3)
    groups = np.array([f"product {at}" for at in products])
    if kind == "texts":
        texts = np.array([" ".join(f"f{at}v{int(4 * v)}" for at, v in enumerate(row)) for row in numbers])
        X = list(texts)
    else:
        table = pd.DataFrame(numbers, columns=["a", "b"])
        X = {"numbers": numbers, "sparse": csr_matrix(numbers), "table": table}[kind]
    found = []
    for order in (np.arange(len(y)), np.arange(len(y))[::-1], np.lexsort((groups, y))):
        rows = [X[at] for at in order] if kind == "texts" else X.iloc[order] if kind == "table" else X[order]
        quantifier = EMQ().fit(rows, y[order], groups=groups[order])
        interval = quantifier.predict_interval(X[:200] if kind != "table" else X.iloc[:200])
        found.append(np.hstack([interval.estimate, interval.lower, interval.upper, quantifier.drift_.rate]))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_rows_that_are_equal_because_values_are_coarse_are_spread_over_the_folds():
    y = np.arange(400) % 2
    X = np.random.default_rng(0).integers(3, size=(400, 1)).astype(float)
    assert find_distinct(X) is None
    order = canonical_order(X, y)
    for _, held_out in make_folds(X[order], y[order], CLASSES, 5):
        assert np.bincount(X[order][held_out].ravel().astype(int)).min() > 15


def test_the_order_does_not_depend_on_the_one_before_and_copies_with_other_labels_have_a_place():
    rng = np.random.default_rng(0)
    X, y = rng.integers(4, size=(200, 2)).astype(float), rng.integers(2, size=200)
    first = canonical_order(X, y)
    for _ in range(3):
        mixed = rng.permutation(200)
        again = mixed[canonical_order(X[mixed], y[mixed])]
        np.testing.assert_array_equal(X[again], X[first])
        np.testing.assert_array_equal(y[again], y[first])


def test_a_splitter_gets_the_rows_as_they_are():
    seen = []

    class Spy(KFold):
        def split(self, X, y=None, groups=None):
            seen.append(np.asarray(y))
            return super().split(X, y, groups)

    X, y = Gaussians().draw([0.5, 0.5], 60, rng=0)
    PACC(LogisticRegression(), cv=Spy(3)).fit(X, y)
    np.testing.assert_array_equal(seen[0], y)


def test_a_search_does_not_depend_on_the_order():
    X, y = Gaussians(distance=1.0).draw([0.5, 0.5], 300, rng=0)
    found = []
    for order in (np.arange(300), np.argsort(X[:, 0])):
        search = GridSearchQ(PACC(LogisticRegression()), {"classifier__C": [0.01, 1.0]}, protocol=APP(bag_size=30))
        found.append(search.fit(X[order], y[order]).predict(X[:50]))
    np.testing.assert_array_equal(*found)


def test_methods_and_networks_use_the_same_folds():
    assert EMQ().cv == SetQuantifier.__dataclass_fields__["cv"].default == FOLDS
    assert usual_folds(LogisticRegression(), np.array([500, 500])) == FOLDS  # QuaNet's, but for few texts


def test_texts_that_differ_in_addresses_case_and_spaces_alone_are_copies():
    texts = ["Great film https://t.co/aB1", "great  film http://x.org/2", "Great film", "Great film, really"]
    assert find_distinct(texts).owner.tolist() == [0, 0, 0, 1]
    assert find_distinct(["mail me: a.b@c.org", "mail me:", "www.d.com"]).owner.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("labels", "related"),
    [
        (np.repeat([0, 1], 500), True),
        (np.arange(1000) % 2, False),  # neighbours differ more often than by chance: alternating, not sorted
        (np.random.default_rng(0).integers(2, size=1000), False),
        (np.repeat(np.random.default_rng(0).integers(2, size=100), 10), True),
        (np.zeros(1000, dtype=int), False),
        ([0, 1], False),
    ],
)
def test_a_relation_of_labels_and_order_is_found(labels, related):
    assert bool(RowOrder().add(list(labels)).sentence) == related


def test_the_law_of_training_order_is_evaluated_on_errors_too():
    X, y = Gaussians(distance=1.0).draw([0.5, 0.5], 400, rng=0)
    pool, truth = Gaussians(distance=1.0).draw([0.5, 0.5], 400, rng=1)
    order = np.argsort(y, kind="stable")
    errors = [
        evaluate(EMQ().fit(rows, labels), pool, truth, APP(bag_size=50, repeats=2), rng=0).error()
        for rows, labels in ((X, y), (X[order], y[order]))
    ]
    np.testing.assert_array_equal(*errors)
