"""Recurring parts of reports: numbers and lists as text, facts, the section about checks."""

import math
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from quanet.diagnostics.findings import SEVERITIES, SHOWN_AS_ZERO, Diagnosis, Finding, upper_text
from quanet.report.summary import NONE, Section, TableEntry

PACKAGES = ("quanet", "numpy", "scipy", "scikit-learn", "torch")


def percent(share: float, *, digits: int = 1) -> str:
    """A share with its unit.

    Examples
    --------
    >>> percent(0.3724), percent(0.95, digits=0), percent(float("nan"))
    ('37.2 %', '95 %', '--')
    """
    return NONE if math.isnan(share) else f"{100 * share:.{digits}f} %"


def level_text(level: float) -> str:
    """A confidence level, with as many digits as needed.

    Examples
    --------
    >>> level_text(0.95), level_text(0.999)
    ('95 %', '99.9 %')
    """
    return f"{round(100 * level, 6):g} %"


def between(lower: float, upper: float) -> str:
    """An interval of shares.

    Examples
    --------
    >>> between(0.349, 0.396)
    '34.9 to 39.6 %'
    """
    return NONE if math.isnan(lower) else f"{100 * lower:.1f} to {100 * upper:.1f} %"


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


def share_entry(estimate: float, lower: float, upper: float) -> TableEntry:
    """A share and its interval as a cell of a table in percent; empty if unknown."""
    if math.isnan(estimate):
        return TableEntry()
    return TableEntry(f"{100 * estimate:.1f}", detail=f"{100 * lower:.1f} to {100 * upper:.1f}")


def points(error: float, *, full: bool = False) -> str:
    """A difference of shares in percentage points; small ones with two decimals.

    Examples
    --------
    >>> points(0.0482), points(0.0092, full=True)
    ('4.8 points', '0.92 percentage points')
    """
    return f"{100 * error:.{1 if abs(error) >= 0.0095 else 2}f} {'percentage ' * full}points"


def probability(p: float) -> str:
    """A probability with three digits and no leading zero.

    Examples
    --------
    >>> probability(0.0312), probability(0.00002)
    ('.031', '< .001')
    """
    return "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def share_of(label: Any = None, weight: str = "") -> str:
    """What is shown: the share of a class, or shares of all; with weights, of what.

    Examples
    --------
    >>> share_of(), share_of("negative"), share_of(weight="views"), share_of("negative", "views")
    ('share', 'share of negative', 'share of views', 'negative, share of views')
    """
    if weight:
        return f"share of {weight}" if label is None else f"{label}, share of {weight}"
    return "share" if label is None else f"share of {label}"


def of_weight(weight: str) -> str:
    """What shares are shares of, after "Shares"; empty without weights.

    Examples
    --------
    >>> of_weight("views"), of_weight("")
    (' of views', '')
    """
    return f" of {weight}" if weight else ""


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
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


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
