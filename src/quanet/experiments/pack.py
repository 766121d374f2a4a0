"""Pack an experiment for archiving: one file per dataset and method, and a manifest."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from quanet.errors import InvalidExperiment
from quanet.evaluation.evaluate import Cell, CellOutcome
from quanet.experiments.manifest import MANIFEST, Metadata, cells_of, read_manifest
from quanet.experiments.store import Store, decode_results, encode_results, from_npz, name_of, to_npz, write


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
        name = name_of(dataset, method, key=manifest_key(dataset, method)) + ".npz"
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


def manifest_key(dataset: str, method: str) -> str:
    """A key that distinguishes names that differ only in characters that file names omit."""
    from quanet.experiments.plan import digest

    return digest([dataset, method])


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
