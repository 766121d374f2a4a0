"""Hostile tables, model folders, plans and settings, as small files."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import random
import sqlite3
from collections.abc import Callable
from datetime import date

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

COLUMNS = ("text", "label", "product", "date", "human", "judge", "score", "a", "b")
NAMES = (  # of files, before their ending
    "table",
    "line\nbreak",
    "car\rriage",
    "[red]",
    "[/]",
    "[bold",
    "-dash",
    "ünï çødé 表",
    "a b'c\"d",
    "$(x)`y`",
    "%s{0}",
    "tab\tname",
    "*",
    "[a-",
    "x" * 200,
    "bell\x07",
    "\udcff",
)
TEXTS = (  # that cells, labels, columns and options may be
    "",
    " ",
    "\t",
    "nan",
    "NaN",
    "None",
    "null",
    "NA",
    "inf",
    "-inf",
    "true",
    "True",
    "1",
    "1.0",
    "01",
    "-0",
    "1e400",
    "1e-400",
    "9" * 400,
    "1_000",
    "٣",
    "[red]x[/red]",
    "[/]",
    "[/red]",
    "[bold",
    "[link=x]",
    "\\[",
    "a\nb",
    "a\r\nb",
    "\x00",
    "\x1b[31m",
    "\ufeff",
    "\u202e",
    "\U0001f600",
    ":smile:",
    "<script>alert(1)</script>",
    "&amp;",
    "{{ x }}",
    "{% raw %}",
    "$x^2$",
    "$",
    "_",
    "^",
    "%d",
    "{0}",
    "=1+1",
    '"',
    "'",
    "a,b",
    "a;b",
    "a:month",
    ":",
    "a::b",
    "-",
    "--",
    "-x",
    "~",
    "*",
    "?",
    "/",
    "x" * 5000,
    "class",
    "estimate",
    "n",
    "group",
    "2024-13-01",
    "2024-02-30",
    "0000-00-00",
    "9999-12-31",
    "10000-01-01",
    "31/12/2024",
    "2010-08",
    "2010",
)
VALUES = (  # that JSON can hold, and CSV cannot
    True,
    False,
    None,
    0,
    1,
    1.0,
    -1,
    10**400,
    -(10**400),
    2**63,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [1, [2, [3]]],
    {"a": {"b": []}},
    ["x"],
    {"x": None},
    "\ud800",
    "\udfff x",
)
DATES = ("2024-01-01", "2024-01-09", "2024-02-03", "2024-03-31", "2024-03-01T12:30:00Z")
GOOD = ("good film fine plot", "so good and fine", "fun plot well made", "great fine cast here")
BAD = ("bad film dull plot", "so bad and dull", "weak plot ill made", "poor dull cast here")


def base_rows(rng: random.Random, n: int = 40) -> list[dict[str, object]]:
    """Rows that every verb can use."""
    rows = []
    for at in range(n):
        good = rng.random() < 0.5
        judge = good if rng.random() < 0.8 else not good
        rows.append(
            {
                "text": f"{rng.choice(GOOD if good else BAD)} {rng.choice('pqrstuvw')} {at}",
                "label": "pos" if good else "neg",
                "product": rng.choice(("lamp", "radio")),
                "date": rng.choice(DATES),
                "human": ("pos" if good else "neg") if rng.random() < 0.5 else "",
                "judge": "pos" if judge else "neg",
                "score": round(rng.random() / 2 + good / 2, 3),
                "a": round(rng.gauss(2 * good, 1), 3),
                "b": round(rng.gauss(0, 1), 3),
            }
        )
    return rows


def as_csv(rows: list[dict[str, object]], sep: str = ",") -> str:
    def cell(value: object) -> str:
        said = "" if value is None else str(value) if isinstance(value, str) else json.dumps(value)
        return '"' + said.replace('"', '""') + '"' if any(c in said for c in f'{sep}"\n\r') else said

    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([row.get(name) for name in names] for row in rows)]
    return "".join(sep.join(map(cell, line)) + "\n" for line in lines)


def as_jsonl(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_parquet(columns: dict[str, object]) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


def _arrow(rng: random.Random, n: int) -> object:
    """A column of a type that CSV does not have."""
    some = [None if rng.random() < 0.2 else at for at in range(n)]
    far = [rng.choice((None, 2**62, -(2**62), 10**17, 0)) for _ in range(n)]
    return rng.choice(
        (
            lambda: pa.array([v and v // 1000 for v in far], pa.timestamp("s")),
            lambda: pa.array(far, pa.timestamp("us")),
            lambda: pa.array(far, pa.timestamp("ns")),
            lambda: pa.array(far, pa.timestamp("ms", tz="Europe/Paris")),
            lambda: pa.array([None if v is None else max(min(v, 2**31 - 1), -(2**31)) for v in far], pa.date32()),
            lambda: pa.array(far, pa.date64()),
            lambda: pa.array([v and v // 1000 for v in far], pa.duration("s")),
            lambda: pa.array(some, pa.time32("s")),
            lambda: pa.array([None if v is None else [v, None] for v in some], pa.list_(pa.int64())),
            lambda: pa.array([None if v is None else {"x": v} for v in some], pa.struct([("x", pa.int64())])),
            lambda: pa.array([None if v is None else [("k", v)] for v in some], pa.map_(pa.string(), pa.int64())),
            lambda: pa.array([None if v is None else bytes([v % 256]) for v in some], pa.binary()),
            lambda: pa.array(some, pa.float32()),
            lambda: pa.array([str(v % 2) for v in range(n)]).dictionary_encode(),
            lambda: pa.array([None] * n, pa.null()),
            lambda: pa.array([None if v is None else bool(v % 2) for v in some]),
            lambda: pa.array([None if v is None else date(1 + v, 1, 1) for v in some], pa.date32()),
            lambda: pa.array([2**64 - 1 - v if v else None for v in some], pa.uint64()),
        )
    )()


def _columns(rows: list[dict[str, object]]) -> dict[str, object]:
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def _mutated(rng: random.Random, values: tuple[object, ...]) -> list[dict[str, object]]:
    """Rows with some cells of some columns replaced, and perhaps a column renamed, added or taken out."""
    rows = base_rows(rng, rng.choice((1, 2, 7, 40)))
    for _ in range(rng.choice((1, 1, 2))):
        column, share, few = rng.choice(COLUMNS), rng.choice((0.05, 0.5, 1.0)), rng.sample(values, 3)
        for row in rows:
            if rng.random() < share:
                row[column] = rng.choice(few)
    if rng.random() < 0.15:
        old, new = rng.choice(COLUMNS), rng.choice(TEXTS)
        rows = [{new if name == old else name: value for name, value in row.items()} for row in rows]
    if rng.random() < 0.1:
        gone = rng.choice(COLUMNS)
        rows = [{name: value for name, value in row.items() if name != gone} for row in rows]
    return rows


def _text_table(rng: random.Random) -> tuple[str, bytes]:
    return ".csv", as_csv(_mutated(rng, TEXTS), rng.choice(",,;\t|")).encode("utf-8", "surrogatepass")


def _json_table(rng: random.Random) -> tuple[str, bytes]:
    return ".jsonl", as_jsonl(_mutated(rng, (*TEXTS, *VALUES))).encode()


def _parquet_table(rng: random.Random) -> tuple[str, bytes]:
    rows = base_rows(rng, rng.choice((0, 1, 5, 40)))
    columns = _columns(rows)
    for name in rng.sample(COLUMNS, rng.choice((1, 1, 2))):
        columns[name] = _arrow(rng, len(rows))
    try:
        return ".parquet", as_parquet(columns)
    except pa.ArrowException:  # not everything can be written
        return ".parquet", as_parquet(_columns(rows))


def _json_array(rng: random.Random) -> tuple[str, bytes]:
    rows: object = _mutated(rng, (*TEXTS, *VALUES))
    if rng.random() < 0.2:
        rows = {"cases": rows, "other": [1], "x": None}
    text = json.dumps(rows, indent=rng.choice((None, 1)))
    return ".json", (text if rng.random() < 0.8 else text[: rng.randrange(len(text))]).encode()


def as_workbook(rows: list[dict[str, object]]) -> bytes:
    book, content = openpyxl.Workbook(), io.BytesIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    for line in (names, *([row.get(name) for name in names] for row in rows)):
        plain = [cell if isinstance(cell, bool | float | int | None) else str(cell) for cell in line]
        clean = [ILLEGAL_CHARACTERS_RE.sub("", cell) if isinstance(cell, str) else cell for cell in plain]
        book.active.append([str(cell) if isinstance(cell, int) and abs(cell) > 1e15 else cell for cell in clean])
    book.save(content)
    return content.getvalue()


def _workbook(rng: random.Random) -> tuple[str, bytes]:
    content = as_workbook(_mutated(rng, TEXTS))
    if rng.random() < 0.2:  # a damaged one
        at = rng.randrange(len(content))
        content = content[:at] + bytes(rng.choice((0, 50))) + content[at + rng.choice((0, 50)) :]
    return ".xlsx", content


def _database(rng: random.Random) -> tuple[str, bytes]:
    rows = _mutated(rng, TEXTS)
    names = list(dict.fromkeys(name for row in rows for name in row if name and "\0" not in name))
    connection = sqlite3.connect(":memory:")
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names]
    try:
        connection.execute(f"create table [my table] ({', '.join(quoted)})")
    except sqlite3.Error:  # names that differ in case alone
        connection.execute("create table [my table] (text, label)")
        names = ["text", "label"]
    marks = ", ".join("?" * len(names))
    connection.executemany(
        f"insert into [my table] values ({marks})", [[row.get(name) for name in names] for row in rows]
    )
    connection.commit()
    content = connection.serialize()
    connection.close()
    if rng.random() < 0.2:
        at = rng.randrange(len(content))
        content = content[:at] + bytes(60) + content[at + 60 :]
    return rng.choice((".db", ".sqlite", ".duckdb")), content


def plain_table(rng: random.Random) -> tuple[str, bytes]:
    """A table that every verb can use."""
    rows = base_rows(rng)
    form = rng.choice(("csv", "csv", "jsonl", "parquet"))
    if form == "csv":
        return ".csv", as_csv(rows).encode()
    return (".jsonl", as_jsonl(rows).encode()) if form == "jsonl" else (".parquet", as_parquet(_columns(rows)))


def _encoded(rng: random.Random) -> tuple[str, bytes]:
    rows = base_rows(rng)
    rows[0]["text"] = "café façade € bad plot"
    text = as_csv(rows, rng.choice(",;"))
    name = rng.choice(("utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-32", "cp037"))
    return ".csv", text.encode(name, "replace")


def _broken(rng: random.Random) -> tuple[str, bytes]:
    """Files that are not what their ending says, or not all of it."""
    rows = base_rows(rng)
    text, parquet = as_csv(rows).encode(), as_parquet(_columns(rows))
    return rng.choice(
        (
            (".csv", b""),
            (".csv", b"\n\n\n"),
            (".csv", b"\x00" * 100),
            (".csv", codecs.BOM_UTF8),
            (".csv", codecs.BOM_UTF16_LE),
            (".csv", text.splitlines()[0]),
            (".csv", b"text,label\n"),
            (".csv", b"text,text,label\na,b,c\n" * 3),
            (".csv", b",,\n,,\n1,2,3\n"),
            (".csv", text + b"one,cell,too,many,a,b,c,d,e,f\n"),
            (".csv", text + b"too,few\n"),
            (".csv", text + b'"open quote'),
            (".csv", text.replace(b"\n", b"\r")),
            (".csv", text.replace(b"film", b"f\x00lm")),
            (".csv", b"text,label\n" + b"a b c " * 20_000 + b",x\n" + b"d e f,y\n" * 4),
            (".csv", bytes(rng.randrange(256) for _ in range(500))),
            (".csv.gz", text),
            (".csv.gz", gzip.compress(text)[:-9]),
            (".csv.gz", gzip.compress(text) + b"rest"),
            (".csv.bz2", bz2.compress(text)[:-4]),
            (".csv.xz", lzma.compress(text)[:-4]),
            (".csv.zst", text),
            (".jsonl", b"{}\n{}\n"),
            (".jsonl", b"[1, 2]\n"),
            (".jsonl", b"null\n1\n"),
            (".jsonl", b"[" * 100_000),
            (".jsonl", b'{"text": ' + b"[" * 100_000 + b"\n"),
            (".jsonl", b'{"text": ' + b"[" * 900 + b"]" * 900 + b', "label": "x"}\n'),
            (".jsonl", b'{"text": "a", "label": ' + b"9" * 5000 + b"}\n" * 2),
            (".jsonl", b'{"text": "a"}\n{"label": "b"}\n{"other": 1}\n'),
            (".jsonl", text),
            (".parquet", b"PAR1"),
            (".parquet", b""),
            (".parquet", text),
            (".parquet", parquet[: len(parquet) // 2]),
            (".parquet", parquet[:40] + bytes(60) + parquet[100:]),
            (".parquet", as_parquet({})),
            (".parquet.gz", gzip.compress(parquet)),
            (".parquet.gz", gzip.compress(parquet)[:-20]),
            (".xlsx", b"PK\x03\x04" + bytes(200)),
            (".txt", b"pos\tgood film\nneg\tbad film\n"),
            (".txt", b"pos good film\n"),
            ("", text),
            (".", text),
            (".pkl", b"\x80\x04."),
        )
    )


MAKERS: tuple[tuple[int, Callable[[random.Random], tuple[str, bytes]]], ...] = (
    (4, plain_table),
    (4, _text_table),
    (5, _json_table),
    (3, _parquet_table),
    (2, _json_array),
    (2, _workbook),
    (2, _database),
    (1, _encoded),
    (3, _broken),
)


def hostile_table(rng: random.Random) -> tuple[str, bytes]:
    """The ending and the content of a file."""
    weights, makers = zip(*MAKERS, strict=True)
    return rng.choices(makers, weights)[0](rng)


PLAN = """datasets = [{{ name = "words", path = "{data}::{data}" }}]
runs = {runs}
learn = {learn}
[protocol]
bag_size = {size}
repeats = {repeats}
[classifiers.one]
kind = "{classifier}"
{setting}
[methods.{method}]
classifier = "one"
"""


def hostile_plan(rng: random.Random, data: str, *, mild: bool) -> bytes:
    """A plan: right where it is mild, or with a wrong value, or no plan at all."""
    if not mild and rng.random() < 0.4:
        return rng.choice(
            (
                b"",
                b"\x00",
                b"\xff\xfe",
                b"[",
                b"x = " + b"[" * 20_000,
                b"x = " + b"{a=" * 20_000,
                b"datasets = []",
                b"datasets = 1\nruns = 1",
                b"datasets = [1979-05-27]\nruns = 1\nlearn = 0.5\n[methods.CC]\n",
                b"methods = 3",
                b"[methods]\nCC = 1979-05-27\n",
            )
        )
    odd = {
        "runs": ("1", "1", "1", "0", "-1", "1e3", "9" * 40, "true", '"x"'),
        "learn": ("0.5", "0.5", "0.5", "0", "1", "nan", "inf", "-1", "2", "1979-05-27"),
        "size": ("10", "10", "10", "0", "-3", "9" * 30, "nan", "[]", "2.5"),
        "repeats": ("1", "1", "1", "0", "-1", "9" * 30, "inf"),
        "classifier": (
            "TextClassifier",
            "TextClassifier",
            "sklearn.naive_bayes:GaussianNB",
            "os:getcwd",
            "..:x",
            ":",
            "",
        ),
        "setting": ("embedding_size = 2", "embedding_size = 2", "x = 1", "C = nan", "folds = []", "kind = 3"),
        "method": ("CC", "EMQ", "PACC", "KDEyML", "SVMQ", '"[red]"', '"a\\nb"', '""', "TextClassifier"),
    }
    said = {name: rng.choice(values[: 2 if mild else None]) for name, values in odd.items()}
    return PLAN.format(data=data.replace("\\", "/"), **said).encode("utf-8", "replace")


CONFIGS = (
    b"",
    b"\xff",
    b"[predict]\nlevel = 'x'\n",
    b"[predict]\nlevel = [1]\n",
    b"[predict]\nby = {a = 1}\n",
    b"[predict]\nby = 3\n",
    b"[fit]\nset = " + b"[" * 5000 + b"]" * 5000 + b"\n",
    b"[fit]\nset = 1979-05-27\n",
    b"[fit.set]\ncv = [1, {a = 1979-05-27}]\n",
    b"[fit]\ntext = 3\n",
    b"quiet = 3\n",
    b"nothing = 1\n",
    b"predict = 1\n",
    b"[evaluate]\nseed = 1e300\n",
    b"[experiment.run]\njobs = 'x'\n",
    b'"a\\nb" = 1\n',
)


def posteriors(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors of two classes, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    p = np.clip(rng.normal(0.3 + 0.4 * y, 0.2), 0.01, 0.99)
    return np.column_stack([1 - p, p]), np.array(["neg", "pos"])[y]
