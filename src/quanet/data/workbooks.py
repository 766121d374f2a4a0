"""Sheets of Excel workbooks: read one row at a time, written as a table. An empty cell is None.

openpyxl streams the cells. What it would show as empty is found first: merged cells, formulas without a saved value.
"""

import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from quanet.data.columns import PEEKED_ROWS, Cells, PickColumns, cell_name, cell_or_none, nearest_first
from quanet.errors import EmptyFile, InvalidData, InvalidSetting, MissingExtra

if TYPE_CHECKING:
    import pandas as pd

CONTAINER = b"\xd0\xcf\x11\xe0"  # first bytes of an encrypted workbook, and of the older format .xls
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
ERRORS = {"#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#SPILL!", "#CALC!"}
MAX_SHEET = 2**20  # rows
TOO_BIG = 2**53  # larger whole numbers lose digits in Excel, and infinity is no number there

Opened = tuple[str, list[str], PickColumns, Any, Callable[[], int]]
CHUNK = 2**18  # bytes of XML searched at a time
MAX_TAG = 2**16  # bytes kept from the chunk before, so that a cell cut in two is found
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*ref="([^"]+)"')
# A cell with a formula and without a value. A formula that gives an empty text has the type "str".
UNSAVED = re.compile(
    rb"<(?:\w+:)?c\s(?![^>]*t=\"str\")[^>]*\br=\"([A-Z]+[0-9]+)\"[^>]*>"
    rb"<(?:\w+:)?f(?:\s[^>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?</(?:\w+:)?c>"
)
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def sheet_rows(path: Path, part: str) -> Opened:
    """Name, columns, rows, workbook and bytes read so far, of a sheet.

    Parameters
    ----------
    path : a workbook.
    part : the name of the sheet; empty for the first one.
    """
    workbook = _open(path)
    try:
        heights = {sheet.title: sheet.max_row or 0 for sheet in workbook.worksheets}
        sheet = _choose(path, workbook, part)
        name = f"{path}#{sheet.title}" if len(workbook.sheetnames) > 1 else str(path)
        check_cells(path, name, sheet.title)
        return _rows(path, name, workbook, sheet, heights[sheet.title])
    except BaseException:
        workbook.close()
        raise


def check_excel() -> Any:
    """Import openpyxl. Raises `MissingExtra` if it is not installed."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("Excel files need openpyxl. Install it: pip install 'quanet[excel]'") from None
    return openpyxl


def _open(path: Path) -> Any:
    openpyxl = check_excel()
    with path.open("rb") as file:
        start = file.read(4)
    if start == CONTAINER:
        if ENCRYPTED in path.read_bytes():
            raise InvalidData(f"{path} is protected by a password. Remove the password in Excel, or save it as CSV.")
        raise InvalidData(f"{path} has the format of older Excel versions (.xls). Save it as .xlsx or CSV.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions
            return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # noqa: BLE001 # openpyxl raises what its parsers raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidData(f"{path} cannot be read as an Excel workbook: {reason}. Save it again as .xlsx.") from None


def _choose(path: Path, workbook: Any, part: str) -> Any:
    """The sheet with this name, or the only visible one that holds a table: column names and at least one row."""
    sheets = {sheet.title: sheet for sheet in workbook.worksheets}
    if not sheets:
        raise InvalidData(f"{path} has no sheets with cells.")
    if part:
        same = [title for title in sheets if title == part] or [one for one in sheets if one.lower() == part.lower()]
        if not same:
            known = ", ".join(map(repr, nearest_first(part, sheets)))
            raise InvalidData(f"{path} has no sheet {part!r}. Its sheets are {known}.")
        return sheets[same[0]]
    shown = [sheet for sheet in sheets.values() if sheet.sheet_state == "visible"] or list(sheets.values())
    if len(shown) == 1:
        return shown[0]
    lengths = [sum(1 for _ in islice(_guarded(str(path), _cells(sheet)), 2)) for sheet in shown]
    tables = [sheet for sheet, length in zip(shown, lengths, strict=True) if length == max(lengths)]
    if len(tables) > 1 and max(lengths):
        titles = ", ".join(repr(sheet.title) for sheet in tables)
        raise InvalidData(
            f"{path} has several sheets: {titles}. Name the one to use, such as '{path}#{tables[-1].title}', or delete "
            "the others."
        )
    return tables[0]


def _cells(sheet: Any) -> Iterator[Cells]:
    """The rows that are not empty. Cells that Excel shows as an error are empty."""
    sheet.reset_dimensions()  # some programs write a wrong size
    for row in sheet.iter_rows(values_only=True):
        cells = [_cell(value) for value in row]
        if any(cell is not None for cell in cells):
            yield cells


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value in ERRORS:
        return None
    # Excel has no dates without a time; midnight means the date.
    if isinstance(value, datetime) and value.time() == time():
        return value.date()
    return cell_or_none(value)


def _rows(path: Path, name: str, workbook: Any, sheet: Any, height: int) -> Opened:
    rows = _guarded(name, _cells(sheet))
    header = list(next(rows, []))
    first = list(islice(rows, PEEKED_ROWS))
    if not header:
        raise EmptyFile(f"{name} is empty. It needs a row of column names and at least one row.")
    _check_header(name, header, first)
    width = max(_width(row) for row in (header, *first))
    columns = [_title(header[at] if at < len(header) else None, at) for at in range(width)]
    texts = [_is_text(row[at] if at < len(row) else None for row in first) for at in range(width)]
    total, done = max(height - 1, len(first), 1), 0

    def pick(wanted: Sequence[str]) -> Iterator[Cells]:
        nonlocal done
        for column in wanted:
            if columns.count(column) > 1:
                raise InvalidData(f"{name} has {columns.count(column)} columns {column!r}. Rename all but one.")
        places = [columns.index(column) for column in wanted]
        for row in chain(first, rows):
            done += 1
            cells = [row[place] if place < len(row) else None for place in places]
            yield tuple([_as_text(cell) if texts[at] else cell for cell, at in zip(cells, places, strict=True)])

    size = path.stat().st_size
    return name, columns, pick, workbook, lambda: size * min(done, total) // total


def _guarded(name: str, rows: Iterator[Cells]) -> Iterator[Cells]:
    number = 0
    try:
        for row in rows:
            number += 1
            yield row
    except (ET.ParseError, ValueError, KeyError, zipfile.BadZipFile, OverflowError) as error:
        raise InvalidData(
            f"{name} cannot be read after row {number}: {' '.join(str(error).split())}. Save it again as .xlsx."
        ) from None


def _width(row: Sequence[Any]) -> int:
    return max((at + 1 for at, cell in enumerate(row) if cell is not None), default=0)


def _title(cell: Any, at: int) -> str:
    return f"column {_letters(at)}" if cell is None else cell_name(cell)


def _letters(at: int) -> str:
    """The name of a column in Excel: A, B, ..., Z, AA."""
    return (_letters(at // 26 - 1) if at >= 26 else "") + chr(ord("A") + at % 26)


def _check_header(name: str, header: Sequence[Any], first: Sequence[Sequence[Any]]) -> None:
    """Raise if the first row is a title instead of column names."""
    if _width(header) == 1 and first:
        wide = sum(_width(row) > 1 for row in first)
        if 2 * wide > len(first):
            raise InvalidData(
                f"{name}: the first row contains only {str(header[0])[:40]!r}, but the rows below have several cells. "
                "Delete the rows above the column names."
            )


def _is_text(cells: Iterator[Any]) -> bool:
    """Whether most cells of a column are texts; its numbers are then texts, too, such as a review that says 5."""
    kinds = [isinstance(cell, str) for cell in cells if cell is not None]
    return sum(kinds) * 2 > len(kinds)


def _as_text(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, str) else cell_name(cell)


def to_workbook(table: "pd.DataFrame", title: str) -> bytes:
    """A table as a workbook with one sheet. Numbers are numbers; a text that begins with = is no formula."""
    openpyxl = check_excel()
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Font

    if len(table) >= MAX_SHEET:
        raise InvalidSetting(f"A sheet has at most {MAX_SHEET:,} rows. Write CSV or Parquet instead.")
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet(re.sub(r"[\[\]:*?/\\]", " ", title)[:31].strip() or "Sheet1")
    sheet.freeze_panes = "A2"

    def cell(value: Any) -> Any:
        written = _plain(value)
        if not isinstance(written, str):
            return written
        made = WriteOnlyCell(sheet, value=ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", written))
        made.data_type = "s"
        return made

    titles = [cell(str(column)) for column in table.columns]
    for made in titles:
        made.font = Font(bold=True)
    sheet.append(titles)
    for row in table.itertuples(index=False, name=None):
        sheet.append([cell(value) for value in row])
    content = io.BytesIO()
    workbook.save(content)
    return content.getvalue()


def _plain(value: Any) -> Any:
    """A value that a cell can hold: a number, a truth value, a date, a text, or None."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or value != value:
        return None
    if isinstance(value, bool | int | float):
        return value if abs(value) <= TOO_BIG else str(value)
    aware = isinstance(value, datetime) and value.tzinfo is not None
    return value if isinstance(value, date) and not aware else str(value)


def check_cells(path: Path, name: str, title: str) -> None:
    """Raise `InvalidData` if the sheet has merged cells, or formulas without saved values."""
    merged: list[str] = []
    unsaved: list[str] = []
    with zipfile.ZipFile(path) as archive:
        kept = b""
        with archive.open(_member(archive, title)) as file:
            while content := file.read(CHUNK):
                content = kept + content
                end = max(0, len(content) - MAX_TAG)
                for found, pattern in ((merged, MERGED), (unsaved, UNSAVED)):
                    found += [match[1].decode() for match in pattern.finditer(content)]
                kept = content[end:]
    # What is in the part that was kept is found twice.
    merged, unsaved = list(dict.fromkeys(merged)), list(dict.fromkeys(unsaved))
    if merged:
        raise InvalidData(
            f"{name} has merged cells ({_some(merged)}): all but the first cell of each are empty. "
            "Unmerge them in Excel and fill in every cell."
        )
    if unsaved:
        raise InvalidData(
            f"{name} has formulas without saved values ({_some(unsaved)}). Open it in Excel or LibreOffice and save "
            "it, or replace the formulas with their values."
        )


def _some(references: list[str]) -> str:
    return ", ".join(references[:2]) + (f" and {len(references) - 2:,} more" if len(references) > 2 else "")


def _member(archive: zipfile.ZipFile, title: str) -> str:
    """The name of a sheet's file in the archive."""
    book = ET.fromstring(archive.read("xl/workbook.xml"))
    key = next(one.get(RELATION) for one in book.iter() if one.tag.endswith("}sheet") and one.get("name") == title)
    links = ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(str(link.get("Target")) for link in links if link.get("Id") == key)
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
