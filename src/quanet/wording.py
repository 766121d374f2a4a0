"""Numbers, ranges and names as text: one way to write each, in messages, findings, reports and pages.

A reader in a hurry sees per cent with a space ("62.5 %"), thousands with commas, "2.7 million" instead of 2.7106e+06,
"below 0.1 %" for a share that is small but not 0, and no range whose ends look the same.
"""

import math
from collections.abc import Sequence
from typing import Any

NONE = "--"  # where a value is missing
EXACT = 1e-9  # a share this close to 0 or 1 is 0 or 1; the rest is the error of floating-point numbers
SHOWN_AS_ZERO = 0.0005  # smaller shares are shown as 0.0 % or as below 0.1 %
LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def percent(share: float, *, digits: int = 1) -> str:
    """A share with its unit; one that is too small for the digits is not shown as 0, nor its counterpart as 100 %.

    Examples
    --------
    >>> percent(0.3724), percent(0.95, digits=0), percent(float("nan"))
    ('37.2 %', '95 %', '--')
    >>> percent(0.0003), percent(0.9998), percent(0.0), percent(1.0)
    ('below 0.1 %', 'above 99.9 %', '0.0 %', '100.0 %')
    """
    if math.isnan(share):
        return NONE
    text, last = f"{100 * share:.{digits}f}", 10.0**-digits
    if share > EXACT and float(text) == 0:
        return f"below {last:.{digits}f} %"
    if share < 1 - EXACT and float(text) == 100:
        return f"above {100 - last:.{digits}f} %"
    return f"{text} %"


def level_text(level: float) -> str:
    """A confidence level, with as many digits as needed.

    Examples
    --------
    >>> level_text(0.95), level_text(0.999)
    ('95 %', '99.9 %')
    """
    return f"{round(100 * level, 6):g} %"


def between(lower: float, upper: float) -> str:
    """An interval of shares, to follow the estimate; one whose ends look the same is given by its size.

    Examples
    --------
    >>> between(0.349, 0.396), between(0.5398, 0.5401)
    ('34.9 to 39.6 %', 'within 0.1 points')
    """
    if math.isnan(lower):
        return NONE
    ends = span(lower, upper)
    return f"{ends} %" if " to " in ends else f"{ends} points"


def share_text(estimate: float, lower: float, upper: float) -> str:
    """A share with its interval, in a sentence; one that is shown as 0.0 % with what cannot be ruled out.

    Examples
    --------
    >>> share_text(0.372, 0.349, 0.396), share_text(0.0, 0.0, 0.043)
    ('37.2 % (34.9 to 39.6 %)', '0.0 % (up to 4.3 % cannot be ruled out)')
    """
    if estimate < SHOWN_AS_ZERO:
        return f"{percent(estimate)} (up to {upper_text(upper)} cannot be ruled out)"
    return f"{percent(estimate)} ({between(lower, upper)})"


def upper_text(share: float) -> str:
    """The upper end of an interval of a share that is shown as 0.0 %, never as 0.0 % itself.

    Examples
    --------
    >>> upper_text(0.043), upper_text(0.0001)
    ('4.3 %', '0.05 %')
    """
    return f"{100 * share:.1f} %" if share >= SHOWN_AS_ZERO else f"{100 * SHOWN_AS_ZERO:.2f} %"


def span(lower: float, upper: float, *, digits: int = 1) -> str:
    """A range of shares in percent or points, without the unit; if its ends look the same, its size.

    Examples
    --------
    >>> span(0.349, 0.396), span(0.5398, 0.5401), span(-0.0001, 0.0812)
    ('34.9 to 39.6', 'within 0.1', '0.0 to 8.1')
    """
    low, high = (f"{_rounded(100 * end, digits):.{digits}f}" for end in (lower, upper))
    return f"{low} to {high}" if low != high else f"within {10.0**-digits:.{digits}f}"


def points(error: float, *, full: bool = False) -> str:
    """A difference of shares in percentage points; small ones with two decimals.

    Examples
    --------
    >>> points(0.0482), points(0.0092, full=True), points(0.00004), points(0)
    ('4.8 points', '0.92 percentage points', 'less than 0.01 points', '0 points')
    """
    unit = "percentage points" if full else "points"
    if abs(error) < 0.00005:
        return f"{'0' if abs(error) < EXACT else 'less than 0.01'} {unit}"
    return f"{100 * error:.{1 if abs(error) >= 0.0095 else 2}f} {unit}"


def plus_minus(half: float) -> str:
    """The half-width of an interval in points.

    Examples
    --------
    >>> plus_minus(0.031), plus_minus(0.00001)
    ('±3.1 points', 'less than ±0.01 points')
    """
    return f"±{points(half)}" if half >= 0.00005 else "less than ±0.01 points"


def signed(value: float, digits: int = 1) -> str:
    """A difference in points, with its sign; 0 has none.

    Examples
    --------
    >>> signed(0.0123), signed(-0.2), signed(-0.0001)
    ('+1.2', '-20.0', '0.0')
    """
    number = _rounded(100 * value, digits)
    return f"{number:+.{digits}f}" if number else f"{0:.{digits}f}"


def signed_span(lower: float, upper: float, digits: int = 1) -> str:
    """A range of differences in points, with signs; if its ends look the same, its size.

    Examples
    --------
    >>> signed_span(-0.012, 0.034), signed_span(-0.0002, 0.0001)
    ('-1.2 to +3.4', 'within 0.1')
    """
    low, high = signed(lower, digits), signed(upper, digits)
    return f"{low} to {high}" if low != high else f"within {10.0**-digits:.{digits}f}"


def probability(p: float) -> str:
    """A probability with three digits and no leading zero.

    Examples
    --------
    >>> probability(0.0312), probability(0.00002)
    ('.031', '< .001')
    """
    return "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def p_value(p: float) -> str:
    """A p-value as part of a sentence.

    Examples
    --------
    >>> p_value(0.0312), p_value(3e-15)
    ('p = .031', 'p < .001')
    """
    return f"p {'' if p < 0.001 else '= '}{probability(p)}"


def quantity(value: float) -> str:
    """A number that need not be whole, such as a sum of weights, without an exponent.

    Examples
    --------
    >>> quantity(2710600), quantity(12345.6), quantity(12.5), quantity(0.02), quantity(3e-9)
    ('2.7 million', '12,346', '12.5', '0.02', 'below 0.001')
    >>> quantity(3.2e17), quantity(0), quantity(float("nan"))
    ('over 1,000 trillion', '0', '--')
    """
    if math.isnan(value):
        return NONE
    if value >= 1e15:
        return "over 1,000 trillion"
    for size, name in LARGE:
        if value >= size:
            return f"{value / size:,.1f} {name}"
    if value >= 999.5:  # with three digits, g would write 1e+03
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 or value == 0 else "below 0.001"


def many(number: int, one: str, more: str = "") -> str:
    """A number and a noun.

    Examples
    --------
    >>> many(1, "group"), many(2431, "instance"), many(2, "class", "classes")
    ('1 group', '2,431 instances', '2 classes')
    """
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def listing(words: Sequence[str], *, most: int = 6) -> str:
    """Words as part of a sentence; of many, the first ones and the number of the others.

    Examples
    --------
    >>> listing(["a"]), listing(["a", "b", "c"]), listing(list("abcdefgh"), most=3)
    ('a', 'a, b and c', 'a, b, c and 5 more')
    """
    if len(words) > most + 1:
        return f"{', '.join(words[:most])} and {len(words) - most:,} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def class_name(label: Any) -> str:
    """A class in a sentence; "class" before a label that would be read as a number.

    Examples
    --------
    >>> class_name("negative"), class_name("5"), class_name(0)
    ('negative', 'class 5', 'class 0')
    """
    return f"class {label}" if _is_number(label) else str(label)


def with_share(label: Any, share: str) -> str:
    """A class and its share; a colon keeps a number and the share apart.

    Examples
    --------
    >>> with_share("negative", "71.0 %"), with_share("5", "62.5 %")
    ('negative 71.0 %', 'class 5: 62.5 %')
    """
    return f"{class_name(label)}{':' if _is_number(label) else ''} {share}"


def _is_number(label: Any) -> bool:
    try:
        float(str(label))
    except ValueError:
        return False
    return True


def _rounded(number: float, digits: int) -> float:
    """A rounded number; 0.0 instead of -0.0."""
    return round(number, digits) + 0.0
