"""Recurring parts of reports: cells, facts, the section about checks, the class that comes first.

Numbers as text come from `quanet.wording`.
"""

from __future__ import annotations

import math
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.errors import InvalidSetting
from quanet.evaluation.findings import SEVERITIES, Diagnosis, Finding
from quanet.report.summary import Section, TableEntry
from quanet.wording import between as between
from quanet.wording import class_name as class_name
from quanet.wording import level_text as level_text
from quanet.wording import listing as listing
from quanet.wording import many as many
from quanet.wording import p_value as p_value
from quanet.wording import percent as percent
from quanet.wording import points as points
from quanet.wording import probability as probability
from quanet.wording import quantity as quantity
from quanet.wording import share_text as share_text
from quanet.wording import signed as signed
from quanet.wording import signed_span as signed_span
from quanet.wording import span as span
from quanet.wording import with_share as with_share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.arrays import IntArray, LabelArray

PACKAGES = ("quanet", "numpy", "scipy", "scikit-learn", "torch")


def share_entry(estimate: float, lower: float, upper: float) -> TableEntry:
    """A share and its interval as a cell of a table in percent; empty if unknown."""
    if math.isnan(estimate):
        return TableEntry()
    return TableEntry(f"{100 * estimate:.1f}", detail=span(lower, upper))


def share_of(label: Any = None, weight: str = "") -> str:
    """What is shown: the share of a class, or shares of all; with weights, of what.

    Examples
    --------
    >>> share_of(), share_of("negative"), share_of(weight="views"), share_of("negative", "views")
    ('share', 'share of negative', 'share of views', 'negative, share of views')
    """
    if weight:
        return f"share of {weight}" if label is None else f"{label}, share of {weight}"
    return "share" if label is None else f"share of {class_name(label)}"


def of_weight(weight: str) -> str:
    """What shares are shares of, after "Shares"; empty without weights.

    Examples
    --------
    >>> of_weight("views"), of_weight("")
    (' of views', '')
    """
    return f" of {weight}" if weight else ""


def short(label: str, most: int = 30) -> str:
    r"""A label in one line, shortened if it is too long for a chart.

    Examples
    --------
    >>> short("two\n lines"), short("a rather long label", 10)
    ('two lines', 'a rather …')
    """
    line = " ".join(str(label).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def cautions_of(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """Findings that follow the answer: the alarms."""
    return tuple(finding for finding in diagnosis if finding.severity == "alarm")


def diagnosis_section(diagnosis: Diagnosis) -> Section:
    """The checks and their results, the worst first."""
    return Section(
        "Can the estimates be trusted?",
        ("Estimates assume that only class shares have changed since training. Checks:",),
        findings=tuple(sorted(diagnosis, key=lambda finding: -SEVERITIES.index(finding.severity))),
    )


def plain_finding(finding: Finding) -> dict[str, Any]:
    """A finding as JSON has it."""
    return {
        "name": finding.name,
        "severity": finding.severity,
        "sentence": finding.sentence,
        "advice": finding.advice,
        "numbers": dict(finding.numbers),
        "examples": list(finding.examples),
    }


def skipped_facts(skipped: Mapping[str, int]) -> list[tuple[str, str]]:
    """How many rows were skipped, and why."""
    counts = {reason: number for reason, number in skipped.items() if number}
    if not counts:
        return []
    reasons = ", ".join(counts if len(counts) == 1 else (f"{reason} {number:,}" for reason, number in counts.items()))
    return [(f"rows skipped ({reasons})", f"{sum(counts.values()):,}")]


def reproduction(
    settings: Sequence[tuple[str, str]], model: Mapping[str, Any] | None = None
) -> tuple[tuple[str, str], ...]:
    """The settings given, facts about the model, and versions unless given."""
    given = {name for name, _ in settings}
    known = [(f"model: {name}", str(value)) for name, value in (model or {}).items() if f"model: {name}" not in given]
    versions = "" if "versions" in given else ", ".join(f"{name} {number}" for name, number in _versions())
    return (*settings, *known, *((("versions", versions),) if versions else ()))


@cache
def _versions() -> list[tuple[str, str]]:
    found = [("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found


def position_of(classes: LabelArray, focus: Any) -> int | None:
    """Position of a class; without a name, the second of two classes, and None for more."""
    if focus is None:
        return 1 if len(classes) == 2 else None
    names = [str(name) for name in classes.tolist()]
    if str(focus) not in names:
        raise InvalidSetting(f"Unknown class {focus!r}. Choose from {', '.join(map(repr, names))}.")
    return names.index(str(focus))


def focus_first(order: IntArray, classes: LabelArray, focus: Any) -> IntArray:
    """Positions of classes, that of the class `focus` moved to the front; the same order without a name.

    Examples
    --------
    >>> focus_first(np.array([2, 0, 1]), np.array(["bad", "good", "ok"]), "good")
    array([1, 2, 0])
    """
    at = None if focus is None else position_of(classes, focus)
    return order if at is None else np.array([at, *(c for c in order.tolist() if c != at)])
