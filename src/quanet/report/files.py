"""Reports to files: whole or not at all."""

from pathlib import Path

from quanet.errors import InvalidSetting
from quanet.files import replacing


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever reads it sees the old one or the new one."""
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror or error}. Choose another file.") from None
