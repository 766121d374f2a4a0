"""Where the files of a dataset are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quanet.data.file_names import FORMATS, kind_of
from quanet.data.registry import DatasetEntry


@dataclass(frozen=True, slots=True)
class DatasetPlace:
    """Files of a dataset, and their kind."""

    kind: Literal["tables", "files", "dated", "folder"]
    paths: tuple[Path, ...]


def locate(entry: DatasetEntry, folders: list[Path]) -> DatasetPlace | None:
    """The files of a dataset, from the first folder that contains all of them, or has a subfolder NAME that does."""
    for root in folders:
        for folder in (root, root / entry.name):
            train, test = (table_in(folder, f"{entry.name}-{part}") for part in ("train", "test"))
            if train and test and not entry.bags:
                return DatasetPlace("tables", (train, test))
            files = tuple(folder / file.name for file in entry.files)
            if files and all(file.is_file() for file in files):
                return DatasetPlace("files", files)
            if entry.dated and (folder / entry.dated).is_file():
                return DatasetPlace("dated", (folder / entry.dated,))
            task = folder / entry.files[0].name.split(".")[0] if entry.bags else None
            if task and (task / "public").is_dir():
                return DatasetPlace("folder", (task,))
    return None


def table_in(folder: Path, stem: str) -> Path | None:
    """The table of a folder with this name and any ending; None if there is none."""
    if not folder.is_dir():
        return None
    found = [path for path in sorted(folder.glob(f"{stem}.*")) if kind_of(path) in {*FORMATS, ".txt"}]
    return next((path for path in found if path.name.split(".")[0] == stem), None)


def not_available(entry: DatasetEntry) -> str:
    """The message that a dataset is not available, with the way out."""
    tables = f"{entry.name}-train.parquet and {entry.name}-test.parquet"
    fetch = f"Download it: quanet datasets fetch {entry.name}. Or s" if entry.files else "S"
    return f"The dataset {entry.name} is not available. {fetch}et QUANET_DATA to a folder that contains {tables}."
