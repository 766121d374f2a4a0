"""Differences as rows of a chart and of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.chart_data import IntervalRows
from quanet.report.phrases import class_name, level_text, position_of, probability, signed, signed_span
from quanet.report.summary import Column, Table, TableEntry
from quanet.wording import NONE

if TYPE_CHECKING:
    from quanet.uncertainty.differences import Differences
    from quanet.workflows.diff import GroupDifferences

ROWS = 30  # of a chart
PANELS = 4


def shown_positions(found: GroupDifferences, focus: Any) -> list[int]:
    """Positions of the classes that are shown: the one wanted, the second of two, or all."""
    at = position_of(found.classes, focus)
    return list(range(len(found.classes))) if at is None else [at]


def difference_rows(found: GroupDifferences, differences: Differences) -> IntervalRows:
    """One row for each comparison; of many, the first."""
    kept = range(min(len(differences), ROWS))
    titles = tuple(str(name) for name in differences.classes[:PANELS]) if len(differences.classes) > 1 else ("",)
    part = np.ix_(kept, range(len(titles)))
    return IntervalRows(
        tuple(_comparison(found, differences, i) for i in kept),
        titles,
        differences.estimate[part],
        differences.lower[part],
        differences.upper[part],
        f"difference in points, {level_text(differences.level)} interval",
        unit="difference",
        faint=np.asarray(~differences.significant[part].any(axis=1)),
        hollow="may be chance",
    )


def difference_note(differences: Differences) -> str:
    """What the chart does not show."""
    m, k = differences.estimate.shape
    limits = [f"the first {ROWS} of {m:,} comparisons"] if m > ROWS else []
    limits += [f"{PANELS} of {k} classes"] if k > PANELS else []
    return f" Shown: {' and '.join(limits)}; the table has all." if limits else ""


def _comparison(found: GroupDifferences, differences: Differences, i: int) -> str:
    """A comparison as a label."""
    first, second = str(differences.first[i]), str(differences.second[i])
    return f"{first} → {second}" if found.over_time else second


def direction(found: GroupDifferences) -> str:
    """What a difference is, as part of a sentence."""
    if found.over_time:
        return "change from the first to the second"
    return "group minus the rest" if found.against == "rest" else f"group minus {found.differences.first[0]}"


def difference_table(found: GroupDifferences, differences: Differences) -> Table:
    """Both sides, the difference with its interval, p-values and what drift may cost, for every comparison."""
    several = len(differences.classes) > 1
    first, second = differences.first_estimate, differences.second_estimate
    assert first is not None and second is not None  # noqa: PT018
    sides = ("first", "second") if found.over_time else ("rest" if found.against == "rest" else "baseline", "group")
    columns = [Column("class", left=True)] if several else []
    columns += [Column(f"{sides[0]}, %", spare=True), Column(f"{sides[1]}, %", spare=True)]
    columns += [Column("difference"), Column("p"), *([Column("p, Holm")] if differences.estimate.size > 1 else [])]
    has_drift = differences.drift is not None and bool(np.isfinite(differences.drift).any())
    columns += [Column("drift", spare=True)] if has_drift else []
    rows = []
    for i in range(len(differences)):
        for c, name in enumerate(differences.classes.tolist()):
            ends = [float(part[i, c]) for part in (differences.estimate, differences.lower, differences.upper)]
            entries = [TableEntry(str(name))] if several else []
            entries += [TableEntry(f"{100 * share[i, c]:.1f}") for share in (first, second)]
            entries.append(
                TableEntry(
                    signed(ends[0]),
                    mark="*" if differences.significant[i, c] else "",
                    detail=signed_span(ends[1], ends[2]),
                )
            )
            entries.append(TableEntry(probability(float(differences.p_value[i, c]))))
            if differences.estimate.size > 1:
                entries.append(TableEntry(probability(float(differences.adjusted[i, c]))))
            if has_drift and differences.drift is not None:
                cost = float(differences.drift[i, c])
                entries.append(TableEntry(NONE if np.isnan(cost) else f"{100 * cost:.1f}"))
            rows.append((_comparison(found, differences, i), tuple(entries)))
    notes = [f"*: clear at {level_text(differences.level)} after Holm's correction."]
    notes += ["drift: points by which drift may change the difference; the interval includes it."] if has_drift else []
    what = f" of {class_name(differences.classes[0])}" if not several else ""
    return Table(
        f"Differences{what} in percentage points, with {level_text(differences.level)} intervals",
        tuple(columns),
        tuple(rows),
        tuple(notes),
        "comparison" if found.over_time else "group",
    )
