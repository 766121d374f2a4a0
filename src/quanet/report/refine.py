"""The report of refined shares: what `quanet refine` found, next to the estimates without labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.evaluation.findings import Finding
from quanet.report.change_sentences import change_sentence
from quanet.report.chart_data import IntervalRows
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.diff import TARGETS, difference_section, plain_differences
from quanet.report.phrases import (
    class_name,
    diagnosis_section,
    focus_first,
    level_text,
    many,
    percent,
    plain_finding,
    points,
    position_of,
    reproduction,
    share_entry,
    share_text,
    skipped_facts,
)
from quanet.report.refined_groups import WITHOUT, group_section
from quanet.report.summary import Chart, Column, Section, Summary, Table, TableEntry
from quanet.workflows.refine import MORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.workflows.refine import Refinement

HELPS = 1.05  # labels are worth at least this many random ones where the model helps


def summarize_refinement(
    refined: Refinement, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None
) -> Summary:
    """Refined shares with intervals, next to the estimates without labels.

    Parameters
    ----------
    refined : the answer.
    settings : names and values that reproduce it.
    focus : the class of the sentence and of charts; None for the second of two, or the most common one.
    """
    position_of(refined.classes, focus)
    first = _first(refined, focus)
    before = refined.unlabelled
    sections = []
    if refined.groups is not None:
        sections.append(group_section(refined, focus))
    if refined.differences is not None:
        sections.append(_difference_section(refined, first))
    sections.append(Section("Total", _paragraphs(refined, first), charts=(_total_chart(refined, focus),)))
    if len(before.diagnosis):
        sections.append(replace(diagnosis_section(before.diagnosis), title=f"Can the estimates {WITHOUT} be trusted?"))
    return Summary(
        title=f"Refined shares in {before.source}" if before.source else "Refined shares",
        answer=_answer(refined, first),
        cautions=(*_misled(refined, first), *refined.findings),
        facts=(
            ("instances", f"{before.sizes.sum():,}"),
            ("labels", f"{refined.labelled:,}"),
            *([("groups", f"{len(before.groups):,}")] if refined.groups is not None else []),
            ("confidence level", level_text(refined.level)),
            *skipped_facts(before.skipped),
        ),
        sections=tuple(sections),
        settings=reproduction(settings, before.model),
        data=lambda: _data(refined, first),
        rows=refined.rows,
        digits=6,
    )


def _difference_section(refined: Refinement, c: int) -> Section:
    """Differences between groups with labels of their own, of the class that the answer is about."""
    found = refined.differences
    assert found is not None
    differences = found.differences.of_classes([c])
    changes = None if found.changes is None else found.changes.of_classes([c])
    overall = [] if changes is None else [change_sentence(changes, i, 0, over_time=True) for i in range(len(changes))]
    if changes is None and len(differences) == 1:
        overall = [change_sentence(differences, 0, 0, over_time=found.over_time)]
    section = difference_section(found, differences, [c])
    shares = ("The refined shares are of exactly these rows.",) if found.target == "source" else ()
    return replace(section, paragraphs=(*overall[:1], *section.paragraphs, *shares))


def _first(refined: Refinement, focus: Any) -> int:
    place = position_of(refined.classes, focus)
    return int(refined.estimate.argmax()) if place is None else place


def _answer(refined: Refinement, c: int) -> str:
    before = refined.unlabelled
    where = f" in {before.source}" if before.source else ""
    what = f"the {before.weight} of " if before.weight else ""
    return (
        f"{class_name(refined.classes[c])}: "
        f"{share_text(refined.estimate[c], refined.lower[c], refined.upper[c])} of "
        f"{what}{many(int(before.sizes.sum()), 'instance')}{where}, refined with {many(refined.labelled, 'label')}; "
        f"{WITHOUT} {share_text(before.total.estimate[c], before.total.lower[c], before.total.upper[c])}."
    )


def _misled(refined: Refinement, c: int) -> list[Finding]:
    """A caution if the estimate without labels is outside the refined interval."""
    if not refined.changed[c]:
        return []
    gap = refined.estimate[c] - refined.unlabelled.total.estimate[c]
    sentence = (
        f"The estimate {WITHOUT} is outside the refined interval: it was {points(abs(gap))} too "
        f"{'low' if gap > 0 else 'high'} for {class_name(refined.classes[c])}."
    )
    return [Finding("model", "warning", sentence, "Use the refined shares: drift does not bias them.")]


def _paragraphs(refined: Refinement, c: int) -> tuple[str, ...]:
    effective, width = refined.total.effective[c], refined.upper[c] - refined.lower[c]
    found = []
    if np.isfinite(effective):
        worth = effective * refined.total.spread
        found.append(
            f"Together with the model, the {refined.labelled:,} labels say as much as {refined.labelled * worth:,.0f} "
            "random labels alone."
            if worth > HELPS
            else f"The model does not help here: the {refined.labelled:,} labels count as random labels alone."
        )
    now, then = points(float(width)), points(float(refined.more[c]))
    if now != then:
        found.append(
            f"{MORE} more labels would narrow the interval of {class_name(refined.classes[c])} from {now} to about "
            f"{then}."
        )
    if refined.planned is not None and refined.planned > refined.labelled:
        found.append(f"{refined.planned - refined.labelled:,} rows of the plan have no label yet.")
    return tuple(found)


def _total_chart(refined: Refinement, focus: Any) -> Chart:
    before = refined.unlabelled.total
    order = focus_first(np.argsort(-refined.estimate, kind="stable"), refined.classes, focus)
    rows = IntervalRows(
        tuple(str(refined.classes[c]) for c in order),
        ("",),
        refined.estimate[order, None],
        refined.lower[order, None],
        refined.upper[order, None],
        f"refined, {level_text(refined.level)} interval",
        asides=tuple(percent(refined.estimate[c]) for c in order),
        marks={WITHOUT: before.estimate[order, None]},
    )
    parts = [
        (
            str(refined.classes[c]),
            (
                share_entry(refined.estimate[c], refined.lower[c], refined.upper[c]),
                share_entry(before.estimate[c], before.lower[c], before.upper[c]),
                TableEntry(f"{refined.counts[c]:,}"),
            ),
        )
        for c in order
    ]
    table = Table(
        f"Total shares in %, with {level_text(refined.level)} intervals",
        (Column("refined"), Column(WITHOUT), Column("labels")),
        tuple(parts),
        corner="class",
    )
    return Chart(
        "classes",
        f"Refined share of every class in all instances, and the estimate {WITHOUT}.",
        f"A dot with its interval for each of {many(len(order), 'class', 'classes')}. "
        + _answer(refined, int(order[0])),
        table,
        lambda width: rows_figure(rows, width=width),
    )


def _plain_differences(refined: Refinement) -> dict[str, Any]:
    found = refined.differences
    assert found is not None
    changes = {} if found.changes is None else {"changes": plain_differences(found.changes)}
    question = {"target": found.target, "meaning": TARGETS[found.target]}
    return {**question, "against": found.against, "comparisons": plain_differences(found.differences), **changes}


def _data(refined: Refinement, first: int) -> dict[str, Any]:
    before, groups = refined.unlabelled, refined.groups
    found = refined.rows()
    names = ("estimate", "lower", "upper")
    total = {
        str(name): {
            **{part: getattr(refined, part)[c] for part in names},
            WITHOUT: {part: getattr(before.total, part)[c] for part in names},
            "labels": refined.counts[c],
            "width_with_more_labels": refined.more[c],
        }
        for c, name in enumerate(refined.classes.tolist())
    }
    columns = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
    return {
        "answer": _answer(refined, first),
        "class": refined.classes.tolist()[first],
        "source": before.source,
        "model": before.model,
        "level": refined.level,
        "labelled": refined.labelled,
        **({"weight": before.weight} if before.weight else {}),
        "more_labels": MORE,
        "weight_of_posteriors": refined.total.weight,
        "total": total,
        **({"groups": columns, "errors_differ_p_value": groups.p_value} if groups is not None else {}),
        **({"differences": _plain_differences(refined)} if refined.differences is not None else {}),
        "cautions": [plain_finding(one) for one in (*_misled(refined, first), *refined.findings)],
        "diagnosis": [plain_finding(one) for one in before.diagnosis],
        "skipped": before.skipped,
    }
