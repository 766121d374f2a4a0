"""The manifest of an experiment, experiment.json in its folder: its plan, cells and datasets."""

import json
import shlex
from pathlib import Path
from typing import Any

from quanet.errors import InvalidExperiment
from quanet.evaluation.evaluate import Cell

MANIFEST = "experiment.json"
Metadata = dict[str, Any]


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
