"""A model folder as a ZIP archive, made while it is sent."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = 2**18


class _Sink(io.RawIOBase):
    """Where the archive is written; what it holds is taken out piece by piece."""

    def __init__(self) -> None:
        self.held = bytearray()
        self.position = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.held += content
        self.position += len(content)
        return len(content)

    def take(self) -> bytes:
        taken = bytes(self.held)
        self.held.clear()
        return taken


def zipped(folder: Path, name: str) -> Iterator[bytes]:
    """The files of a folder in an archive, in bounded memory. Links are left out, so nothing else can be in it."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            entry = zipfile.ZipInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                while content := source.read(BLOCK):
                    target.write(content)
                    yield sink.take()
    yield sink.take()
