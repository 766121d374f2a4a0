import bz2
import gc
import gzip
import io
import json
import lzma
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quanet.data.columns import find_label, find_text, numeric_columns
from quanet.data.streams import TableSource
from quanet.errors import InvalidData, InvalidSetting

TABLE = pd.DataFrame(
    {
        "review": ["good, or so", "bad\nday it was", 'a fine "film"'],
        "sentiment": ["pos", "neg", "pos"],
        "stars": [5, 1, 4],
    }
)
CSV = TABLE.to_csv(index=False).encode()
JSON = TABLE.to_json(orient="records", lines=True).encode()
FILES = {
    "a.csv": CSV,
    "a.csv.gz": gzip.compress(CSV, mtime=0),
    "a.csv.bz2": bz2.compress(CSV),
    "a.csv.xz": lzma.compress(CSV),
    "a.csv.zst": pa.compress(CSV, codec="zstd", asbytes=True),
    "semicolons.csv": TABLE.to_csv(index=False, sep=";").encode(),
    "excel.csv": b"\xef\xbb\xbf" + CSV.replace(b"\n", b"\r\n").replace(b"bad\r\n", b"bad\n"),
    "a.tsv": TABLE.to_csv(index=False, sep="\t").encode(),
    "a.jsonl": JSON,
    "a.ndjson.gz": gzip.compress(JSON, mtime=0),
    "a.parquet": TABLE.to_parquet(),
    "a.parquet.gz": gzip.compress(TABLE.to_parquet(), mtime=0),
}


@pytest.fixture(params=FILES)
def file(request, tmp_path):
    path = tmp_path / request.param
    path.write_bytes(FILES[request.param])
    return path


def standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    return TableSource(["-"])


def test_every_format_gives_the_same_cells(file):
    source = TableSource([file])
    assert source.columns == ["review", "sentiment", "stars"]
    table = source.read(["stars", "review"])
    assert table["review"].tolist() == TABLE["review"].tolist()
    assert [int(stars) for stars in table["stars"]] == [5, 1, 4]
    assert 0 < source.position <= source.size


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.jsonl", "a.parquet"])
def test_standard_input_is_recognised_and_can_be_looked_at_first(name, monkeypatch):
    source = standard_input(monkeypatch, FILES[name])
    assert find_text(source) == ("review", True)
    assert source.read(["review"])["review"].tolist() == TABLE["review"].tolist()
    assert source.size is None
    assert source.place(1) == "standard input, row 2"


def test_files_and_patterns_are_one_table_whose_rows_are_named(tmp_path):
    for name in ("b.csv", "a.csv", "c.jsonl"):
        (tmp_path / name).write_bytes(FILES["a" + name[1:]])
    source = TableSource([f"{tmp_path}/*.csv", tmp_path / "c.jsonl"])
    chunks = list(source.chunks(["stars"], rows=2))
    assert [len(chunk) for chunk in chunks] == [2, 1, 2, 1, 2, 1]
    assert [row for chunk in chunks for row in chunk.index] == list(range(9))
    assert source.place(4) == f"{tmp_path}/b.csv, row 2"
    assert source.position == source.size


def test_long_texts_make_chunks_short(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("text\n" + ("x" * 2**21 + "\n") * 5)
    assert [len(chunk) for chunk in TableSource([path]).chunks(["text"])] == [2, 2, 1]


def test_empty_cells_are_none_and_words_that_mean_nothing_elsewhere_are_words(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,n\nNA,1\n,2\n\nNone,\n")
    assert TableSource([path]).read(["text", "n"]).to_numpy().tolist() == [["NA", "1"], [None, "2"], ["None", None]]
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"text": "", "n": NaN}\n\n{"n": 3}\n')
    assert TableSource([lines]).read(["text", "n"]).to_numpy().tolist() == [[None, None], [None, 3]]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8"])
def test_encodings(encoding, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text\nça va\r\nnaïf\n".encode(encoding))
    assert TableSource([path], encoding=encoding).read(["text"])["text"].tolist() == ["ça va", "naïf"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"a,b\n1,2\n3\n", r"line 3: row 2 has 1 cells, but the table has 2 columns"),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", r"line 3: row 2 has 3 cells"),
        ("a.csv", b'a,b\n1,"2\n3,4\n', r"line 3: unexpected end of data"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"a,b\n", "has no rows"),
        ("a.csv", b"a,a\n1,2\n", "has 2 columns 'a'"),
        ("a.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 9999, mtime=0)[:60], r"after row \d+: .*Is it truncated"),
        ("a.csv.gz", b"a,b\n1,2\n", "cannot be read"),
        ("a.jsonl", b'{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ("a.jsonl", b"[1, 2]\n", "line 1 is JSON but not an object"),
        ("a.jsonl", b"", "is empty"),
        ("a.parquet", b"PAR1", "cannot be read as PARQUET"),
        ("a.xlsx", b"PK", "cannot be read as an Excel workbook"),
        ("a.ods", b"PK", "is a spreadsheet in another format. Save it as .xlsx or CSV"),
        ("a.db.gz", b"PK", "is compressed, which works only for CSV"),
        ("a.db", b"PK" * 99, "is neither a SQLite nor a DuckDB database"),
        ("a.pdf", b"PK", "ends in none of .csv"),
        ("a.jsonl", b'{"a": ' + b"[" * 100_000 + b"\n", "line 1 is not JSON: it is nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message) as caught:
        TableSource([path]).read(["a"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "text\nfine\nça va\n".encode("latin-1"),
            r"a\.csv, line 3: '.*a va' is not valid utf-8 \(byte 0xe7\).*latin-1",
        ),
        ("text\nça\n".encode("utf-16"), r"is UTF-16, not utf-8.*--encoding utf-16"),
    ],
)
def test_a_given_encoding_that_is_wrong_is_noticed(content, message, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message):
        TableSource([path], encoding="utf-8").read(["text"])


def test_a_wide_encoding_that_is_wrong_is_noticed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text\nfine\n".encode("utf-16") + b"x")
    with pytest.raises(InvalidData, match="after line 2: not valid utf-16"):
        TableSource([path], encoding="utf-16").read(["text"])
    with pytest.raises(InvalidSetting, match="Unknown encoding 'utf-99'"):
        TableSource([path], encoding="utf-99")


def test_a_missing_column_lists_those_there_the_nearest_first(tmp_path):
    for name, header in {"a.csv": "id,Review,date", "b.csv": "id,text,date"}.items():
        (tmp_path / name).write_text(f"{header}\n1,2,3\n")
    with pytest.raises(InvalidData, match=r"a\.csv has no column 'review'. Its columns are 'Review', '.*', '.*'"):
        TableSource([tmp_path / "a.csv"]).read(["review"])
    with pytest.raises(InvalidData, match=r"b\.csv has no column 'Review'"):  # before the first file is read
        next(TableSource([tmp_path / "a.csv", tmp_path / "b.csv"]).chunks(["Review"]))


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "reviews.csv").write_text("a\n1\n")
    with pytest.raises(InvalidData, match=r"The file .*revews\.csv does not exist\. Did you mean .*reviews\.csv\?"):
        TableSource([tmp_path / "revews.csv"])
    with pytest.raises(InvalidData, match="No file matches"):
        TableSource([f"{tmp_path}/*.tsv"])
    with pytest.raises(InvalidData, match=r"is a folder. Pass the files in it, such as '.*\*\.csv'"):
        _ = TableSource([tmp_path]).columns
    with pytest.raises(InvalidData, match="only once"):
        TableSource(["-", "-"])


def columns_of(tmp_path, rows):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TableSource([path])


def test_columns_are_guessed_where_there_is_one_choice(tmp_path):
    rows = [
        {"id": f"r{n}", "body": f"it was number {n}", "mood": "ok" if n % 2 else "bad", "n": n / 7} for n in range(9)
    ]
    source = columns_of(tmp_path, rows)
    assert find_text(source) == ("body", True)
    assert find_label(source, besides=["body"]) == ("mood", True)
    assert find_text(source, "id") == ("id", False)
    assert numeric_columns(source) == ["n"]


def test_several_choices_or_none_are_told(tmp_path):
    source = columns_of(tmp_path, [{"a": f"one two three {n}", "b": f"x y z {n}", "c": n} for n in range(9)])
    with pytest.raises(InvalidData, match=r"several columns may be the text: 'a', 'b'. Name the column: --text NAME"):
        find_text(source)
    with pytest.raises(InvalidData, match=r"no column is clearly the label. The columns are 'a', 'b', 'c'"):
        find_label(source)
    named = columns_of(tmp_path, [{"text": "a", "label": 1, "other text": "x y z"}])
    assert find_text(named) == ("text", True)
    assert find_label(named) == ("label", True)


@pytest.mark.parametrize("name", ["undefined", "utf\x008", "rot13", "hex", "idna", ""])
def test_what_is_no_encoding_of_texts_is_refused_by_name(name):
    with pytest.raises(InvalidSetting, match="Unknown encoding"):
        TableSource(["-"], encoding=name)


def test_half_of_a_surrogate_pair_is_no_character(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "x\\ud800y", "b": ["\\udfff"], "c": "\\ud83d\\ude00"}\n')
    row = TableSource([tmp_path / "a.jsonl"]).read(["a", "b", "c"]).iloc[0].tolist()
    assert row == ["x\ufffdy", ["\ufffd"], "\U0001f600"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_date_that_python_has_not_is_named(tmp_path, unit):
    far = pa.array([0, 2**62 if unit == "us" else 2**62 // 1000], pa.timestamp(unit))
    pq.write_table(pa.table({"date": far, "text": ["a", "b"]}), tmp_path / "a.parquet")
    source = TableSource([tmp_path / "a.parquet"])
    if unit == "ns":
        assert source.read(["date"])["date"].notna().all()
        return
    with pytest.raises(InvalidData, match=r"a\.parquet: column 'date' .* out of range"):
        source.read(["date"])


def test_a_stream_of_wide_characters_can_be_left_early(tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    (tmp_path / "a.csv").write_bytes(("text,label\n" + "good film,x\n" * 5000).encode("utf-16"))
    source = TableSource([tmp_path / "a.csv"], encoding="utf-16")
    assert len(source.peek()) == 1000
    del source
    gc.collect()
    assert not heard


def test_standard_input_after_a_file_is_checked_too(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,c\n1,2\n")))
    with pytest.raises(InvalidData, match="standard input has no column 'b'"):
        TableSource([tmp_path / "a.csv", "-"]).read(["b"])


def test_a_column_of_numbers_may_have_missing_values(tmp_path):
    (tmp_path / "a.csv").write_text("size,weight,name,label\n1,0.5,x,a\nNA,,y,b\n3,nan,z,a\n4,1,NA,b\n")
    assert numeric_columns(TableSource([tmp_path / "a.csv"])) == ["size", "weight"]
