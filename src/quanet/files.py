"""Files: written whole or not at all, text as UTF-8, TOML read with one kind of error."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to; it takes the place of `path` when the block ends well, and leaves no trace when it does not.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "note.txt") as file:
    ...         _ = file.write(b"all of it")
    ...     [(path.name, path.read_text()) for path in Path(folder).iterdir()]
    [('note.txt', 'all of it')]
    """
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".new", delete=False) as file:
        part = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    # Temporary files are for their owner's eyes only; the result is as open as any file made here.
    umask = os.umask(0)
    os.umask(umask)
    part.chmod(0o666 & ~umask)
    part.replace(path)


def as_utf8(text: str) -> bytes:
    r"""Text as bytes. Half a surrogate pair, as in some file names and JSON, has none and becomes its escape.

    Examples
    --------
    >>> as_utf8("caf\u00e9 \ud800")
    b'caf\xc3\xa9 \\ud800'
    """
    return text.encode("utf-8", "backslashreplace")


def parse_toml(text: str) -> dict[str, Any]:
    """What TOML says; a ValueError where it is none, or nested too deeply."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
