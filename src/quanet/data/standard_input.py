"""Open standard input as a table: its format follows from the first bytes, and it can be read only once."""

import gzip
import io
import sys
from collections.abc import Callable
from typing import IO, Any

NAME = "standard input"


def open_standard_input(rows: Callable[[str, str, Any, str, Any], Any], encoding: str) -> Any:
    """An open table; `rows` opens it, given its name, format, content, encoding and file."""
    stream: Any = sys.stdin.buffer
    head = getattr(stream, "read1", stream.read)(2**16)
    whole: Any = joined(head, stream)
    if head.startswith(b"\x1f\x8b"):
        inner: Any = gzip.GzipFile(fileobj=whole)
        head = inner.peek(2**16)
        whole = joined(b"", inner)
    if head.startswith(b"PAR1"):  # its index is at the end of the file
        return rows(NAME, ".parquet", io.BytesIO(whole.read()), encoding, whole)
    kinds = {b"{": ".jsonl", b"[": ".json"}
    return rows(NAME, kinds.get(head.lstrip()[:1], ".csv"), whole, encoding, whole)


def joined(head: bytes, stream: IO[bytes]) -> io.BufferedReader:
    """Bytes that were already read, followed by the rest of their stream."""
    return io.BufferedReader(_Joined(head, stream))


class _Joined(io.RawIOBase):
    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self.head, self.stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.head[: len(buffer)] or getattr(self.stream, "read1", self.stream.read)(len(buffer))
        self.head = self.head[len(buffer) :]
        buffer[: len(content)] = content
        return len(content)
