"""The format of an upload: a suffix from a fixed list, by its first bytes, its name and its content type."""

import bz2
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import Any

from quanet.errors import InvalidData

TABLES = ("csv", "tsv", "jsonl", "json", "parquet")
SAME = {"ndjson": "jsonl", "txt": "csv", "xlsm": "xlsx"}
CONTENT_TYPES = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/jsonlines": "jsonl",
    "application/json": "json",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
COMPRESSED = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}
REFUSED = {
    b"SQLite format 3": "a database",
    b"ARROW1": "an Arrow file",
    b"%PDF": "a PDF",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
}
ACCEPTED = "Upload CSV, TSV, JSON lines, JSON, Parquet (also compressed) or .xlsx."


def upload_suffix(head: bytes, name: str = "", content_type: str = "") -> str:
    """The suffix under which an upload is stored. Raises `InvalidData` for formats that are not accepted.

    Examples
    --------
    >>> upload_suffix(b"text,label", "new.CSV"), upload_suffix(b'{"text": "fine"}'), upload_suffix(b"PAR1", "new.csv")
    ('csv', 'jsonl', 'parquet')
    """
    for start, what in REFUSED.items():
        if head.startswith(start):
            raise InvalidData(f"The file is {what}. {ACCEPTED}")
    if head.startswith(b"PK\x03\x04"):
        return "xlsx"
    endings = [SAME.get(part, part) for part in name.lower().split(".")[-2:]]
    compression = next((kind for start, kind in COMPRESSED.items() if head.startswith(start)), "")
    if compression:
        inner = next((part for part in reversed(endings) if part in TABLES), "") or _kind(_begin(head, compression), "")
        return f"{inner}.{compression}"
    if head.startswith(b"PAR1"):
        return "parquet"
    said = endings[-1] if endings[-1] in TABLES else CONTENT_TYPES.get(content_type, "")
    if said in {"parquet", "xlsx"}:
        raise InvalidData(f"The file is not {'Parquet' if said == 'parquet' else 'a spreadsheet'}. {ACCEPTED}")
    return _kind(head, said)


def _kind(head: bytes, said: str) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return said or {b"{": "jsonl", b"[": "json"}.get(first, "csv")


def _begin(head: bytes, compression: str) -> bytes:
    """The first bytes of what is compressed."""
    try:
        if compression == "zst":
            return b""
        return _decompressor(compression).decompress(head, 1024)
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        return b""


def _decompressor(compression: str) -> Any:
    if compression == "gz":
        return zlib.decompressobj(31)
    return bz2.BZ2Decompressor() if compression == "bz2" else lzma.LZMADecompressor()


def check_unpacked(path: Path, suffix: str, limit: int) -> None:
    """Refuse a file that is small but unpacks to more than `limit` bytes, and a damaged archive."""
    compression = suffix.rpartition(".")[2]
    if suffix == "xlsx":
        total = _size_of_archive(path)
    elif compression in {"gz", "bz2", "xz"}:
        total = _size_of_stream(path, compression, limit)
    elif compression == "zst":
        total = _size_of_zst(path, limit)
    else:
        return
    if total > limit:
        raise InvalidData(f"The file unpacks to more than {limit / 2**20:,.0f} MB. Split it into smaller files.")


def _size_of_archive(path: Path) -> int:
    try:
        with zipfile.ZipFile(path) as archive:
            if "[Content_Types].xml" not in archive.namelist():
                raise InvalidData(f"The file is a ZIP archive. {ACCEPTED}")
            return sum(info.file_size for info in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError) as error:
        if isinstance(error, InvalidData):
            raise
        raise InvalidData(f"The file is damaged: {str(error)[:100]}. Save it again.") from None


def _size_of_stream(path: Path, compression: str, limit: int) -> int:
    """Counted in bounded memory; stops above the limit."""
    import gzip

    openers: Any = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}
    total = 0
    try:
        with openers[compression](path, "rb") as stream:
            while total <= limit and (content := stream.read(MEGABYTE)):
                total += len(content)
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise InvalidData(f"The file is damaged: {str(error)[:100]}. Compress it again.") from None
    return total


def _size_of_zst(path: Path, limit: int) -> int:
    import pyarrow as pa

    total = 0
    try:
        with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
            while total <= limit and (content := stream.read(MEGABYTE)):
                total += len(content)
    except (OSError, pa.ArrowException) as error:
        raise InvalidData(f"The file is damaged: {str(error)[:100]}. Compress it again.") from None
    return total


MEGABYTE = 2**20
