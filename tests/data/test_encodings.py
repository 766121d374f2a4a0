"""Encodings are found from the letters they give, and what is valid UTF-8 is UTF-8."""

import gzip
import io
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet.data.encodings import HEAD, detect_encoding
from quanet.data.streams import TableSource
from quanet.errors import Detected, InvalidData

TEXTS = {
    "cp1252": ["It’s a “great” film", "Das Gerät ist schön", "¿Comió mañana?", "je suis très déçu, français"],  # noqa: RUF001
    "cp1250": ["Dobrý den, výrobek je skvělý a dorazil včas", "Książka była świetna, żółta okładka"],
    "cp1251": ["Отличный товар, всем советую", "Очень плохо, не покупайте это"],
    "koi8-r": ["Отличный товар, всем советую", "Очень плохо, не покупайте это"],
    "cp1253": ["Πολύ καλό προϊόν, το συνιστώ", "Δεν μου άρεσε καθόλου"],
    "cp1254": ["Ürün çok güzel, teşekkürler", "Hiç beğenmedim, iade ettim şu anda"],
    "shift_jis": ["とても良い商品です。おすすめします"],
    "euc_jp": ["使いにくいので返品しました"],
    "gb18030": ["非常好的产品。推荐购买", "质量太差了。不推荐"],
    "big5": ["非常好的產品。推薦購買", "品質太差了。不推薦"],
    "euc_kr": ["아주 좋은 제품입니다 추천합니다"],
    "mac_roman": ["très bon produit, je suis déçu", "Das Gerät ist schön, aber zu groß"],
    "cp850": ["très bon produit, je suis déçu", "Das Gerät ist schön, aber zu groß"],
    "utf-16": ["ça va", "naïf"],
    "utf-16-le": ["plain English without a mark", "and another line of it"],
    "utf-8-sig": ["ça va", "naïf"],
}


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("plain", [0, 30])
def test_a_text_is_read_as_it_was_written(encoding, plain, tmp_path, recwarn):
    texts = TEXTS[encoding] + ["a plain review of a thing that I bought"] * plain
    path = tmp_path / "a.tsv"
    path.write_bytes("\n".join(["text\tn", *(f"{text}\t1" for text in texts)]).encode(encoding))
    assert TableSource([path]).read(["text"])["text"].tolist() == texts
    assert {str(one.category.__name__) for one in recwarn} == (set() if "utf-8" in encoding else {"Detected"})


def test_the_report_names_the_encoding_and_a_word():
    with pytest.warns(Detected, match=r"a.csv: encoding cp1252 \(detected, as in 'déçu'\)..*--encoding"):
        assert detect_encoding("text\nje suis déçu\n".encode("cp1252"), "a.csv") == "cp1252"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"text\nfine \x81\x8d\x9d\n",
            "The encoding of a.csv cannot be detected; it is not UTF-8. Specify it: --encoding",
        ),
        (bytes(range(256)) * 9, "a.csv is not text"),
        (b"text\nab\0c\n", "a.csv is not text"),
    ],
)
def test_what_cannot_be_detected_is_one_line(content, message):
    with pytest.raises(InvalidData, match=message):
        detect_encoding(content, "a.csv")


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters='\r\n\0",;|\t\x85\u2028'), min_size=1).filter(str.strip))
def test_valid_utf8_is_utf8(text):
    stream = io.BytesIO(f"text\n{text}\n".encode())
    before, sys.stdin = sys.stdin, io.TextIOWrapper(stream)
    try:
        assert TableSource(["-"]).read(["text"])["text"].tolist() == [text]
    finally:
        sys.stdin = before


def test_a_character_cut_at_the_end_of_the_head_is_no_mistake(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(("text\n" + "é" * HEAD + "\n").encode()))
    assert TableSource([path]).read(["text"])["text"].str.len().tolist() == [HEAD]


def test_a_mistake_after_the_head_names_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text\n" + (b"fine " * (HEAD // 50) + b"\n") * 11 + b"caf\xe9\n")
    with pytest.raises(InvalidData, match=r"line 13: '.*' is not valid utf-8.*--encoding"):
        TableSource([path]).read(["text"])
