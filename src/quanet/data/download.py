"""One file over HTTP: gone on with where it was cut, checked, and in its place only when it is whole."""

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

from quanet.errors import DownloadFailed

Progress: TypeAlias = Callable[[int, int | None], None]  # bytes there, bytes in all where the server says it

BLOCK = 2**16
PAUSE = 1.0  # seconds before the second try; twice as many before each next one
TRIES = 5
TIMEOUT = 30.0
AGAIN = frozenset({408, 429, 500, 502, 503, 504})  # answers that may be better a little later


class _Cut(Exception):
    """The connection ended before the file did; the next try goes on from there."""


class _Unreachable(_Cut):
    """There was no connection at all."""


def download(url: str, target: Path, *, md5: str | None = None, progress: Progress | None = None) -> Path:
    """Fetch a file once, and give its path.

    What was received is kept in `target`.part and gone on with by the next call, if the server can (HTTP Range) and the
    file is still the same there (If-Range). Several processes may ask for one file: the first fetches, the others wait.

    Parameters
    ----------
    url : of the file; http or https.
    target : where it comes to lie, once it is whole and its checksum is right. If it lies there, nothing is fetched.
    md5 : of the whole file, where it is known. A file with another one is set aside as `target`.wrong.
    progress : called with the bytes that are there and, where known, the bytes in all.
    """
    if not url.startswith(("http://", "https://")):
        raise DownloadFailed(f"{url} is neither an http nor an https address.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.with_name(f".{target.name}.lock"))
        lock.acquire()
    except OSError as error:
        raise DownloadFailed(f"{target.parent} cannot be written: {error.strerror or error}.") from error
    try:
        with suppress(DownloadFailed):  # damaged since: fetched again
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
    """Compare a file with its checksum; one that differs is set aside, so that nobody uses it."""
    if md5 is None:
        return
    with file.open("rb") as opened:
        # Against damage, not against attack; and where MD5 is forbidden for security it still works.
        found = hashlib.file_digest(opened, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != md5:
        aside = set_aside(file, name=name)
        raise DownloadFailed(
            f"{name or file.name} has the checksum {found}, not {md5}: it was damaged on the way, or has changed at "
            f"its source. It is not used, and lies at {aside}. Try again."
        )


def set_aside(file: Path, *, name: str | None = None) -> Path:
    """Rename a file that must not be used to NAME.wrong."""
    aside = file.with_name(f"{name or file.name}.wrong")
    file.replace(aside)
    return aside


def _fetch(url: str, part: Path, progress: Progress | None) -> None:
    """Try until the file is whole; a try that brings more than was ever there does not count against us."""
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
            offline = isinstance(cut, _Unreachable) and furthest == start  # waiting would not bring a network
            if offline or failures == TRIES:
                kept = f" {size:,} bytes are kept and gone on with next time." if size else ""
                raise DownloadFailed(f"{url} cannot be fetched: {cut}.{kept}") from cut
            time.sleep(PAUSE * 2**failures)


def _attempt(url: str, part: Path, progress: Progress | None) -> None:
    """One request for what is missing; whatever comes is written behind what is there."""
    have = _size(part)
    remembered = _remembered(part)
    if have and remembered.get("url") != url:
        part.unlink()  # of another server: it may be another file
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
        raise _Unreachable(f"there is no connection ({_reason(error)})") from error
    except (OSError, HTTPException) as error:
        raise _Cut(f"the connection failed ({_reason(error)})") from error
    except ValueError as error:
        raise DownloadFailed(f"{url} is not a web address: {error}.") from error
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
    """What an answer other than the file means: done, try again, or give up."""
    if error.code == 416 and have:
        if (error.headers.get("Content-Range") or "").strip() == f"bytes */{have}":
            return  # there is nothing more to send
        part.unlink()
        raise _Cut("the server has no file of that length any more")
    if error.code in AGAIN:
        raise _Cut(f"the server answers {error.code} {error.reason}")
    raise DownloadFailed(f"{url} cannot be fetched: the server answers {error.code} {error.reason}.")


def _place(response: HTTPResponse, have: int) -> tuple[int, int | None]:
    """Where the answer's first byte belongs in the file, and how long the whole file is."""
    length = response.headers.get("Content-Length")
    if response.status != 206:
        return 0, None if length is None else int(length)
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", (response.headers.get("Content-Range") or "").strip())
    if found is None or int(found[1]) > have:
        raise DownloadFailed(f"{response.url} answers with a part of the file that was not asked for.")
    start = int(found[1])
    if found[2] != "*":
        return start, int(found[2])
    return start, None if length is None else start + int(length)


# Only the disk's errors come out of here as OSError; those of the connection are a _Cut.
def _receive(response: HTTPResponse, file: BinaryIO, done: int, total: int | None, progress: Progress | None) -> None:
    if progress:
        progress(done, total)
    while total is None or done < total:
        try:
            block = response.read1(BLOCK)  # what has come, however little: it may be the last for long
        except (OSError, HTTPException) as error:
            raise _Cut(f"the connection was cut after {done:,} bytes ({_reason(error)})") from error
        if not block:
            break
        file.write(block)
        done += len(block)
        if progress:
            progress(done, total)
    file.flush()
    os.fsync(file.fileno())
    if total is not None and done < total:
        raise _Cut(f"the connection was cut after {done:,} of {total:,} bytes")


def _check_room(part: Path, start: int, total: int | None) -> None:
    """Say before the download, not at its end, that the disk is too small."""
    free = shutil.disk_usage(part.parent).free
    if total is not None and free < total - start:
        raise DownloadFailed(
            f"{part.stem} needs {total - start:,} bytes in {part.parent}, where {free:,} are free. "
            "Make room, or set QUANET_CACHE to a folder on another disk."
        )


def _disk(error: OSError, part: Path) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return (
            f"the disk is full: {part.stem} does not fit into {part.parent}. What there is of it is kept. "
            "Make room, or set QUANET_CACHE to a folder on another disk."
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
    """What tells this version of the file from another; a weak ETag does not."""
    tag = response.headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", error)
    return str(getattr(inner, "strerror", None) or inner) or type(error).__name__
