"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


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
