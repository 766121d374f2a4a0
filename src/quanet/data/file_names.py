"""Names of tables: files, patterns, addresses in object storage, and parts of files after #."""

import glob
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path

from quanet.data.storage import (
    NATIVE,
    QUERY,
    Stamp,
    StoredFile,
    is_address,
    plain_name,
    scheme_of,
    stored_matches,
    without_credentials,
)
from quanet.errors import Detected, InvalidData

WORKBOOKS = (".xlsx", ".xlsm")
DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".eval", *WORKBOOKS, *DATABASES)
SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")  # that cannot be read
WITH_PARTS = (*WORKBOOKS, *DATABASES, ".json")  # files that hold several tables
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
STATE = ".arrow"  # ending of saved states
STDIN = "-"
_titles: ContextVar[Mapping[str, str]] = ContextVar("titles", default={})  # noqa: B039, never changed in place


def kind_of(path: Path | StoredFile) -> str:
    """The suffix that determines a file's format, in lower case, without the suffix of its compression.

    Examples
    --------
    >>> kind_of(Path("reviews.2024.CSV.gz"))
    '.csv'
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def check_kind(path: Path | StoredFile) -> str:
    """The suffix of a table. Raises `InvalidData` if the format is unknown."""
    kind = kind_of(path)
    if kind in (*WORKBOOKS, *DATABASES) and path.suffix.lower() in COMPRESSIONS:
        raise InvalidData(f"{path} is compressed, which works only for CSV, TSV, JSON and Parquet. Decompress it.")
    if kind in FORMATS:
        return kind
    suffixes = ", ".join(FORMATS)
    if kind in SPREADSHEETS:
        raise InvalidData(f"{path} is a spreadsheet in another format. Save it as .xlsx or CSV.")
    if kind == STATE:
        raise InvalidData(
            f"{path} ends in {STATE}, as saved states do, which only predict, monitor, diagnose and merge read. Pass "
            "the data files; convert another Arrow file to Parquet."
        )
    raise InvalidData(f"{path} has an unknown format: its name ends in none of {suffixes}. Rename or convert it.")


def split_address(file: str) -> tuple[Path | StoredFile, str]:
    """The file and what is wanted of it: ``book.xlsx#March``, ``store.db#reviews``, ``store.db#select ...``.

    A file whose name contains # takes precedence. In object storage, where this would take time to find out, only files
    that may hold several tables have parts.

    Examples
    --------
    >>> path, part = split_address("book.xlsx#March")
    >>> str(path), part
    ('book.xlsx', 'March')
    """
    file = plain_name(file)
    ends = [at for at, character in enumerate(file) if character == "#"]
    if is_address(file):
        end = next((at for at in ends if kind_of(StoredFile(file[:at])) in WITH_PARTS), len(file))
        return StoredFile(file[:end]), file[end + 1 :].strip()
    path = Path(file)
    if not ends or is_file(path):
        return path, ""
    end = next((at for at in ends if is_file(Path(file[:at]))), ends[0])
    return Path(file[:end]), file[end + 1 :].strip()


def is_file(path: Path) -> bool:
    """Whether a file of this name exists; False for names that no file can have, such as a long query."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


@contextmanager
def shown_as(titles: Mapping[str, str]) -> Iterator[None]:
    """Within the block, messages and answers call these files by other names, such as those that users gave uploads.

    Examples
    --------
    >>> with shown_as({"blobs/5e/5e88.csv": "reviews.csv"}):
    ...     shown_name("blobs/5e/5e88.csv")
    'reviews.csv'
    """
    token = _titles.set({**_titles.get(), **titles})
    try:
        yield
    finally:
        _titles.reset(token)


def retitled(message: str) -> str:
    """A message that names files by their paths, with the names of `shown_as` instead."""
    for file, title in _titles.get().items():
        message = message.replace(file, title)
    return message


def shown_name(file: str) -> str:
    """The name of a file in messages."""
    return "standard input" if file == STDIN else _titles.get().get(file) or without_credentials(file)


def stamp_of(file: str) -> Stamp:
    """Size and time of the last change of a file. Raises `InvalidData` if it does not exist."""
    path, _ = split_address(file)
    if isinstance(path, StoredFile):
        return path.stamp()
    try:
        found = path.stat()
    except (OSError, ValueError):
        raise InvalidData(f"The file {path} does not exist.{_suggestion(path)}") from None
    return Stamp(found.st_size, found.st_mtime_ns)


def resolve(files: Iterable[str | Path]) -> dict[str, Stamp]:
    """Names of files, with patterns replaced by the files that match, sorted; with their sizes and times.

    A file that is named twice, or that two patterns match, counts once; a note says so.
    """
    found: dict[str, Stamp] = {}
    seen = Counter[str]()
    twice: list[str] = []
    for name in map(plain_name, map(str, files)):
        for file, stamp in ({name: Stamp(0, 0)} if name == STDIN else _matches(name)).items():
            same = identity_of(file)
            seen[same] += 1
            if seen[same] == 1:
                found[file] = stamp
            elif seen[same] == 2:
                twice.append(shown_name(file))
    if seen[STDIN] > 1:
        raise InvalidData("Standard input (-) can be read only once.")
    if twice:
        what = "is given" if len(twice) == 1 else f"and {len(twice) - 1:,} more files are given"
        warnings.warn(Detected(f"{twice[0]} {what} more than once. Each file counts once."), stacklevel=3)
    return found


def identity_of(file: str) -> str:
    """A name that is the same for all ways to write it: without credentials, or from the root."""
    if file == STDIN:
        return file
    if is_address(file):
        named = scheme_of(file) not in NATIVE and QUERY.search(file)  # the query of a web page says which one
        return without_credentials(file) + (blake2b(file.encode(), digest_size=8).hexdigest() if named else "")
    path, part = split_address(file)
    return f"{Path(str(path)).resolve()}#{part}" if part else str(Path(str(path)).resolve())


def _matches(file: str) -> dict[str, Stamp]:
    """A file, or the files that match a pattern."""
    path, part = split_address(file)
    pattern = path.address if isinstance(path, StoredFile) else str(path)
    magic = glob.has_magic(without_credentials(pattern))
    if isinstance(path, StoredFile):
        found = stored_matches(pattern) if magic else {pattern: path.stamp()}
        found = {f"{one}#{part}" if part else one: stamp for one, stamp in found.items()}
    elif not magic or path.exists():
        return {file: stamp_of(file)}
    else:
        # A pattern may contain # itself.
        names = sorted(glob.glob(file, recursive=True))  # noqa: PTH207
        if not names and part:
            names = [f"{match}#{part}" for match in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
        found = {name: stamp_of(name) for name in names}
    if not found:
        raise InvalidData(f"No file matches {without_credentials(file)!r}.")
    return found


def _suggestion(path: Path) -> str:
    """A question that names the file with the most similar name in the same folder."""
    names = [file.name for file in path.parent.iterdir() if is_file(file)] if path.parent.is_dir() else []
    near = get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f" Did you mean {path.parent / near[0]}?" if near else ""
