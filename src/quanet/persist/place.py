"""The folder of a model: what its files are called, whether a folder may be replaced, and how it is, as a whole."""

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quanet.errors import InvalidModel, InvalidSetting

CONFIG, ARRAYS, CARD = "config.json", "arrays.safetensors", "README.md"
FILE = re.compile(r"arrays\.safetensors|part-\d+\.skops")


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a model folder, not yet checked to be whole."""
    if not folder.is_dir():
        raise InvalidModel(f"there is no folder {folder}. Give one that quanet fit or quanet.save has written.")
    path = folder / CONFIG
    if not path.is_file():
        raise InvalidModel(f"{folder} is no quanet model: it has no {CONFIG}.")
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{path} is no JSON, it may be truncated: {error}. Save the model again.") from error
    if not (isinstance(config, dict) and "quanet_format" in config):
        raise InvalidModel(f"{folder} is no quanet model: its {CONFIG} is another program's.")
    return config


def free_place(folder: str | os.PathLike[str]) -> Path:
    """Where `save` would write to; a folder there must be empty or a model, with no files of others."""
    target = Path(folder).resolve()  # through a link, to the folder that is replaced
    if not target.exists():
        return target
    if not target.is_dir():
        raise InvalidSetting(f"{folder} is a file; a model is a folder. Give another name.")
    found = {path.name for path in target.iterdir()}
    if not found:
        return target
    try:
        read_config(target)
    except InvalidModel as error:
        raise InvalidSetting(f"{folder} is not empty, and no quanet model to replace. Give another name.") from error
    foreign = sorted(name for name in found - {CONFIG, CARD} if not FILE.fullmatch(name))
    if foreign:
        raise InvalidSetting(
            f"{folder} also holds {', '.join(foreign)}, which would be lost. Move it, or save elsewhere."
        )
    return target


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """A new folder beside `target` to write into, which takes its place at the end, or goes without a trace."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new, old = (target.with_name(f".{target.name}.{uuid.uuid4().hex}.{kind}") for kind in ("new", "old"))
    try:
        new.mkdir()
        yield new
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException:  # Ctrl-C too
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if target.exists():  # else the old one is all there is
            shutil.rmtree(old, ignore_errors=True)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the folder takes its place
