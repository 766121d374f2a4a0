"""One rule for dates with an offset or a time zone, whatever the format of the file: they count as they are written."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quanet.data.periods import group_codes, parse_key
from quanet.data.streams import TableSource
from quanet.evaluation.monitor import number_of

WRITTEN = ["2024-05-31T23:30:00-05:00", "2024-06-01T00:30:00-05:00"]
MOMENTS = [datetime.fromisoformat(text) for text in WRITTEN]
DAYS = ["2024-05-31", "2024-06-01"]


def csv_file(folder):
    pd.DataFrame({"date": WRITTEN}).to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def parquet_file(folder):
    pq.write_table(pa.table({"date": pa.array(MOMENTS, pa.timestamp("us", "America/Bogota"))}), folder / "a.parquet")
    return folder / "a.parquet"


def json_file(folder):
    pd.DataFrame({"date": WRITTEN}).to_json(folder / "a.jsonl", orient="records", lines=True)
    return folder / "a.jsonl"


def workbook(folder):
    pd.DataFrame({"date": WRITTEN}).to_excel(folder / "a.xlsx", index=False)
    return folder / "a.xlsx"


def sqlite_file(folder):
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection:
        pd.DataFrame({"date": WRITTEN}).to_sql("rows", connection, index=False)
    return folder / "a.sqlite"


@pytest.mark.parametrize("write", [csv_file, parquet_file, json_file, workbook, sqlite_file])
def test_the_day_is_the_one_that_is_written(write, tmp_path):
    source = TableSource([write(tmp_path)])
    groups, codes = group_codes(source.read(["date"]), [parse_key("date:day")], source=source)
    assert [groups[code][0] for code in codes] == DAYS


def test_a_moment_without_a_zone_of_its_own_is_in_utc(tmp_path, monkeypatch):
    # DuckDB keeps a moment only; the zone of the machine must not decide the day.
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("create table rows as select timestamptz '2024-05-31 23:30:00+00' as date, 'good' as text")
    for part in ("", "#select * from rows; -- all"):
        table = TableSource([f"{tmp_path / 'a.duckdb'}{part}"]).read(["date", "text"])
        assert table.to_numpy().tolist() == [[datetime(2024, 5, 31, 23, 30), "good"]]


@pytest.mark.filterwarnings("error")
def test_a_monitor_reads_dates_by_the_same_rule():
    expected = number_of("2024-05-31T23:30:00", 0)
    zone = timezone(timedelta(hours=-5))
    for date in (
        "2024-05-31T23:30:00-05:00",
        "2024-05-31T23:30:00Z",
        datetime(2024, 5, 31, 23, 30, tzinfo=zone),
        pd.Timestamp("2024-05-31T23:30:00", tz="Europe/Berlin"),
        np.datetime64("2024-05-31T23:30:00"),
    ):
        assert number_of(date, 0) == expected
