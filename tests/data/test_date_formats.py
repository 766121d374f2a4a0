"""Formats of dates: found if only one fits, never guessed."""

import math
from datetime import date

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet.data.columns import numbers_of, numeric_columns, weights_of
from quanet.data.date_formats import FORMATS, detect_formats, read_day
from quanet.data.periods import check_date_format, group_codes, parse_key
from quanet.data.streams import TableSource
from quanet.data.tables import read_table
from quanet.errors import Detected, InvalidData

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
