"""Numbers as text, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet.wording import (
    between,
    class_name,
    level_text,
    listing,
    many,
    p_value,
    percent,
    plus_minus,
    points,
    probability,
    quantity,
    signed,
    signed_span,
    span,
    with_share,
)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.625, "62.5 %"),
        (0.0, "0.0 %"),
        (1e-17, "0.0 %"),
        (1 / 3000, "below 0.1 %"),
        (0.0006, "0.1 %"),
        (0.9996, "above 99.9 %"),
        (1 - 1e-12, "100.0 %"),
        (float("nan"), "--"),
    ],
)
def test_a_share_that_is_not_zero_is_not_shown_as_zero(share, text):
    assert percent(share) == text


def test_shares_without_decimals_keep_the_rule():
    assert [percent(share, digits=0) for share in (0.004, 0.3, 0.996, 1.0)] == [
        "below 1 %",
        "30 %",
        "above 99 %",
        "100 %",
    ]


@given(st.floats(0, 1), st.floats(0, 1))
def test_no_interval_has_ends_that_look_the_same(first, second):
    text = between(min(first, second), max(first, second))
    ends = text.removesuffix(" %").split(" to ")
    assert text == "within 0.1 points" or ends[0] != ends[1]


def test_an_interval_whose_ends_look_the_same_is_given_by_its_size():
    assert f"{percent(0.54)} ({between(0.5401, 0.5402)})" == "54.0 % (within 0.1 points)"
    assert between(0.34, 0.41) == "34.0 to 41.0 %"
    assert between(0.0, 0.0) == "within 0.1 points"
    assert between(float("nan"), float("nan")) == "--"
    assert span(0.0301, 0.0304, digits=2) == "3.01 to 3.04"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (0.0482, "4.8 points"),
        (0.0092, "0.92 points"),
        (0.00004, "less than 0.01 points"),
        (-0.00004, "less than 0.01 points"),
        (0.0, "0 points"),
    ],
)
def test_no_difference_is_shown_as_0_00_points(error, text):
    assert points(error) == text


def test_signs_of_differences():
    assert [signed(value) for value in (0.041, -0.041, 0.0, -0.0003)] == ["+4.1", "-4.1", "0.0", "0.0"]
    assert signed_span(-0.02, 0.06) == "-2.0 to +6.0"
    assert signed_span(-0.0002, 0.0003) == "within 0.1"
    assert signed_span(-0.00001, 0.00002, 2) == "within 0.01"
    assert plus_minus(0.05) == "±5.0 points"
    assert plus_minus(0.0) == "less than ±0.01 points"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2710600, "2.7 million"),
        (2.7106e9, "2.7 billion"),
        (1e12, "1.0 trillion"),
        (float("inf"), "over 1,000 trillion"),
        (912003, "912,003"),
        (999.96, "1,000"),
        (12.0, "12"),
        (0.125, "0.125"),
        (1e-9, "below 0.001"),
        (0, "0"),
    ],
)
def test_quantities_have_no_exponent(value, text):
    assert quantity(value) == text


@given(st.floats(0, 1e300))
def test_a_quantity_never_has_an_exponent(value):
    assert "e+" not in quantity(value)
    assert "e-" not in quantity(value)


def test_probabilities_and_levels():
    assert [p_value(p) for p in (0.12, 0.0312, 4.7e-07, 1.0)] == ["p = .120", "p = .031", "p < .001", "p = 1.000"]
    assert probability(0.0005) == "< .001"
    assert [level_text(level) for level in (0.95, 0.999, 0.9)] == ["95 %", "99.9 %", "90 %"]


def test_one_is_singular_and_thousands_have_commas():
    assert [many(number, "row") for number in (0, 1, 2, 12345)] == ["0 rows", "1 row", "2 rows", "12,345 rows"]
    assert many(1, "class", "classes") == "1 class"
    assert listing(["a", "b"]) == "a and b"
    assert listing([str(number) for number in range(1500)], most=2) == "0, 1 and 1,498 more"
    assert listing([]) == ""


def test_a_class_that_is_a_number_is_called_a_class():
    assert with_share("5", percent(0.625)) == "class 5: 62.5 %"
    assert with_share("positive", percent(0.625)) == "positive 62.5 %"
    assert [class_name(label) for label in ("1e3", 4.0, np.int64(3), "v2", "")] == [
        "class 1e3",
        "class 4.0",
        "class 3",
        "v2",
        "",
    ]
