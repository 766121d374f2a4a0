"""What belongs to an experiment, as the file experiment.json in its folder says: its plan, cells and datasets."""

import json
import shlex
from pathlib import Path
from typing import Any

from quanet.errors import InvalidExperiment
from quanet.evaluation.cells import Cell

MANIFEST = "experiment.json"
About = dict[str, Any]


def read_manifest(folder: Path) -> About:
    """What belongs to the experiment of a folder, packed or not."""
    path = folder / MANIFEST
    if folder.is_file():
        raise InvalidExperiment(_a_file(folder))
    try:
        manifest = json.loads(path.read_bytes())
        if not isinstance(manifest["cells"], list):
            raise TypeError("its cells are no list")
    except FileNotFoundError:
        raise InvalidExperiment(
            f"{folder} is no folder of an experiment: it has no {MANIFEST}. Make one: quanet experiment run PLAN."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidExperiment(f"{path} is damaged: {error!r}. Run the plan again; its cells are kept.") from error
    return manifest


def _a_file(path: Path) -> str:
    """What to say of a file where a folder of results is needed."""
    if path.suffix.lower() != ".toml":
        return f"{path} is a file. Give the folder of results that quanet experiment run has written."
    results = [Path(path.stem), path.with_suffix("")]
    there = next((folder for folder in results if (folder / MANIFEST).is_file()), None)
    if there is not None:
        return f"{path} is a plan, and this needs its folder of results, which is {there}."
    return (
        f"{path} is a plan, and this needs its folder of results. Make it: quanet experiment run "
        f"{shlex.quote(str(path))} writes to {results[0]}, unless --output names another folder."
    )


def cells_of(manifest: About) -> dict[Cell, str]:
    """The cells of an experiment and their keys, in the order of the plan."""
    return {Cell(*cell[:3]): cell[3] for cell in manifest["cells"]}


def asked_cells(manifest: About) -> dict[Cell, str]:
    """Those cells that runs have asked for: all, or those that --only has named."""
    cells = cells_of(manifest)
    if "asked" not in manifest:
        return cells
    asked = {Cell(*cell) for cell in manifest["asked"]}
    return {cell: key for cell, key in cells.items() if cell in asked}
