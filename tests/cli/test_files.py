"""The same table gives the same shares in every format; what is detected is one line."""

import json
import sqlite3

import duckdb
import openpyxl
import pandas as pd
import pytest

from quanet.data.streams import TableSource

from .made_tables import one_line


@pytest.fixture(scope="module")
def formats(files, tmp_path_factory):
    """The same rows in every format, by the address that is passed to a command."""
    folder = tmp_path_factory.mktemp("formats")
    table = pd.read_csv(files / "new.csv")
    table.to_csv(folder / "new.csv", index=False)
    table.to_csv(folder / "new.tsv", index=False, sep="\t")
    table.to_json(folder / "new.jsonl", orient="records", lines=True)
    table.to_json(folder / "new.json", orient="records")
    table.to_parquet(folder / "new.parquet")
    with pd.ExcelWriter(folder / "new.xlsx") as book:
        table.assign(date=pd.to_datetime(table["date"])).to_excel(book, sheet_name="Reviews", index=False)
        pd.DataFrame({"note": ["x"]}).to_excel(book, sheet_name="Notes", index=False)
    with sqlite3.connect(folder / "new.db") as connection:
        table.to_sql("reviews", connection, index=False)
    connection.close()
    with duckdb.connect(str(folder / "new.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("create table reviews as select * exclude date, date::date as date from given")
    names = ["new.csv", "new.tsv", "new.jsonl", "new.json", "new.parquet", "new.xlsx#Reviews", "new.db#reviews"]
    names += ["new.duckdb", "new.db#select review, product, date from reviews", "new.duckdb#from reviews"]
    return {name: f"{folder}/{name}" for name in names}


def test_every_format_gives_the_same_cells(formats):
    columns = ["review", "product", "date"]
    expected = TableSource([formats["new.csv"]]).read(columns).astype(str)
    for name, file in formats.items():
        assert TableSource([file]).read(columns).astype(str).equals(expected), name


@pytest.mark.parametrize("name", ["new.xlsx#Reviews", "new.json", "new.db#reviews", "new.duckdb"])
def test_every_format_gives_the_same_shares(call, model, formats, name):
    by = ("--by", "product", "--by", "date:month", "-q")
    expected = json.loads(call("predict", model, formats["new.csv"], *by)[1])
    code, out, err = call("predict", model, formats[name], *by)
    assert (code, err) == (0, "")
    assert json.loads(out)["groups"] == expected["groups"]


def test_shares_as_a_workbook(call, model, formats, tmp_path):
    assert call("predict", model, formats["new.csv"], "--by", "product", "-o", "shares.xlsx")[0] == 0
    assert call("predict", model, formats["new.csv"], "--by", "product", "-o", "shares.csv")[0] == 0
    written = pd.read_excel(tmp_path / "shares.xlsx")
    pd.testing.assert_frame_equal(written, pd.read_csv(tmp_path / "shares.csv"), check_dtype=False, rtol=1e-3)
    assert isinstance(openpyxl.load_workbook(tmp_path / "shares.xlsx").active["C2"].value, int | float)


def test_what_is_detected_is_a_note_once(call, model, tmp_path):
    rows = "".join(f"très bon film numéro {n};{1 + n % 28:02}/0{1 + n % 6}/2024\n" for n in range(200))
    (tmp_path / "new.csv").write_bytes(f"review;date\n{rows}".encode("cp1252"))
    code, out, err = call("predict", model, "new.csv", "--by", "date:month")
    assert code == 0
    assert len(json.loads(out)["groups"]) == 6
    assert "Warning" not in "".join(line for line in err.splitlines() if "detected" in line)
    assert err.count("new.csv: encoding cp1252 (detected, as in 'très')") == 1
    assert err.count("new.csv: dates in 'date' have the format %d/%m/%Y (detected: 01/01/2024 is 1 January 2024)") == 1
    assert "detected" not in call("predict", model, "new.csv", "--by", "date:month", "--quiet")[2]
    given = ("--encoding", "cp1252", "--date-format", "%d/%m/%Y")
    again = call("predict", model, "new.csv", "--by", "date:month", *given)
    assert json.loads(again[1])["groups"] == json.loads(out)["groups"]
    assert "encoding" not in again[2]


def test_a_delimiter_is_found_in_the_rows_or_given(call, model, tmp_path):
    rows = "".join(f"film {n}, a good one;{n}\n" for n in range(40))
    (tmp_path / "new.csv").write_text(f"review, in English;id\n{rows}")
    text = ("--text", "review, in English")
    code, _, err = call("predict", model, "new.csv", *text)
    assert code == 1
    assert "Set --delimiter ',' or --delimiter ';'" in one_line(err)
    code, out, _ = call("predict", model, "new.csv", *text, "--delimiter", ";")
    assert (code, json.loads(out)["total"]["n"]) == (0, 40)
    workers = call("predict", model, "new.csv", *text, "--delimiter", ";", "--workers", "1", "--force")
    assert json.loads(workers[1])["total"] == json.loads(out)["total"]
    (tmp_path / "free.csv").write_text(
        f"review;notes, if any\n{rows.replace(', a good', ' good')}".replace(" 3", ", 3")
    )
    assert json.loads(call("check", "free.csv")[1])["delimiter"] == ";"
    code, _, err = call("check", "free.csv", "--delimiter", "comma")
    assert code == 2
    assert "Unknown delimiter 'comma'" in one_line(err)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("new.xlsx#March", "has no sheet 'March'. Its sheets are"),
        ("new.db#review", "there is no table 'review'. The tables are 'reviews'"),
        ("new.db#delete from reviews", "does more than read, so it was not run"),
        ("new.csv#March", "has no sheets or tables. Leave out '#March'"),
        ("old.xlsx#March", "old.xlsx does not exist"),
    ],
)
def test_what_is_not_in_a_file_is_one_line(call, model, formats, name, message):
    folder = formats["new.csv"].removesuffix("new.csv")
    code, _, err = call("predict", model, f"{folder}{name}")
    assert code == 1
    assert message in one_line(err)


def test_a_file_whose_name_contains_a_hash_wins(tmp_path):
    (tmp_path / "a#b.csv").write_text("text\ngood\n")
    (tmp_path / "a").write_text("x")
    assert TableSource([tmp_path / "a#b.csv"]).read(["text"])["text"].tolist() == ["good"]
    assert TableSource([f"{tmp_path}/*#b.csv"]).read(["text"])["text"].tolist() == ["good"]
