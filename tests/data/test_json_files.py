"""JSON under the name .json, and small files of evaluation tools, made by hand after their documentation."""

import io
import json
import sys
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet.data import json_files
from quanet.data.json_files import json_array_rows
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
    monkeypatch.setattr(json_files, "CHUNK", chunk)
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
    assert stream.tell() <= 2 * json_files.CHUNK


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


SAMPLES = [
    {
        "id": 1,
        "epoch": 1,
        "input": "Say hello.",
        "target": "hello",
        "output": {"model": "m", "completion": "hello"},
        "scores": {
            "model_graded_qa": {"value": "C", "answer": "hello"},
            "safety": {"value": {"harm": 0, "tone": 0.5}},
            "model": {"value": 1},
        },
        "metadata": {"conversation": "a", "nested": {"x": 1}},
    },
    {
        "id": 2,
        "epoch": 1,
        "input": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Say no."}],
        "target": ["no", "nope"],
        "output": {"completion": "yes"},
        "scores": {"model_graded_qa": {"value": "I"}},
        "metadata": {"conversation": "b"},
    },
]
INSPECT = {"version": 2, "status": "success", "eval": {"task": "greet", "model": "openai/x"}, "samples": SAMPLES}
PROMPTFOO = {
    "evalId": "eval-1",
    "results": {
        "version": 3,
        "prompts": [],
        "results": [
            {
                "testIdx": 0,
                "provider": {"id": "openai:x", "label": ""},
                "prompt": {"raw": "Say {{what}}", "label": "say"},
                "vars": {"what": "hello"},
                "response": {"output": "hello"},
                "success": True,
                "score": 1,
                "gradingResult": {
                    "pass": True,
                    "componentResults": [
                        {"pass": True, "score": 1, "assertion": {"type": "llm-rubric"}},
                        {"pass": False, "score": 0.2, "assertion": {"type": "llm-rubric"}},
                        {"pass": True, "score": 0.9, "assertion": {"type": "similar", "metric": "close"}},
                    ],
                },
            },
            {"testIdx": 1, "provider": "old", "vars": {"what": "no"}, "success": False, "score": 0, "error": "timeout"},
        ],
    },
}
DEEPEVAL = {
    "testRunData": {
        "testCases": [
            {
                "name": "case 0",
                "input": "Hi",
                "actualOutput": "Hello",
                "expectedOutput": "Hello",
                "success": False,
                "metricsData": [{"name": "Bias", "success": False, "score": 0.7, "threshold": 0.5}],
                "metadata": {"system": "B"},
            }
        ],
        "conversationalTestCases": [{"name": "talk", "scenario": "A quarrel", "success": True, "metricsData": []}],
    },
    "testRunLink": None,
}


def read(path):
    source = TableSource([path])
    table = source.read(source.columns)
    return [{key: cell for key, cell in row.items() if cell is not None} for row in table.to_dict("records")]


def written(folder, content, name="results.json"):
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


EXPECTED_INSPECT = [
    {
        "id": 1,
        "epoch": 1,
        "task": "greet",
        "model": "openai/x",
        "input": "Say hello.",
        "target": "hello",
        "output": "hello",
        "model_graded_qa": "C",
        "safety.harm": 0,
        "safety.tone": 0.5,
        "model_score": 1,
        "metadata.conversation": "a",
    },
    {
        "id": 2,
        "epoch": 1,
        "task": "greet",
        "model": "openai/x",
        "input": "Say no.",
        "target": "no\nnope",
        "output": "yes",
        "model_graded_qa": "I",
        "metadata.conversation": "b",
    },
]


def test_a_log_of_inspect_is_a_table(tmp_path):
    assert read(written(tmp_path, INSPECT)) == EXPECTED_INSPECT
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({key: INSPECT[key] for key in INSPECT if key != "samples"}))
        archive.writestr("_journal/start.json", "{}")
        for number, sample in enumerate(SAMPLES, 1):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
    assert read(path) == EXPECTED_INSPECT


def test_results_of_promptfoo_are_a_table(tmp_path):
    first, second = read(written(tmp_path, PROMPTFOO))
    assert first == {
        "id": 0,
        "provider": "openai:x",
        "prompt": "say",
        "output": "hello",
        "success": "pass",
        "score": 1,
        "metadata.what": "hello",
        "llm-rubric": "pass",
        "llm-rubric.score": 1,
        "llm-rubric 2": "fail",
        "llm-rubric 2.score": 0.2,
        "close": "pass",
        "close.score": 0.9,
    }
    assert second == {"id": 1, "provider": "old", "success": "fail", "score": 0, "metadata.what": "no"}


def test_a_test_run_of_deepeval_is_a_table(tmp_path):
    expected = [
        {
            "id": "case 0",
            "input": "Hi",
            "output": "Hello",
            "target": "Hello",
            "success": "fail",
            "Bias": "fail",
            "Bias.score": 0.7,
            "metadata.system": "B",
        },
        {"id": "talk", "input": "A quarrel", "success": "pass"},
    ]
    assert read(written(tmp_path, DEEPEVAL)) == expected
    assert read(written(tmp_path, DEEPEVAL["testRunData"], "run.json")) == expected


def test_samples_of_the_harness_keep_their_columns_and_get_a_task(tmp_path):
    path = tmp_path / "samples_sums_easy_2026-01-31T10-00-00.123456.jsonl"
    line = {"doc_id": 3, "doc": {"q": "2 + 2"}, "target": "4", "resps": [["5"]], "filtered_resps": [["5"]], "acc": 0.0}
    path.write_text(json.dumps(line) + "\n")
    (row,) = read(path)
    assert {
        "id": 3,
        "doc_id": 3,
        "task": "sums_easy",
        "output": "5",
        "metadata.q": "2 + 2",
        "acc": 0.0,
    }.items() <= row.items()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (INSPECT | {"version": 9}, "a log of Inspect in version 9; quanet reads version 2"),
        ({key: INSPECT[key] for key in INSPECT if key != "samples"}, "without samples"),
        (INSPECT | {"samples": []}, "is from Inspect but has no results"),
        ({"results": {"version": 7, "results": []}}, "promptfoo in version 7; quanet reads versions 2 and 3"),
        ({"testCases": []}, "is from DeepEval but has no results"),
        ({"results": {"sums": {"acc": 1}}, "configs": {}, "versions": {}}, "averages of lm-evaluation-harness"),
        ({"anything": 1}, "is a JSON object, not an array"),
    ],
)
def test_other_versions_and_tools_are_named(tmp_path, content, message):
    with pytest.raises(InvalidData, match=message):
        read(written(tmp_path, content))


def test_archives_that_are_no_logs_are_named(tmp_path):
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK nothing")
    with pytest.raises(InvalidData, match="is not a log of Inspect"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/1_epoch_1.json", "{}")
    with pytest.raises(InvalidData, match=r"has no header.json"):
        read(path)
