"""Result files of evaluation tools as rows: Inspect, promptfoo, DeepEval, lm-evaluation-harness.

Every row is one judged answer: `id`, what it belongs to (`task`, `model`, `provider`), the texts, one column for every
scorer, metric or assertion under its own name, and `metadata.NAME` for what the file adds. Read as of Inspect 0.3 (log
version 2; inspect.aisi.org.uk/eval-logs.html), promptfoo 0.119 (results version 3;
promptfoo.dev/docs/configuration/outputs), DeepEval 3 (deepeval/test_run/api.py) and lm-evaluation-harness 0.4
(`--log_samples`).
"""

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from quanet.errors import InvalidData

INSPECT_VERSION = 2
PROMPTFOO_VERSIONS = (2, 3)
PASSED = {True: "pass", False: "fail"}
SAMPLES_FILE = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d{2}-\d{2}T[\d.:-]+)?$")
Row = dict[str, Any]


def eval_rows(name: str, content: Mapping[str, Any]) -> list[Row] | None:
    """Rows of a JSON object that an evaluation tool has written; None if it is not from a known tool.

    Parameters
    ----------
    name : of the file, for messages.
    content : the object.

    Examples
    --------
    >>> case = {"name": "a", "input": "Hi", "success": False, "metricsData": [{"name": "Bias", "success": False}]}
    >>> eval_rows("run.json", {"testCases": [case]})
    [{'id': 'a', 'input': 'Hi', 'success': 'fail', 'Bias': 'fail'}]
    """
    results = content.get("results")
    if isinstance(content.get("eval"), Mapping) and "status" in content:
        return _inspect_log(name, content)
    if isinstance(results, Mapping) and isinstance(results.get("results"), list):
        return _promptfoo(name, results)
    run = content.get("testRunData", content)
    if isinstance(run, Mapping) and ("testCases" in run or "conversationalTestCases" in run):
        return _deepeval(name, run)
    if isinstance(results, Mapping) and "configs" in content and "versions" in content:
        raise InvalidData(
            f"{name} has the averages of lm-evaluation-harness, not its answers. Run it with --log_samples and use "
            "samples_*.jsonl."
        )
    return None


def inspect_archive(name: str, stream: IO[bytes]) -> list[Row]:
    """Rows of an Inspect log in the .eval format: a zip file of JSON files."""
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            if "header.json" not in names:
                raise InvalidData(f"{name} has no header.json: it is not a finished log of Inspect. Run it to the end.")
            header = json.loads(archive.read("header.json"))
            task = _header(name, header)
            parts = sorted(one for one in names if one.startswith("samples/") and one.endswith(".json"))
            return _filled(name, "Inspect", [_sample(json.loads(archive.read(one)), task) for one in parts])
    except NotImplementedError as error:  # a compression that this Python cannot read
        raise InvalidData(f"{name} cannot be unpacked: {error}. Use `inspect log convert --to json`.") from None
    except (zipfile.BadZipFile, ValueError, KeyError) as error:
        raise InvalidData(f"{name} is not a log of Inspect (.eval): {error}. Is it truncated?") from None


def harness_rows(name: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of JSON lines; those of lm-evaluation-harness (``samples_TASK_DATE.jsonl``) get a task, an output, metadata.

    Examples
    --------
    >>> line = {"doc_id": 3, "doc": {"q": "2 + 2"}, "target": "4", "resps": [["5"]], "filtered_resps": ["5"], "acc": 0}
    >>> row = next(harness_rows("samples_sums_2026-01-31T10-00-00.5.jsonl", [line]))
    >>> {name: row[name] for name in ("id", "task", "output", "metadata.q", "acc")}
    {'id': 3, 'task': 'sums', 'output': '5', 'metadata.q': '2 + 2', 'acc': 0}
    """
    match = SAMPLES_FILE.search(Path(name).name.split(".jsonl")[0])
    task = match["task"] if match else None
    for row in rows:
        if not {"doc_id", "resps", "filtered_resps"} <= row.keys():
            yield row
            continue
        answers = row["filtered_resps"]
        first = answers[0] if isinstance(answers, list) and answers else answers
        plain = {"id": row["doc_id"], "task": task, "output": _text(first)}
        yield {**_row(plain, metadata=row.get("doc"), scores={}), **row}


def _inspect_log(name: str, content: Mapping[str, Any]) -> list[Row]:
    task = _header(name, content)
    samples = content.get("samples")
    if not isinstance(samples, list):
        status = content["status"]
        raise InvalidData(f"{name} is a log of Inspect without samples (status {status!r}). Log the samples.")
    return _filled(name, "Inspect", [_sample(one, task) for one in samples])


def _header(name: str, content: Mapping[str, Any]) -> Row:
    version = content.get("version")
    if version != INSPECT_VERSION:
        raise InvalidData(
            f"{name} is a log of Inspect in version {version!r}; quanet reads version {INSPECT_VERSION}. "
            "`inspect log convert` writes it with the installed version of Inspect."
        )
    facts = content["eval"]
    return {"task": facts.get("task"), "model": facts.get("model")}


def _sample(sample: Mapping[str, Any], task: Row) -> Row:
    scores: Row = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score.get("value") if isinstance(score, Mapping) else score
        parts = (
            {f"{scorer}.{key}": one for key, one in value.items()} if isinstance(value, Mapping) else {scorer: value}
        )
        scores |= parts
    output = sample.get("output")
    plain = {
        "id": sample.get("id"),
        "epoch": sample.get("epoch"),
        **task,
        "input": _text(sample.get("input")),
        "target": _text(sample.get("target")),
        "output": output.get("completion") if isinstance(output, Mapping) else None,
    }
    return _row(plain, metadata=sample.get("metadata"), scores=scores)


def _promptfoo(name: str, results: Mapping[str, Any]) -> list[Row]:
    version = results.get("version")
    if version not in PROMPTFOO_VERSIONS:
        known = " and ".join(map(str, PROMPTFOO_VERSIONS))
        raise InvalidData(f"{name} has results of promptfoo in version {version!r}; quanet reads versions {known}.")
    rows = []
    for result in results["results"]:
        provider, prompt = result.get("provider"), result.get("prompt") or {}
        graded = result.get("gradingResult") or {}
        scores: Row = {}
        for part in graded.get("componentResults") or []:
            asserted = part.get("assertion") or {}
            column = _unused(asserted.get("metric") or asserted.get("type") or "assertion", scores)
            scores |= {column: PASSED.get(part.get("pass")), f"{column}.score": part.get("score")}
        response = result.get("response")
        plain = {
            "id": result.get("testIdx"),
            "provider": (provider.get("label") or provider.get("id")) if isinstance(provider, Mapping) else provider,
            "prompt": prompt.get("label") or prompt.get("raw"),
            "output": _text(response.get("output")) if isinstance(response, Mapping) else None,
            "success": PASSED.get(result.get("success")),
            "score": result.get("score"),
        }
        metadata = {**(result.get("vars") or {}), **((result.get("testCase") or {}).get("metadata") or {})}
        rows.append(_row(plain, metadata=metadata, scores=scores))
    return _filled(name, "promptfoo", rows)


def _deepeval(name: str, run: Mapping[str, Any]) -> list[Row]:
    rows = []
    for case in [*(run.get("testCases") or []), *(run.get("conversationalTestCases") or [])]:
        scores: Row = {}
        for metric in case.get("metricsData") or []:
            column = _unused(metric.get("name") or "metric", scores)
            scores |= {column: PASSED.get(metric.get("success")), f"{column}.score": metric.get("score")}
        plain = {
            "id": case.get("name"),
            "input": _text(case.get("input") or case.get("scenario")),
            "output": _text(case.get("actualOutput")),
            "target": _text(case.get("expectedOutput") or case.get("expectedOutcome")),
            "success": PASSED.get(case.get("success")),
        }
        rows.append(_row(plain, metadata=case.get("metadata"), scores=scores))
    return _filled(name, "DeepEval", rows)


def _row(plain: Row, *, metadata: Any, scores: Row) -> Row:
    """One row; only cells that are numbers, texts or truth values. A score named like another column gets `_score`."""
    row = {key: value for key, value in plain.items() if value is not None}
    if isinstance(metadata, Mapping):
        row |= {f"metadata.{key}": value for key, value in metadata.items()}
    for key, value in scores.items():
        row[f"{key}_score" if key in plain else key] = value
    return {key: value for key, value in row.items() if isinstance(value, str | int | float)}


def _unused(column: str, scores: Row) -> str:
    """The name of a column, with a number if it is taken."""
    number = 2
    name = column
    while name in scores:
        name, number = f"{column} {number}", number + 1
    return name


def _text(value: Any) -> str | None:
    """A text: itself, the last message of a conversation, or several texts one below the other."""
    if isinstance(value, list):
        texts = [_text(one) for one in value]
        messages = bool(value) and all(isinstance(one, Mapping) and "role" in one for one in value)
        return texts[-1] if messages else "\n".join(one for one in texts if one) or None
    if isinstance(value, Mapping):
        return _text(value.get("content") or value.get("text"))
    return None if value is None else str(value)


def _filled(name: str, tool: str, rows: list[Row]) -> list[Row]:
    if not rows:
        raise InvalidData(f"{name} is from {tool} but has no results.")
    return rows
