"""SQLite and DuckDB: tables, queries, and that nothing can be written or read elsewhere."""

import hashlib
import sqlite3

import duckdb
import pandas as pd
import pytest

from quanet import read_table
from quanet.data.streams import TableSource
from quanet.errors import InvalidData

TABLE = pd.DataFrame({"text": ["good", "bad", ""], "label": ["pos", "neg", None], "stars": [5.0, 1.0, float("nan")]})


@pytest.fixture(params=["sqlite", "duckdb", "db"])
def file(request, tmp_path):
    path = tmp_path / f"store.{request.param}"
    if request.param == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.register("given", TABLE)
            connection.execute("create table reviews as select * from given")
            connection.execute("create view positive as select * from reviews where label = 'pos'")
    else:
        connection = sqlite3.connect(path)
        TABLE.to_sql("reviews", connection, index=False)
        connection.execute("create view positive as select * from reviews where label = 'pos'")
        connection.commit()
        connection.close()
    return path


def read(file, *columns):
    return TableSource([file]).read(columns).to_numpy().tolist()


def test_tables_views_and_queries(file):
    assert read(f"{file}#reviews", "stars", "text") == [[5, "good"], [1, "bad"], [None, None]]
    assert read(f"{file}#REVIEWS", "text") == [["good"], ["bad"], [None]]
    assert read(f"{file}#positive", "text", "label") == [["good", "pos"]]
    query = f"{file}#select text as review from reviews where stars < 2"
    assert TableSource([query]).columns == ["review"]
    assert read(query, "review") == [["bad"]]
    assert read(f"{file}#-- why\nwith a as (select * from reviews) select * from a", "text")[0] == ["good"]
    assert read_table(query)["review"].tolist() == ["bad"]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("", r"the database has several tables: '.*'. Name one: '.*#(reviews|positive)'"),
        ("revews", "there is no table 'revews'. The tables are 'reviews', 'positive'"),
        ("delete", "there is no table 'delete'"),
        ("select * from revews", "the query fails: "),
        ("select text, text from reviews", "the query has 2 columns 'text'. Name them with 'as'"),
        ("select text from reviews where 1 = 0", "has no rows"),
        *(
            (query, "does more than read, so it was not run. Use a single select")
            for query in (
                "delete from reviews",
                "with a as (select 1) delete from reviews",
                "insert into reviews values ('x', 'y', 1)",
                "drop table reviews",
                "create table a as select 1",
                "pragma user_version = 3",
                "attach 'other.db' as other",
                "/* harmless */ update reviews set text = 'x'",
            )
        ),
    ],
)
def test_what_is_no_table_and_what_writes_is_one_line(file, part, message):
    before = hashlib.sha256(file.read_bytes()).digest()
    with pytest.raises(InvalidData, match=message) as caught:
        read(f"{file}#{part}" if part else file, "text")
    assert "\n" not in str(caught.value)
    assert hashlib.sha256(file.read_bytes()).digest() == before


def test_a_second_statement_is_not_run(file):
    with pytest.raises(InvalidData, match=r"one statement|2 statements"):
        read(f"{file}#select text from reviews; drop table reviews", "text")
    assert len(read(f"{file}#reviews", "text")) == 3


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{}')",
        "select content from read_text('{}')",
        "select * from '{}'",
        "copy reviews to '{}'",
        "select load_extension('{}')",
        "select readfile('{}')",
    ],
)
def test_a_query_reaches_no_other_file(file, query, tmp_path):
    other = tmp_path / "secret.csv"
    other.write_text("text\nsecret\n")
    with pytest.raises(InvalidData):
        read(f"{file}#{query.format(other)}", "text")
    assert other.read_text() == "text\nsecret\n"


def test_the_only_table_needs_no_name_and_an_empty_database_has_none(tmp_path):
    connection = sqlite3.connect(tmp_path / "one.db")
    TABLE.to_sql('odd "name"', connection, index=False)
    connection.close()
    assert read(tmp_path / "one.db", "text") == [["good"], ["bad"], [None]]
    sqlite3.connect(tmp_path / "none.db").close()
    (tmp_path / "none.db").touch()
    with pytest.raises(InvalidData, match="the database has no tables"):
        read(tmp_path / "none.db", "text")


def test_a_damaged_database_is_one_line(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2].ljust(len(content) // 2 + 10, b"\xff"))
    with pytest.raises(InvalidData) as caught:
        read(f"{file}#reviews", "text")
    assert "\n" not in str(caught.value)


def test_many_rows_come_in_order(tmp_path):
    connection = sqlite3.connect(tmp_path / "many.db")
    pd.DataFrame({"n": range(10_000)}).to_sql("numbers", connection, index=False)
    connection.close()
    source = TableSource([tmp_path / "many.db"])
    found = [value for chunk in source.chunks(["n"], rows=3000) for value in chunk["n"]]
    assert found == list(range(10_000))
    assert source.position == source.size
