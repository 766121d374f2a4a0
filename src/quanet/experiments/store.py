"""The folder of an experiment: cells, rows and failures, each a file that is there whole or not at all.

====================  ================================================================================================
experiment.json       the plan, its cells with their keys, the datasets' fingerprints
cells/NAME.npz        a finished cell: estimates as 32-bit numbers, truth as counts, and about it in JSON
rows/NAME.npz         what a classifier makes of a dataset; not needed any more once all cells are there
failed/NAME.json      why a cell failed
====================  ================================================================================================

Names hold the key of what determines the content, so what a changed plan no longer asks for is not read.
"""

import json
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from quanet.arrays import FloatArray, LabelArray
from quanet.errors import InvalidExperiment, QuanetWarning
from quanet.evaluation.cells import Cell, Outcome
from quanet.evaluation.results import Results
from quanet.experiments.manifest import MANIFEST, About, cells_of, read_manifest
from quanet.files import replacing

LOCK = ".lock"


def write(path: Path, content: bytes) -> None:
    """Write a file whole, or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise InvalidExperiment(
            f"{path} cannot be written: {error.strerror or error}. Finished cells are kept; make room, then run again."
        ) from error


def to_npz(arrays: Mapping[str, Any], about: About, *, compressed: bool) -> bytes:
    """Arrays and what is to say of them, as the bytes of one file."""
    said = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    buffer = BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, about=said, **arrays)
    return buffer.getvalue()


def from_npz(path: Path) -> tuple[dict[str, Any], About]:
    """What `to_npz` wrote; an error if the file is damaged."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise InvalidExperiment(f"{path} is damaged: {error}.") from error
    return arrays, about


def name_of(*words: Any, key: str) -> str:
    """A file's name: the words as far as any file system takes them, and the start of the key.

    Examples
    --------
    >>> name_of("imdb", "SVM(KLD)", 3, key="0123456789abcdef")
    'imdb--SVM-KLD---3--0123456789ab'
    """
    return "--".join([*(re.sub(r"[^A-Za-z0-9.]+", "-", str(word)) for word in words), key[:12]])


def encode_results(results: Results) -> dict[str, Any]:
    """Estimates of all classes but the last, which follows from them, and the truth as counts."""
    counts = np.rint(results.truth * results.sizes[:, None]).astype(np.uint32)
    if counts.max(initial=0) < 2**16:
        counts = counts.astype(np.uint16)
    return {"estimate": results.estimate[:, :-1].astype(np.float32), "truth": counts}


def decode_results(arrays: Mapping[str, Any], classes: LabelArray) -> Results:
    """What `encode_results` was given, its estimates to 7 digits."""
    counts = arrays["truth"].astype(np.intp)
    first = arrays["estimate"].astype(float)
    if counts.ndim != 2 or first.shape != (len(counts), len(classes) - 1) or counts.shape[1] != len(classes):
        raise InvalidExperiment(f"estimates {first.shape} and counts {counts.shape} do not fit {len(classes)} classes.")
    sizes = counts.sum(axis=1)
    estimate: FloatArray = np.column_stack([first, np.maximum(1 - first.sum(axis=1), 0)])
    return Results(counts / sizes[:, None], estimate, classes, sizes, np.arange(len(sizes)))


class Store:
    """An experiment's folder.

    Parameters
    ----------
    folder : made when something is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def cell_path(self, cell: Cell, key: str) -> Path:
        """Where a finished cell is."""
        return self.folder / "cells" / f"{name_of(*cell, key=key)}.npz"

    def failure_path(self, cell: Cell, key: str) -> Path:
        """Where it is said why a cell failed."""
        return self.folder / "failed" / f"{name_of(*cell, key=key)}.json"

    def rows_path(self, dataset: str, classifier: str, key: str) -> Path:
        """Where a classifier's rows are."""
        return self.folder / "rows" / f"{name_of(dataset, classifier, key=key)}.npz"

    def write_manifest(self, manifest: About) -> None:
        """Say what belongs to the experiment."""
        write(self.folder / MANIFEST, json.dumps(manifest, indent=1).encode())

    def manifest(self) -> About:
        """What belongs to the experiment."""
        return read_manifest(self.folder)

    def exists(self) -> bool:
        """Whether an experiment was begun here."""
        return (self.folder / MANIFEST).exists()

    def is_packed(self) -> bool:
        """Whether the folder holds results in their compact form."""
        return self.exists() and "packed" in self.manifest()

    def write_cell(self, cell: Cell, key: str, results: Results, about: About) -> None:
        """Keep a finished cell, and forget that it failed before."""
        said = {"cell": list(cell), "key": key, "classes": results.classes.tolist(), **about}
        write(self.cell_path(cell, key), to_npz(encode_results(results), said, compressed=True))
        self.failure_path(cell, key).unlink(missing_ok=True)

    def read_cell(self, cell: Cell, key: str) -> tuple[Outcome, About]:
        """A finished cell and what is to say about it; an error if it is damaged."""
        path = self.cell_path(cell, key)
        arrays, about = from_npz(path)
        try:
            if about["key"] != key:
                raise InvalidExperiment(f"{path} is another cell's.")
            results = decode_results(arrays, np.array(about["classes"]))
            return Outcome(results, np.array(about["prior"]), float(about["seconds"]["fit"])), about
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidExperiment(f"{path} is damaged: {error!r}.") from error

    def write_failure(self, cell: Cell, key: str, reason: str, traceback: str) -> None:
        """Keep why a cell failed."""
        said = {"cell": list(cell), "key": key, "error": reason, "traceback": traceback}
        write(self.failure_path(cell, key), json.dumps(said, indent=1).encode())

    def failure(self, cell: Cell, key: str) -> str:
        """Why a cell failed, or nothing."""
        try:
            return str(json.loads(self.failure_path(cell, key).read_bytes())["error"])
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, KeyError) as error:
            return f"not known any more: {error}"

    def is_whole(self, path: Path) -> bool:
        """Whether a file is there and can be read; one that cannot is set aside, with a warning."""
        if not path.exists():
            return False
        try:
            from_npz(path)
        except InvalidExperiment as error:
            self.set_aside(path, str(error))
            return False
        return True

    def has_cell(self, cell: Cell, key: str) -> bool:
        """Whether a cell is finished; one that is damaged is set aside, with a warning."""
        if not self.cell_path(cell, key).exists():
            return False
        try:
            self.read_cell(cell, key)
        except InvalidExperiment as error:
            self.set_aside(self.cell_path(cell, key), str(error))
            return False
        return True

    def set_aside(self, path: Path, reason: str) -> None:
        """Rename a damaged file, so that it is made again and can be looked at."""
        try:
            path.replace(path.with_name(f"{path.name}.bad"))
            reason += f" It is now {path.name}.bad, and will be made again."
        except OSError as error:  # whoever only reads may have no right to rename
            reason += f" It is left out, and stays where it is: {error.strerror}."
        warnings.warn(reason, QuanetWarning, stacklevel=3)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Inside, no other runner works in the folder. A runner that was killed holds it no more."""
        new = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / LOCK).open("a+", encoding="utf-8")
        except OSError as error:
            raise InvalidExperiment(f"the folder {self.folder} cannot be used: {error.strerror}.") from error
        with file:
            self._hold(file)
            try:
                yield
                file.truncate(0)
            finally:
                if not (self.folder / MANIFEST).exists():  # refused before it began
                    (self.folder / LOCK).unlink(missing_ok=True)
                    with suppress(OSError):  # where something else is in it
                        for folder in new:
                            folder.rmdir()

    def _hold(self, file: IO[str]) -> None:
        """Take the lock of an open file, and say in it whose it is."""
        try:
            _lock(file.fileno())
        except OSError as error:
            file.seek(0)
            raise InvalidExperiment(
                f"{self.folder} is in use by another runner ({file.read().strip() or 'just starting'}). "
                "Wait for it, stop it, or choose another folder with --output."
            ) from error
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename if hasattr(os, 'uname') else 'this machine'}")
        file.flush()
        for left_over in self.folder.glob("*/.*.new"):  # of a runner that was killed while it wrote
            left_over.unlink(missing_ok=True)


def _lock(descriptor: int) -> None:
    """Take a file's lock, which the system frees when the process ends, however it ends."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def read_cells(folder: str | Path) -> dict[Cell, Outcome]:
    """Every finished cell of an experiment's folder, packed or not, in the order of its plan."""
    return {cell: outcome for cell, (outcome, _) in read_all(folder).items()}


def read_all(folder: str | Path) -> dict[Cell, tuple[Outcome, About]]:
    """The same, with what is said about every cell: settings, seconds, versions, hardware."""
    place = Path(folder)
    manifest = read_manifest(place)
    if "packed" in manifest:
        from quanet.experiments.pack import read_packed

        return read_packed(place, manifest)
    store = Store(place)
    return {cell: store.read_cell(cell, key) for cell, key in cells_of(manifest).items() if store.has_cell(cell, key)}
