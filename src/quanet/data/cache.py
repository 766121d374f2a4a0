"""Folders that contain datasets: those the user names, and the cache for downloads."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from platformdirs import user_cache_path

from quanet.data.download import download
from quanet.data.registry import DatasetEntry, File
from quanet.errors import DownloadFailed, InvalidSetting

FileProgress: TypeAlias = Callable[[str, int, int | None], None]  # file, bytes received, total bytes


def cache_folder() -> Path:
    """The folder for downloads: QUANET_CACHE, or the cache folder of the platform."""
    chosen = os.environ.get("QUANET_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("quanet", appauthor=False)


def data_folders(folder: str | Path | None = None) -> list[Path]:
    """Folders to search for data, in order: `folder`, the folders in QUANET_DATA, the cache."""
    named = [Path(folder)] if folder is not None else []
    for name in filter(None, os.environ.get("QUANET_DATA", "").split(os.pathsep)):
        path = Path(name).expanduser()
        if not path.is_dir():
            raise InvalidSetting(f"QUANET_DATA contains {name}, which is not a folder. Correct or unset it.")
        named.append(path)
    return [*named, cache_folder()]


def fetch_files(entry: DatasetEntry, *, mirror: str | None = None, progress: FileProgress | None = None) -> Path:
    """Download all files of a dataset into the cache, and return their folder.

    Parameters
    ----------
    entry : the dataset.
    mirror : a URL that serves the files as NAME/FILE, instead of their source. Default: QUANET_MIRROR.
    progress : called with the file, the bytes received and, if known, the total bytes.
    """
    folder = cache_folder() / entry.name
    for file in entry.files:
        url = address(entry, file, mirror)
        follow = None if progress is None else _following(progress, file.name)
        try:
            download(url, folder / file.name, md5=file.md5, progress=follow)
        except DownloadFailed as error:
            raise DownloadFailed(
                f"{entry.name}: {error} You can also save {url} as {folder / file.name}, "
                "or set QUANET_DATA to a folder that contains it."
            ) from error
    return folder


def address(entry: DatasetEntry, file: File, mirror: str | None = None) -> str:
    """The URL of a file."""
    base = mirror or os.environ.get("QUANET_MIRROR")
    return f"{base.rstrip('/')}/{entry.name}/{file.name}" if base else file.url


def _following(progress: FileProgress, name: str) -> Callable[[int, int | None], None]:
    return lambda done, total: progress(name, done, total)
