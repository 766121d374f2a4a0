"""Read the tasks of LeQua 2022 and 2024: a training set, and thousands of bags in files with true prevalences.

Esuli, Moreo, Sebastiani and Sperduti, *A Detailed Overview of LeQua@CLEF 2022: Learning to Quantify*, CLEF 2022; Zenodo
records 6546188 (2022) and 11661820 (2024).
"""

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.bags import Bags
from quanet.data.dataset import Dataset
from quanet.errors import InvalidBags, InvalidData

# Leading folders are ignored: T1A/public/dev_samples/3.txt is dev_samples/3.txt.
PLACE = re.compile(r"(?:^|/)((?:training|dev|test)_(?:samples/\d+\.txt|data\.txt|prevalences\.txt))$")
TOLERANCE = 1e-3  # for rounded prevalences, as in the organisers' code
Read = Callable[[str], bytes]


class Files:
    """The files of a task, in folders or zip files, which are not unpacked.

    Parameters
    ----------
    paths : folders and zip files that together contain the task.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._where: dict[str, tuple[Path, str | None]] = {}
        for path in self.paths:
            found: Iterable[tuple[str, Path, str | None]]
            if path.is_dir():
                found = ((file.relative_to(path).as_posix(), file, None) for file in sorted(path.rglob("*.txt")))
            else:
                with _zip(path) as opened:
                    found = ((name, path, name) for name in opened.namelist())
            for name, file, member in found:
                place = PLACE.search(name)
                if place:
                    self._where.setdefault(place[1], (file, member))

    def __contains__(self, place: str) -> bool:
        return place in self._where

    def __str__(self) -> str:
        return ", ".join(str(path) for path in self.paths)

    def numbers(self, folder: str) -> IntArray:
        """The numbers of the files N.txt in a folder, sorted."""
        names = (place.split("/") for place in self._where if place.startswith(f"{folder}/"))
        return np.array(sorted(int(name.removesuffix(".txt")) for _, name in names), dtype=np.intp)

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """A function that returns the content of a file. Zip files stay open within the block."""
        with ExitStack() as stack:
            archives: dict[Path, zipfile.ZipFile] = {}

            def read(place: str) -> bytes:
                if place not in self._where:
                    raise InvalidData(f"{self} has no file {place}.")
                path, member = self._where[place]
                if member is not None and path not in archives:
                    archives[path] = stack.enter_context(_zip(path))
                try:
                    return path.read_bytes() if member is None else archives[path].read(member)
                except (OSError, zipfile.BadZipFile, zlib.error, EOFError) as error:
                    raise InvalidData(f"{place} of {path} cannot be read: {error}") from error

            yield read


class BagFiles:
    r"""Bags in files, one per file, read when needed, as all bags of a task may exceed the memory.

    `load_dataset` returns them for the tasks of LeQua [1]_, as `test` and `dev`. Iterating over them yields one bag at
    a time; `chunks` yields pools with their bags, and `pool` returns all of them.

    Parameters
    ----------
    files : the files of the task.
    folder : the folder of the bags, such as "dev_samples".
    numbers : (b,) numbers of the files, in order.
    prevalences : (b, k) true prevalences, if known.

    Examples
    --------
    Two bags of texts, in the format of LeQua:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     folder = Path(home, "dev_samples")
    ...     folder.mkdir()
    ...     for number, texts in enumerate(["good\nbad\n", "fine\n"]):
    ...         _ = (folder / f"{number}.txt").write_text(f"text\n{texts}")
    ...     bags = BagFiles(Files([Path(home)]), "dev_samples", np.arange(2), None)
    ...     X, _ = bags.pool()
    >>> len(bags), X
    (2, ['good', 'bad', 'fine'])

    With a fitted quantifier, using memory for 50,000 instances::

        estimates = np.vstack([quantifier.predict_bags(X, bags) for X, bags in task.test.chunks()])

    References
    ----------
    .. [1] A. Esuli, A. Moreo, F. Sebastiani and G. Sperduti, "A detailed overview of LeQua@CLEF 2022", 2022.
    """

    def __init__(self, files: Files, folder: str, numbers: IntArray, prevalences: FloatArray | None) -> None:
        self.files = files
        self.folder = folder
        self.labels: LabelArray = numbers
        self._prevalences = prevalences

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"BagFiles({len(self)} bags in {self.folder} of {self.files})"

    @property
    def k(self) -> int | None:
        """Number of classes, if prevalences are known."""
        return None if self._prevalences is None else self._prevalences.shape[1]

    @property
    def prevalences(self) -> FloatArray:
        """True prevalences (b, k), if published."""
        if self._prevalences is None:
            raise InvalidBags(f"{self.files} has no true prevalences for {self.folder}.")
        return self._prevalences

    def __iter__(self) -> Iterator[Any]:
        """The instances of one bag at a time: (n, d) vectors, or a list of texts."""
        with self.files.reading() as read:
            for number in self.labels.tolist():
                place = f"{self.folder}/{number}.txt"
                yield parse_instances(read(place), source=f"{place} of {self.files}")[0]

    def chunks(self, instances: int = 50_000) -> Iterator[tuple[Any, Bags]]:
        """Pools of about this many instances, each with its bags. Bags are not split."""
        pending: list[Any] = []
        start = 0
        for position, bag in enumerate(self):
            pending.append(bag)
            if sum(map(len, pending)) >= instances or position == len(self) - 1:
                yield self._pooled(pending, slice(start, position + 1))
                pending, start = [], position + 1

    def pool(self) -> tuple[Any, Bags]:
        """All instances as one pool, with all bags, for tasks that fit into memory."""
        return self._pooled(list(self), slice(None))

    def _pooled(self, instances: list[Any], part: slice) -> tuple[Any, Bags]:
        prevalences = None if self._prevalences is None else self._prevalences[part]
        return _concatenated(instances), Bags(_consecutive(instances), prevalences, self.labels[part])


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A task: training data, bags for development and for testing; `train_bags` if the training data come as bags."""

    train: Dataset
    dev: BagFiles | None
    test: BagFiles | None
    train_bags: Bags | None = None


def read_task(paths: Sequence[Path], name: str = "") -> Task:
    """Read a task of LeQua from its zip files or its folder.

    Parameters
    ----------
    paths : TASK.train_dev.zip, TASK.test.zip and TASK.test_prevalences.zip, or the folder with their content:
        training_data.txt (a column `label`, then the vector, or `text`), dev_samples/N.txt, test_samples/N.txt
        (the same without `label`), dev_prevalences.txt and test_prevalences.txt (`id`, then one column per class).
        T3 of 2024 has training_samples/N.txt, with labels, instead of training_data.txt.
    name : name of the training set.
    """
    files = Files(paths)
    if "training_data.txt" in files:
        with files.reading() as read:
            train, train_bags = _labelled(read, "training_data.txt", files, name), None
    else:
        train, train_bags = _training_bags(files, name)
    task = Task(train=train, dev=_bags(files, "dev"), test=_bags(files, "test"), train_bags=train_bags)
    for bags in (task.dev, task.test):
        if bags is not None and bags.k not in {None, len(train.classes)}:
            raise InvalidData(f"{files}: training data have {len(train.classes)} classes but prevalences {bags.k}.")
    return task


def check_zip(path: Path) -> None:
    """Raise `InvalidData` if a zip file is damaged."""
    with _zip(path) as opened:
        try:
            damaged = opened.testzip()
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise InvalidData(f"{path} cannot be read as a zip file: {error}") from error
    if damaged:
        raise InvalidData(f"{path} is damaged at {damaged}.")


def parse_instances(content: bytes, *, source: str) -> tuple[Any, IntArray | None]:
    """The instances and, if present, the labels of a file. Its header determines whether they are texts or vectors."""
    try:
        table = pd.read_csv(io.BytesIO(content), keep_default_na=False)  # "NA" may be a text, and no number is missing
        table.columns = table.columns.str.strip().str.lower()
        labels = table.pop("label").to_numpy(np.intp) if "label" in table else None
        instances = table["text"].astype(str).tolist() if "text" in table else table.to_numpy(float)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InvalidData(f"{source} cannot be read as a LeQua file: {reason}") from error
    if not len(instances):
        raise InvalidData(f"{source} has no instances.")
    return instances, labels


def _labelled(read: Read, place: str, files: Files, name: str) -> Dataset:
    X, y = parse_instances(read(place), source=f"{place} of {files}")
    if y is None:
        raise InvalidData(f"{place} of {files} has no column 'label'.")
    return Dataset(X, y, name)


def _training_bags(files: Files, name: str) -> tuple[Dataset, Bags]:
    numbers = files.numbers("training_samples")
    if not len(numbers):
        raise InvalidData(f"{files} is not a LeQua task: it has neither training_data.txt nor training_samples.")
    with files.reading() as read:
        parts = [_labelled(read, f"training_samples/{number}.txt", files, name) for number in numbers.tolist()]
    train = Dataset(_concatenated([part.X for part in parts]), np.concatenate([part.y for part in parts]), name)
    prevalences = np.array([[(part.y == label).mean() for label in train.classes] for part in parts])
    return train, Bags(_consecutive([part.X for part in parts]), prevalences, numbers)


def _bags(files: Files, part: str) -> BagFiles | None:
    folder, place = f"{part}_samples", f"{part}_prevalences.txt"
    numbers = files.numbers(folder)
    if not len(numbers):
        return None
    if place not in files:
        return BagFiles(files, folder, numbers, None)
    with files.reading() as read:
        ids, prevalences = _prevalences(read(place), f"{place} of {files}")
    if not np.array_equal(np.sort(ids), numbers):
        mismatches = np.setxor1d(ids, numbers).tolist()
        raise InvalidData(
            f"{files} has {len(numbers)} bags in {folder} but {len(ids)} rows in {place}; "
            f"the first mismatch is {mismatches[0] if mismatches else 'a repeated id'}."
        )
    return BagFiles(files, folder, numbers, prevalences[np.argsort(ids)])


def _prevalences(content: bytes, source: str) -> tuple[IntArray, FloatArray]:
    """The numbers of the bags and their prevalences, normalized to sum to 1."""
    try:
        table = pd.read_csv(io.BytesIO(content), skipinitialspace=True)
        ids, values = table["id"].to_numpy(np.intp), table.drop(columns="id").to_numpy(float)
    except (ValueError, KeyError) as error:
        raise InvalidData(f"{source} is not a table of `id` and one prevalence per class: {error}") from error
    sums = values.sum(axis=1)
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= TOLERANCE) | (values < 0).any(axis=1))
    if len(wrong) or values.shape[1] < 2:
        where = f"bag {ids[wrong[0]]} has {values[wrong[0]].tolist()}" if len(wrong) else "it has one class"
        raise InvalidData(f"{source} must contain prevalences of at least two classes that sum to 1; {where}.")
    return ids, values / sums[:, None]


def _concatenated(parts: list[Any]) -> Any:
    return [text for part in parts for text in part] if isinstance(parts[0], list) else np.concatenate(parts)


def _consecutive(parts: list[Any]) -> list[IntArray]:
    ends = np.cumsum([len(part) for part in parts])
    return [np.arange(end - len(part), end) for part, end in zip(parts, ends.tolist(), strict=True)]


def _zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidData(f"{path} cannot be read as a zip file: {error}") from error
