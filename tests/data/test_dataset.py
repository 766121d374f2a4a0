import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from quanet import Dataset, read_table
from quanet.data.dataset import read_dataset
from quanet.data.streams import TableSource
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from tests.strategies import SEEDS

DATA = Dataset([f"text {i}" for i in range(100)], np.repeat(["a", "b"], [80, 20]), "hundred")


@given(st.floats(0.1, 0.9), SEEDS)
def test_a_split_keeps_every_instance_once_and_the_prevalence(share, seed):
    first, second = DATA.split(share, rng=seed)
    assert sorted(first.X + second.X) == sorted(DATA.X)
    np.testing.assert_allclose(first.prevalence, DATA.prevalence, atol=0.05)
    assert first.name == "hundred"


def test_a_split_is_random_and_repeatable():
    assert DATA.split(0.5, rng=1)[0].X == DATA.split(0.5, rng=1)[0].X != DATA.split(0.5, rng=2)[0].X


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix, pd.DataFrame, lambda x: x.tolist()])
def test_instances_come_in_any_container(kind):
    data = Dataset(kind(np.arange(8.0).reshape(4, 2)), [0, 1, 0, 1])
    taken = data.take(np.array([3, 0])).X
    values = taken.toarray() if hasattr(taken, "toarray") else np.asarray(taken)
    assert values.tolist() == [[6, 7], [0, 1]]


def test_classes_can_be_left_out():
    assert DATA.without("b").classes.tolist() == ["a"]


def test_the_first_of_equal_texts_is_kept():
    data = Dataset(["x", "y", "x", "z", "y"], [0, 1, 1, 0, 1]).without_duplicates()
    assert (data.X, data.y.tolist()) == (["x", "y", "z"], [0, 1, 0])


def test_lengths_and_shares_are_checked():
    with pytest.raises(InvalidData, match="2 instances but y has 1 labels"):
        Dataset(["x", "y"], [0])
    with pytest.raises(InvalidSetting, match="between 0 and 1; got 1"):
        DATA.split(1, rng=0)


def test_dates_go_with_their_instances():
    data = Dataset(["a", "b", "c"], [0, 1, 0], dates=["2001", "2002", "2003"])
    assert data.take(np.array([2, 0])).dates.tolist() == ["2003", "2001"]
    assert data.without(0).dates.tolist() == ["2002"]
    with pytest.raises(InvalidData, match="Got 2 instances but 1 dates"):
        Dataset(["a", "b"], [0, 1], dates=["2001"])


TABLE = pd.DataFrame({"text": ["good, or so", "bad\nday", "fine"], "label": ["pos", "neg", "pos"], "stars": [5, 1, 4]})


@pytest.fixture(params=["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "ndjson", "parquet", "parquet.gz", "CSV"])
def file(request, tmp_path):
    path = tmp_path / f"reviews.2024.{request.param}"
    kind = request.param.lower().removesuffix(".gz")
    if kind == "parquet":
        content = TABLE.to_parquet()
        path.write_bytes(gzip.compress(content) if request.param.endswith(".gz") else content)
    elif kind in {"jsonl", "ndjson"}:
        TABLE.to_json(path, orient="records", lines=True)
    else:
        TABLE.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    return path


def test_every_format_gives_the_same_texts_and_labels(file):
    data = read_dataset(file, text="text", label="label")
    assert TABLE["text"].tolist() == data.X
    assert data.y.tolist() == ["pos", "neg", "pos"]
    assert read_table(file).columns.tolist() == ["text", "label", "stars"]


def test_a_column_that_is_not_there_is_named_with_those_that_are(file):
    with pytest.raises(InvalidData, match=r"no column 'review'. Its columns are 'text', 'label', 'stars'"):
        read_table(file, columns=["review"])


def test_a_text_column_of_numbers_is_refused(file):
    with pytest.raises(InvalidData, match=r"column 'stars' contains int\w* values, such as 5, not texts"):
        read_dataset(file, text="stars", label="label")


@pytest.mark.parametrize("column", ["text", "label"])
def test_empty_cells_are_counted_and_the_first_is_named(column, tmp_path):
    path = tmp_path / "holes.parquet"
    TABLE.assign(**{column: ["x", None, None]}).to_parquet(path)
    with pytest.raises(InvalidData, match=rf"column '{column}' is empty in 2 of 3 rows, the first is row 2"):
        read_dataset(path, text="text", label="label")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"x", r"cannot be read as an Excel workbook"),
        ("plain", b"x", "has an unknown format"),
        ("a.csv", b"", "is empty. It needs a line of column names"),
        ("a.tsv", b"", "is empty. It needs a line of column names"),
        ("a.csv", b"text,label\n", "has no rows"),
        ("a.csv", b'text\n"open', "line 2: unexpected end of data"),
        (
            "a.csv",
            b"text\n\xff\xfe\x81\n",
            "The encoding of .*a.csv cannot be detected; it is not UTF-8. Specify",
        ),
        ("a.jsonl", b"{not json", "line 1 is not JSON"),
        ("a.parquet", b"PAR1", "cannot be read as PARQUET"),
        ("a.csv.gz", b"not gzip", "cannot be read: Not a gzipped file"),
        ("a.parquet.gz", b"not gzip", "cannot be read: Not a gzipped file"),
        ("a.parquet.gz", gzip.compress(b"PAR1" * 99, mtime=0)[:-9], "cannot be read: Compressed file ended"),
    ],
)
def test_files_that_cannot_be_read_say_why_in_one_line(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidData, match=r"The file .*gone\.csv does not exist"):
        read_table(tmp_path / "gone.csv")


def test_labels_keep_their_type(tmp_path):
    path = tmp_path / "numbers.csv"
    TABLE.assign(label=[2, 1, 2]).to_csv(path, index=False)
    np.testing.assert_array_equal(read_dataset(path, text="text", label="label").y, [2, 1, 2])


def test_without_a_name_the_column_text_is_taken_and_dates_come_along(tmp_path):
    path = tmp_path / "dated.csv"
    TABLE.assign(date=["2020-01-02", "2020-01-01", "2020-01-03"]).to_csv(path, index=False)
    data = read_dataset(path)
    assert TABLE["text"].tolist() == data.X
    assert data.dates.tolist() == ["2020-01-02", "2020-01-01", "2020-01-03"]
    assert read_dataset(path, date="when").dates is None


def test_a_table_without_texts_is_numbers(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("a,b,flag,label,date\n1,2.5,True,x,2020\n3,4,False,y,2021\n")
    data = read_dataset(path)
    np.testing.assert_array_equal(data.X, [[1, 2.5, 1], [3, 4, 0]])
    assert data.y.tolist() == ["x", "y"]
    assert data.dates.tolist() == ["2020", "2021"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,label\n1,good,x\n", "has no column 'text', and column 'b' is not numeric"),
        ("label\nx\n", "its only column is the label"),
        ("a,label\n1,x\n,y\n", "column 'a' is empty in 1 of 2 rows, the first is row 2"),
        ("a,b\n1,2\n", "has no column 'label'. Its columns are 'a', 'b'"),
    ],
)
def test_a_table_that_is_neither_texts_nor_numbers_is_named(content, message, tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(content)
    with pytest.raises(InvalidData, match=message):
        read_dataset(path)


def test_a_table_is_read_as_the_commands_read_it(tmp_path):
    path = tmp_path / "spread.csv"
    path.write_bytes("text;label;size\ncafé noir;None;1\nNA;NA;n/a\n;x;3\n".encode("cp1252"))
    with pytest.raises(InvalidData, match=r"is not valid utf-8.*--encoding"):
        read_table(path, encoding="utf-8")
    with pytest.warns(QuanetWarning, match=r"spread.csv: encoding cp1252 \(detected, as in 'café'\).*--encoding"):
        table = read_table(path)
    same = TableSource([path], encoding="cp1252").read(["text", "label", "size"])
    assert table[["text", "label"]].equals(same[["text", "label"]])  # NA and None may be texts and labels
    assert table["text"].tolist() == ["café noir", "NA", None]
    np.testing.assert_array_equal(table["size"], [1, np.nan, 3])  # but no numbers


def test_columns_of_json_and_parquet_keep_their_types(tmp_path):
    table = pd.DataFrame({"whole": [1, 2], "part": [0.5, None], "flag": [True, False], "date": ["2024-01-01", "x"]})
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        found = read_table(tmp_path / name)
        assert [column.dtype.kind for _, column in found.items()] == ["i", "f", "b", "O"]
