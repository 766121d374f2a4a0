"""JSON arrays are read in parts; objects and JSON lines under the name .json are recognised."""

import io
import json
import sys
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet.data import json_arrays
from quanet.data.json_arrays import json_array_rows
from quanet.data.streams import TableSource
from quanet.errors import InvalidData

ROWS = [{"text": 'a "good" [film]', "n": 1}, {"text": "bäd\n}, {", "n": 2.5, "more": [1, {"a": None}]}, {"n": 12345}]


def cells(content, part="", encoding="utf-8"):
    columns, pick = json_array_rows("a.json", io.BytesIO(content), encoding, part)
    return [dict(zip(columns, row, strict=True)) for row in pick(columns)]


def without_none(rows):
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("chunk", [1, 2, 7, 2**16])
def test_an_array_is_read_whatever_the_size_of_its_parts(indent, chunk, monkeypatch):
    monkeypatch.setattr(json_arrays, "CHUNK", chunk)
    assert without_none(cells(json.dumps(ROWS, indent=indent, ensure_ascii=False).encode())) == ROWS


VALUES = st.integers() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "[", '"', "é"]), VALUES, min_size=1, max_size=3)


@settings(max_examples=30, deadline=None)
@given(st.lists(OBJECTS, min_size=1, max_size=5), st.booleans())
def test_what_python_writes_is_read(rows, escaped):
    assert without_none(cells(json.dumps(rows, ensure_ascii=escaped).encode())) == rows


def test_lines_and_an_object_that_holds_an_array(tmp_path):
    lines = "\n".join(json.dumps(row) for row in ROWS).encode()
    assert without_none(cells(lines)) == ROWS
    held = json.dumps({"version": 3, "cases": ROWS}).encode()
    assert without_none(cells(held, "cases")) == ROWS
    (tmp_path / "a.json").write_bytes(held)
    assert TableSource([f"{tmp_path}/a.json#cases"]).read(["n"])["n"].tolist() == [1, 2.5, 12345]


@pytest.mark.parametrize(
    ("content", "part", "message"),
    [
        (b"", "", "is empty. It needs a JSON array"),
        (b" \n ", "", "is empty"),
        (b"[]", "", "is empty"),
        (b'{"a": [{}], "b": [1], "c": 2}', "", r"is a JSON object.*Arrays are under 'a', 'b': use 'a.json#a'"),
        (b'{\n "c": 2\n}', "", "None of its keys holds an array"),
        (b'{"cases": [], "c": 2}', "case", "has no key 'case'. Its keys are 'cases', 'c'"),
        (b'{"cases": [], "c": 2}', "c", "the key 'c' holds 2, not an array. An array is under 'cases'"),
        (b'[{"a": 1}]', "a", "is an array, not an object with the key 'a'"),
        (b"[1, 2]", "", "element 1 of the array is 1, not an object"),
        (b'[{"a": 1}, [2]]', "", r"element 2 of the array is \[2\], not an object"),
        (b'[{"a": 1}', "", "the array does not end.*truncated|expected a comma"),
        (b'[{"a": 1} {"a": 2}]', "", "expected a comma or ] after element 1"),
        (b'[{"a": 1}, {"a": tru}]', "", "element 2 of the array, is not JSON"),
        (b'[{"a": 1}] x', "", "text after the end of the array"),
        (b"[" * 100_000, "", "is not JSON"),
        (b'"text"', "", "is 'text', not an array of objects"),
        (b"nothing", "", "is not JSON"),
        (b'[{"a": "\xff"}]', "", "is not valid utf-8 near byte 8"),
    ],
)
def test_what_is_no_table_is_one_line(content, part, message):
    with pytest.raises(InvalidData, match=message) as caught:
        cells(content, part)
    assert "\n" not in str(caught.value)


def test_a_given_encoding_that_is_wrong_is_one_line():
    with pytest.raises(InvalidData, match="is not valid utf-16"):
        cells(b'[{"a": 1}]', encoding="utf-16")


def test_a_mistake_is_found_before_the_rest_is_read(monkeypatch):
    stream = io.BytesIO(b'[{"a": 1}, {"a" 2}, ' + b'{"a": 3}, ' * 10**6)
    with pytest.raises(InvalidData, match="element 2"):
        json_array_rows("a.json", stream, "utf-8")
    assert stream.tell() <= 2 * json_arrays.CHUNK


def test_half_of_a_surrogate_pair_is_no_character():
    assert cells(b'[{"a": "x\\ud800y"}]') == [{"a": "x\ufffdy"}]


def test_memory_is_bounded():
    row = json.dumps({"text": "x" * 1000})
    content = io.BytesIO(("[" + ",".join([row] * 6_000) + "]").encode())
    tracemalloc.start()
    _, pick = json_array_rows("a.json", content, "utf-8")
    rows = sum(1 for _ in pick(["text"]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 6_000
    assert peak < 3e6  # of 6 MB; the first 1000 rows are kept


def test_standard_input_may_be_an_array(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROWS).encode())))
    assert TableSource(["-"]).read(["n"])["n"].tolist() == [1, 2.5, 12345]
