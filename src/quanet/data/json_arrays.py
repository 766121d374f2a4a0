"""Rows of a JSON file: an array of objects, read in bounded memory; one object that holds such an array; JSON lines."""

import codecs
import json
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from quanet.data.columns import nearest_first
from quanet.data.eval_logs import eval_rows
from quanet.data.records import SURROGATE, PickColumns, json_rows, replace_surrogates, rows_of_objects
from quanet.errors import EmptyFile, InvalidData, brief

NEEDED = "a JSON array of objects"
CHUNK = 2**16  # bytes or characters read at a time
WHITE = " \t\n\r"
NEAR_END = 16  # characters; an error further from the end of what was read is not due to a cut


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
