"""Files: written atomically, text as UTF-8, TOML and JSON."""

import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from quanet.errors import InvalidSetting


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces `path` when the block succeeds, and is deleted when it fails.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "note.txt") as file:
    ...         _ = file.write(b"complete")
    ...     [(path.name, path.read_text()) for path in Path(folder).iterdir()]
    [('note.txt', 'complete')]
    """
    file = NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".new", delete=False)  # noqa: SIM115
    part = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # Only the owner may read a temporary file. The result gets the usual permissions of a new file.
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: a reader sees the old file or the new one, never a part."""
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror or error}. Choose another file.") from None


def check_writable(path: Path) -> None:
    """Raise `InvalidSetting` unless `write_whole` can write this file, or a folder of this name: before long work."""
    home = path.parent
    while not home.exists() and home != home.parent:  # folders of a model are created with their parents
        home = home.parent
    name = path.name if home == path.parent else ""
    try:
        with NamedTemporaryFile(dir=home, prefix=f".{name}.", suffix=".new"):
            pass
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror or error}. Choose another file.") from None


def as_utf8(text: str) -> bytes:
    r"""Text as UTF-8. An unpaired surrogate, as in some file names and JSON, becomes its escape sequence.

    Examples
    --------
    >>> as_utf8("caf\u00e9 \ud800")
    b'caf\xc3\xa9 \\ud800'
    """
    return text.encode("utf-8", "backslashreplace")


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a TOML file. Raises ValueError if it is not TOML or is nested too deeply."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_ready(value: Any) -> Any:
    """A value that JSON can represent: arrays become lists, NaN and infinity null, dates and other objects strings.

    Examples
    --------
    >>> import numpy as np
    >>> json_ready({"shares": np.array([0.5, np.nan]), "small": np.bool_(True), "month": np.datetime64("2024-05")})
    {'shares': [0.5, None], 'small': True, 'month': '2024-05'}
    """
    if isinstance(value, Mapping):
        return {str(name): json_ready(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    dtype = getattr(value, "dtype", None)
    if dtype is not None and hasattr(value, "tolist") and (value.shape or dtype.kind != "M"):
        return json_ready(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def json_text(value: Any) -> str:
    """The text of a JSON file, indented, see `json_ready`.

    Examples
    --------
    >>> print(json_text({"level": 0.95, "share": float("nan")}), end="")
    {
     "level": 0.95,
     "share": null
    }
    """
    return json.dumps(json_ready(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
