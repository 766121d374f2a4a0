"""The watched folder: complete files in DATA/inbox/PROJECT become batches of the project, each once."""

import logging
import os
import shutil
import time
import uuid
from pathlib import Path

from quanet.serve.store.audit_log import record
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.projects import project
from quanet.serve.store.store_errors import NotFound
from quanet.serve.store.uploads import receive_batch

log = logging.getLogger("quanet.inbox")
EVERY = 2.0  # seconds between looks
STILL = 5.0  # seconds for which a file must not have changed
MOST_FILES = 20  # taken at each look, so that jobs are not kept waiting
UNFINISHED = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".swp")
KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx", ".xlsm")
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

_Stamp = tuple[int, int, int]  # size, time of the last change, inode


class Inbox:
    """Looks into the folders of projects from time to time.

    A file that is still being written is left alone: its size and time must not have changed between two looks that are
    `STILL` seconds apart. Programs should write under a name that begins with a dot, or ends in .part, and rename.
    """

    def __init__(self, store: ServiceStore, *, still: float = STILL) -> None:
        self._store = store
        self._folder = store.data / "inbox"
        self._still = still
        self._seen: dict[Path, tuple[_Stamp, float]] = {}
        self._next = 0.0

    def look(self) -> int:
        """Look for complete files, if it is time to, and make them batches. Returns how many."""
        if time.monotonic() < self._next:
            return 0
        self._next = time.monotonic() + min(EVERY, self._still)
        found, taken = {}, 0
        for path, stamp in self._files():
            seen = self._seen.get(path)
            since = seen[1] if seen and seen[0] == stamp else time.monotonic()
            found[path] = (stamp, since)
            age = time.time() - stamp[1] / 1e9
            if taken < MOST_FILES and time.monotonic() - since >= self._still and age >= self._still:
                taken += self._take(path, stamp)
                del found[path]
        self._seen = found
        return taken

    def _files(self) -> list[tuple[Path, _Stamp]]:
        files = []
        for folder in self._folders():
            for entry in os.scandir(folder):
                name = entry.name.lower()
                if name.startswith(".") or name.endswith(UNFINISHED) or not suffix_of(name):
                    continue
                try:
                    if entry.is_file(follow_symlinks=False):
                        files.append((Path(entry.path), _stamp(Path(entry.path))))
                except FileNotFoundError:
                    continue
        return files

    def _folders(self) -> list[Path]:
        try:
            return [Path(one.path) for one in os.scandir(self._folder) if one.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []

    def _take(self, path: Path, stamp: _Stamp) -> int:
        """Copy a file, and make it a batch unless it has changed meanwhile; then remove it."""
        copy = self._store.blobs.incoming() / f"{uuid.uuid4().hex}.part"
        try:
            shutil.copyfile(path, copy, follow_symlinks=False)
            if _stamp(path) != stamp:  # it is being written after all
                return 0
            blob = self._store.blobs.put_file(copy, suffix_of(path.name))
            with self._store.write() as connection:
                row, new = receive_batch(
                    connection, project(connection, path.parent.name).id, path.name, blob, stamp[0]
                )
                if new:
                    record(connection, "inbox", "batch", row.project, {"batch": row.id, "name": path.name})
            if _stamp(path) == stamp:
                path.unlink()
            return int(new)
        except NotFound:
            return 0  # the folder of no project
        except OSError as error:
            log.warning("%s cannot be read: %s", path, error.strerror or error)
            return 0
        finally:
            copy.unlink(missing_ok=True)


def suffix_of(name: str) -> str:
    """The ending that says the format of a file, without its dot; "" if it is none that can be read.

    Examples
    --------
    >>> suffix_of("May 2024.CSV.gz"), suffix_of("notes.docx")
    ('csv.gz', '')
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes][-2:]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        good = len(suffixes) > 1 and suffixes[0] in KINDS[:6]
        return "".join(suffixes).lstrip(".") if good else ""
    return suffixes[-1].lstrip(".") if suffixes and suffixes[-1] in KINDS else ""


def _stamp(path: Path) -> _Stamp:
    found = path.lstat()
    return found.st_size, found.st_mtime_ns, found.st_ino
