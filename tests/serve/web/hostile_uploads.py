"""Hostile uploads and names, made at random: the same ones for the same seed."""

import bz2
import gzip
import io
import json
import lzma
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

MARK = "qx7"  # part of every name, so that pages can be searched for it
PRODUCT = "3703701"  # what a template that is evaluated would show
NAMES = (
    "../../../../etc/{mark}.csv",
    "..\\..\\windows\\{mark}.csv",
    "/etc/cron.d/{mark}",
    "C:\\{mark}.csv",
    "....//....//{mark}.csv",
    "%2e%2e%2f{mark}.csv",
    "{mark}\0.csv",
    "{mark}.csv\0.sh",
    "\r\nX-Injected: 1\r\n{mark}.csv",
    "<script>alert('{mark}')</script>.csv",
    '"><img src=x onerror=alert({mark})>.csv',
    "'-alert(`{mark}`)-'",
    "<svg/onload=alert({mark})>",
    "</title><b>{mark}",
    "{{{{ 1234567 * 3 }}}}{mark}",
    "{{% for x in config %}}{mark}",
    "${{1234567*3}}{mark}",
    "#{{1234567*3}}{mark}",
    "=cmd|' /C calc'!A0{mark}.csv",
    "+1+1{mark}.csv",
    "@SUM(1){mark}",
    "-2+3{mark}",
    "$(touch {mark}).csv",
    "`touch {mark}`.csv",
    "; rm -rf {mark}",
    "| cat {mark}",
    "{mark}" + "x" * 5000 + ".csv",
    "\u202e{mark}vsc.exe",
    "\ud800{mark}",
    "\ufeff{mark}\u200b",
    "ünï çødé 表 {mark}.csv",
    "CON.{mark}",
    ".{mark}",
    "..",
    "",
    " ",
    "{mark}.tar.gz.sh.py.exe",
    "{mark}.html",
    "{mark}.svg",
    "sqlite:///{mark}",
    "file:///etc/{mark}",
    "{mark}'; DROP TABLE projects; --",
    "%s%n%x{mark}",
    "{mark}\x1b[31m",
)
CELLS = (
    '=HYPERLINK("http://evil")',
    "+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "-1+1",
    "<script>alert(1)</script>",
    "{{ 1234567 * 3 }}",
    "${1234567*3}",
    "../../etc/passwd",
    "\0",
    "\x1b[31m",
    "\u202e",
    "\ud800",
    "a" * 100_000,
    "'; DROP TABLE projects; --",
    "nan",
    "1e999",
    "",
)
ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "shift_jis", "utf-7", "cp037")
HEADS = (
    *(b"", b"PAR1", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"ARROW1\0\0"),
    *(b"MZ", b"SQLite format 3\0", b"%PDF-1.7", b"\x80\x04\x95", b"\x7fELF"),
)
SCRIPTS = ("#!/bin/sh\ntouch evil\n", "<?php system('x');", "import os; os.system('x')", "<script>alert(1)</script>")
TYPES = ("text/csv", "application/json", "application/x-ndjson", "text/html", "image/svg+xml", "application/x-sh", "")


@dataclass(frozen=True)
class HostileUpload:
    """A file to upload: its name, content and content type, in a form or as the body."""

    name: str
    content: bytes
    kind: str
    form: bool


def hostile_uploads(number: int, seed: int = 0) -> Iterator[HostileUpload]:
    """So many uploads, no two alike."""
    rng = random.Random(seed)
    for at in range(number):
        template = NAMES[at % len(NAMES)]
        name = template.format(mark=f"{MARK}{at}") if "{" in template else template
        yield HostileUpload(name, _content(rng, at), rng.choice(TYPES), rng.random() < 0.7)


def _content(rng: random.Random, at: int) -> bytes:
    make = CONTENTS[at // len(NAMES) % len(CONTENTS)] if rng.random() < 0.5 else rng.choice(CONTENTS)
    return make(rng)


def _table(rng: random.Random) -> str:
    cells = [rng.choice(CELLS) for _ in range(6)]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    header = rng.choice(("text,date", "=1+1,date", "<b>text</b>,date", "text,text", "\0,date", ""))
    lines = [f"{quoted[at]},{quoted[at + 1]}" for at in range(0, 6, 2)]
    return "\n".join([header, *lines, str(rng.random())]) + "\n"


def _csv(rng: random.Random) -> bytes:
    return _table(rng).encode(rng.choice(ENCODINGS), "replace")


def _jsonl(rng: random.Random) -> bytes:
    rows = [{"text": rng.choice(CELLS), "date": rng.choice(CELLS), rng.choice(CELLS): rng.random()} for _ in range(3)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _deep(rng: random.Random) -> bytes:
    return (b"[" if rng.random() < 0.5 else b'{"a":') * rng.choice((1000, 100_000))


def _bomb(rng: random.Random) -> bytes:
    return _packed(rng.choice(("gz", "bz2", "xz")), rng.choice((1_000_000, 30_000_000)))


@cache
def _packed(kind: str, size: int) -> bytes:
    content = b"text\n" + b"0" * size
    if kind == "gz":
        return gzip.compress(content, 1, mtime=0)
    return bz2.compress(content, 1) if kind == "bz2" else lzma.compress(content, preset=0)


def _nested_bomb(rng: random.Random) -> bytes:
    return gzip.compress(_packed("gz", 1_000_000) + rng.randbytes(8), mtime=0)


def _zip(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, inside in files.items():
            archive.writestr(zipfile.ZipInfo(name), inside, zipfile.ZIP_DEFLATED, 1)
    return content.getvalue()


@cache
def _book_of(size: int) -> bytes:
    laughs = b'<!DOCTYPE a [<!ENTITY x "lol"><!ENTITY y "&x;&x;&x;">]><a>&y;</a>'
    evil = {"../../evil.sh": b"touch evil", "/etc/evil": b"x", "xl/workbook.xml": laughs}
    return _zip({"[Content_Types].xml": b"<Types/>", **evil, "xl/worksheets/sheet1.xml": b"0" * size})


def _book(rng: random.Random) -> bytes:
    return _book_of(rng.choice((1000, 30_000_000)))


def _archive(rng: random.Random) -> bytes:
    return _zip({f"../../evil{rng.random()}": b"x"})


def _bytes(rng: random.Random) -> bytes:
    return rng.choice(HEADS) + rng.randbytes(2000)


def _script(rng: random.Random) -> bytes:
    return (rng.choice(SCRIPTS) + str(rng.random())).encode()


def _pickle(rng: random.Random) -> bytes:
    return b"cos\nsystem\n(S'touch evil'\ntR." + rng.randbytes(4)


CONTENTS = (_csv, _jsonl, _csv, _deep, _bomb, _nested_bomb, _book, _archive, _bytes, _script, _pickle, _jsonl)
