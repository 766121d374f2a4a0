"""Load a training and a test set, a known dataset by name or your own files; and summarize what is in a dataset."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from quanet.arrays import FloatArray
from quanet.bags import Bags
from quanet.data.dataset import Dataset, read_dataset
from quanet.data.download import FileProgress, data_folders, fetch_files, set_aside
from quanet.data.encodings import AUTO
from quanet.data.file_names import FORMATS, kind_of
from quanet.data.lequa import BagFiles, check_zip, read_task
from quanet.data.registry import CATALOGUE, DatasetEntry, DatasetPlace, find_entry, locate, not_available, table_in
from quanet.data.reviews import is_dated, read_dated_reviews, read_imdb, read_labelled_lines, split_by_date
from quanet.errors import DownloadFailed, InvalidData
from quanet.simplex import count, encode

PAIR = "::"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TrainTest:
    """A training and a test set: what `load_dataset` returns.

    Attributes
    ----------
    name : name or path of the dataset.
    train : labelled training instances.
    test : labelled instances to draw bags from; for LeQua, its bags.
    source : where the files are.
    stand_in : the dataset it replaces, if any. Its results are not comparable with the paper.
    dev : bags for development (LeQua).
    train_bags : the bags of the training data (T3 of LeQua 2024).

    Examples
    --------
    >>> parts = Dataset(["good", "bad"], [1, 0]), Dataset(["fine"], [1])
    >>> data = TrainTest(name="tiny", train=parts[0], test=parts[1], source="memory")
    >>> len(data.train), data.test.y
    (2, array([1]))
    """

    name: str
    train: Dataset
    test: Dataset | BagFiles
    source: str
    stand_in: str | None = None
    dev: BagFiles | None = None
    train_bags: Bags | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedDataset:
    """A known dataset, and where its files are, if available."""

    entry: DatasetEntry
    at: Path | None


def list_datasets(folder: str | Path | None = None) -> list[ListedDataset]:
    """All known datasets, with the location of those available in `folder`, QUANET_DATA or the cache.

    Parameters
    ----------
    folder : searched first.

    Returns
    -------
    list of ListedDataset
        `entry` describes the dataset (`entry.name`, ...); `at` is where it is, None if it is not available.

    Examples
    --------
    >>> [listed.entry.name for listed in list_datasets()][:3]
    ['imdb', 'kindle', 'hp']
    """
    folders = data_folders(folder)
    found = [(entry, locate(entry, folders)) for entry in CATALOGUE.values()]
    return [ListedDataset(entry=entry, at=place.paths[0] if place else None) for entry, place in found]


def load_dataset(
    name: str | Path,
    *,
    folder: str | Path | None = None,
    download: bool = True,
    text: str | None = None,
    label: str = "label",
    encoding: str = AUTO,
    delimiter: str = AUTO,
    progress: FileProgress | None = None,
) -> TrainTest:
    r"""Load a training and a test set, by name or from your own files.

    Parameters
    ----------
    name : a name from `list_datasets`, such as "imdb" or "lequa2022-t1a"; or two tables, "train.csv::test.csv"; or a
        folder with train.* and test.*; or the folder of a LeQua task; or a file of dated reviews
        (`read_dated_reviews`), which is split by date.
    folder : searched first for a name, before the folders in QUANET_DATA and the cache.
    download : download a dataset that is not available into the cache.
    text, label, encoding, delimiter : columns, encoding and delimiter of your own tables, see `read_dataset`.
    progress : called during the download with the file, the bytes received and, if known, the total bytes.

    Returns
    -------
    TrainTest
        with `train` and `test`.

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
    columns = partial(read_part, text=text, label=label, encoding=encoding, delimiter=delimiter)
    if PAIR in given:
        first, _, second = given.partition(PAIR)
        return _pair(given, Path(first), Path(second), columns)
    if isinstance(name, str) and given.lower() in CATALOGUE:
        return _load_entry(find_entry(given), data_folders(folder), download=download, progress=progress)
    path = Path(name)
    if isinstance(name, str) and not path.suffix and not path.exists():
        find_entry(given)  # raises, and suggests a similar name
    return _load_path(path, columns)


def fetch_dataset(name: str, *, mirror: str | None = None, progress: FileProgress | None = None) -> Path:
    """Download a dataset into the cache and verify it, unless it is available.

    `load_dataset` calls it. Call it yourself to download ahead, such as when a container is built.

    Parameters
    ----------
    name : see `list_datasets`.
    mirror : a URL that serves the files as NAME/FILE, instead of their source. Default: QUANET_MIRROR.
    progress : called with the file, the bytes received and, if known, the total bytes.

    Returns
    -------
    Path
        where the dataset is.

    Examples
    --------
    >>> fetch_dataset("imbd")
    Traceback (most recent call last):
    quanet.errors.InvalidSetting: ...imdb...
    """
    entry = find_entry(name)
    place = locate(entry, data_folders()[:-1])
    if place:
        return place.paths[0]
    if not entry.files:
        raise InvalidData(not_available(entry))
    folder = fetch_files(entry, mirror=mirror, progress=progress)
    if not all(file.md5 for file in entry.files):
        _read_fetched(entry, folder)
    return folder


def read_part(
    path: str | Path,
    *,
    text: str | None = None,
    label: str = "label",
    encoding: str = AUTO,
    delimiter: str = AUTO,
) -> Dataset:
    """Labelled instances from one file: a table, lines of label, tab, text (.txt), or dated reviews (.txt)."""
    file = Path(path)
    if kind_of(file) != ".txt":
        return read_dataset(file, text=text, label=label, encoding=encoding, delimiter=delimiter)
    if not file.is_file():
        raise InvalidData(f"The file {file} does not exist.")
    return read_dated_reviews(file) if is_dated(file) else read_labelled_lines(file)


def _read_fetched(entry: DatasetEntry, folder: Path) -> TrainTest:
    """Read downloaded files. They have no published checksum, so files that cannot be read are renamed and not used."""
    paths = tuple(folder / file.name for file in entry.files)
    wrong = paths
    try:
        for path in paths:
            if path.suffix == ".zip":
                wrong = (path,)
                check_zip(path)
        wrong = paths
        return _read(entry, DatasetPlace("files", paths))
    except InvalidData as error:
        for path in wrong:
            with suppress(FileNotFoundError):  # renamed by another process
                set_aside(path)
        raise DownloadFailed(
            f"{error} The download is not used; it was renamed to {folder / wrong[0].name}.wrong. Try again."
        ) from error


def _load_entry(
    entry: DatasetEntry, folders: list[Path], *, download: bool, progress: FileProgress | None = None
) -> TrainTest:
    place = locate(entry, folders)
    if place is not None:
        return _read(entry, place)
    if not (download and entry.files):
        raise InvalidData(not_available(entry))
    return _read_fetched(entry, fetch_files(entry, progress=progress))


def _read(entry: DatasetEntry, place: DatasetPlace) -> TrainTest:
    """Read a dataset, and check its number of instances."""
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


def _check_sizes(entry: DatasetEntry, data: TrainTest) -> None:
    if isinstance(data.test, BagFiles):
        found, wanted = (len(data.dev) if data.dev else 0, len(data.test)), (entry.bags or (0, 0, 0))[:2]
        if found != wanted:
            raise InvalidData(
                f"{entry.name} in {data.source} has {found[0]:,} bags for development and {found[1]:,} for testing; "
                f"expected {wanted[0]:,} and {wanted[1]:,}."
            )
    test = None if isinstance(data.test, BagFiles) else len(data.test)
    for sizes in entry.sizes:
        if all(size in {None, found} for size, found in zip(sizes, (len(data.train), test), strict=True)):
            return
    first = entry.sizes[0]
    raise InvalidData(
        f"{entry.name} in {data.source} has {len(data.train):,} training"
        + (f" and {test:,} test instances; " if test is not None else " instances; ")
        + f"expected {first[0]:,}"
        + (f" and {first[1]:,}." if first[1] is not None else ".")
    )


def _load_path(path: Path, columns: "partial[Dataset]") -> TrainTest:
    if path.is_dir():
        train, test = table_in(path, "train"), table_in(path, "test")
        if train and test:
            return _pair(str(path), train, test, columns)
        if any(path.rglob("training_data.txt")) or any(path.rglob("training_samples")):
            return _from_task(str(path), (path,))
        raise InvalidData(f"{path} has neither train.* and test.* ({', '.join(FORMATS)}) nor a LeQua task.")
    if not path.is_file():
        raise InvalidData(f"The file {path} does not exist.")
    if kind_of(path) == ".txt" and is_dated(path):
        return _by_date(str(path), path, train=None)
    raise InvalidData(f"{path} is one table. Pass two tables, for training and testing: {path}{PAIR}OTHER.")


def _pair(name: str, train: Path, test: Path, columns: "partial[Dataset] | None" = None) -> TrainTest:
    read = columns or partial(read_part)
    source = str(train.parent) if train.parent == test.parent else f"{train}, {test}"
    first, second = read(train), read(test)
    unknown = set(second.classes.tolist()) - set(first.classes.tolist())
    if unknown:
        raise InvalidData(
            f"{test} has the class {min(map(str, unknown))!r}, which is missing in {train}. "
            "Remove it, or add it to the training data."
        )
    return TrainTest(name=name, train=first, test=second, source=source)


def _by_date(name: str, path: Path, *, train: int | None) -> TrainTest:
    first, later = split_by_date(read_dated_reviews(path), train=train)
    return TrainTest(name=name, train=first, test=later, source=str(path))


def _from_task(name: str, paths: tuple[Path, ...]) -> TrainTest:
    task = read_task(paths, name)
    source = ", ".join(str(path) for path in paths)
    if task.test is None:
        raise InvalidData(f"{source} has no bags in test_samples.")
    return TrainTest(
        name=name, train=task.train, test=task.test, source=source, dev=task.dev, train_bags=task.train_bags
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """A summary of a part of a dataset.

    Attributes
    ----------
    instances : number of instances.
    counts : instances per class.
    width : number of features; None for texts.
    words : minimum, quartiles and maximum of the words per text (5,); None for numbers.
    repeated : texts that equal an earlier one; None for numbers.
    dates : the first and the last.
    first : the first instances, with their labels.
    """

    instances: int
    counts: dict[Any, int]
    width: int | None = None
    words: FloatArray | None = None
    repeated: int | None = None
    dates: tuple[str, str] | None = None
    first: tuple[tuple[Any, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BagsDescription:
    """A summary of bags in files: their number, and the minimum, mean and maximum prevalence of each class (3, k)."""

    bags: int
    prevalences: FloatArray | None


def describe(data: Dataset, *, first: int = 3) -> Description:
    """Summarize labelled instances, with the first few of them.

    Examples
    --------
    >>> found = describe(Dataset(["good film", "bad", "bad"], ["pos", "neg", "neg"]), first=1)
    >>> found.counts, found.words.tolist(), found.repeated, found.first
    ({'neg': 2, 'pos': 1}, [1.0, 1.0, 1.0, 1.5, 2.0], 1, (('pos', 'good film'),))
    """
    classes = data.classes
    counts = count(encode(data.y, classes), len(classes)).tolist()
    is_text = isinstance(data.X[0], str)
    return Description(
        instances=len(data),
        counts=dict(zip(classes.tolist(), counts, strict=True)),
        width=None if is_text else data.X.shape[1],
        words=np.quantile([len(text.split()) for text in data.X], np.linspace(0, 1, 5)) if is_text else None,
        repeated=len(data) - len(set(data.X)) if is_text else None,
        dates=None if data.dates is None else (str(min(data.dates)), str(max(data.dates))),
        first=tuple(zip(data.y[:first].tolist(), data.X[:first], strict=True)),
    )


def describe_bags(bags: BagFiles) -> BagsDescription:
    """Summarize bags in files, without reading the bags."""
    known = bags.k is not None
    values = bags.prevalences if known else None
    return BagsDescription(
        bags=len(bags),
        prevalences=None if values is None else np.stack([values.min(axis=0), values.mean(axis=0), values.max(axis=0)]),
    )
