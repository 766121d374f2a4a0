import os
import pickle

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quanet.data.partitions import Partition, file_partitions, partitions_of
from quanet.data.streams import TableSource
from quanet.errors import BadFile, Detected, InvalidData, QuanetWarning


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
