"""Differences and trends as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quanet.report.phrases import class_name, points, signed, signed_span, span

if TYPE_CHECKING:
    from quanet.uncertainty.differences import Differences, Trend


def change_sentence(differences: Differences, i: int, c: int, *, over_time: bool) -> str:
    """One difference as a sentence.

    Examples
    --------
    >>> from quanet import Differences
    >>> found = Differences.of(["2016"], ["2017"], [[0.041]], [[0.019]], [[0.063]], [[0.001]], level=0.95,
    ...                        classes=["negative"])
    >>> change_sentence(found, 0, 0, over_time=True)
    'negative rose by 4.1 points (1.9 to 6.3) from 2016 to 2017.'
    >>> change_sentence(found, 0, 0, over_time=False)
    'negative is 4.1 points (1.9 to 6.3) higher in 2017 than in 2016.'
    """
    estimate, lower, upper = (
        float(part[i, c]) for part in (differences.estimate, differences.lower, differences.upper)
    )
    first, second, name = differences.first[i], differences.second[i], class_name(differences.classes[c])
    if not differences.significant[i, c]:
        where = f"from {first} to {second}" if over_time else f"between {second} and {first}"
        return (
            f"{name}: no clear {'change' if over_time else 'difference'} {where} "
            f"({signed(estimate)} points, {signed_span(lower, upper)})."
        )
    size = f"{points(abs(estimate))} ({_ends(estimate, lower, upper)})"
    if over_time:
        return f"{name} {'rose' if estimate > 0 else 'fell'} by {size} from {first} to {second}."
    return f"{name} is {size} {'higher' if estimate > 0 else 'lower'} in {second} than in {first}."


def _ends(estimate: float, lower: float, upper: float, digits: int = 1) -> str:
    return span(*((lower, upper) if estimate > 0 else (-upper, -lower)), digits=digits)


def trend_sentence(trend: Trend, c: int, period: str, series: str = "") -> str:
    """The trend of one class as a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from quanet import Trend
    >>> found = Trend(*np.array([[0.008], [0.003], [0.013], [0.002]]), 0.95, np.array(["negative"]), "May", "July", 3)
    >>> trend_sentence(found, 0, "month")
    'Trend: negative rose by 0.80 points per month (0.30 to 1.30).'
    """
    estimate, lower, upper = (float(part[c]) for part in (trend.estimate, trend.lower, trend.upper))
    digits = 1 if max(abs(lower), abs(upper)) >= 0.02 else 2
    what = f"Trend{f' of {series}' if series else ''}: {class_name(trend.classes[c])}"
    if trend.p_value[c] >= 1 - trend.level:
        ends = signed_span(lower, upper, digits)
        return f"{what} shows no clear trend ({signed(estimate, digits)} points per {period}, {ends})."
    verb = "rose" if estimate > 0 else "fell"
    return (
        f"{what} {verb} by {100 * abs(estimate):.{digits}f} points per {period} "
        f"({_ends(estimate, lower, upper, digits)})."
    )
