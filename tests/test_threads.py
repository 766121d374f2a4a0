"""Fitted quantifiers and classifiers answer eight threads as they answer one."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from quanet import (
    EMQ,
    PACC,
    UPP,
    AutoQuantifier,
    Bags,
    DeepSets,
    DyS,
    Gaussians,
    GMNet,
    GridSearchQ,
    HistNetQ,
    KDEyML,
    LSTMClassifier,
    QuaNet,
    QuantificationSVC,
    StackedClassifier,
    TextClassifier,
    WordBags,
)
from quanet.drift.scale import without_drift
from quanet.errors import QuanetWarning
from quanet.nn import paper, set_networks
from quanet.nn.training import Recipe
from tests.test_contract import METHODS, OF_TWO_CLASSES, ORDERED, TWO_CLASSES, first_of_class, in_two_folds

THREADS = 8
SOURCE = Gaussians(distance=3.0)
X, Y = SOURCE.draw([0.5, 0.5], 160, rng=0)
POOL, _ = SOURCE.draw([0.3, 0.7], 8 * 20, rng=1)
PARTS = np.split(POOL, THREADS)
QUICK = Recipe(bags=4, sizes=(20, 30), batches=2, stop_sizes=(20, 30), stop_batches=1, lr=1e-3)
NETWORKS = [make(cv=3, max_epochs=1, device="cpu", random_state=0) for make in (HistNetQ, GMNet, DeepSets)]
NETWORKS += [QuaNet.paper(max_epochs=1, device="cpu", random_state=0), QuaNet(cv=3)]
EVERY = [*first_of_class([*METHODS, *OF_TWO_CLASSES, *TWO_CLASSES, *ORDERED]), *NETWORKS]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Networks are trained for a moment."""
    monkeypatch.setattr(set_networks, "RECIPE", QUICK)
    monkeypatch.setattr(paper, "RECIPE", QUICK)


def in_threads(ask, threads=THREADS):
    """What threads are answered that start together and take turns far more often than usual."""
    together, before = Barrier(threads), sys.getswitchinterval()

    def started(at):
        together.wait()
        return ask(at)

    sys.setswitchinterval(5e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(started, range(threads)))
    finally:
        sys.setswitchinterval(before)


def assert_same_from_threads(ask, parts, rounds=2):
    """Each thread asks about one part after another: parts differ, and no answer may be that of another part."""
    expected = [ask(part) for part in parts]
    found = in_threads(lambda at: [ask(parts[(at + turn) % len(parts)]) for turn in range(rounds)])
    for at, answers in enumerate(found):
        for turn, answer in enumerate(answers):
            np.testing.assert_array_equal(answer, expected[(at + turn) % len(parts)])


@pytest.mark.no_cover
@pytest.mark.parametrize("quantifier", EVERY, ids=repr)
def test_every_quantifier_gives_eight_threads_the_same_answers(quantifier):
    with without_drift():
        fitted = in_two_folds(quantifier).fit(X, Y)
    bags = Bags([np.arange(5), np.arange(5, 20)])

    def ask(part):
        alone, read = fitted.predict(part), fitted.predict(fitted.read(part))
        return np.vstack([alone, read, fitted.predict_bags(part, bags)])

    assert_same_from_threads(ask, PARTS)


INTERVALS = [
    EMQ(),
    PACC(),
    DyS(),
    KDEyML(),
    QuaNet(cv=3),
    GridSearchQ(EMQ(), {"cv": [3, 5]}, protocol=UPP(bag_size=20, repeats=10)),
    AutoQuantifier([PACC()], [None], protocol=UPP(bag_size=20, repeats=10)),
]


@pytest.mark.no_cover
@pytest.mark.parametrize("quantifier", INTERVALS, ids=repr)
def test_intervals_asked_for_by_eight_threads_are_the_same_and_leave_the_warnings_alone(quantifier):
    fitted, alone = (clone(quantifier).fit(X, Y) for _ in range(2))
    filters = list(warnings.filters)

    def ask(_):
        found = fitted.predict_interval(POOL)
        return np.stack([found.lower, found.upper])

    answers = in_threads(ask)  # what is made once for a quantifier is not made yet
    expected = alone.predict_interval(POOL)
    for answer in answers:
        np.testing.assert_array_equal(answer, np.stack([expected.lower, expected.upper]))
    # Other libraries change filters in threads of their own accord; quanet's must not stay.
    assert not [one for one in warnings.filters if one[2] is QuanetWarning and one not in filters]


TEXTS, OF_TEXTS = WordBags(length=12).draw([0.5, 0.5], 160, rng=0)
CLASSIFIERS = [
    TextClassifier(embedding_size=8),
    StackedClassifier([TextClassifier(views=["words"]), TextClassifier(views=["characters"])]),
    LSTMClassifier(hidden=8, dense=8, max_steps=4, validate_every=2, random_state=0, device="cpu"),
]


def asked_of(classifier, part):
    found = [classifier.predict_proba(part), classifier.predict(part)[:, None] == classifier.classes_]
    return np.hstack([*found, classifier.transform(part)])


@pytest.mark.no_cover
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda one: type(one).__name__)
def test_every_text_classifier_gives_eight_threads_the_same_answers(classifier):
    fitted = clone(classifier).fit(TEXTS, OF_TEXTS)
    assert_same_from_threads(lambda part: asked_of(fitted, part), [TEXTS[at::THREADS] for at in range(THREADS)])


def test_an_svm_gives_eight_threads_the_same_answers():
    fitted = QuantificationSVC("nkld").fit(X, Y)
    assert_same_from_threads(fitted.decision_function, PARTS)


def test_networks_trained_in_threads_are_those_trained_alone():
    def train(seed):
        return QuaNet.paper(LogisticRegression(), max_epochs=2, device="cpu", random_state=seed).fit(X, Y)

    alone = [train(seed) for seed in range(3)]
    together = in_threads(train, threads=3)
    for one, other in zip(alone, together, strict=True):
        for ours, theirs in zip(one.network_.parameters(), other.network_.parameters(), strict=True):
            np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
