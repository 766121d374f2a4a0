"""Texts are scored, embedded and described one by one, as the matrix of their terms would be."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from quanet import TextClassifier, WordBags, save
from quanet.classifiers import terms as room
from quanet.classifiers import terms as shelf
from quanet.classifiers.logistic import scores
from quanet.classifiers.terms import Terms, characters, derived, project_terms
from quanet.drift.descriptions import TextDescriber

TEXTS, CODES = WordBags(k=3, length=15, preference=4.0).draw([0.5, 0.3, 0.2], 240, rng=0)
ODD = ["", " ", "Σ ΟΔΟΣ", "İ word1 WORD1", "word2 😀 word0", "ha" * 3000, "word3\ud800", "don't ÄPFEL", "好看 word5"]
MIXED = [text for pair in zip(ODD, TEXTS, strict=False) for text in pair] + list(TEXTS[len(ODD) : 30])
OF_CLASSES = {2: CODES == 0, 3: CODES, 9: np.arange(len(TEXTS)) % 9}


@cache
def fitted(k, **settings):
    """A classifier of k classes."""
    return TextClassifier(embedding_size=5, **settings).fit(TEXTS, OF_CLASSES[k])


@cache
def described_by():
    return TextDescriber.fit(list(TEXTS), np.random.default_rng(0))


def describe(texts):
    return described_by()(texts)


READERS = {
    "two classes": lambda texts: fitted(2).predict_proba(texts),
    "three classes": lambda texts: fitted(3).predict_proba(texts),
    "nine classes": lambda texts: fitted(9).predict_proba(texts),
    "posteriors and embedding": lambda texts: np.hstack(fitted(3).read(texts)),
    "characters and embedding": lambda texts: np.hstack(fitted(3, views=("characters",)).read(texts)),
    "embedding": lambda texts: fitted(3).transform(texts),
    "describer": describe,
}


@pytest.mark.parametrize("reader", READERS)
@given(order=st.permutations(range(len(MIXED))), cuts=st.sets(st.integers(1, len(MIXED) - 1), max_size=6))
def test_every_split_of_the_texts_gives_the_same_bits(reader, order, cuts):
    read, texts = READERS[reader], [MIXED[at] for at in order]
    ends = [0, *sorted(cuts), len(texts)]
    parts = np.concatenate([read(texts[start:stop]) for start, stop in pairwise(ends)])
    np.testing.assert_array_equal(parts, read(MIXED)[list(order)])


@pytest.mark.parametrize("reader", READERS)
def test_batches_and_neighbours_give_the_same_bits(reader, monkeypatch):
    read = READERS[reader]
    whole, alone = read(MIXED), np.concatenate([read([text]) for text in MIXED])
    np.testing.assert_array_equal(whole, alone)
    monkeypatch.setattr(room, "BATCH", 40)
    np.testing.assert_array_equal(whole, read(MIXED))


@pytest.mark.parametrize(
    ("unit", "longest", "repeats"), [("words", 3, False), ("words", 2, True), ("characters", 5, True)]
)
def test_products_are_those_of_the_matrix(unit, longest, repeats):
    terms = Terms(unit, longest, repeats=repeats)
    terms.fit_transform(list(TEXTS))
    rows, size = terms.transform(MIXED), len(terms.hashes)
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(size + 1, 4)).astype(np.float32) for _ in range(2))
    expected = 0.3 * scores(rows, first) + 0.7 * scores(rows, second)
    read = characters(MIXED)
    np.testing.assert_allclose(project_terms(terms, read, [(0.3, first), (0.7, second)])[0], expected, atol=1e-5)
    directions = rng.normal(size=(6, size // 2)).astype(np.float32)
    expected = rows[:, : size // 2] @ directions.T
    np.testing.assert_allclose(project_terms(terms, read, (), directions, by_term=False)[1], expected, atol=1e-5)
    other = Terms(unit, longest, repeats=repeats)
    other.fit_transform(list(TEXTS))
    np.testing.assert_allclose(project_terms(other, read, (), directions.T)[1], expected, atol=1e-5)


def test_a_term_may_occur_more_often_than_weights_of_counts_are_stored():
    terms = Terms("characters", 2)
    terms.fit_transform(["aab", "ab", "ba"])
    weights = np.arange(1 + len(terms.hashes), dtype=np.float32)[:, None]
    texts = ["a" * 2000 + "b", "a" * 1500]
    np.testing.assert_allclose(
        project_terms(terms, characters(texts), [(1.0, weights)])[0], scores(terms.transform(texts), weights), rtol=1e-5
    )


def test_nothing_is_kept_in_the_model(tmp_path):
    fresh = TextClassifier(embedding_size=5).fit(TEXTS, CODES)
    before = vars(fresh).keys(), {unit: vars(terms).keys() for unit, terms in fresh.terms_.items()}
    pickled = pickle.dumps(fresh)
    save(fresh, tmp_path / "before")
    fresh.read(MIXED)
    assert (vars(fresh).keys(), {unit: vars(terms).keys() for unit, terms in fresh.terms_.items()}) == before
    assert len(pickle.dumps(fresh)) == len(pickled)
    save(fresh, tmp_path / "after")
    arrays = "arrays.safetensors"
    assert (tmp_path / "before" / arrays).read_bytes() == (tmp_path / "after" / arrays).read_bytes()
    for same in (pickle.loads(pickled), copy.deepcopy(fresh)):  # noqa: S301
        np.testing.assert_array_equal(same.predict_proba(MIXED), fresh.predict_proba(MIXED))
    assert not hasattr(clone(fresh), "weights_")


def test_what_is_derived_follows_the_attributes():
    classifier = TextClassifier(embedding_size=5).fit(TEXTS, CODES)
    classifier.read(MIXED)
    classifier.set_params(C=0.1, embedding_size=3).fit(TEXTS[:100], CODES[:100] == 0)
    again = TextClassifier(C=0.1, embedding_size=3).fit(TEXTS[:100], CODES[:100] == 0)
    for found, expected in zip(classifier.read(MIXED), again.read(MIXED), strict=True):
        np.testing.assert_array_equal(found, expected)
    # Attributes set by hand count at once.
    classifier.shares_ = {view: float(view == "words") for view in classifier.shares_}
    alone = TextClassifier(C=0.1, views=["words"]).fit(TEXTS[:100], CODES[:100] == 0)
    np.testing.assert_allclose(classifier.predict_proba(MIXED), alone.predict_proba(MIXED), atol=1e-6)
    classifier.weights_["words"] = 0 * classifier.weights_["words"]
    np.testing.assert_array_equal(classifier.predict_proba(MIXED), 0.5)
    classifier.directions_ = 2 * classifier.directions_
    np.testing.assert_allclose(classifier.transform(MIXED), 2 * again.transform(MIXED), rtol=1e-6)


def test_what_is_derived_is_freed_with_its_owner():
    terms = Terms("words", 1)
    terms.fit_transform(["a b"])
    assert terms in shelf._KEPT
    kept = len(shelf._KEPT)
    del terms
    gc.collect()
    assert len(shelf._KEPT) < kept


def test_values_are_computed_once_for_the_same_sources():
    owner, first, second = Terms("words", 1), [1], [1]  # equal, but not the same
    assert derived(owner, "a", (first,), lambda: 1) == 1
    assert derived(owner, "a", (first,), lambda: 2) == 1
    assert derived(owner, "b", (first,), lambda: 3) == 3
    assert derived(owner, "a", (second,), lambda: 4) == 4
    assert derived(owner, "a", (first, second), lambda: 5) == 5


def test_threads_share_a_model():
    fresh = TextClassifier(embedding_size=5).fit(TEXTS, CODES)
    expected = np.hstack(fitted(3).read(MIXED))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: np.hstack(fresh.read(MIXED)), range(8)):
            np.testing.assert_array_equal(found, expected)
