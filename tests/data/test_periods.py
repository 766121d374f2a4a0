from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from quanet.data.periods import Groups, Key, check_date_format, group_codes, parse_key, period_of
from quanet.errors import InvalidData, InvalidSetting


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
