"""One door to all data: a name of the catalogue, or paths of your own, in; training and test set out."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from quanet.bags import Bags
from quanet.data.cache import FileProgress, data_folders, fetch_files
from quanet.data.catalogue import CATALOGUE, Entry, find_entry
from quanet.data.dataset import Dataset
from quanet.data.download import set_aside
from quanet.data.formats import FORMATS, kind_of
from quanet.data.lequa import BagFiles, check_zip, read_task
from quanet.data.reviews import is_dated, read_dated_reviews, read_imdb, read_labelled_lines, split_by_date
from quanet.data.tables import read_dataset
from quanet.errors import DownloadFailed, InvalidData

PAIR = "::"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TrainTest:
    """A dataset as experiments use it.

    Attributes
    ----------
    name : of the dataset, or its path.
    train : labelled instances to learn from.
    test : labelled instances to draw bags from; for LeQua, its bags.
    source : where the files lie.
    stand_in : what it stands in for, if it does; results on it are not those of the paper's data.
    dev : bags to develop with (LeQua).
    train_bags : which training instances belong together (T3 of LeQua 2024).
    """

    name: str
    train: Dataset
    test: Dataset | BagFiles
    source: str
    stand_in: str | None = None
    dev: BagFiles | None = None
    train_bags: Bags | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A dataset of the catalogue, and where its files lie, if they are at hand."""

    entry: Entry
    at: Path | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Files that were found, and what they are."""

    kind: Literal["tables", "files", "dated", "folder"]
    paths: tuple[Path, ...]


def list_datasets(folder: str | Path | None = None) -> list[Listed]:
    """All datasets that have a name, with the place of those at hand: in `folder`, QUANET_DATA or the cache."""
    folders = data_folders(folder)
    found = [(entry, _locate(entry, folders)) for entry in CATALOGUE.values()]
    return [Listed(entry=entry, at=place.paths[0] if place else None) for entry, place in found]


def load_dataset(
    name: str | Path,
    *,
    folder: str | Path | None = None,
    download: bool = True,
    text: str | None = None,
    label: str = "label",
    encoding: str = "utf-8",
    progress: FileProgress | None = None,
) -> TrainTest:
    r"""A training and a test set, by name or from your own files.

    Parameters
    ----------
    name : "imdb", "kindle", "hp", "lequa2022-t1a" and all that `list_datasets` gives; or two tables,
        "train.csv::test.csv"; or a folder that has train.* and test.*; or a folder of a LeQua task; or a file of the
        authors' own format, which is split by date.
    folder : looked at first for a name, before the folders of QUANET_DATA and the cache.
    download : fetch a dataset that is not at hand into the cache.
    text, label, encoding : columns and encoding of your own tables, see `read_dataset`.
    progress : called while fetching, with the file, its bytes that are there and, where known, its bytes in all.

    Examples
    --------
    >>> import tempfile
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = Path(temporary.name)
    >>> _ = (folder / "train.csv").write_text("text,label\ngood,1\nbad,0\n")
    >>> _ = (folder / "test.csv").write_text("text,label\nfine,1\n")
    >>> data = load_dataset(folder)
    >>> data.train.prevalence, data.test.X
    (array([0.5, 0.5]), ['fine'])
    >>> temporary.cleanup()
    """
    given = str(name)
    columns = partial(read_part, text=text, label=label, encoding=encoding)
    if PAIR in given:
        first, _, second = given.partition(PAIR)
        return _pair(given, Path(first), Path(second), columns)
    if isinstance(name, str) and given.lower() in CATALOGUE:
        return _load_entry(find_entry(given), data_folders(folder), download=download, progress=progress)
    path = Path(name)
    if isinstance(name, str) and not path.suffix and not path.exists():
        find_entry(given)  # says which name is nearest
    return _load_path(path, columns)


def fetch_dataset(name: str, *, mirror: str | None = None, progress: FileProgress | None = None) -> Path:
    """Bring a dataset into the cache and check it, unless it is at hand; give the place where it lies.

    Parameters
    ----------
    name : of the catalogue.
    mirror : a web address that has the files as NAME/FILE, instead of their source; or QUANET_MIRROR.
    progress : called with the file, its bytes that are there and, where known, its bytes in all.
    """
    entry = find_entry(name)
    place = _locate(entry, data_folders()[:-1])
    if place:
        return place.paths[0]
    if not entry.files:
        raise InvalidData(_not_at_hand(entry))
    folder = fetch_files(entry, mirror=mirror, progress=progress)
    if not all(file.md5 for file in entry.files):
        _read_fetched(entry, folder)
    return folder


def read_part(path: str | Path, *, text: str | None = None, label: str = "label", encoding: str = "utf-8") -> Dataset:
    """Labelled instances from one file: a table, lines of label, tab, text (.txt), or dated reviews (.txt)."""
    file = Path(path)
    if kind_of(file) != ".txt":
        return read_dataset(file, text=text, label=label, encoding=encoding)
    if not file.is_file():
        raise InvalidData(f"there is no file {file}.")
    return read_dated_reviews(file) if is_dated(file) else read_labelled_lines(file)


def _read_fetched(entry: Entry, folder: Path) -> TrainTest:
    """Where no checksum is published, files are right if they can be read and have what they should; or go aside."""
    paths = tuple(folder / file.name for file in entry.files)
    wrong = paths
    try:
        for path in paths:
            if path.suffix == ".zip":
                wrong = (path,)
                check_zip(path)
        wrong = paths
        return _read(entry, _Place("files", paths))
    except InvalidData as error:
        for path in wrong:
            with suppress(FileNotFoundError):  # another process was first
                set_aside(path)
        raise DownloadFailed(
            f"{error} What was fetched is not used, and lies in {folder} as {wrong[0].name}.wrong. Try again."
        ) from error


def _load_entry(
    entry: Entry, folders: list[Path], *, download: bool, progress: FileProgress | None = None
) -> TrainTest:
    place = _locate(entry, folders)
    if place is not None:
        return _read(entry, place)
    if not (download and entry.files):
        raise InvalidData(_not_at_hand(entry))
    return _read_fetched(entry, fetch_files(entry, progress=progress))


def _not_at_hand(entry: Entry) -> str:
    tables = f"{entry.name}-train.parquet and {entry.name}-test.parquet"
    fetch = f"Fetch it: quanet datasets fetch {entry.name}; or s" if entry.files else "S"
    return f"{entry.name} is not at hand. {fetch}et QUANET_DATA to a folder that has {tables}."


def _locate(entry: Entry, folders: list[Path]) -> _Place | None:
    """The files of a dataset in the first folder that has all of them, there or in a folder of the dataset's name."""
    for root in folders:
        for folder in (root, root / entry.name):
            train, test = (_table_in(folder, f"{entry.name}-{part}") for part in ("train", "test"))
            if train and test and not entry.bags:
                return _Place("tables", (train, test))
            files = tuple(folder / file.name for file in entry.files)
            if files and all(file.is_file() for file in files):
                return _Place("files", files)
            if entry.dated and (folder / entry.dated).is_file():
                return _Place("dated", (folder / entry.dated,))
            task = folder / entry.files[0].name.split(".")[0] if entry.bags else None
            if task and (task / "public").is_dir():
                return _Place("folder", (task,))
    return None


def _table_in(folder: Path, stem: str) -> Path | None:
    if not folder.is_dir():
        return None
    found = [path for path in sorted(folder.glob(f"{stem}.*")) if kind_of(path) in {*FORMATS, ".txt"}]
    return next((path for path in found if path.name.split(".")[0] == stem), None)


def _read(entry: Entry, place: _Place) -> TrainTest:
    """Read what was found, and make sure that it has as many instances as it should."""
    if entry.bags:
        data = _from_task(entry.name, place.paths)
    elif place.kind == "dated":
        data = _by_date(entry.name, place.paths[0], train=entry.sizes[0][0])
    elif entry.name == "imdb" and place.kind == "files":
        train, test = read_imdb(place.paths[0])
        data = TrainTest(name=entry.name, train=train, test=test, source=str(place.paths[0]))
    else:
        data = _pair(entry.name, place.paths[0], place.paths[1])
    _check_sizes(entry, data)
    named = replace(data, train=replace(data.train, name=entry.name), stand_in=entry.stand_in)
    return replace(named, test=replace(data.test, name=entry.name)) if isinstance(data.test, Dataset) else named


def _check_sizes(entry: Entry, data: TrainTest) -> None:
    if isinstance(data.test, BagFiles):
        found, wanted = (len(data.dev) if data.dev else 0, len(data.test)), (entry.bags or (0, 0, 0))[:2]
        if found != wanted:
            raise InvalidData(
                f"{entry.name} in {data.source} has {found[0]:,} bags to develop with and {found[1]:,} to test on; "
                f"it should have {wanted[0]:,} and {wanted[1]:,}."
            )
    test = None if isinstance(data.test, BagFiles) else len(data.test)
    for sizes in entry.sizes:
        if all(size in {None, there} for size, there in zip(sizes, (len(data.train), test), strict=True)):
            return
    first = entry.sizes[0]
    raise InvalidData(
        f"{entry.name} in {data.source} has {len(data.train):,} training"
        + (f" and {test:,} test instances; " if test is not None else " instances; ")
        + f"it should have {first[0]:,}"
        + (f" and {first[1]:,}." if first[1] is not None else ".")
    )


def _load_path(path: Path, columns: "partial[Dataset]") -> TrainTest:
    if path.is_dir():
        train, test = _table_in(path, "train"), _table_in(path, "test")
        if train and test:
            return _pair(str(path), train, test, columns)
        if any(path.rglob("training_data.txt")) or any(path.rglob("training_samples")):
            return _from_task(str(path), (path,))
        raise InvalidData(f"{path} has neither train.* and test.* ({', '.join(FORMATS)}) nor a task of LeQua.")
    if not path.is_file():
        raise InvalidData(f"there is no file {path}.")
    if kind_of(path) == ".txt" and is_dated(path):
        return _by_date(str(path), path, train=None)
    raise InvalidData(f"{path} is one table. Give two, to train and to test on: {path}{PAIR}OTHER.")


def _pair(name: str, train: Path, test: Path, columns: "partial[Dataset] | None" = None) -> TrainTest:
    read = columns or partial(read_part)
    source = str(train.parent) if train.parent == test.parent else f"{train}, {test}"
    first, second = read(train), read(test)
    unknown = set(second.classes.tolist()) - set(first.classes.tolist())
    if unknown:
        raise InvalidData(
            f"{test} has the class {min(map(str, unknown))!r}, which {train} has not. "
            "Take it out, or train on data that have it."
        )
    return TrainTest(name=name, train=first, test=second, source=source)


def _by_date(name: str, path: Path, *, train: int | None) -> TrainTest:
    first, later = split_by_date(read_dated_reviews(path), train=train)
    return TrainTest(name=name, train=first, test=later, source=str(path))


def _from_task(name: str, paths: tuple[Path, ...]) -> TrainTest:
    task = read_task(paths, name)
    source = ", ".join(str(path) for path in paths)
    if task.test is None:
        raise InvalidData(f"{source} has no bags in test_samples to test on.")
    return TrainTest(
        name=name, train=task.train, test=task.test, source=source, dev=task.dev, train_bags=task.train_bags
    )
