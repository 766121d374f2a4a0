import unicodedata

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from quanet.classifiers.characters import OTHER, characters, in_batches
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
