"""The report of corrected rates: what `quanet correct` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.evaluation.findings import WORTH_A_SENTENCE
from quanet.report.chart_data import IntervalRows
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.groups import ROWS, group_name
from quanet.report.judge_audit import anchor_finding, anchor_section, audit_data, difference_section, panel_section
from quanet.report.judge_errors import (
    assumptions,
    cluster_sentences,
    confusion_table,
    error_cautions,
    group_error_table,
)
from quanet.report.phrases import (
    class_name,
    focus_first,
    level_text,
    listing,
    many,
    percent,
    points,
    position_of,
    reproduction,
    share_entry,
    share_text,
    skipped_facts,
)
from quanet.report.summary import Chart, Column, Section, Summary, Table, TableEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.workflows.correct import Correction

UNCORRECTED = "judge, uncorrected"
PANELS = 3  # classes in the chart of groups
LABELS_USED = {
    "part": "The rows with human labels count as a random part of all rows: their labels count directly and show how "
    "the judge errs.",
    "apart": "The human labels only show how the judge errs.",
}


def summarize_correction(
    correction: Correction, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None
) -> Summary:
    """Corrected rates with intervals, next to the judge's own rates, and how the judge errs.

    Parameters
    ----------
    correction : what `quanet correct` computes (`quanet.workflows.correct.correct_groups`).
    settings, focus : as in `summarize_shares`, but the class of the sentence is also `focus`; None for the last class.

    Returns
    -------
    Summary
        for `write_report`; plain data, such as `answer`, the most important sentence.

    Examples
    --------
    >>> from quanet.workflows.correct import correct_groups
    >>> judged = ["good"] * 80 + ["bad"] * 20 + ["good"] * 10 + ["bad"] * 90 + ["good"] * 450 + ["bad"] * 550
    >>> human = ["good"] * 100 + ["bad"] * 100 + [None] * 1000
    >>> summarize_correction(correct_groups(judged, human)).answer
    "good: 50.0 % (44.7 to 55.4 %) of 1,200 instances, corrected with 200 human labels; ..."
    """
    place = position_of(correction.classes, focus)
    first = len(correction.classes) - 1 if place is None else place
    sections = [Section("All together", _paragraphs(correction), charts=(_total_chart(correction, focus),))]
    if correction.keys:
        sections.append(_group_section(correction, None if place is None else first))
    if correction.differences is not None:
        sections.append(difference_section(correction, first))
    if correction.panel is not None:
        sections.append(panel_section(correction, first))
    if correction.rates is not None:
        by_group = group_error_table(correction)
        tables = (confusion_table(correction), *(() if by_group is None else (by_group,)))
        sections.append(Section("How the judge errs", tables=tables))
    if correction.anchor is not None:
        sections.append(anchor_section(correction, first))
    source = f" in {correction.source}" if correction.source else ""
    return Summary(
        title=f"Corrected rates{source}",
        answer=_answer(correction, first),
        cautions=(*anchor_finding(correction), *error_cautions(correction)),
        facts=(
            ("instances", f"{correction.sizes.sum():,}"),
            ("human labels", f"{correction.labelled:,}"),
            ("confidence level", level_text(correction.level)),
            *([("groups", f"{len(correction.groups):,}")] if correction.keys else []),
            *skipped_facts(correction.skipped),
        ),
        sections=tuple(sections),
        settings=reproduction(settings),
        data=lambda: _data(correction, first),
        figures=lambda: _figures(correction, first),
        rows=lambda: _rows(correction),
    )


def _answer(correction: Correction, c: int) -> str:
    estimate, lower, upper, judged = correction.total[:, c]
    source = f" in {correction.source}" if correction.source else ""
    uncorrected = "" if np.isnan(judged) else f"; the judge's uncorrected rate is {percent(judged)}"
    return (
        f"{class_name(correction.classes[c])}: {share_text(estimate, lower, upper)} of "
        f"{many(int(correction.sizes.sum()), 'instance')}{source}, corrected with "
        f"{many(correction.labelled, 'human label')}{uncorrected}."
    )


def _paragraphs(correction: Correction) -> tuple[str, ...]:
    gap = correction.total[0] - correction.total[3]
    if np.isnan(gap).all():
        return (LABELS_USED[correction.calibration], *cluster_sentences(correction))
    c = int(np.nanargmax(np.abs(gap)))
    judged = percent(correction.total[3, c])
    alike = judged == percent(correction.total[0, c]) or abs(gap[c]) < WORTH_A_SENTENCE
    far = f"{points(abs(gap[c]))} {'below' if gap[c] > 0 else 'above'} the corrected rate"
    return (
        f"The judge's rate of {class_name(correction.classes[c])} is {judged}: "
        f"{'the same as the corrected rate' if alike else far}.",
        LABELS_USED[correction.calibration],
        *cluster_sentences(correction),
    )


def _total_chart(correction: Correction, focus: Any) -> Chart:
    estimate, lower, upper, judged = correction.total
    order = focus_first(np.argsort(-estimate, kind="stable"), correction.classes, focus)
    rows = IntervalRows(
        tuple(str(correction.classes[c]) for c in order),
        ("",),
        estimate[order, None],
        lower[order, None],
        upper[order, None],
        f"corrected, {level_text(correction.level)} interval",
        asides=tuple(percent(estimate[c]) for c in order),
        marks={} if np.isnan(judged).all() else {UNCORRECTED: judged[order, None]},
    )
    table = Table(
        f"Rates in %, with {level_text(correction.level)} intervals",
        (Column("corrected"), Column(UNCORRECTED)),
        tuple(
            (str(correction.classes[c]), (share_entry(estimate[c], lower[c], upper[c]), _percent_entry(judged[c])))
            for c in order
        ),
        corner="class",
    )
    return Chart(
        "classes",
        "Corrected rate of every class in all instances, next to the judge's uncorrected rate.",
        f"A dot with its interval for each of {many(len(order), 'class', 'classes')}. "
        + " ".join(_paragraphs(correction)),
        table,
        lambda width: rows_figure(rows, width=width),
    )


def _group_section(correction: Correction, focus: int | None) -> Section:
    keys = listing(list(map(str, correction.keys)))
    limited = f"The chart shows the {ROWS} largest of {len(correction.groups):,} groups; the table shows all."
    return Section(
        f"By {keys}",
        (*assumptions(correction), *((limited,) if len(correction.groups) > ROWS else ())),
        charts=(_group_chart(correction, focus, keys),),
    )


def _group_chart(correction: Correction, focus: int | None, keys: str) -> Chart:
    k = len(correction.classes)
    order = np.argsort(-correction.total[0], kind="stable").tolist()
    picked = [k - 1 if focus is None else focus] if k == 2 else order[:PANELS]
    if focus is not None and k > 2:
        picked = [focus, *(c for c in order if c != focus)][:PANELS]
    largest = np.argsort(-correction.sizes, kind="stable")[:ROWS]
    largest = largest[np.argsort(-correction.estimate[largest, picked[0]], kind="stable")]

    def rows(columns: list[int]) -> IntervalRows:
        both = np.ix_(largest, np.array(columns))
        several = len(columns) > 1
        return IntervalRows(
            tuple(group_name(correction.groups[g]) for g in largest),
            tuple(str(correction.classes[c]) for c in columns) if several else ("",),
            correction.estimate[both],
            correction.lower[both],
            correction.upper[both],
            f"{correction.classes[columns[0]] if not several else 'share'}, corrected",
            asides=tuple(f"n = {correction.sizes[g]:,}" for g in largest),
            marks={} if np.isnan(correction.judged).all() else {UNCORRECTED: correction.judged[both]},
            faint=correction.small[largest],
            around=correction.total[:3, columns],
        )

    top, low = int(largest[0]), int(largest[-1])
    highest, lowest = (percent(correction.estimate[g, picked[0]]) for g in (top, low))
    best = (
        f" Highest rate of {class_name(correction.classes[picked[0]])}: {group_name(correction.groups[top])} with "
        f"{highest}."
    )
    return Chart(
        "groups",
        f"Corrected rates by {keys}, with {level_text(correction.level)} intervals; grey: all together.",
        f"A dot with its interval for each of {many(len(correction.groups), 'group')}.{best * (highest != lowest)}",
        _group_table(correction, picked[0]),
        lambda width: rows_figure(rows(picked), width=width),
    )


def _group_table(correction: Correction, first: int) -> Table:
    """Corrected and uncorrected rates of every group; a narrow terminal shows only the first of two classes."""
    names = [str(name) for name in correction.classes]
    rows = []
    for g, group in enumerate(correction.groups):
        marks = "*" * bool(correction.small[g]) + "†" * bool(correction.doubtful[g])
        entries = [TableEntry(f"{correction.sizes[g]:,}", marks), TableEntry(correction.labels_used[g])]
        for c in range(len(names)):
            limits = (correction.estimate[g, c], correction.lower[g, c], correction.upper[g, c])
            entries += [share_entry(*limits), _percent_entry(correction.judged[g, c])]
        rows.append((group_name(group), tuple(entries)))
    columns = [
        Column(part, name, spare=len(names) == 2 and c != first)
        for c, name in enumerate(names)
        for part in ("corrected", "judge")
    ]
    notes = ["* Small group: its interval is too wide to be useful."] if correction.small.any() else []
    if correction.doubtful.any():
        notes.append("† Corrected by the labels of all groups although the judge's errors differ between groups.")
    return Table(
        f"Rates in %, with {level_text(correction.level)} intervals",
        (Column("n"), Column("labels used"), *columns),
        tuple(rows),
        (*notes, "Labels used: the group's own human labels, or the labels of all groups."),
        " · ".join(map(str, correction.keys)),
    )


def _percent_entry(share: float) -> TableEntry:
    return TableEntry() if np.isnan(share) else TableEntry(f"{100 * share:.1f}")


def _rows(correction: Correction) -> list[dict[str, Any]]:
    """One row for every group and class."""
    rows = []
    for g, group in enumerate(correction.groups):
        values = dict(zip((str(key.column) for key in correction.keys), group, strict=True))
        for c, label in enumerate(correction.classes.tolist()):
            rows.append(
                values
                | {
                    "n": int(correction.sizes[g]),
                    "class": label,
                    **{name: getattr(correction, name)[g, c] for name in ("judged", "estimate", "lower", "upper")},
                    "small": bool(correction.small[g]),
                    "labels_used": correction.labels_used[g],
                }
            )
    return rows


def _data(correction: Correction, first: int) -> dict[str, Any]:
    total = dict(zip(("estimate", "lower", "upper", "judged"), correction.total, strict=True))
    test = correction.errors if correction.errors is not None and correction.errors.tested else None
    errors = {
        "p_value": None if test is None else test.p_value,
        "differ": None if test is None else test.differ,
        "assumptions": assumptions(correction),
    }
    return {
        "answer": _answer(correction, first),
        "class": correction.classes.tolist()[first],
        "source": correction.source,
        "classes": correction.classes,
        "level": correction.level,
        "labelled": correction.labelled,
        "calibration": correction.calibration,
        "errors": errors if correction.keys else None,
        "total": {
            str(name): {key: values[c] for key, values in total.items()}
            for c, name in enumerate(correction.classes.tolist())
        },
        "groups": _rows(correction) if correction.keys else [],
        "rates": correction.rates,
        "skipped": correction.skipped,
        **audit_data(correction),
    }


def _figures(correction: Correction, first: int) -> dict[str, Any]:
    names = ("groups", "sizes", "estimate", "lower", "upper", "judged", "rates", "labelled", "level", "small")
    return {
        "class": correction.classes[first],
        "classes": correction.classes,
        **{name: getattr(correction, name) for name in names},
        "total": dict(zip(("estimate", "lower", "upper", "judged"), correction.total, strict=True)),
        "keys": [{"column": key.column, "period": key.period} for key in correction.keys],
        "labels_used": correction.labels_used,
        "assumptions": assumptions(correction),
        "skipped": correction.skipped,
        "source": correction.source,
    }
