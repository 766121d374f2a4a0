"""Groups of an answer as a page lists them: a part at a time, on one scale."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quanet.serve.web.pages.setup_columns import PERIODS
from quanet.serve.web.pages.shown_values import class_position, group_name

AT_ONCE = 30  # groups on a page
EXAMPLES = 3  # texts of a group
STATES = ("trusted", "few rows", "widened", "refused", "unknown")


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group on a page; `key` is its values as JSON, which a form sends back."""

    number: int
    key: str
    name: str
    n: int
    estimate: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]
    counted: Sequence[float]
    state: str
    labels: int
    examples: Sequence[str]


def group_values(data: Mapping[str, Any], show: Any, *, page: int = 1, compare: int | None = None) -> dict[str, Any]:
    """What the template of groups needs.

    Parameters
    ----------
    data : of the answer.
    show : the class of the settings.
    page : which part of the groups, from 1.
    compare : the number of the group that is compared with another one.
    """
    found = [_line(number, one) for number, one in enumerate(data.get("groups") or []) if one.get("group")]
    pages = max(1, -(-len(found) // AT_ONCE))
    page = min(max(page, 1), pages)
    classes = list(data.get("classes") or [])
    c = class_position(classes, show)
    counts = Counter(one.state for one in found)
    low, high = _ends([one for one in found if len(one.lower) > c], c)
    return {
        "groups": found[(page - 1) * AT_ONCE : page * AT_ONCE],
        "classes": classes,
        "c": c,
        "keys": [_key_name(str(key)) for key in data.get("keys") or ["group"]],
        "states": [(name, counts[name]) for name in STATES if counts[name]],
        "compare": next((one for one in found if one.number == compare), None),
        "page": page,
        "pages": pages,
        "low": low,
        "high": high,
    }


def _key_name(key: str) -> str:
    """A key as a heading has it.

    Examples
    --------
    >>> _key_name("posted:month"), _key_name("shop")
    ('month of posted', 'shop')
    """
    column, _, period = key.rpartition(":")
    return f"{period} of {column}" if column and period in PERIODS else key


def _line(number: int, one: Mapping[str, Any]) -> GroupLine:
    return GroupLine(
        number,
        json.dumps([str(value) for value in one["group"]]),
        group_name(one["group"]),
        int(one.get("n") or 0),
        one.get("estimate") or [],
        one.get("lower") or [],
        one.get("upper") or [],
        one.get("counted") or [],
        str(one.get("state") or "unknown"),
        int(one.get("labels") or 0),
        list(one.get("examples") or [])[:EXAMPLES],
    )


def _ends(groups: Sequence[GroupLine], c: int) -> tuple[float, float]:
    """The scale of the bands: round shares around all of them."""
    lows = [one.lower[c] for one in groups if one.lower[c] is not None]
    highs = [one.upper[c] for one in groups if one.upper[c] is not None]
    return scale_of(min(lows, default=0.0), max(highs, default=1.0))


def scale_of(low: float, high: float) -> tuple[float, float]:
    """Round ends of a scale around two shares.

    Examples
    --------
    >>> scale_of(0.327, 0.417), scale_of(0.02, 0.99)
    ((0.3, 0.45), (0.0, 1.0))
    """
    step = 0.05
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return round(max(bottom, 0.0), 4), round(min(max(top, bottom + step), 1.0), 4)
