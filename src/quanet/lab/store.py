"""The folder of an experiment: cells, rows and failures, each in a file that is written atomically.

====================  ================================================================================================
experiment.json       the plan, its cells with their keys, the fingerprints of the datasets
cells/NAME.npz        a finished cell: estimates as 32-bit numbers, truth as counts, metadata as JSON
rows/NAME.npz         the rows of a dataset by a classifier; not needed once all cells are finished
failed/NAME.json      why a cell failed
====================  ================================================================================================

Names contain a key of everything that determines the content, so files of an older plan are not used.
"""

import hashlib
import json
import os
import re
import shlex
import sys
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np

from quanet.arrays import FloatArray, LabelArray
from quanet.errors import InvalidExperiment, QuanetWarning
from quanet.evaluation.evaluate import Cell, CellOutcome, Results
from quanet.files import replacing

MANIFEST = "experiment.json"
Metadata = dict[str, Any]
LOCK = ".lock"


def read_manifest(folder: Path) -> Metadata:
    """Read the manifest of an experiment folder, packed or not."""
    path = folder / MANIFEST
    if folder.is_file():
        raise InvalidExperiment(_not_a_folder(folder))
    try:
        manifest = json.loads(path.read_bytes())
        if not isinstance(manifest["cells"], list):
            raise TypeError("cells is not a list")
    except FileNotFoundError:
        raise InvalidExperiment(
            f"{folder} is not an experiment folder: it has no {MANIFEST}. Create one: quanet experiment run PLAN."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidExperiment(f"{path} is damaged: {error!r}. Run the plan again to repair it.") from error
    return manifest


def _not_a_folder(path: Path) -> str:
    """The message if a file was given instead of a results folder."""
    if path.suffix.lower() != ".toml":
        return f"{path} is a file. Pass the results folder written by quanet experiment run."
    results = [Path(path.stem), path.with_suffix("")]
    existing = next((folder for folder in results if (folder / MANIFEST).is_file()), None)
    if existing is not None:
        return f"{path} is a plan. Pass its results folder instead: {existing}."
    return (
        f"{path} is a plan. Pass its results folder instead. Create it: quanet experiment run {shlex.quote(str(path))} "
        f"writes to {results[0]}, unless --output names a different folder."
    )


def cells_of(manifest: Metadata) -> dict[Cell, str]:
    """The cells of an experiment and their keys, in the order of the plan."""
    return {Cell(*cell[:3]): cell[3] for cell in manifest["cells"]}


def asked_cells(manifest: Metadata) -> dict[Cell, str]:
    """The cells requested so far: all, or those selected with --only."""
    cells = cells_of(manifest)
    if "asked" not in manifest:
        return cells
    asked = {Cell(*cell) for cell in manifest["asked"]}
    return {cell: key for cell, key in cells.items() if cell in asked}


def write(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise InvalidExperiment(
            f"{path} cannot be written: {error.strerror or error}. Finished cells are kept. Free space and run again."
        ) from error


def to_npz(arrays: Mapping[str, Any], about: Metadata, *, compressed: bool) -> bytes:
    """Arrays and metadata as the bytes of one file."""
    metadata = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    buffer = BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, about=metadata, **arrays)
    return buffer.getvalue()


def from_npz(path: Path) -> tuple[dict[str, Any], Metadata]:
    """Read a file of `to_npz`. Raises `InvalidExperiment` if it is damaged."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise InvalidExperiment(f"{path} is damaged: {error}.") from error
    return arrays, about


def name_of(*words: Any, key: str) -> str:
    """A file name: the words, without special characters, and the start of the key.

    Examples
    --------
    >>> name_of("imdb", "SVM(KLD)", 3, key="0123456789abcdef")
    'imdb--SVM-KLD---3--0123456789ab'
    """
    return "--".join([*(re.sub(r"[^A-Za-z0-9.]+", "-", str(word)) for word in words), key[:12]])


def digest(value: Any) -> str:
    """A short hash of plain data."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def encode_results(results: Results) -> dict[str, Any]:
    """Estimates of all classes but the last, which is redundant, and the truth as counts."""
    counts = np.rint(results.truth * results.sizes[:, None]).astype(np.uint32)
    if counts.max(initial=0) < 2**16:
        counts = counts.astype(np.uint16)
    return {"estimate": results.estimate[:, :-1].astype(np.float32), "truth": counts}


def decode_results(arrays: Mapping[str, Any], classes: LabelArray) -> Results:
    """The inverse of `encode_results`, with 7 digits of the estimates."""
    counts = arrays["truth"].astype(np.intp)
    first = arrays["estimate"].astype(float)
    if counts.ndim != 2 or first.shape != (len(counts), len(classes) - 1) or counts.shape[1] != len(classes):
        raise InvalidExperiment(
            f"Estimates {first.shape}, counts {counts.shape} and {len(classes)} classes do not match."
        )
    sizes = counts.sum(axis=1)
    estimate: FloatArray = np.column_stack([first, np.maximum(1 - first.sum(axis=1), 0)])
    return Results(counts / sizes[:, None], estimate, classes, sizes, np.arange(len(sizes)))


class Store:
    """The folder of an experiment.

    Parameters
    ----------
    folder : created when something is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def cell_path(self, cell: Cell, key: str) -> Path:
        """The file of a finished cell."""
        return self.folder / "cells" / f"{name_of(*cell, key=key)}.npz"

    def failure_path(self, cell: Cell, key: str) -> Path:
        """The file of a failed cell."""
        return self.folder / "failed" / f"{name_of(*cell, key=key)}.json"

    def rows_path(self, dataset: str, classifier: str, key: str) -> Path:
        """The file of the rows of a classifier."""
        return self.folder / "rows" / f"{name_of(dataset, classifier, key=key)}.npz"

    def write_manifest(self, manifest: Metadata) -> None:
        """Write the manifest."""
        write(self.folder / MANIFEST, json.dumps(manifest, indent=1).encode())

    def manifest(self) -> Metadata:
        """Read the manifest."""
        return read_manifest(self.folder)

    def exists(self) -> bool:
        """Whether the folder contains an experiment."""
        return (self.folder / MANIFEST).exists()

    def is_packed(self) -> bool:
        """Whether the folder contains a packed experiment."""
        return self.exists() and "packed" in self.manifest()

    def write_cell(self, cell: Cell, key: str, results: Results, about: Metadata) -> None:
        """Write a finished cell, and delete an earlier failure."""
        metadata = {"cell": list(cell), "key": key, "classes": results.classes.tolist(), **about}
        write(self.cell_path(cell, key), to_npz(encode_results(results), metadata, compressed=True))
        self.failure_path(cell, key).unlink(missing_ok=True)

    def read_cell(self, cell: Cell, key: str) -> tuple[CellOutcome, Metadata]:
        """Read a finished cell and its metadata. Raises `InvalidExperiment` if it is damaged."""
        path = self.cell_path(cell, key)
        arrays, about = from_npz(path)
        try:
            if about["key"] != key:
                raise InvalidExperiment(f"{path} belongs to a different cell.")
            results = decode_results(arrays, np.array(about["classes"]))
            return CellOutcome(results, np.array(about["prior"]), float(about["seconds"]["fit"])), about
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidExperiment(f"{path} is damaged: {error!r}.") from error

    def write_failure(self, cell: Cell, key: str, reason: str, traceback: str) -> None:
        """Write why a cell failed."""
        failure = {"cell": list(cell), "key": key, "error": reason, "traceback": traceback}
        write(self.failure_path(cell, key), json.dumps(failure, indent=1).encode())

    def failure(self, cell: Cell, key: str) -> str:
        """Why a cell failed, or an empty string."""
        try:
            return str(json.loads(self.failure_path(cell, key).read_bytes())["error"])
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, KeyError) as error:
            return f"unknown: its file is damaged ({error})"

    def is_whole(self, path: Path) -> bool:
        """Whether a file exists and can be read. A damaged file is renamed, with a warning."""
        if not path.exists():
            return False
        try:
            from_npz(path)
        except InvalidExperiment as error:
            self.set_aside(path, str(error))
            return False
        return True

    def has_cell(self, cell: Cell, key: str) -> bool:
        """Whether a cell is finished. A damaged file is renamed, with a warning."""
        if not self.cell_path(cell, key).exists():
            return False
        try:
            self.read_cell(cell, key)
        except InvalidExperiment as error:
            self.set_aside(self.cell_path(cell, key), str(error))
            return False
        return True

    def set_aside(self, path: Path, reason: str) -> None:
        """Rename a damaged file, so that it is computed again and can be inspected."""
        try:
            path.replace(path.with_name(f"{path.name}.bad"))
            reason += f" It was renamed to {path.name}.bad and will be computed again."
        except OSError as error:  # no permission to write
            reason += f" It is ignored but cannot be renamed: {error.strerror}."
        warnings.warn(reason, QuanetWarning, stacklevel=3)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other runners within the block. The lock of a killed runner is released."""
        new = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / LOCK).open("a+", encoding="utf-8")
        except OSError as error:
            raise InvalidExperiment(f"The folder {self.folder} cannot be used: {error.strerror}.") from error
        with file:
            self._acquire(file)
            try:
                yield
                file.truncate(0)
            finally:
                if not (self.folder / MANIFEST).exists():  # the run did not start
                    (self.folder / LOCK).unlink(missing_ok=True)
                    with suppress(OSError):  # not empty
                        for folder in new:
                            folder.rmdir()

    def _acquire(self, file: IO[str]) -> None:
        """Lock an open file, and write into it which process holds the lock."""
        try:
            _lock(file.fileno())
        except OSError as error:
            file.seek(0)
            raise InvalidExperiment(
                f"{self.folder} is in use by another runner ({file.read().strip() or 'just starting'}). "
                "Wait for it, stop it, or choose a different folder with --output."
            ) from error
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename if hasattr(os, 'uname') else 'this machine'}")
        file.flush()
        # Of a runner that was killed while writing.
        for left_over in (*self.folder.glob(".*.new"), *self.folder.glob("*/.*.new")):
            left_over.unlink(missing_ok=True)


def _lock(descriptor: int) -> None:
    """Lock a file. The operating system releases the lock when the process ends."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def read_cells(folder: str | Path) -> dict[Cell, CellOutcome]:
    """The finished cells of an experiment folder, packed or not, in the order of the plan.

    Use it to compute from the results of `quanet experiment run` what its reports do not show.

    Parameters
    ----------
    folder : of the experiment.

    Returns
    -------
    dict
        For each cell, a triple (dataset, method, run), an outcome: `results` (`Results`), `prior` and `seconds`.

    Examples
    --------
    An experiment of one cell, written by hand:

    >>> import tempfile
    >>> about = {"prior": [0.5, 0.5], "seconds": {"fit": 1.0}}
    >>> shares = np.array([[0.4, 0.6]]), np.array([[0.5, 0.5]])
    >>> results = Results(*shares, np.array(["no", "yes"]), np.array([100]), np.array([0]))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     Store(home).write_manifest({"cells": [["imdb", "EMQ", 0, "key"]]})
    ...     Store(home).write_cell(Cell("imdb", "EMQ", 0), "key", results, about)
    ...     cells = read_cells(home)
    >>> {cell.method: float(outcome.results.error("ae").mean()) for cell, outcome in cells.items()}
    {'EMQ': 0.1}
    """
    return {cell: outcome for cell, (outcome, _) in read_all(folder).items()}


def read_all(folder: str | Path) -> dict[Cell, tuple[CellOutcome, Metadata]]:
    """As `read_cells`, with the metadata of each cell: settings, times, versions, hardware."""
    place = Path(folder)
    manifest = read_manifest(place)
    if "packed" in manifest:
        return read_packed(place, manifest)
    store = Store(place)
    return {cell: store.read_cell(cell, key) for cell, key in cells_of(manifest).items() if store.has_cell(cell, key)}


def pack(folder: str | Path, output: str | Path) -> list[Path]:
    """Write the finished cells of an experiment folder in compact form. Returns the files written.

    The files of estimates depend only on the cells, byte for byte. Times, versions and hardware are in experiment.json.
    """
    store, target = Store(folder), Path(output)
    manifest = store.manifest()
    if "packed" in manifest or target.resolve() == store.folder.resolve():
        raise InvalidExperiment(f"{folder} is already packed, or is the output folder. Pass the folder of a run.")
    groups: dict[tuple[str, str], list[tuple[Cell, CellOutcome]]] = defaultdict(list)
    abouts: dict[Cell, Metadata] = {}
    for cell, key in cells_of(manifest).items():
        if store.has_cell(cell, key):
            outcome, abouts[cell] = store.read_cell(cell, key)
            groups[cell.dataset, cell.method].append((cell, outcome))
    if not groups:
        raise InvalidExperiment(f"{folder} has no finished cell. Run its plan first.")
    files = {}
    for (dataset, method), members in groups.items():
        arrays = [encode_results(outcome.results) for _, outcome in members]
        stacked = {name: np.stack([cell_arrays[name] for cell_arrays in arrays]) for name in arrays[0]}
        runs = {"runs": [cell.run for cell, _ in members]}
        name = name_of(dataset, method, key=digest([dataset, method])) + ".npz"
        files[name] = to_npz(stacked, runs, compressed=True)
    packed = {
        name: _shared(abouts, cells)
        for name, cells in zip(files, ([cell for cell, _ in members] for members in groups.values()), strict=True)
    }
    written = []
    for name, content in files.items():
        write(target / name, content)
        written.append(target / name)
    before = read_manifest(target).get("packed", {}) if (target / MANIFEST).exists() else {}
    cells = [[*cell, key] for cell, key in cells_of(manifest).items() if cell in abouts]
    new = manifest | {"cells": cells, "packed": packed}
    write(target / MANIFEST, json.dumps(new, indent=1).encode())
    for name in set(before) - set(files):  # of methods that were removed
        (target / name).unlink(missing_ok=True)
    return [*written, target / MANIFEST]


def _shared(abouts: dict[Cell, Metadata], cells: list[Cell]) -> dict[str, Any]:
    """The metadata that all runs share, stored once, and those that differ, per run."""
    every = [abouts[cell] for cell in cells]
    same = {key: value for key, value in every[0].items() if all(about.get(key, ...) == value for about in every)}
    runs = [{key: value for key, value in about.items() if key not in same} for about in every]
    return {"same": same, "runs": runs}


def read_packed(folder: Path, manifest: Metadata | None = None) -> dict[Cell, tuple[CellOutcome, Metadata]]:
    """The cells of a packed experiment with their metadata, in the order of the plan."""
    content = read_manifest(folder) if manifest is None else manifest
    found: dict[Cell, tuple[CellOutcome, Metadata]] = {}
    for name, packed in content["packed"].items():
        path = folder / name
        arrays, _ = from_npz(path)
        for at, differs in enumerate(packed["runs"]):
            about = packed["same"] | differs
            run = {key: values[at] for key, values in arrays.items()}
            results = decode_results(run, np.array(about["classes"]))
            outcome = CellOutcome(results, np.array(about["prior"]), float(about["seconds"]["fit"]))
            found[Cell(*about["cell"])] = outcome, about
    return {cell: found[cell] for cell in cells_of(content) if cell in found}
