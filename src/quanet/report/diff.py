"""The report of `quanet diff`: what changed or differs, by how much, and whether that may be chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.change_sentences import change_sentence, trend_sentence
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.difference_rows import (
    PANELS,
    ROWS,
    difference_note,
    difference_rows,
    difference_table,
    direction,
    shown_positions,
)
from quanet.report.phrases import class_name, level_text, listing, many, percent, reproduction, skipped_facts
from quanet.report.summary import Chart, Section, Summary
from quanet.uncertainty.policy import SMALL_BAG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.uncertainty.differences import Differences, Trend
    from quanet.workflows.diff import GroupDifferences

NAMED = 2  # comparisons named in a sentence
NARROWER = 0.95  # of the width without shared errors, below which it is worth a sentence
TARGETS = {
    "source": "Differences are between the sources of these rows: intervals include chance in which rows were drawn.",
    "bag": "Differences are of exactly these rows, not of the sources that they come from.",
}


def summarize_differences(
    found: GroupDifferences, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None
) -> Summary:
    """The report of differences.

    Parameters
    ----------
    found : the differences.
    settings : names and values that reproduce them.
    focus : the class that sentences and charts are about; None for the second of two, or all of them.
    """
    shown = shown_positions(found, focus)
    # Holm's correction is over what is shown.
    differences = found.differences.of_classes(shown)
    changes = None if found.changes is None else found.changes.of_classes(shown)
    return Summary(
        title=f"Differences in {found.source}" if found.source else "Differences",
        answer=_answer(found, differences, changes),
        facts=_facts(found, differences),
        sections=(difference_section(found, differences, shown),),
        settings=reproduction(settings, found.model),
        data=lambda: _data(found, differences, changes),
        rows=differences.columns,
        digits=6,
    )


def _answer(found: GroupDifferences, differences: Differences, changes: Differences | None) -> str:
    """The change from the first to the last period, or the differences that are not chance."""
    if changes is not None and len(changes) == 1:
        return change_sentence(changes, *_clearest(changes), over_time=True)
    if len(differences) == 1:
        return change_sentence(differences, *_clearest(differences), over_time=found.over_time)
    clear = _ranked(differences)
    if not clear:
        return (
            f"None of {many(differences.estimate.size, 'difference')} is clear at {level_text(differences.level)} "
            "after Holm's correction."
        )
    named = [change_sentence(differences, i, c, over_time=found.over_time)[:-1] for i, c in clear[:NAMED]]
    more = f"; {many(len(clear) - NAMED, 'more difference')} {'is' if len(clear) == NAMED + 1 else 'are'} clear"
    return f"{'; '.join(named)}{more if len(clear) > NAMED else ''}."


def _clearest(differences: Differences) -> tuple[int, int]:
    """The comparison and class with the smallest p-value, and of these the largest difference."""
    order = np.lexsort((-np.abs(differences.estimate).ravel(), differences.p_value.ravel()))
    i, c = np.unravel_index(order[0], differences.estimate.shape)
    return int(i), int(c)


def _ranked(differences: Differences) -> list[tuple[int, int]]:
    """Comparisons and classes that remain significant, the largest difference first."""
    places = np.argwhere(differences.significant)
    sizes = np.abs(differences.estimate[tuple(places.T)])
    return [(int(i), int(c)) for i, c in places[np.argsort(-sizes, kind="stable")]]


def _facts(found: GroupDifferences, differences: Differences) -> tuple[tuple[str, str], ...]:
    clear = int(differences.significant.any(axis=1).sum())
    facts = [("comparisons", f"{len(differences):,}"), ("clear after Holm's correction", f"{clear:,}")]
    facts = facts if len(differences) > 1 else []
    facts.append(("confidence level", level_text(differences.level)))
    return (*facts, *skipped_facts(found.skipped))


def difference_section(found: GroupDifferences, differences: Differences, shown: list[int]) -> Section:
    """Differences as a chart with its table, with trends and remarks; `shown` are positions of classes."""
    paragraphs = (*_trend_sentences(found, shown), *_remarks(found, differences))
    what = f"of {class_name(differences.classes[0])} " if len(differences.classes) == 1 else ""
    drawn = many(min(len(differences), ROWS), "comparison")
    chart = Chart(
        "differences",
        f"Differences {what}in percentage points: {direction(found)}. Lines: {level_text(differences.level)} "
        f"intervals.{difference_note(differences)}",
        f"A dot with its interval for each of {drawn}. {_answer(found, differences, None)}",
        difference_table(found, differences),
        lambda width: rows_figure(difference_rows(found, differences), width=width),
    )
    return Section("Differences", paragraphs, charts=(chart,))


def _trend_sentences(found: GroupDifferences, shown: list[int]) -> list[str]:
    """The trend of every class and series that is shown."""
    return [
        " ".join(trend_sentence(trend, c, found.period, series) for c in shown[:PANELS])
        for series, trend in list(found.trends.items())[:ROWS]
    ]


def _remarks(found: GroupDifferences, differences: Differences) -> list[str]:
    remarks = [TARGETS[found.target]]
    if differences.estimate.size > 1:
        remarks[0] += f" p-values are corrected for {many(differences.estimate.size, 'difference')} (Holm)."
    if differences.relative_width is not None:
        ratio = float(np.median(differences.relative_width))
        if ratio < NARROWER:
            remarks.append(
                "Both sides share the model and its errors, which partly cancel: intervals are "
                f"{percent(1 - ratio, digits=0)} narrower than for independent estimates."
            )
    if found.small:
        named = listing([str(name) for name in found.small])
        remarks.append(f"Trend and change leave out periods of fewer than {SMALL_BAG} instances: {named}.")
    notes = [] if differences.notes is None else "; ".join(filter(None, differences.notes.tolist())).split("; ")
    distinct = [note for note in dict.fromkeys(notes) if note]
    return [*remarks, *([f"{'; '.join(distinct[:ROWS])}."] if distinct else [])]


def _data(found: GroupDifferences, differences: Differences, changes: Differences | None) -> dict[str, Any]:
    trends = [_plain_trend(found, name, trend) for name, trend in found.trends.items()]
    return {
        "source": found.source,
        "model": found.model,
        "level": differences.level,
        "target": found.target,
        "meaning": TARGETS[found.target],
        "against": found.against,
        "comparisons": plain_differences(differences),
        **({} if changes is None else {"changes": plain_differences(changes)}),
        **({"trends": trends} if trends else {}),
        "skipped": found.skipped,
    }


def plain_differences(differences: Differences) -> list[dict[str, Any]]:
    """Comparisons as JSON has them."""
    columns = differences.columns()
    names = ("first_estimate", "second_estimate", "difference", "lower", "upper", "p", "adjusted", "drift")
    k = len(differences.classes)
    return [
        {
            "first": str(differences.first[i]),
            "second": str(differences.second[i]),
            "sizes": [] if differences.sizes is None else differences.sizes[i].tolist(),
            "note": str(columns["note"][i * k]),
            "classes": {
                str(label): {name: _rounded(float(columns[name][i * k + c])) for name in names}
                for c, label in enumerate(differences.classes.tolist())
            },
        }
        for i in range(len(differences))
    ]


def _plain_trend(found: GroupDifferences, name: str, trend: Trend) -> dict[str, Any]:
    parts = {"slope": trend.estimate, "lower": trend.lower, "upper": trend.upper, "p": trend.p_value}
    classes = {
        str(label): {part: _rounded(float(values[c])) for part, values in parts.items()}
        for c, label in enumerate(trend.classes.tolist())
    }
    facts = {"series": name, "per": found.period, "first": str(trend.first), "last": str(trend.last)}
    return facts | {"periods": trend.periods, "classes": classes}


def _rounded(value: float) -> float | None:
    """Six significant digits; JSON has no NaN."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
