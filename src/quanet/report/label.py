"""The report of a plan of labels: how many, which, and what interval to expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.groups import group_name
from quanet.report.phrases import level_text, listing, many, points, reproduction, skipped_facts
from quanet.report.summary import Column, Section, Summary, Table, TableEntry
from quanet.workflows.label import plan_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.workflows.label import PlannedLabels

MISSED = 1.02  # a width that is reached up to 2 % counts as reached


def summarize_plan(
    planned: PlannedLabels, *, sheet: str, model: str = "MODEL", settings: Sequence[tuple[str, str]] = ()
) -> Summary:
    """How many labels are needed, what interval to expect, and how to go on.

    Parameters
    ----------
    planned : the plan.
    sheet : the name of the file to fill in.
    model : the name of the model's folder.
    settings : names and values that reproduce it.
    """
    every = "" if not planned.keys else f" in each of {many(len(planned.groups), 'group')}"
    weighted = f" of {planned.weight}" if planned.weight else ""
    sections = [Section("What labels bring", _paragraphs(planned, sheet, model), tables=(_numbers_table(planned),))]
    if planned.keys:
        sections.append(
            Section(f"By {listing(list(map(str, planned.keys)))}", tables=(_group_table(planned),), detail=True)
        )
    return Summary(
        title=f"Labels to give in {planned.source}",
        answer=(
            f"Label {many(planned.plan.n, 'row')} of {many(int(planned.sizes.sum()), 'row')} in {sheet}: the widest "
            f"{level_text(planned.level)} interval of a share{every}{weighted} is then about "
            f"{points(planned.plan.width)} wide, "
            f"and at most about {points(planned.plan.plain_width)} if the model is of no use here."
        ),
        facts=(
            ("labels", f"{planned.plan.n:,}"),
            ("rows", f"{planned.sizes.sum():,}"),
            ("design", f"{planned.design}, seed {planned.seed}"),
            *skipped_facts(planned.skipped),
        ),
        sections=tuple(sections),
        settings=reproduction(settings),
        data=lambda: _data(planned, sheet),
        rows=lambda: _rows(planned),
    )


def _paragraphs(planned: PlannedLabels, sheet: str, model: str) -> tuple[str, ...]:
    by = " ".join(f"--by {key.column}:{key.period}" if key.period else f"--by {key.column}" for key in planned.keys)
    known = ", ".join(str(name) for name in planned.classes.tolist())
    found = [
        f"Fill in column {planned.label!r} from the first row on: {known}. The first rows are a valid plan, too, so "
        f"you can stop early; do not skip rows. Then: quanet refine {model} {planned.source} --labels {sheet}"
        f"{f' {by}' if by else ''}{f' --weight {planned.weight}' if planned.weight else ''}"
    ]
    if planned.wanted is not None and planned.plan.width > MISSED * planned.wanted:
        found.append(f"A width of {points(planned.wanted)} needs more labels than there are rows.")
    return tuple(found)


def _numbers_table(planned: PlannedLabels) -> Table:
    rows = [
        (f"{n:,}", tuple(TableEntry(f"{100 * width:.1f}") for width in widths))
        for n, widths in zip(planned.numbers, planned.widths.tolist(), strict=True)
    ]
    return Table(
        f"Expected width of the widest {level_text(planned.level)} interval of all rows, in points",
        (Column("posteriors calibrated"), Column("posteriors useless")),
        tuple(rows),
        (
            "posteriors useless: the width of the plain share of as many "
            f"{'labels of such a plan' if planned.weight else 'random labels'}.",
        ),
        corner="labels",
    )


def _group_table(planned: PlannedLabels) -> Table:
    rows = zip(planned.groups, planned.sizes.tolist(), planned.labels.tolist(), strict=True)
    return Table(
        "Labels of every group",
        (Column("n"), Column("labels")),
        tuple((group_name(group), (TableEntry(f"{n:,}"), TableEntry(f"{labels:,}"))) for group, n, labels in rows),
        corner=" · ".join(map(str, planned.keys)),
    )


def _rows(planned: PlannedLabels) -> list[dict[str, Any]]:
    """One row for every number of labels."""
    return [
        {"labels": n, "width": width, "plain_width": plain}
        for n, (width, plain) in zip(planned.numbers, planned.widths.tolist(), strict=True)
    ]


def _data(planned: PlannedLabels, sheet: str) -> dict[str, Any]:
    groups = [
        {"group": list(group), "n": int(n), "labels": int(labels)}
        for group, n, labels in zip(planned.groups, planned.sizes, planned.labels, strict=True)
    ]
    return {
        **plan_facts(planned),
        "sheet": sheet,
        "classes": np.asarray(planned.classes),
        "expected": _rows(planned),
        **({"groups": groups} if planned.keys else {}),
        "skipped": planned.skipped,
    }
