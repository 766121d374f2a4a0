"""Dates: a format is found if only one fits, never guessed; with a time zone, they count as they are written."""

import math
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet.data.columns import numbers_of, numeric_columns, weights_of
from quanet.data.dataset import read_table
from quanet.data.periods import (
    FORMATS,
    Groups,
    Key,
    check_date_format,
    detect_formats,
    group_codes,
    parse_key,
    period_of,
    read_day,
)
from quanet.data.streams import TableSource
from quanet.errors import Detected, InvalidData, InvalidSetting
from quanet.evaluation.monitor import number_of


@pytest.mark.parametrize(
    ("value", "period", "expected"),
    [
        ("2024-12-30", "week", "2025-W01"),  # the week of a Thursday's year
        ("2021-01-03", "week", "2020-W53"),
        ("2024-04-01", "quarter", "2024-Q2"),
        ("20240401", "month", "2024-04"),
        ("2024-04-01T23:59:59.5+02:00", "day", "2024-04-01"),
        (" 2024-04-01 ", "year", "2024"),
        (date(2024, 4, 1), "month", "2024-04"),
        (datetime(2024, 4, 1, 23, tzinfo=UTC), "day", "2024-04-01"),
        ("2024-04-01T23:30:00Z", "day", "2024-04-01"),
        ("2024-04-01 23:30:00 -0500", "day", "2024-04-01"),
        ("2024-04-01T23:30+02:00[Europe/Berlin]", "day", "2024-04-01"),
        ("2024-04-01 11:30:00 PM CEST", "day", "2024-04-01"),
        ("20240401T233000Z", "day", "2024-04-01"),
    ],
)
def test_periods_are_iso(value, period, expected):
    assert period_of(value, period) == expected


GARBAGE = ["2024-05-31T23:30:00Z garbage", "2024-05-31 23:30 or later", "2024-05-31T23:30:00Z2", "2024-05-31T12:99"]


@pytest.mark.parametrize("value", ["2024-13-01", "2023-02-29", "01/02/2024", "yesterday", "", 20240401, 1.5, *GARBAGE])
def test_what_is_no_date_is_refused(value):
    with pytest.raises(ValueError, match=r"date|month|day"):
        period_of(value, "day")


def test_a_period_sorts_as_time_does():
    days = pd.date_range("2023-11-20", "2024-02-20").strftime("%Y-%m-%d")
    for period in ("day", "week", "month", "quarter", "year"):
        found = [period_of(day, period) for day in days]
        assert found == sorted(found)


def test_keys():
    assert parse_key("date:week") == Key("date", "week")
    assert parse_key("a:b:") == Key("a:b")
    with pytest.raises(InvalidSetting, match=r"Unknown period 'moth' in 'date:moth'. Choose from month.*'date:moth:'"):
        parse_key("date:moth")


def test_groups_are_sorted_numbers_by_size_and_the_same_in_chunks():
    table = pd.DataFrame({"shop": ["b", "a", None, "b"], "size": [10, 9, 9, 9]}, dtype=object)
    keys = [Key("shop"), Key("size")]
    groups, codes = group_codes(table, keys)
    assert groups == [("a", "9"), ("b", "9"), ("b", "10"), ("(empty)", "9")]
    assert codes.tolist() == [2, 0, 3, 1]
    grown = Groups(keys)
    parts = [grown.codes(table[:1]), grown.codes(table[1:])]
    order, again = grown.in_order(np.concatenate(parts))
    assert order == groups
    assert again.tolist() == codes.tolist()


def test_rows_without_a_required_value_are_in_no_group():
    table = pd.DataFrame({"shop": ["b", None]}, dtype=object)
    assert group_codes(table, [Key("shop").as_required()])[1].tolist() == [0, -1]


def test_without_keys_all_rows_are_one_group():
    groups, codes = group_codes(pd.DataFrame({"x": [1, 2]}), [])
    assert (groups, codes.tolist()) == ([()], [0, 0])


def test_a_date_that_is_none_is_named():
    table = pd.DataFrame({"date": ["2024-01-01", "soon"]}, dtype=object)
    with pytest.raises(InvalidData, match=r"row 2: 'soon' in column 'date' is not a date in ISO 8601.*--date-format"):
        group_codes(table, [Key("date", "day")])
    with pytest.raises(InvalidData, match=r"row 1: '2024-01-01' in column 'date' is not a date in the format %d"):
        group_codes(table, [Key("date", "day")], form="%d")


def test_far_too_many_groups_are_an_error(monkeypatch):
    monkeypatch.setattr("quanet.data.periods.MAX_GROUPS", 5)
    table = pd.DataFrame({"id": range(6), "time": [f"2024-01-01 00:00:{n:02}" for n in range(6)]}, dtype=object)
    with pytest.raises(InvalidData, match=r"'id' give more than 5 groups\. Group by a column"):
        group_codes(table, [Key("id")])
    groups = Groups([Key("time", "day")])
    assert [groups.codes(table).tolist() for _ in range(2)] == [[0] * 6] * 2  # what it remembers stays bounded
    assert len(groups._known[0]) == 6


def named(values, key="v", **settings):
    table = pd.DataFrame({"v": pd.Series(values, dtype=object)})
    groups, codes = group_codes(table, [parse_key(key)], **settings)
    return [values[0] for values in groups], codes.tolist()


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, [[[]]]])
def test_several_values_in_a_cell_are_no_group_and_are_named(cell):
    with pytest.raises(InvalidData, match=r"row 2, column 'v': .* contains several values"):
        named(["x", cell])


@pytest.mark.parametrize("order", [(True, 1), (1, True), (True, 1.0)])
def test_true_is_not_the_number_one(order):
    groups, codes = named(order)
    assert sorted(groups) == ["1", "True"]
    assert len(set(codes)) == 2


def test_one_number_is_one_group_however_it_is_written():
    # A column of whole numbers that has a gap is one of floats in Parquet.
    assert named([1, 1.0, 2.5]) == (["1", "2.5"], [0, 0, 1])


def test_a_group_called_nan_leaves_the_others_in_order():
    names = ["10", "nan", "9", "inf", "b", "-inf", "a", "NaN", "1e400"]
    assert named(names)[0] == ["9", "10", "-inf", "1e400", "NaN", "a", "b", "inf", "nan"]
    assert named(names[::-1])[0] == named(names)[0]


def test_months_and_years_are_dates_of_periods_that_are_as_long():
    assert named(["2010-08", "2010-08-31"], "v:month")[0] == ["2010-08"]
    assert named(["2010-08", "2011"], "v:year")[0] == ["2010", "2011"]
    assert named([2010, "2011-08"], "v:year")[0] == ["2010", "2011"]
    with pytest.raises(InvalidData, match=r"'2010-08' .* is a month and does not determine the day. Group by month or"):
        named(["2010-08"], "v:day")
    with pytest.raises(InvalidData, match=r"'2010' .* is a year and does not determine the month. Group by year"):
        named(["2010"], "v:month")


def test_a_format_is_advised_that_reads_the_date_and_is_not_the_one_that_failed():
    with pytest.raises(InvalidData, match=r"--date-format: '%m/%d/%Y'") as caught:
        named(["05/31/2024"], "v:month", form="%d/%m/%Y")
    assert "'%d/%m/%Y'" not in str(caught.value)
    with pytest.raises(InvalidData, match=r"'31/05/2024' .* is not a date in ISO 8601.*--date-format: '%d/%m/%Y'"):
        named(["31/05/2024", "2024-05-31"], "v:month")  # two formats


@pytest.mark.parametrize("form", ["%", "%Q", "%Y%Y", "%-d"])
def test_what_is_no_format_of_dates_is_refused(form):
    with pytest.raises(InvalidSetting, match="is not a date format"):
        check_date_format(form)


DAYS = st.dates(date(1990, 1, 1), date(2060, 12, 31))


def months(values, key="d:month", **settings):
    table = pd.DataFrame({"d": pd.Series(values, dtype=object)})
    groups, codes = group_codes(table, [parse_key(key)], **settings)
    return [groups[code][0] for code in codes]


@settings(max_examples=100, deadline=None)
@given(st.lists(DAYS, min_size=1, max_size=20), st.sampled_from([form for form in FORMATS if "%d" in form]))
def test_a_format_is_found_or_among_the_choices(days, form):
    found = detect_formats([day.strftime(form) for day in days])
    assert any(all(read_day(day.strftime(form), one) == day for day in days) for one in found)
    if any(day.day > 12 for day in days) and "%Y" in form:
        assert len(found) == 1


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        (["31/12/2024", "01/02/2024"], "%d/%m/%Y", ["2024-12", "2024-02"]),
        (["12/31/2024", "01/02/2024"], "%m/%d/%Y", ["2024-12", "2024-01"]),
        (["1.2.2024", "3.4.2024 18:30"], "%d.%m.%Y", ["2024-02", "2024-04"]),  # with dots, the day comes first
        (["May 2024", "June 2024"], "%B %Y", ["2024-05", "2024-06"]),
        (["May-24", "Jun-24"], "%b-%y", ["2024-05", "2024-06"]),
        (["05/2024", "06/2024"], "%m/%Y", ["2024-05", "2024-06"]),
        ([202405, 202406], "%Y%m", ["2024-05", "2024-06"]),
        ([20240531], "%Y%m%d", ["2024-05"]),
        (["45292", "45323"], "excel", ["2024-01", "2024-02"]),  # 1 January and 1 February 2024
        ([45292.75], "excel", ["2024-01"]),
        ([1714521600, 1717200000], "unix", ["2024-05", "2024-06"]),
        (["1714521600000"], "unix", ["2024-05"]),
        (["31/12/2024 11:59 PM"], "%d/%m/%Y", ["2024-12"]),
        (["2024-5-3", "2024-11-30"], "%Y-%m-%d", ["2024-05", "2024-11"]),
        (["Dec 31, 2024", "May 1, 2024"], "%b %d, %Y", ["2024-12", "2024-05"]),
        (["31/12/2024", date(2024, 1, 1)], "%d/%m/%Y", ["2024-12", "2024-01"]),
    ],
)
def test_a_format_is_detected_and_reported(values, form, expected):
    with pytest.warns(Detected, match=rf"dates in 'd' have the format {form} \(detected: .* is \d+ \w+ 20\d\d\)"):
        assert months(values) == expected
    assert months(values, form=form) == expected
    assert check_date_format(form) == form


def test_iso_dates_are_read_without_a_report():
    assert months(["2024-05-31", "2024-06", "2024-05-31T12:00:00Z", "20240701"]) == [
        "2024-05",
        "2024-06",
        "2024-05",
        "2024-07",
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["03/04/2024", "05/06/2024"], r"row 1: '03/04/2024' .* several formats.* '%d/%m/%Y' or '%m/%d/%Y'"),
        (["03-04-2024"], r"--date-format: '%d-%m-%Y' or '%m-%d-%Y'"),
        (["01/02/03"], "'%d/%m/%y' or '%m/%d/%y' or '%y/%m/%d'"),
        (["31/12/2024", "12/31/2024"], "row 1: '31/12/2024' .* is not a date in ISO 8601"),
        (["31/12/2024", "2024-12-31"], "row 1: '31/12/2024' .* is not a date in ISO 8601"),
        ([7, 12], "row 1: 7 .* is not a date"),
        ([[1]], "is not a date"),
        (["31/12/2024", "soon"], "is not a date"),
    ],
)
def test_what_is_ambiguous_or_mixed_is_an_error(values, message):
    with pytest.raises(InvalidData, match=message):
        months(values)


def test_a_month_has_no_day():
    with pytest.raises(InvalidData, match=r"'May 2024' .* is a month and does not determine the week. Group by month"):
        months(["May 2024"], "d:week")


@pytest.mark.parametrize("value", ["x", True, -1, 1e30, None])
def test_what_is_no_number_of_days_is_refused(value):
    with pytest.raises(ValueError, match="not a date"):
        read_day(value, "excel")


def source_of(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    return TableSource([tmp_path / "a.csv"])


def test_decimal_commas_are_numbers_and_reported(tmp_path):
    source = source_of(tmp_path, "x;y;label\n3,5;1.234,5;a\n-0,125;7;b\n;1,5e3;a\n")
    assert numeric_columns(source) == ["x", "y"]
    table = source.read(["x", "y"])
    with pytest.warns(Detected, match=r"numbers in 'x' have a decimal comma \(detected: 3,5 is 3.5\)"):
        assert numbers_of(table["x"], source) == [3.5, -0.125, None]
    with pytest.warns(Detected, match="'y'"):
        assert weights_of(table["y"], source).tolist() == [1234.5, 7, 1500]
    frame = read_table(tmp_path / "a.csv")
    assert frame["x"].tolist()[:2] == [3.5, -0.125]
    assert math.isnan(frame["x"].iloc[2])


def test_commas_between_thousands(tmp_path):
    source = source_of(tmp_path, "x\tlabel\n1,234.5\ta\n1,234,567\tb\n12\tb\n")
    with pytest.warns(Detected, match=r"thousands comma \(detected: 1,234.5 is 1234.5\)"):
        assert numbers_of(source.read(["x"])["x"], source) == [1234.5, 1234567, 12]


def test_an_unclear_comma_is_explained(tmp_path):
    source = source_of(tmp_path, "x;label\n12;a\n1,234;b\n")
    table = source.read(["x"])
    with pytest.raises(InvalidData, match=r"row 2: '1,234' in column 'x' may be 1.234 or 1234. Write numbers with a"):
        numbers_of(table["x"], source)
    assert read_table(tmp_path / "a.csv")["x"].tolist() == ["12", "1,234"]  # not guessed
    mixed = source_of(tmp_path, "x;label\n3.5;a\n3,5;b\n")
    assert numeric_columns(mixed) == []
    assert numbers_of(mixed.read(["x"])["x"], mixed) == [3.5, None]


WRITTEN = ["2024-05-31T23:30:00-05:00", "2024-06-01T00:30:00-05:00"]
MOMENTS = [datetime.fromisoformat(text) for text in WRITTEN]
ZONED = ["2024-05-31", "2024-06-01"]


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
    assert [groups[code][0] for code in codes] == ZONED


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
    for value in (
        "2024-05-31T23:30:00-05:00",
        "2024-05-31T23:30:00Z",
        datetime(2024, 5, 31, 23, 30, tzinfo=zone),
        pd.Timestamp("2024-05-31T23:30:00", tz="Europe/Berlin"),
        np.datetime64("2024-05-31T23:30:00"),
    ):
        assert number_of(value, 0) == expected
