"""The compact form of an experiment, to keep: one file for every dataset and method, and one that says the rest."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from quanet.errors import InvalidExperiment
from quanet.evaluation.cells import Cell, Outcome
from quanet.experiments.manifest import MANIFEST, About, cells_of, read_manifest
from quanet.experiments.store import Store, decode_results, encode_results, from_npz, name_of, to_npz, write


def pack(folder: str | Path, output: str | Path) -> list[Path]:
    """Write the finished cells of an experiment's folder compactly; the files written.

    Estimates depend on nothing but the cells, byte for byte; seconds, versions and hardware are in experiment.json.
    """
    store, target = Store(folder), Path(output)
    manifest = store.manifest()
    if "packed" in manifest or target.resolve() == store.folder.resolve():
        raise InvalidExperiment(f"{folder} is packed already, or is where to pack to. Give the folder of a run.")
    groups: dict[tuple[str, str], list[tuple[Cell, Outcome]]] = defaultdict(list)
    abouts: dict[Cell, About] = {}
    for cell, key in cells_of(manifest).items():
        if store.has_cell(cell, key):
            outcome, abouts[cell] = store.read_cell(cell, key)
            groups[cell.dataset, cell.method].append((cell, outcome))
    if not groups:
        raise InvalidExperiment(f"{folder} has no finished cell to pack. Run its plan first.")
    files = {}
    for (dataset, method), members in groups.items():
        arrays = [encode_results(outcome.results) for _, outcome in members]
        stacked = {name: np.stack([one[name] for one in arrays]) for name in arrays[0]}
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
    said = manifest | {"cells": cells, "packed": packed}
    write(target / MANIFEST, json.dumps(said, indent=1).encode())
    for name in set(before) - set(files):  # of methods that are no more
        (target / name).unlink(missing_ok=True)
    return [*written, target / MANIFEST]


def manifest_key(dataset: str, method: str) -> str:
    """What tells apart names that differ in signs alone, which file names leave out."""
    from quanet.experiments.plan import digest

    return digest([dataset, method])


def _shared(abouts: dict[Cell, About], cells: list[Cell]) -> dict[str, Any]:
    """What is the same for all runs, said once, and what differs, run by run."""
    every = [abouts[cell] for cell in cells]
    same = {key: value for key, value in every[0].items() if all(one.get(key, ...) == value for one in every)}
    runs = [{key: value for key, value in one.items() if key not in same} for one in every]
    return {"same": same, "runs": runs}


def read_packed(folder: Path, manifest: About | None = None) -> dict[Cell, tuple[Outcome, About]]:
    """Every cell of a packed experiment and what is said about it, in the order of its plan."""
    said = read_manifest(folder) if manifest is None else manifest
    found: dict[Cell, tuple[Outcome, About]] = {}
    for name, packed in said["packed"].items():
        path = folder / name
        arrays, _ = from_npz(path)
        for at, differs in enumerate(packed["runs"]):
            about = packed["same"] | differs
            one = {key: values[at] for key, values in arrays.items()}
            results = decode_results(one, np.array(about["classes"]))
            outcome = Outcome(results, np.array(about["prior"]), float(about["seconds"]["fit"]))
            found[Cell(*about["cell"])] = outcome, about
    return {cell: found[cell] for cell in cells_of(said) if cell in found}
