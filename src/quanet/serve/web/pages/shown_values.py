"""Values as pages show them: those of `quanet.wording` with spaces that do not break."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from quanet import wording
from quanet.wording import NONE
from quanet.wording import class_name as class_name

DOING = {
    "check": "Looking at the file",
    "train": "Training",
    "predict": "Estimating shares",
    "overview": "Updating the overview",
    "difference": "Comparing",
    "plan": "Choosing texts to label",
    "refine": "Refining with your labels",
    "monitor": "Looking for changes",
    "webhook": "Sending the alarm",
    "demo": "Preparing the film reviews",
}
_INTERVAL = re.compile(r"\((\d[\d.,]* to [\d.,]+\u00a0%|within [\d.,]+ points)\)")


def percent(share: float | None) -> str:
    r"""A share with its unit.

    Examples
    --------
    >>> percent(0.3724), percent(None)
    ('37.2\xa0%', '--')
    """
    return NONE if share is None else wording.percent(share).replace(" %", "\u00a0%")


def between(ends: tuple[float | None, float | None]) -> str:
    r"""An interval of shares.

    Examples
    --------
    >>> between((0.349, 0.396))
    '34.9 to 39.6\xa0%'
    """
    lower, upper = ends
    return NONE if lower is None or upper is None else wording.between(lower, upper).replace(" %", "\u00a0%")


def points(width: float) -> str:
    """A width in percentage points, without the unit.

    Examples
    --------
    >>> points(0.0912), points(0.0044), points(0.00001)
    ('9.1', '0.44', 'less than 0.01')
    """
    return wording.points(width).removesuffix(" points")


def place(share: float | None, low: float, high: float) -> str:
    """Where a share is on a scale, in percent of its length.

    Examples
    --------
    >>> place(0.3, 0.2, 0.6), place(2.0, 0, 1)
    ('25.00', '100.00')
    """
    return f"{100 * min(max(((share or 0) - low) / (high - low), 0.0), 1.0):.2f}"


def number(value: float) -> str:
    """A whole number with separators."""
    return f"{value:,.0f}"


def moment(seconds: float) -> Markup:
    """A time, with the machine's form for scripts."""
    return _time(seconds, "%-d %B %Y, %H:%M UTC")


def day(seconds: float) -> Markup:
    """A date."""
    return _time(seconds, "%-d %B %Y")


def _time(seconds: float, form: str) -> Markup:
    at = datetime.fromtimestamp(seconds, UTC)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(timespec="seconds"), at.strftime(form))


def short(text: Any, most: int = 30) -> str:
    r"""A text in one line, shortened if it is too long.

    Examples
    --------
    >>> short("two\n lines"), short("a rather long label", 10)
    ('two lines', 'a rather …')
    """
    line = " ".join(str("" if text is None else text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def softened(sentence: str) -> Markup:
    """A sentence whose intervals are less prominent than its estimates."""
    unbroken = sentence.replace(" %", "\u00a0%")
    return Markup(_INTERVAL.sub(r'<span class="interval">(\1)</span>', str(escape(unbroken))))


def doing(kind: str) -> str:
    """What a job does."""
    return DOING.get(kind, "Working")


def class_position(classes: Sequence[Any], wanted: Any) -> int:
    """Which class a page shows first: the one in the settings, or the last of two, or the first.

    Examples
    --------
    >>> class_position(["negative", "positive"], "negative"), class_position(["no", "yes"], None)
    (0, 1)
    """
    names = [str(name) for name in classes]
    if wanted is not None and str(wanted) in names:
        return names.index(str(wanted))
    return 1 if len(names) == 2 else 0


def group_name(values: Sequence[Any]) -> str:
    """The name of a group, as reports show it."""
    return " · ".join("(empty)" if value in (None, "") else str(value) for value in values)
