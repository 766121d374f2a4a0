"""Where data lie: folders that the user names, and the cache that downloads go to."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from platformdirs import user_cache_path

from quanet.data.catalogue import Entry, File
from quanet.data.download import download
from quanet.errors import DownloadFailed, InvalidSetting

FileProgress: TypeAlias = Callable[[str, int, int | None], None]  # file, bytes there, bytes in all


def cache_folder() -> Path:
    """The folder that downloads go to: QUANET_CACHE, or where the platform keeps caches."""
    chosen = os.environ.get("QUANET_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("quanet", appauthor=False)


def data_folders(folder: str | Path | None = None) -> list[Path]:
    """Where data are looked for, in order: `folder`, those that QUANET_DATA lists, the cache."""
    named = [Path(folder)] if folder is not None else []
    for one in filter(None, os.environ.get("QUANET_DATA", "").split(os.pathsep)):
        path = Path(one).expanduser()
        if not path.is_dir():
            raise InvalidSetting(f"QUANET_DATA names {one}, which is no folder.")
        named.append(path)
    return [*named, cache_folder()]


def fetch_files(entry: Entry, *, mirror: str | None = None, progress: FileProgress | None = None) -> Path:
    """Bring all files of a dataset into the cache, and give their folder.

    Parameters
    ----------
    entry : the dataset.
    mirror : a web address that holds the files as NAME/FILE, instead of their own source; or QUANET_MIRROR.
    progress : called with the file, its bytes that are there and, where known, its bytes in all.
    """
    folder = cache_folder() / entry.name
    for file in entry.files:
        url = address(entry, file, mirror)
        follow = None if progress is None else _following(progress, file.name)
        try:
            download(url, folder / file.name, md5=file.md5, progress=follow)
        except DownloadFailed as error:
            raise DownloadFailed(
                f"{entry.name}: {error} You can also bring {url} by hand to {folder / file.name}, "
                "or set QUANET_DATA to a folder that has it."
            ) from error
    return folder


def address(entry: Entry, file: File, mirror: str | None = None) -> str:
    """Where a file is fetched from."""
    base = mirror or os.environ.get("QUANET_MIRROR")
    return f"{base.rstrip('/')}/{entry.name}/{file.name}" if base else file.url


def _following(progress: FileProgress, name: str) -> Callable[[int, int | None], None]:
    return lambda done, total: progress(name, done, total)
