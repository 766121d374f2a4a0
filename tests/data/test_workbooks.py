"""Excel workbooks: cells, sheets, and what makes a sheet unusable."""

import builtins
import re
import zipfile
from datetime import date, datetime

import numpy as np
import openpyxl
import pandas as pd
import pytest

from quanet import read_table
from quanet.data.streams import TableSource
from quanet.data.workbooks import to_workbook
from quanet.errors import InvalidData, InvalidSetting, MissingExtra

ROWS = [["text", "label", "when"], ["good film", "pos", datetime(2024, 5, 31)], ["bad film", "neg", None]]


def workbook(path, sheets, change=None):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        if change:
            change(sheet)
    book.save(path)
    return path


def read(path, *columns):
    return TableSource([path]).read(columns).to_numpy().tolist()


def test_cells_keep_their_types_and_midnight_is_a_date(tmp_path):
    rows = [["n", "b", "at", 2024], [1.5, True, datetime(2024, 5, 31, 12, 30), "x"], [2, False, date(2024, 6, 1), None]]
    path = workbook(tmp_path / "a.xlsx", {"S": rows})
    assert TableSource([path]).columns == ["n", "b", "at", "2024"]
    assert read(path, "n", "b", "at", "2024") == [
        [1.5, True, datetime(2024, 5, 31, 12, 30), "x"],
        [2, False, date(2024, 6, 1), None],
    ]


def test_a_number_in_a_column_of_texts_is_a_text_and_errors_are_empty_cells(tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"S": [["review"], ["good"], ["bad"], [5], ["#N/A"], ["#REF!"], ["x"]]})
    # Rows without any value are no rows.
    assert [row[0] for row in read(path, "review")] == ["good", "bad", "5", "x"]


def test_a_sheet_is_chosen_by_name_in_any_case(tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"Notes": [["a"], ["b"]], "March 2024": ROWS})
    for name in ("March 2024", "march 2024"):
        assert read(f"{path}#{name}", "label") == [["pos"], ["neg"]]
    assert read_table(f"{path}#March 2024")["label"].tolist() == ["pos", "neg"]
    with pytest.raises(InvalidData, match=r"has no sheet 'Marsh'. Its sheets are 'March 2024', 'Notes'"):
        read(f"{path}#Marsh", "label")


def test_the_only_sheet_with_rows_is_used_and_of_several_none_is_guessed(tmp_path):
    info = [["Field", "Value"], ["Owner", "Ann"], ["Date", "2024-05-31"]]
    path = workbook(tmp_path / "a.xlsx", {"Info": info, "Empty": [], "Data": ROWS})
    with pytest.raises(
        InvalidData, match=r"several sheets: 'Info', 'Data'. Name the one to use, such as '.*a.xlsx#Data'"
    ):
        read(path, "label")
    assert read(f"{path}#data", "label") == [["pos"], ["neg"]]
    path = workbook(tmp_path / "c.xlsx", {"Title": [["Reviews of May"]], "Empty": [], "Data": ROWS})
    assert read(path, "label") == [["pos"], ["neg"]]
    path = workbook(tmp_path / "b.xlsx", {"March": ROWS, "April": ROWS})
    with pytest.raises(InvalidData, match=r"several sheets: 'March', 'April'.*b.xlsx#April'"):
        read(path, "label")
    assert len(TableSource([f"{path}#March", f"{path}#April"]).read(["label"])) == 4
    assert len(TableSource([f"{tmp_path}/b*.xlsx#April"]).read(["label"])) == 2


def test_a_hidden_sheet_is_not_the_first(tmp_path):
    def hide(sheet):
        sheet.sheet_state = "hidden" if sheet.title == "Codes" else "visible"

    path = workbook(tmp_path / "a.xlsx", {"Codes": [["x"], ["y"]], "March": ROWS}, hide)
    assert read(path, "label") == [["pos"], ["neg"]]


def test_columns_without_a_name_are_called_as_excel_calls_them(tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"S": [[None, "text"], [0, "good", "note"], [1, "bad"]]})
    assert TableSource([path]).columns == ["column A", "text", "column C"]
    assert read(path, "column A", "column C") == [[0, "note"], [1, None]]


def test_merged_cells_are_an_error_that_names_them(tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"S": ROWS}, lambda sheet: sheet.merge_cells("A2:A3"))
    with pytest.raises(InvalidData, match=r"a\.xlsx has merged cells \(A2:A3\).*Unmerge them in Excel"):
        read(path, "text")


def test_a_formula_without_a_saved_value_is_an_error_and_one_with_a_value_is_the_value(tmp_path):
    rows = [["text", "length"], ["good", "=LEN(A2)"], ["bad", "=LEN(A3)"], ["so", "=LEN(A4)"]]
    path = workbook(tmp_path / "a.xlsx", {"S": rows})
    with pytest.raises(InvalidData, match=r"formulas without saved values \(B2, B3 and 1 more\). Open it in Excel"):
        read(path, "text")
    saved = tmp_path / "b.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(saved, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("sheet1.xml"):
                content = re.sub(rb"</f><v ?/>|</f><v></v>", b"</f><v>7</v>", content)
            new.writestr(name, content)
    assert read(saved, "length") == [[7], [7], [7]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "is protected by a password. Remove"),
        (b"\xd0\xcf\x11\xe0" + b"Workbook" * 99, r"format of older Excel versions \(.xls\). Save it as .xlsx"),
        (b"PK\x03\x04" + b"\0" * 99, "cannot be read as an Excel workbook"),
        (b"", "cannot be read as an Excel workbook"),
    ],
)
def test_files_that_are_no_workbooks_are_one_line(content, message, tmp_path):
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(InvalidData, match=message) as caught:
        read(tmp_path / "a.xlsx", "text")
    assert "\n" not in str(caught.value)


def test_a_damaged_sheet_is_one_line(tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"S": ROWS})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content[: len(content) // 2] if name.endswith("sheet1.xml") else content)
    with pytest.raises(InvalidData, match=r"b\.xlsx cannot be read"):
        read(tmp_path / "b.xlsx", "text")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty. It needs a row of column names"),
        ([["text"]], "has no rows"),
        ([["text", "text"], ["a", "b"]], "has 2 columns 'text'"),
        ([["Report of March"], [None], *ROWS], "the first row contains only 'Report of March'.*Delete the rows above"),
    ],
)
def test_sheets_that_are_no_tables_are_named(rows, message, tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"S": rows})
    with pytest.raises(InvalidData, match=message):
        read(path, "text")


def test_what_is_written_is_what_is_read_and_no_text_becomes_a_formula(tmp_path):
    table = pd.DataFrame(
        {
            "name": ["=1+1", "+x", "bell\a", ""],
            "share": [0.25, np.nan, np.inf, 1],
            "n": [1, 2**60, 3, 4],
            "ok": [True, False, True, False],
            "day": [date(2024, 5, 31)] * 4,
        }
    )
    (tmp_path / "a.xlsx").write_bytes(to_workbook(table, "Shares: [all] of a very long title, indeed"))
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active
    assert [sheet.cell(row, 1).data_type for row in (2, 3)] == ["s", "s"]
    assert not set("[]:") & set(sheet.title)
    assert len(sheet.title) <= 31
    found = read(tmp_path / "a.xlsx", *table.columns)
    day = date(2024, 5, 31)
    assert found[0] == ["=1+1", 0.25, 1, True, day]
    assert found[1] == ["+x", None, str(2**60), False, day]  # Excel would round it
    assert found[2][:2] == ["bell\N{REPLACEMENT CHARACTER}", "inf"]


def test_a_sheet_has_a_largest_size():
    table = pd.DataFrame({"n": np.arange(2**20)})
    with pytest.raises(InvalidSetting, match=r"at most 1,048,576 rows. Write CSV or Parquet"):
        to_workbook(table, "big")


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    original = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] in {"openpyxl", "duckdb"}:
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    (tmp_path / "a.duckdb").write_bytes(b"01234567DUCK0000")
    with pytest.raises(MissingExtra, match=r"pip install 'quanet\[excel\]'"):
        read(tmp_path / "a.xlsx", "text")
    with pytest.raises(MissingExtra, match=r"pip install 'quanet\[duckdb\]'"):
        read(tmp_path / "a.duckdb", "text")


def test_the_position_ends_at_the_size(tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"S": ROWS})
    source = TableSource([path])
    assert len(source.read(["text"])) == 2
    assert source.position == source.size == path.stat().st_size
