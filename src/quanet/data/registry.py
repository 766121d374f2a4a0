"""The known datasets: what they contain, where they come from, how to verify them, and where their files are."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from quanet.data.file_names import FORMATS, kind_of
from quanet.errors import InvalidSetting


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file at its source, with its MD5 checksum if one is published."""

    name: str
    url: str
    md5: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetEntry:
    """A dataset by name.

    Parameters
    ----------
    name, task, source : its name, what is quantified, and who publishes it.
    classes : number of classes.
    sizes : accepted numbers of instances (train, test), those of the paper first; None if unknown.
    files : files to download. Without files, the data must be in a folder: NAME-train.parquet and NAME-test.parquet.
    dated : name of a file in the authors' format, reviews with dates and stars, used instead of `files`.
    bags : for tasks that consist of bags: number of bags (dev, test) and instances per bag.
    stand_in : the dataset it replaces, if any. Its results are not comparable with the paper.
    """

    name: str
    task: str
    source: str
    classes: int
    sizes: tuple[tuple[int | None, int | None], ...] = ((None, None),)
    files: tuple[File, ...] = ()
    dated: str | None = None
    bags: tuple[int, int, int] | None = None
    stand_in: str | None = None


def _reviews(name: str, task: str, dated: str, train: int, test: int, also: int) -> DatasetEntry:
    base = "https://zenodo.org/records/4117827/files"
    files = tuple(File(name=f"{name}_{part}.txt", url=f"{base}/{name}_{part}.txt") for part in ("train", "test"))
    # The authors' files contain reviews without text. The paper counts them; the reader skips them.
    sizes = ((train, test), (train, also))
    return DatasetEntry(name=name, task=task, source="Zenodo 4117827", classes=2, sizes=sizes, files=files, dated=dated)


def _lequa(year: int, record: int, task: str, what: str, classes: int, size: int, train: int | None) -> DatasetEntry:
    base = f"https://zenodo.org/records/{record}/files"
    parts = ("train_dev", "test", "test_prevalences")
    return DatasetEntry(
        name=f"lequa{year}-{task.lower()}",
        task=what,
        source=f"Zenodo {record}",
        classes=classes,
        sizes=((train, None),),
        files=tuple(File(name=f"{task}.{part}.zip", url=f"{base}/{task}.{part}.zip") for part in parts),
        bags=(1000, 5000, size),
    )


def _table(name: str, task: str, classes: int, train: int, test: int, stand_in: str | None = None) -> DatasetEntry:
    return DatasetEntry(
        name=name, task=task, source="a folder", classes=classes, sizes=((train, test),), stand_in=stand_in
    )


ENTRIES = (
    DatasetEntry(
        name="imdb",
        task="sentiment, films",
        source="Maas et al. 2011",
        classes=2,
        sizes=((25_000, 25_000),),
        files=(
            File(
                name="aclImdb_v1.tar.gz",
                url="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                md5="7c2ac02c03563afcf9b574c7e56c153a",
            ),
        ),
    ),
    _reviews("kindle", "sentiment, e-book readers", "Kindle_reviews.txt", 3_821, 21_592, 21_591),
    _reviews("hp", "sentiment, Harry Potter", "HP_reviews.txt", 9_533, 18_401, 18_399),
    _lequa(2022, 6546188, "T1A", "sentiment, vectors", 2, 250, 5_000),
    _lequa(2022, 6546188, "T1B", "products, vectors", 28, 1_000, 20_000),
    _lequa(2022, 6546188, "T2A", "sentiment, texts", 2, 250, 5_000),
    _lequa(2022, 6546188, "T2B", "products, texts", 28, 1_000, 20_000),
    _lequa(2024, 11661820, "T1", "sentiment, vectors", 2, 250, None),
    _lequa(2024, 11661820, "T2", "products, vectors", 28, 1_000, None),
    _lequa(2024, 11661820, "T3", "stars, vectors", 5, 200, 20_000),
    _lequa(2024, 11661820, "T4", "sentiment, covariate shift, vectors", 2, 250, None),
    _table("kindle-device", "sentiment, Kindle devices", 2, 2_031, 11_510, "stand-in for KINDLE"),
    _table("kindle-store", "sentiment, e-books", 2, 1_478, 2_963, "second stand-in for KINDLE"),
    _table("amazon-devices", "sentiment, Amazon's devices", 2, 10_945, 22_152, "stand-in for HP"),
    _table("airline-3class", "sentiment, tweets on airlines", 3, 4_828, 9_657),
)
CATALOGUE = {entry.name: entry for entry in ENTRIES}
STAND_INS = {entry.name: entry.stand_in for entry in ENTRIES if entry.stand_in is not None}


def find_entry(name: str) -> DatasetEntry:
    """The dataset with this name. Raises `InvalidSetting` with the most similar name.

    Examples
    --------
    >>> find_entry("IMDB").sizes
    ((25000, 25000),)
    """
    found = CATALOGUE.get(name.lower())
    if found is None:
        near = get_close_matches(name.lower(), CATALOGUE, n=1)
        raise InvalidSetting(
            f"Unknown dataset {name!r}. "
            + (f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(CATALOGUE)}.")
        )
    return found


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
