"""Content by its hash: files (blobs) and folders (models, monitors). Written atomically, and on the disk when named."""

import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path

from quanet.errors import brief
from quanet.serve.store.store_errors import NotFound, StoreError

_SUFFIX = r"(?:(?:csv|tsv|jsonl|ndjson|json|parquet)(?:\.(?:gz|bz2|xz|zst))?|xlsx|xlsm|eval|arrow|html|md|svg|txt|zip)"
_BLOB = re.compile(rf"[0-9a-f]{{64}}\.{_SUFFIX}")
_FOLDER = re.compile(r"[0-9a-f]{64}")
GRACE = 3600.0  # seconds after which content that no row names is removed
FORGOTTEN = 24 * 3600.0  # seconds after which an upload that was never completed is removed


class Blobs:
    """Files by their content, in `DATA/blobs/ab/SHA256.SUFFIX`.

    A row may name a blob once `put_file` or `put_bytes` has returned: then it is complete and on the disk.
    """

    def __init__(self, data: Path) -> None:
        self._folder = data / "blobs"
        self._incoming = data / "incoming"

    def incoming(self) -> Path:
        """The folder of temporary files, on the disk of the blobs."""
        return self._incoming

    def put_file(self, path: Path, suffix: str) -> str:
        """Move a complete file in, and return its name, such as "9f86...08.csv"."""
        with _saying_why(self._folder):
            with path.open("rb") as file:
                blob = _checked(f"{file_digest(file, 'sha256').hexdigest()}.{suffix.lstrip('.').lower()}")
                os.fsync(file.fileno())
            target = self.path(blob)
            target.parent.mkdir(exist_ok=True)
            path.replace(target)  # also if it exists: heals it, and makes it young
            os.utime(target)
            sync_folder(target.parent)
        return blob

    def put_bytes(self, content: bytes, suffix: str) -> str:
        """Store bytes, and return the name of the blob."""
        part = self._incoming / f"{uuid.uuid4().hex}.part"
        try:
            with _saying_why(self._incoming):
                part.write_bytes(content)
            return self.put_file(part, suffix)
        finally:
            part.unlink(missing_ok=True)

    def path(self, blob: str) -> Path:
        """Where a blob is. A name that is no blob's raises `NotFound`, so that no name leads out of the folder."""
        return self._folder / _checked(blob)[:2] / blob

    def names(self) -> Iterator[str]:
        """All blobs in the folder, whether named by a row or not."""
        for folder in sorted(self._folder.iterdir()):
            if folder.is_dir():
                yield from sorted(path.name for path in folder.iterdir() if _BLOB.fullmatch(path.name))

    def old(self) -> list[str]:
        """Blobs that were stored more than an hour ago: those that no row names by now were forgotten."""
        moment = time.time()
        return [name for name in self.names() if _age(self.path(name), moment) > GRACE]

    def drop_forgotten(self) -> None:
        """Remove uploads that were never completed."""
        for path in self._incoming.iterdir():
            if _age(path, time.time()) > FORGOTTEN:
                remove(path)


class Folders:
    """Folders by their content, in `DATA/KIND/NAME`, such as models. A folder that was stored is never changed."""

    def __init__(self, data: Path, kind: str) -> None:
        self.kind = kind
        self._folder = data / kind

    def put(self, folder: Path) -> str:
        """Move a complete folder in, and return its name: the hash of the names and contents of its files."""
        with _saying_why(self._folder):
            name = folder_digest(folder)
            for path in folder.rglob("*"):
                sync_file(path)
            sync_folder(folder)
            target = self._folder / name
            if target.exists():
                os.utime(target)
                shutil.rmtree(folder)
            else:
                folder.rename(target)
                os.utime(target)
            sync_folder(self._folder)
        return name

    def path(self, name: str) -> Path:
        """Where a folder is. Raises `NotFound` if the name cannot be one."""
        if not _FOLDER.fullmatch(name):
            raise NotFound(f"{brief(name)} is not the name of a folder in {self.kind}.")
        return self._folder / name

    def names(self) -> list[str]:
        """All folders, whether named by a row or not."""
        return sorted(path.name for path in self._folder.iterdir() if _FOLDER.fullmatch(path.name))

    def old(self) -> list[str]:
        """Folders that were stored more than an hour ago, as rows name them."""
        moment = time.time()
        return [f"{self.kind}/{name}" for name in self.names() if _age(self.path(name), moment) > GRACE]


def folder_digest(folder: Path) -> str:
    """The hash of a folder: of the names and contents of its files, regardless of their order and times."""
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            content = file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def blob_digest(path: Path) -> str:
    """The hash of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists. A folder disappears in one step."""
    if path.is_dir():
        gone = path.with_name(f".{path.name}.{uuid.uuid4().hex}.gone")
        path.rename(gone)
        shutil.rmtree(gone)
    else:
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of a folder's files."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Wait until the disk has a file."""
    if os.name != "posix" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _age(path: Path, now: float) -> float:
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _checked(blob: str) -> str:
    if not _BLOB.fullmatch(blob):
        raise NotFound(f"{brief(blob)} is not the name of a stored file.")
    return blob


@contextmanager
def _saying_why(folder: Path) -> Iterator[None]:
    """Turn an error of the disk into one line."""
    try:
        yield
    except OSError as error:
        raise disk_error(folder, error) from error


def disk_error(folder: Path, error: OSError) -> StoreError:
    """What went wrong on the disk, and what to do."""
    fixes = {
        errno.ENOSPC: "The disk is full. Free space; nothing that was stored is lost.",
        errno.EDQUOT: "The quota of the disk is used up. Free space; nothing that was stored is lost.",
        errno.EROFS: "The disk is read-only. Choose another folder with --data.",
        errno.EACCES: "Permission denied. Let this user write there, or choose another folder with --data.",
        errno.EPERM: "Permission denied. Let this user write there, or choose another folder with --data.",
    }
    fix = fixes.get(error.errno or 0, f"{error.strerror or error}.")
    return StoreError(f"{folder} cannot be written: {fix}")
