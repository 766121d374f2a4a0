import math
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from quanet.classifiers import terms as room
from quanet.classifiers.terms import OTHER, Terms, characters, in_batches
from quanet.kernels.term_counts import SPACE, WORD

ANY = st.characters(exclude_categories=())  # surrogates, too


def kind(letter):
    if letter.isspace():
        return SPACE
    return WORD if letter.isalnum() or letter == "_" or unicodedata.category(letter)[0] == "M" else OTHER


@given(st.lists(st.text(ANY, max_size=20), max_size=6))
@example(["ΟΔΟΣ", "Σ", "ΣΑ"])  # a sigma at the end of a word has its own lower case
@example(["İstanbul", "I"])  # a letter that becomes two
@example(["plain", "ASCII"])
@example(["\ud800", "\U0010ffff", "😀 Ä\u0301"])
def test_characters_are_those_of_each_text_in_lower_case(texts):
    points, starts, kinds = characters(texts)
    lowered = [text.lower() for text in texts]
    assert starts.tolist() == np.cumsum([0, *map(len, lowered)]).tolist()
    assert points.tolist() == [ord(letter) for text in lowered for letter in text]
    assert kinds.tolist() == [kind(letter) for text in lowered for letter in text]


def test_only_two_letters_need_their_text_to_be_lowered():
    letters = [chr(point) for point in range(0x110000)]
    assert [letter for letter in letters if len(letter.lower()) > 1] == ["İ"]
    assert not [letter for letter in letters if letter.lower().lower() != letter.lower()]
    # In no other letter does the lower case depend on the neighbours.
    assert [letter for letter in letters if f"a{letter}".lower() != f"a{letter.lower()}"] == ["Σ"]


def test_no_texts_are_one_empty_batch():
    assert in_batches([]) == [[]]
    assert [part.tolist() for part in characters([])] == [[], [0], []]


TEXTS = ["The cat sat, the cat ran", "a dog sat", "dogs don't sit", "", "ÄPFEL und äpfel!"]


@pytest.mark.parametrize("repeats", [True, False])
def test_words_are_weighted_as_scikit_learn_does(repeats):
    mine = Terms("words", 2, repeats=repeats).fit_transform(TEXTS).toarray()
    how = {"sublinear_tf": True} if repeats else {"binary": True}
    theirs = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+(?:'\w+)*\b", **how)
    expected = theirs.fit_transform(TEXTS).toarray()
    assert mine.shape == expected.shape
    np.testing.assert_allclose(np.sort(mine, axis=1), np.sort(expected, axis=1), atol=1e-6)
    np.testing.assert_allclose(mine @ mine.T, expected @ expected.T, atol=1e-6)


def test_characters_are_weighted_as_scikit_learn_does():
    texts = ["ab  abc", "b\n c", "😀😀"]
    mine = Terms("characters", 3).fit_transform(texts).toarray()
    padded = [f" {' '.join(text.split())} " for text in texts]
    expected = TfidfVectorizer(analyzer="char", ngram_range=(2, 3), sublinear_tf=True).fit_transform(padded).toarray()
    np.testing.assert_allclose(mine @ mine.T, expected @ expected.T, atol=1e-6)


@pytest.mark.parametrize("unit", ["words", "characters"])
@given(texts=st.lists(st.text(max_size=30), min_size=1, max_size=8))
def test_a_row_depends_on_its_text_alone_and_has_length_one(unit, texts):
    terms = Terms(unit, 3)
    together = terms.fit_transform(texts).toarray()
    alone = np.vstack([terms.transform([text]).toarray() for text in texts])
    np.testing.assert_array_equal(together, alone)
    lengths = np.linalg.norm(together, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1, atol=1e-5)


def test_the_most_frequent_terms_come_first():
    terms = Terms("words", 1)
    terms.fit_transform(["b a", "b c", "b a"])
    np.testing.assert_allclose(terms.idf, [1, 1 + math.log(4 / 3), 1 + math.log(4 / 2)], rtol=1e-6)


def test_rare_terms_are_dropped_from_many_texts_only():
    many = [f"common word{i}" for i in range(1200)]
    assert Terms("words", 1).fit_transform(many).shape == (1200, 1)
    assert Terms("words", 1).fit_transform(many[:100]).shape == (100, 101)


def test_signs_that_belong_to_a_letter_are_part_of_the_word():
    # Four words: the marks of an Indic script and an accent in decomposed form split none.
    assert Terms("words", 1).fit_transform(["हिन्दी में", "cafe\u0301 e\u0301te\u0301"]).shape == (2, 4)


def test_rows_as_new_are_those_of_terms_fitted_to_the_others():
    texts = ["a b", "a c d", "b c e"]
    terms, others = Terms("words", 1), Terms("words", 1)
    rows = terms.as_new(terms.fit_transform(texts), np.array([2])).toarray()
    others.fit_transform(texts[:2])
    assert (rows > 0).sum() == (others.transform(texts[2:]).toarray() > 0).sum() == 2
    np.testing.assert_allclose(np.linalg.norm(rows), 1, rtol=1e-6)


def test_batches_change_nothing(monkeypatch):
    whole = Terms("characters", 4).fit_transform(TEXTS)
    monkeypatch.setattr(room, "BATCH", 10)
    assert len(in_batches(TEXTS)) > 2
    assert [text for batch in in_batches(TEXTS) for text in batch] == TEXTS
    np.testing.assert_array_equal(Terms("characters", 4).fit_transform(TEXTS).toarray(), whole.toarray())
