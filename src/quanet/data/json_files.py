"""JSON files as rows, whose cells have types: an array of objects, an object that holds one, or lines.

Arrays and lines are read in bounded memory. Of the result files of evaluation tools (Inspect, promptfoo, DeepEval,
lm-evaluation-harness), every row is one judged answer: `id`, what it belongs to (`task`, `model`, `provider`), the
texts, one column for every scorer, metric or assertion under its own name, and `metadata.NAME` for what the file adds.
Read as of Inspect 0.3 (log version 2; inspect.aisi.org.uk/eval-logs.html), promptfoo 0.119 (results version 3;
promptfoo.dev/docs/configuration/outputs), DeepEval 3 (deepeval/test_run/api.py) and lm-evaluation-harness 0.4
(`--log_samples`).
"""

import codecs
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from quanet.data.columns import PEEKED_ROWS, Cells, PickColumns, cell_or_none, nearest_first
from quanet.errors import EmptyFile, InvalidData, brief

NEEDED = "a JSON array of objects"
CHUNK = 2**16  # bytes or characters read at a time
WHITE = " \t\n\r"
NEAR_END = 16  # characters; an error further from the end of what was read is not due to a cut
SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)  # an escape sequence in JSON, half of a pair
INSPECT_VERSION = 2
PROMPTFOO_VERSIONS = (2, 3)
PASSED = {True: "pass", False: "fail"}
SAMPLES_FILE = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d{2}-\d{2}T[\d.:-]+)?$")
Row = dict[str, Any]


def json_array_rows(name: str, stream: IO[bytes], encoding: str, part: str = "") -> tuple[list[str], PickColumns]:
    """Columns and rows of a .json file.

    Parameters
    ----------
    name : of the file, for messages.
    stream, encoding : its content.
    part : the key that holds the array, if the file is an object.
    """
    texts = _texts(name, stream, encoding)
    start = ""
    while not start and (more := next(texts, "")):
        start = more.lstrip(WHITE)
    if not start:
        raise EmptyFile(f"{name} is empty. It needs {NEEDED}.")
    if start.startswith("["):
        if part:
            raise InvalidData(f"{name} is an array, not an object with the key {part!r}. Leave out {'#' + part!r}.")
        return rows_of_objects(name, _checked_elements(name, _decoded(name, _Buffer(start, texts))), NEEDED)
    lines = _lines(chain([start], texts))
    first, second = next(lines), next(lines, "")
    if second and not part and _is_object(first):
        return json_rows(name, chain([first, second], lines))
    return _whole(name, "".join(chain([first, second], lines)), part)


def _texts(name: str, stream: IO[bytes], encoding: str) -> Iterator[str]:
    """The text in parts that are not empty."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    while True:
        content = stream.read(CHUNK)
        try:
            text = decoder.decode(content, final=not content)
        except UnicodeError as error:
            near = done + getattr(error, "start", 0)  # without a byte order mark, the error has no place
            raise InvalidData(
                f"{name} is not valid {encoding} near byte {near:,}. Specify the encoding: --encoding."
            ) from None
        text = text if done else text.removeprefix("\ufeff")  # the mark of UTF-8
        done += len(content)
        if text:
            yield text
        if not content:
            return


def _lines(texts: Iterator[str]) -> Iterator[str]:
    rest = ""
    for text in texts:
        *whole, rest = (rest + text).split("\n")
        yield from (f"{line}\n" for line in whole)
    if rest:
        yield rest


def object_rows(name: str, content: dict[str, Any], part: str) -> list[Any]:
    """The rows that a JSON object holds. Here, shapes of known files are recognised.

    Parameters
    ----------
    name : of the file, for messages.
    content : the object.
    part : the key of the rows, as in ``results.json#cases``; empty if none was given.
    """
    arrays = [key for key, value in content.items() if isinstance(value, list)]
    if part and part in content:
        if part in arrays:
            return list(content[part])
        raise InvalidData(
            f"{name}: the key {part!r} holds {brief(content[part])}, not an array.{_choices(name, arrays)}"
        )
    if part:
        known = ", ".join(map(repr, nearest_first(part, content)[:8])) or "none"
        raise InvalidData(f"{name} has no key {part!r}. Its keys are {known}.")
    known_tool = eval_rows(name, content)
    if known_tool is not None:
        return known_tool
    raise InvalidData(f"{name} is a JSON object, not an array of objects.{_choices(name, arrays)}")


def _choices(name: str, arrays: list[str]) -> str:
    if not arrays:
        return " None of its keys holds an array. Write an array: [{...}, {...}]."
    found = ", ".join(map(repr, arrays[:8]))
    return f" {'Arrays are' if len(arrays) > 1 else 'An array is'} under {found}: use '{name}#{arrays[0]}'."


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _whole(name: str, text: str, part: str) -> tuple[list[str], PickColumns]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(name, error) from None
    if not isinstance(content, dict):
        raise InvalidData(f"{name} is {brief(content)}, not an array of objects. Write an array: [{{...}}, {{...}}].")
    rows = object_rows(name, replace_surrogates(content) if SURROGATE.search(text) else content, part)
    return rows_of_objects(name, _checked_elements(name, iter(rows)), NEEDED)


def _not_json(name: str, error: Exception) -> InvalidData:
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
    return InvalidData(f"{name} is not JSON: {reason}. Correct it, or write one object per line in a .jsonl file.")


def _checked_elements(name: str, elements: Iterator[Any]) -> Iterator[dict[str, Any]]:
    for number, element in enumerate(elements, 1):
        if not isinstance(element, dict):
            raise InvalidData(
                f"{name}: element {number} of the array is {brief(element)}, not an object. "
                'Write one object per row: [{"text": ..., "label": ...}].'
            )
        yield element


def _decoded(name: str, buffer: "_Buffer") -> Iterator[Any]:
    """The elements of an array, decoded one at a time from a buffer."""
    buffer.next_character(skip=1)
    number = 0
    while True:
        character = buffer.next_character()
        if character == "]":
            if buffer.next_character(skip=1):
                raise InvalidData(f"{name}: there is text after the end of the array. Remove it.")
            return
        if number and character == ",":
            buffer.next_character(skip=1)
        elif number or not character:
            what = f"expected a comma or ] after element {number}" if character else "the array does not end"
            raise InvalidData(f"{name} is not JSON: {what}. Is it truncated?")
        number += 1
        try:
            yield buffer.element()
        except (ValueError, RecursionError) as error:
            raise _not_json(f"{name}, element {number} of the array,", error) from None


class _Buffer:
    """A part of a long text."""

    def __init__(self, start: str, texts: Iterator[str]) -> None:
        self.text, self.texts, self.at = start, texts, 0
        self.decoder = json.JSONDecoder()

    def more(self, characters: int) -> bool:
        """Read at least so many characters more, if there are any; forget what was decoded."""
        parts, length = [self.text[self.at :]], 0
        for text in self.texts:
            parts.append(text)
            length += len(text)
            if length >= characters:
                break
        self.text, self.at = "".join(parts), 0
        return length > 0

    def next_character(self, skip: int = 0) -> str:
        """The next character that is not white space, or an empty string at the end."""
        self.at += skip
        while True:
            while self.at < len(self.text) and self.text[self.at] in WHITE:
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more(CHUNK):
                return ""

    def element(self) -> Any:
        """Decode the next element. Raises ValueError if it is not JSON."""
        wanted = CHUNK
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
                # A number at the end of the buffer may continue.
                if end < len(self.text) or not self.more(wanted):
                    found = SURROGATE.search(self.text, self.at, end)
                    self.at = end
                    return replace_surrogates(value) if found else value
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self.text) - NEAR_END or error.msg.startswith("Unterminated")
                if not cut or not self.more(wanted):
                    raise
            wanted *= 2  # so that a long element is not decoded too often


def json_rows(name: str, lines: Iterator[str]) -> tuple[list[str], PickColumns]:
    """Columns and rows of JSON lines: one object per line."""
    return rows_of_objects(name, harness_rows(name, _objects(name, lines)), "one JSON object per line")


def rows_of_objects(name: str, objects: Iterator[dict[str, Any]], needed: str) -> tuple[list[str], PickColumns]:
    """Columns and rows of objects; the first objects have all columns. `needed` describes the file, for messages."""
    first = list(islice(objects, PEEKED_ROWS))
    if not first:
        raise EmptyFile(f"{name} is empty. It needs {needed}.")
    columns = list(dict.fromkeys(key for row in first for key in row))

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        return (tuple([cell_or_none(row.get(column)) for column in wanted]) for row in chain(first, objects))

    return columns, pick


def _objects(name: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise InvalidData(
                f"{name}, line {number} is not JSON: {reason}. Write one object per line. "
                "A file with one JSON array is called .json."
            ) from None
        if not isinstance(row, dict):
            raise InvalidData(f"{name}, line {number} is JSON but not an object. Write one object per line.")
        yield replace_surrogates(row) if SURROGATE.search(line) else row


def replace_surrogates(value: Any) -> Any:
    """Replace unpaired surrogates, which are not characters, as UTF-8 decoders do."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    return [replace_surrogates(item) for item in value] if isinstance(value, list) else value


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
