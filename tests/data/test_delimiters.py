"""The delimiter of a CSV file: what fits the header and the rows, or what the user says."""

import gzip

import pytest

from quanet import read_table
from quanet.data.csv_files import check_delimiter, find_delimiter
from quanet.data.streams import TableSource
from quanet.errors import InvalidData, InvalidSetting


def read(tmp_path, text, **settings):
    (tmp_path / "a.csv").write_text(text)
    source = TableSource([tmp_path / "a.csv"], **settings)
    return source.columns, source.read(source.columns).to_numpy().tolist()


@pytest.mark.parametrize(
    ("text", "columns", "first"),
    [
        ("id;comment, free text\n1;good\n2;bad, sad, mad\n", ["id", "comment, free text"], ["1", "good"]),
        ("id;name, first, last\n1;Ann\n2;Bob, B., Baker\n", ["id", "name, first, last"], ["1", "Ann"]),
        ("price|a, b, c\n1,5|x\n2|y\n", ["price", "a, b, c"], ["1,5", "x"]),
        ('a,b;c\n"x;y;z",1\n"u",2\n', ["a", "b;c"], ["x;y;z", "1"]),
        ('text;stars, of 5\n"good; very\ngood";5\n"bad";1\n', ["text", "stars, of 5"], ["good; very\ngood", "5"]),
        ("x;y\n3,5;1,5\n1,5;2,5\n", ["x", "y"], ["3,5", "1,5"]),
        ("text\ngood; very good\n", ["text"], ["good; very good"]),
        ("a\tb, c\n1\t2\n", ["a", "b, c"], ["1", "2"]),
        ("a,b\n", ["a", "b"], None),
    ],
)
def test_the_delimiter_gives_each_row_as_many_cells_as_the_header(text, columns, first, tmp_path):
    if first is None:
        assert find_delimiter(text.splitlines(keepends=True), "a.csv") == ","
        return
    found, rows = read(tmp_path, text)
    assert (found, rows[0]) == (columns, first)


def test_two_delimiters_that_fit_are_an_error_with_the_way_out(tmp_path):
    text = "text, en;label\ngood, nice;pos\nbad, poor;neg\n"
    with pytest.raises(InvalidData, match=r"',' and ';' both fit .* Set --delimiter ',' or --delimiter ';'"):
        read(tmp_path, text)
    assert read(tmp_path, text, delimiter=";")[1][0] == ["good, nice", "pos"]
    assert read(tmp_path, text, delimiter=",")[0] == ["text", "en;label"]
    assert read_table(tmp_path / "a.csv", delimiter=";").columns.tolist() == ["text, en", "label"]
    # More columns are more than chance.
    assert read(tmp_path, "id,date|time,text\n1,2024|12,hello\n")[0] == ["id", "date|time", "text"]


def test_a_row_with_other_cells_is_still_an_error(tmp_path):
    with pytest.raises(InvalidData, match="line 3: row 2 has 3 cells, but the table has 2 columns"):
        read(tmp_path, "id;comment, free text\n1;good\n2;bad;sad\n")


def test_a_damaged_place_in_the_first_lines_is_reported_as_before(tmp_path):
    content = gzip.compress("".join(["text,label\n", *(f"good {n},pos\n" for n in range(3000))]).encode())
    (tmp_path / "a.csv.gz").write_bytes(content[: len(content) // 2])
    source = TableSource([tmp_path / "a.csv.gz"])
    with pytest.raises(InvalidData, match=r"after row .*truncated"):
        source.read(["text"])


@pytest.mark.parametrize(("given", "found"), [("tab", "\t"), ("\\t", "\t"), (";", ";"), ("auto", "auto")])
def test_delimiters_that_can_be_given(given, found):
    assert check_delimiter(given) == found


@pytest.mark.parametrize("given", ["", ";;", '"', "\n", "comma"])
def test_what_is_no_delimiter_is_refused(given):
    with pytest.raises(InvalidSetting, match=r"Unknown delimiter .* Use one character, such as ';' or ',', or tab"):
        check_delimiter(given)
