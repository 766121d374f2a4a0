"""Folders that contain datasets, and downloads into one: resumed after interruptions, verified, moved when complete."""

import errno
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from filelock import FileLock
from platformdirs import user_cache_path

from quanet.data.registry import DatasetEntry, File
from quanet.errors import DownloadFailed, InvalidSetting

FileProgress: TypeAlias = Callable[[str, int, int | None], None]  # file, bytes received, total bytes
Progress: TypeAlias = Callable[[int, int | None], None]  # bytes received, total bytes if known
BLOCK = 2**16
PAUSE = 1.0  # seconds before the second attempt; doubled for each further one
TRIES = 5
TIMEOUT = 30.0
RETRY = frozenset({408, 429, 500, 502, 503, 504})  # status codes that may be temporary


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


class _Cut(Exception):
    """The connection ended early; the next attempt resumes."""


class _Unreachable(_Cut):
    """No connection could be made."""


def download(url: str, target: Path, *, md5: str | None = None, progress: Progress | None = None) -> Path:
    """Download a file unless it exists, and return its path.

    A partial download stays in `target`.part. The next call resumes it if the server supports HTTP Range and the file
    has not changed (If-Range). If several processes need the file, one downloads it and the others wait.

    Parameters
    ----------
    url : of the file; http or https.
    target : path of the complete, verified file. If it exists, nothing is downloaded.
    md5 : checksum of the file, if known. A file with a different checksum is renamed to `target`.wrong.
    progress : called with the bytes received and, if known, the total bytes.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadFailed(f"{url} is not an http or https URL.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.with_name(f".{target.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise DownloadFailed(f"{target.parent} cannot be written: {error.strerror or error}.") from error
    try:
        with suppress(DownloadFailed):  # damaged: download it again
            if target.is_file():
                check_file(target, md5=md5)
                return target
        part = target.with_name(f"{target.name}.part")
        _fetch(url, part, progress)
        check_file(part, md5=md5, name=target.name)
        part.replace(target)
        _note(part).unlink(missing_ok=True)
    finally:
        lock.release()
    return target


def check_file(file: Path, *, md5: str | None, name: str | None = None) -> None:
    """Verify the checksum of a file. A file that differs is renamed, so that it is not used."""
    if md5 is None:
        return
    with file.open("rb") as opened:
        # This detects damage, not attacks. The flag makes it work where MD5 is disabled for security.
        found = hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != md5:
        aside = set_aside(file, name=name)
        raise DownloadFailed(
            f"{name or file.name} has the checksum {found} instead of {md5}: the download is damaged, or the source "
            f"has changed. The file is not used; it was renamed to {aside}. Try again."
        )


def set_aside(file: Path, *, name: str | None = None) -> Path:
    """Rename a file that must not be used to NAME.wrong."""
    aside = file.with_name(f"{name or file.name}.wrong")
    file.replace(aside)
    return aside


def _fetch(url: str, part: Path, progress: Progress | None) -> None:
    """Retry until the file is complete. An attempt that makes progress resets the count of failures."""
    start = furthest = _size(part)
    failures = 0
    while True:
        try:
            _attempt(url, part, progress)
            return
        except _Cut as cut:
            size = _size(part)
            failures = 0 if size > furthest else failures + 1
            furthest = max(size, furthest)
            offline = isinstance(cut, _Unreachable) and furthest == start  # waiting does not help
            if offline or failures == TRIES:
                kept = f" {size:,} bytes are kept; the next attempt resumes." if size else ""
                raise DownloadFailed(f"{url} cannot be downloaded: {cut}.{kept}") from cut
            time.sleep(PAUSE * 2**failures)


def _attempt(url: str, part: Path, progress: Progress | None) -> None:
    """Request the missing bytes once, and append what is received."""
    have = _size(part)
    remembered = _remembered(part)
    if have and remembered.get("url") != url:
        part.unlink()  # from a different URL, so it may be a different file
        have = 0
    headers = {"User-Agent": "quanet", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if remembered.get("validator"):
            headers["If-Range"] = remembered["validator"]
    try:
        response = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        with error:
            _refused(error, url, part, have)
        return
    except URLError as error:
        raise _Unreachable(f"no connection ({_reason(error)})") from error
    except (OSError, HTTPException) as error:
        raise _Cut(f"the connection failed ({_reason(error)})") from error
    except ValueError as error:
        raise DownloadFailed(f"{url} is not a valid URL: {error}.") from error
    with response:
        start, total = _place(response, have)
        _check_room(part, start, total)
        try:
            _note(part).write_text(json.dumps({"url": url, "validator": _validator(response)}))
            with part.open("r+b" if start else "wb") as file:
                if start:
                    file.seek(start)
                    file.truncate()
                _receive(response, file, start, total, progress)
        except OSError as error:
            raise DownloadFailed(_disk(error, part)) from error


def _refused(error: HTTPError, url: str, part: Path, have: int) -> None:
    """Handle an HTTP error: return if the file is complete, raise `_Cut` to retry, `DownloadFailed` to give up."""
    if error.code == 416 and have:
        if (error.headers.get("Content-Range") or "").strip() == f"bytes */{have}":
            return  # the file is already complete
        part.unlink()
        raise _Cut("the file on the server is now shorter")
    if error.code in RETRY:
        raise _Cut(f"the server returned {error.code} {error.reason}")
    raise DownloadFailed(f"{url} cannot be downloaded: the server returned {error.code} {error.reason}.")


def _place(response: HTTPResponse, have: int) -> tuple[int, int | None]:
    """The offset of the response in the file, and the size of the file."""
    length = response.headers.get("Content-Length")
    if response.status != 206:
        return 0, None if length is None else int(length)
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", (response.headers.get("Content-Range") or "").strip())
    if found is None or int(found[1]) > have:
        raise DownloadFailed(f"{response.url} returned a different part of the file than requested.")
    start = int(found[1])
    if found[2] != "*":
        return start, int(found[2])
    return start, None if length is None else start + int(length)


# Errors of the disk are raised as OSError, errors of the connection as _Cut.
def _receive(response: HTTPResponse, file: BinaryIO, done: int, total: int | None, progress: Progress | None) -> None:
    if progress:
        progress(done, total)
    while total is None or done < total:
        try:
            block = response.read1(BLOCK)  # whatever has arrived, so that little is lost if the connection stalls
        except (OSError, HTTPException) as error:
            raise _Cut(f"the connection ended after {done:,} bytes ({_reason(error)})") from error
        if not block:
            break
        file.write(block)
        done += len(block)
        if progress:
            progress(done, total)
    file.flush()
    os.fsync(file.fileno())
    if total is not None and done < total:
        raise _Cut(f"the connection ended after {done:,} of {total:,} bytes")


def _check_room(part: Path, start: int, total: int | None) -> None:
    """Raise `DownloadFailed` before the download if the disk is too small."""
    free = shutil.disk_usage(part.parent).free
    if total is not None and free < total - start:
        raise DownloadFailed(
            f"{part.stem} needs {total - start:,} bytes in {part.parent}, but only {free:,} are free. "
            "Free some space, or set QUANET_CACHE to a folder on another disk."
        )


def _disk(error: OSError, part: Path) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return (
            f"the disk is full: {part.stem} does not fit into {part.parent}. The part received so far is kept. "
            "Free some space, or set QUANET_CACHE to a folder on another disk."
        )
    return f"{part} cannot be written: {error.strerror or error}."


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _remembered(part: Path) -> dict[str, str]:
    try:
        remembered = json.loads(_note(part).read_text())
    except (OSError, ValueError):
        return {}
    return remembered if isinstance(remembered, dict) else {}


def _validator(response: HTTPResponse) -> str | None:
    """An identifier of this version of the file; a weak ETag is not reliable."""
    tag = response.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", error)
    return str(getattr(inner, "strerror", None) or inner) or type(error).__name__
