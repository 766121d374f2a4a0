"""Find what openpyxl would show as empty cells: merged cells, and formulas without a saved value."""

import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

from quanet.errors import InvalidData

CHUNK = 2**18  # bytes of XML searched at a time
MAX_TAG = 2**16  # bytes kept from the chunk before, so that a cell cut in two is found
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*ref="([^"]+)"')
# A cell with a formula and without a value. A formula that gives an empty text has the type "str".
UNSAVED = re.compile(
    rb"<(?:\w+:)?c\s(?![^>]*t=\"str\")[^>]*\br=\"([A-Z]+[0-9]+)\"[^>]*>"
    rb"<(?:\w+:)?f(?:\s[^>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?</(?:\w+:)?c>"
)
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


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
