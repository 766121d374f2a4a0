import bz2
import gc
import gzip
import io
import json
import lzma
import os
import pickle
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quanet.data.columns import find_label, find_text, numeric_columns
from quanet.data.streams import Partition, TableSource, file_partitions, partitions_of
from quanet.errors import BadFile, Detected, InvalidData, InvalidSetting, QuanetWarning

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


@pytest.fixture
def folder(tmp_path):
    """A Parquet file with row groups of 3, 3, 3 and 1 rows, and a CSV file."""
    pq.write_table(pa.table({"n": range(10), "text": list("abcdefghij")}), tmp_path / "a.parquet", row_group_size=3)
    pd.DataFrame({"n": [10, 11], "text": ["k", "l"]}).to_csv(tmp_path / "b.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("rows", [1, 4, 6, 100])
def test_partitions_have_all_rows_of_the_source_once(folder, rows):
    source = TableSource([folder / "a.parquet", folder / "b.csv"])
    parts = partitions_of(source, rows=rows)
    texts = [text for part in parts for chunk in part.chunks(["text"]) for text in chunk["text"]]
    assert texts == source.read(["text"])["text"].tolist()
    assert sum(part.rows or 0 for part in parts) == 10
    assert sum(part.size for part in parts) == pytest.approx(source.size, abs=len(parts))
    assert len({part.id for part in parts}) == len(parts)


def test_row_numbers_are_those_of_the_file(folder):
    second = partitions_of(TableSource([folder / "a.parquet"]), rows=3)[1]
    (chunk,) = second.chunks(["text"])
    assert chunk.index.tolist() == [3, 4, 5]
    assert second.place(3) == f"{folder}/a.parquet, row 4"
    assert pickle.loads(pickle.dumps(second)) == second  # noqa: S301


def test_small_row_groups_are_joined_and_large_ones_are_not_cut(tmp_path):
    pq.write_table(pa.table({"n": range(1000)}), tmp_path / "a.parquet", row_group_size=10)
    assert [part.rows for part in partitions_of(TableSource([tmp_path / "a.parquet"]), rows=300)] == [
        300,
        300,
        300,
        100,
    ]
    pq.write_table(pa.table({"n": range(1000)}), tmp_path / "a.parquet", row_group_size=600)
    assert [part.rows for part in partitions_of(TableSource([tmp_path / "a.parquet"]), rows=300)] == [600, 400]


def test_an_id_says_whether_the_content_may_have_changed(folder, monkeypatch):
    file = folder / "b.csv"
    (first,) = partitions_of(TableSource([file]))
    monkeypatch.chdir(folder)
    assert partitions_of(TableSource(["b.csv"]))[0].id == first.id
    os.utime(file, ns=(1, 1))
    assert partitions_of(TableSource([file]))[0].id != first.id


def test_a_file_that_two_patterns_match_counts_once(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.warns(Detected, match=r"b\.csv and 1 more files are given more than once. Each file counts once"):
        source = TableSource(["*.csv", "*", "./a.parquet"])
    assert source.files == ["b.csv", "a.parquet"]
    assert len(partitions_of(source)) == 2


def test_a_file_that_changed_after_it_was_listed_is_an_error(folder):
    source = TableSource([folder / "b.csv"])
    (part,) = partitions_of(source)
    with (folder / "b.csv").open("a") as file:
        file.write("12,m\n")
    with pytest.raises(BadFile, match=r"b\.csv changed while it was read. Run the command again") as caught:
        list(part.chunks(["n"]))
    assert caught.value.file == str(folder / "b.csv")
    with pytest.raises(InvalidData, match="changed while it was read"):
        source.read(["n"])
    pq.write_table(pa.table({"n": [1]}), folder / "a.parquet")
    stale = partitions_of(TableSource([folder / "a.parquet"]))[0]
    other = Partition(
        file=stale.file, stamp=source.stamps[str(folder / "b.csv")], id="x", first_row_group=2, row_groups=1
    )
    with pytest.raises(BadFile, match="changed while it was read"):
        list(other.chunks(["n"]))


def test_errors_of_workers_can_be_pickled():
    error = pickle.loads(pickle.dumps(BadFile("a.csv is empty.", "a.csv")))  # noqa: S301
    assert (str(error), error.file) == ("a.csv is empty.", "a.csv")


def test_files_without_rows_among_others_are_fine_and_reported(folder):
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("n,text\n")
    pq.write_table(
        pa.table({"n": pa.array([], pa.int64()), "text": pa.array([], pa.string())}), folder / "none.parquet"
    )
    names = ("empty.csv", "b.csv", "header.csv", "none.parquet")
    source = TableSource([folder / name for name in names])
    with pytest.warns(Detected, match="has no rows"):
        assert source.read(["n"])["n"].tolist() == ["10", "11"]
    assert source.empty_files == [f"{folder}/{name}" for name in names if name != "b.csv"]
    source = TableSource([folder / name for name in names])
    with pytest.warns(Detected, match="has no rows"):
        parts = partitions_of(source)
    assert [row for part in parts for chunk in part.chunks(["n"]) for row in chunk["n"]] == ["10", "11"]
    with pytest.raises(InvalidData, match=r"empty\.csv is empty"):
        TableSource([folder / "empty.csv"]).read(["n"])


def other_types(folder):
    pq.write_table(pa.table({"n": list("xy"), "text": ["k", "l"]}), folder / "c.parquet")
    return (
        "n",
        r"c\.parquet: column 'n' has the type string, but .*a\.parquet has int64\. Write all files with the same",
    )


def other_columns(folder):
    pq.write_table(pa.table({"n": [1], "review": ["k"]}), folder / "c.parquet")
    return "text", r"c\.parquet has no column 'text'"


def corrupt_end(folder):
    content = (folder / "a.parquet").read_bytes()
    (folder / "c.parquet").write_bytes(content[:-50])
    return "text", r"c\.parquet cannot be read as PARQUET"


def corrupt_rows(folder):
    content = bytearray((folder / "a.parquet").read_bytes())
    content[4:60] = bytes(56)
    (folder / "c.parquet").write_bytes(content)
    return "n", r"c\.parquet cannot be read after row \d+"


@pytest.mark.parametrize("make", [other_types, other_columns, corrupt_end, corrupt_rows])
def test_a_bad_file_among_others_is_named_and_can_be_skipped(folder, make):
    column, message = make(folder)
    files = [folder / "a.parquet", folder / "c.parquet"]
    with pytest.raises(BadFile, match=message) as caught:
        TableSource(files, skip_bad=False).read([column])
    assert str(caught.value).endswith("To continue without such files, add --skip-bad-files.")
    with pytest.raises(InvalidData, match=message) as caught:
        TableSource(files).read([column])
    assert "skip-bad-files" not in str(caught.value)
    source = TableSource(files, skip_bad=True)
    with pytest.warns(QuanetWarning, match=f"Skipped: .*{message}"):
        assert len(source.read([column])) == 10
    assert list(source.bad_files) == [f"{folder}/c.parquet"]
    assert source.files == [f"{folder}/a.parquet"]


def test_the_first_file_may_be_bad_and_no_file_counts_in_part(folder):
    for rows in (3, 2000):  # the damage is among the first rows, or after them
        (folder / "0.csv").write_text("n,text\n" + "1,x\n" * rows + "1\n")
        source = TableSource([folder / "0.csv", folder / "b.csv"], skip_bad=True)
        with pytest.warns(QuanetWarning, match=rf"0\.csv, line {rows + 2}"):
            assert source.read(["n"])["n"].tolist() == ["10", "11"]
        assert source.place(0) == f"{folder}/b.csv, row 1"
        assert source.files == [f"{folder}/b.csv"]


def test_damaged_row_groups_are_skipped_alike_by_a_source_and_by_its_partitions(folder, monkeypatch):
    monkeypatch.setattr(file_partitions, "__defaults__", (3,))
    file = folder / "a.parquet"
    content, group = bytearray(file.read_bytes()), pq.read_metadata(file).row_group(1).column(0)
    begin = min(group.data_page_offset, group.dictionary_page_offset or group.data_page_offset)
    content[begin : begin + 10] = bytes(10)
    file.write_bytes(content)
    source = TableSource([folder / "b.csv", file], skip_bad=True)
    _, first, damaged, *others = parts = partitions_of(source, rows=3)
    with pytest.warns(QuanetWarning, match=r"a\.parquet cannot be read after row 3: .* other row groups are used\."):
        read = source.read(["n"])
    assert read["n"].tolist() == ["10", "11", 0, 1, 2, 6, 7, 8, 9]
    assert read.index.tolist() == list(range(9))
    assert [source.place(row) for row in (1, 4, 5)] == [f"{folder}/b.csv, row 2", f"{file}, row 3", f"{file}, row 7"]
    assert source.bad_partitions == {damaged.id}
    assert partitions_of(source, rows=3) == [parts[0], first, *others]
    assert source.read(["n"]).equals(read)  # without another warning
    with pytest.raises(BadFile) as caught:
        list(damaged.chunks(["n"]))
    assert (caught.value.file, caught.value.partition) == (str(file), damaged.id)


def test_if_all_files_are_bad_nothing_can_be_skipped(folder):
    source = TableSource([folder / "a.parquet", folder / "b.csv"], skip_bad=True)
    with (
        pytest.warns(QuanetWarning),
        pytest.raises(InvalidData, match=r"None of the 2 files can be used\."),
    ):
        source.check(["stars"])
    with pytest.raises(BadFile, match="has no column 'stars'"):
        TableSource([folder / "b.csv"], skip_bad=True).check(["stars"])


def test_types_that_fit_together_are_no_problem(tmp_path):
    for name, kind in {"a": pa.null(), "b": pa.int32(), "c": pa.float64(), "d": pa.decimal128(5, 2)}.items():
        pq.write_table(pa.table({"n": pa.array([1 if name != "a" else None], kind)}), tmp_path / f"{name}.parquet")
    for name, kind in {"a": pa.string(), "b": pa.large_string(), "c": pa.dictionary(pa.int8(), pa.string())}.items():
        pq.write_table(pa.table({"t": pa.array(["x"]).cast(kind)}), tmp_path / f"text-{name}.parquet")
    assert TableSource([f"{tmp_path}/?.parquet"]).read(["n"])["n"].tolist() == [None, 1, 1, 1]
    assert TableSource([f"{tmp_path}/text*"]).read(["t"])["t"].tolist() == ["x"] * 3


def test_standard_input_is_a_partition_of_its_own(monkeypatch, folder):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"n\n1\n")))
    first, second = partitions_of(TableSource(["-", folder / "b.csv"]))
    assert first.file == "-"
    assert first.name == "standard input"
    assert second.file == str(folder / "b.csv")
