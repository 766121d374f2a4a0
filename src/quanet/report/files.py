"""Reports to files: whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from quanet.errors import InvalidSetting


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever reads it sees the old one or the new one."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror or error}. Choose another file.") from None
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
