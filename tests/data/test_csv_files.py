"""Arrow and the csv module read the same cells, up to the same error; the delimiter is what fits header and rows."""

import csv
import gzip
import io
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet import read_table
from quanet.data import csv_files
from quanet.data.csv_files import check_delimiter, find_delimiter
from quanet.data.streams import TableSource
from quanet.data.table_files import open_rows, table_chunks
from quanet.errors import InvalidData, InvalidSetting

CELLS = st.text(st.sampled_from('ab1 .,;\t|"\n\r\0é€\ufeff\u2028'), max_size=6)
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=40)
)


def read_by(path, columns, *, arrow, **options):
    """The chunks, and the error that ends them."""
    chunks = []
    with closing(open_rows(str(path), **{"encoding": "utf-8", "delimiter": ",", **options})) as opened:
        wanted = opened.columns if columns is None else columns
        used = opened if arrow else replace(opened, batches=None)
        try:
            for chunk in table_chunks(used, wanted, rows=7):
                cells = (list(chunk.index), chunk.to_numpy().tolist())
                chunks.append(cells)  # the chunks before an error are kept
        except InvalidData as error:
            return chunks, str(error)
    return chunks, None


def both(path, columns=None, **options):
    """What both read."""
    found = read_by(path, columns, arrow=True, **options)
    assert found == read_by(path, columns, arrow=False, **options)
    return found


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 40)
    monkeypatch.setattr(csv_files, "PIECE", 16)
    monkeypatch.setattr(csv_files, "FIRST_LINES", 2)
    monkeypatch.setattr(csv_files, "BATCH", 3)


@pytest.fixture
def parsed(monkeypatch):
    """The blocks that Arrow has read."""
    blocks, parse = [], csv_files.CsvTable._parsed

    def record(self, block, end, places):
        table = parse(self, block, end, places)
        blocks.extend([] if table is None else [block[:end]])
        return table

    monkeypatch.setattr(csv_files.CsvTable, "_parsed", record)
    return blocks


DIALECTS = {
    "delimiter": st.sampled_from(",;\t|"),
    "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    "lineterminator": st.sampled_from(["\n", "\r\n", "\n\n", "\r"]),
}


@settings(max_examples=300, deadline=None)
@given(TABLES, st.fixed_dictionaries(DIALECTS), st.booleans(), st.integers(0, 3))
def test_both_read_what_the_csv_module_writes(tmp_path_factory, rows, dialect, cut, skipped):
    text = io.StringIO()
    text.write(dialect["delimiter"].join(f"column {at}" for at in range(len(rows[0]))) + "\n")
    csv.writer(text, **dialect).writerows(rows)
    content = text.getvalue().encode()
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(content[:-skipped] if cut and skipped else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK", 30)
        patch.setattr(csv_files, "PIECE", 10)
        patch.setattr(csv_files, "FIRST_LINES", 2)
        both(path, delimiter=dialect["delimiter"])
        both(path, ["column 0"], delimiter=dialect["delimiter"])
        both(path, [], delimiter=dialect["delimiter"])


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('ab,"\n\ré'), max_size=60))
def test_both_read_any_text(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(b"x,y\n" + text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK", 20)
        patch.setattr(csv_files, "PIECE", 8)
        patch.setattr(csv_files, "FIRST_LINES", 1)
        both(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3", "line 102: row 101 has 3 cells, but the table has 2 columns"),
        ("1", "line 102: row 101 has 1 cells"),
        ('"a"b,2', "line 102: ',' expected after '\"'"),
        ('"a,2', ": unexpected end of data"),
        ("a\rb,2", "line 102: new-line character seen in unquoted field"),
        ('5" screen,"2"', None),
        ('"5"" screen","2\n3"', None),
        ('"a\rb",2', None),
        ("\ufeffa,2", None),
        ("\n\n", None),
    ],
)
def test_the_csv_module_takes_over_where_arrow_stops(line, message, tmp_path, small_blocks, parsed):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + '"x, y",1\n' * 100 + line + "\nz,3\n" * 50 + "\n" * 50, newline="")
    _, found = both(path)
    assert parsed
    assert found is None if message is None else message in found


def test_a_byte_of_an_unused_column_is_decoded_too(tmp_path, small_blocks):
    (tmp_path / "a.csv").write_bytes(b"a,b\n" + b"x,y\n" * 30 + b"x,\xff\n" + b"x,y\n" * 30)
    _, found = both(tmp_path / "a.csv", ["a"])
    assert "line 32: 'x,\ufffd' is not valid utf-8 (byte 0xff)" in found


def test_a_truncated_archive_loses_the_same_rows(tmp_path, parsed):
    lines = "".join(f'"text, {row}",{row * 7919 % 10007}\n' for row in range(30_000))
    content = gzip.compress(f"a,b\n{lines}".encode(), mtime=0)
    (tmp_path / "a.csv.gz").write_bytes(content[: len(content) // 2])
    chunks, found = both(tmp_path / "a.csv.gz")
    assert len(chunks) > 1000
    assert "Is it truncated?" in found
    damaged = bytearray(content)
    damaged[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    (tmp_path / "b.csv.gz").write_bytes(damaged)
    assert both(tmp_path / "b.csv.gz")[1]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "koi8-u", "utf8"])
def test_encodings_of_one_byte_are_read_by_arrow(encoding, tmp_path, parsed):
    word = "да" if encoding == "koi8-u" else "ça"
    (tmp_path / "a.csv").write_bytes(("a,b\n" + f'{word},"1, 2"\n' * 300).encode(encoding))
    chunks, _ = both(tmp_path / "a.csv", encoding=encoding)
    assert chunks[0][1][0] == [word, "1, 2"]
    assert parsed


@pytest.mark.parametrize("options", [{"encoding": "utf-16"}, {"encoding": "gb18030"}, {"delimiter": "§"}])
def test_arrow_does_not_read_all(options, tmp_path):
    (tmp_path / "a.csv").write_bytes("a§b\n1§2\n".encode(options.get("encoding", "utf-8")))
    with closing(open_rows(str(tmp_path / "a.csv"), **{"encoding": "utf-8", **options})) as opened:
        assert opened.batches is None


def test_a_cell_may_be_larger_than_a_block(tmp_path, monkeypatch, small_blocks, parsed):
    (tmp_path / "a.csv").write_text("a,b\n" + 'x,"' + "\n" * 500 + '"\n' + "y,2\n" * 50)
    both(tmp_path / "a.csv")
    assert len(parsed[-1]) < 500 < len(parsed[0])
    parsed.clear()
    monkeypatch.setattr(csv_files, "MAX_BLOCK", 200)
    both(tmp_path / "a.csv")
    assert not parsed


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
