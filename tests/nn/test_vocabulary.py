import numpy as np
import pytest

from quanet.errors import InvalidData
from quanet.nn.vocabulary import PADDING, UNKNOWN, encode_words, most_frequent_words, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A film.", ["a", "film"]),
        ("one<br />two<BR>three<br/>four", ["one", "two", "three", "four"]),
        ("it's 'quoted'", ["it's", "quoted"]),
        ("déjà vu — Ärger", ["déjà", "vu", "ärger"]),
        ("", []),
        (" \n\t!?", []),
    ],
)
def test_a_text_is_its_lower_cased_words(text, words):
    assert tokenize(text) == words


def test_the_vocabulary_is_the_most_frequent_words_whatever_the_order_of_texts():
    texts = ["b b b", "a a", "c c", "d"]
    assert most_frequent_words(texts, 3) == {"b": 2, "a": 3, "c": 4}
    assert most_frequent_words(texts[::-1], 3) == {"b": 2, "a": 3, "c": 4}


def test_unknown_words_and_padding_have_ids_of_their_own():
    vocabulary = most_frequent_words(["a b c"], 5)
    assert not {PADDING, UNKNOWN} & set(vocabulary.values())
    ids, lengths = encode_words(["a z"], vocabulary, 4)
    np.testing.assert_array_equal(ids, [[vocabulary["a"], UNKNOWN, PADDING, PADDING]])
    np.testing.assert_array_equal(lengths, [2])


def test_the_end_of_a_long_text_is_read():
    vocabulary = most_frequent_words(["a b c d"], 5)
    ids, lengths = encode_words(["a b c d"], vocabulary, 2)
    np.testing.assert_array_equal(ids, [[vocabulary["c"], vocabulary["d"]]])
    np.testing.assert_array_equal(lengths, [2])


def test_no_text_is_a_matrix_without_rows():
    ids, lengths = encode_words([], {"a": 2}, 3)
    assert ids.shape == (0, 3)
    assert lengths.shape == (0,)


def test_texts_without_a_word_are_refused():
    with pytest.raises(InvalidData, match=r"no words were found in the 2 texts, such as '!!'"):
        most_frequent_words(["!!", ""], 5)
