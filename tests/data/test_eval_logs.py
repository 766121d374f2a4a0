"""Small files in the formats of evaluation tools, made by hand after their documentation."""

import json
import zipfile

import pytest

from quanet.data.streams import TableSource
from quanet.errors import InvalidData

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
