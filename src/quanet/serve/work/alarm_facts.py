"""Alarms: changes that the monitor has found, as sentences and facts; each is announced once."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from quanet.arrays import LabelArray
from quanet.evaluation.monitor_batches import Change
from quanet.files import json_ready
from quanet.report.phrases import percent, points
from quanet.serve.store.alarms import AlarmRow
from quanet.workflows.monitor import date_text


def most_changed(change: Change, classes: LabelArray, focus: str | None) -> int:
    """Position of the class that changed most; of two, which change equally, the one that the project is about."""
    sizes = np.abs(change.after - change.before)
    at = next((at for at, name in enumerate(classes.tolist()) if str(name) == focus), change.largest)
    return at if np.isclose(sizes[at], sizes.max()) else change.largest


def alarm_sentence(change: Change, classes: LabelArray, focus: str | None = None) -> str:
    """A change as a sentence: of the class that changed most, with the levels before and after."""
    c = most_changed(change, classes, focus)
    verb = "rose" if change.after[c] > change.before[c] else "fell"
    drift = " Drift may explain it: label a few texts to tell." if change.may_be_drift else ""
    return (
        f"{classes[c]} {verb} by {points(abs(change.after[c] - change.before[c]))} at {date_text(change.date)}: from "
        f"{percent(change.before[c])} to {percent(change.after[c])}.{drift}"
    )


def alarm_facts(change: Change, classes: LabelArray, focus: str | None = None) -> dict[str, Any]:
    """A change as plain data: when, which class, the levels before and after, the size of the change."""
    c, names = most_changed(change, classes, focus), [str(name) for name in classes.tolist()]
    return json_ready(
        {
            "date": date_text(change.date),
            "found": date_text(change.found),
            "class": names[c],
            "points": round(100 * float(change.after[c] - change.before[c]), 3),
            "before": dict(zip(names, np.round(change.before, 6).tolist(), strict=True)),
            "after": dict(zip(names, np.round(change.after, 6).tolist(), strict=True)),
            "may_be_drift": change.may_be_drift,
        }
    )


def is_known(change: Change, alarms: Iterable[AlarmRow], window: float) -> bool:
    """Whether a change was announced: with more data, its date may have moved by up to half a window (in days)."""
    return any(_near(date_text(change.date), alarm.date, window / 2) for alarm in alarms)


def _near(first: str, second: str, days: float) -> bool:
    if first == second:
        return True
    try:
        apart = np.datetime64(first, "s") - np.datetime64(second, "s")
    except ValueError:
        return False
    return bool(abs(apart) <= np.timedelta64(int(days * 86_400), "s"))
