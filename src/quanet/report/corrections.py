"""The report of a judge's corrected rates: what `quanet correct` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.diagnostics.findings import Finding
from quanet.report.charts import Rows
from quanet.report.grouped import ROWS, group_name, position_of
from quanet.report.numbers import NONE, between, level_text, listing, many, percent, plain, points
from quanet.report.plots.rows import rows_figure
from quanet.report.plots.vector import make_chart
from quanet.report.share_tables import share_entry
from quanet.report.shares import skipped_facts
from quanet.report.summary import Section, Summary
from quanet.report.tables import Column, Entry, Table
from quanet.report.versions import reproduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.answers.correction import Correction
    from quanet.report.summary import Chart

JUDGE = "judge, as it is"
COLUMNS = 3
NAMED = 3  # groups named in a caution
# What human labels were taken for.
USED = {
    "part": "The rows with human labels are taken as a random part of all: their labels count by themselves, and show "
    "how the judge errs.",
    "apart": "Human labels only show how the judge errs.",
}


def summarize_correction(
    correction: Correction, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None
) -> Summary:
    """The report of a judge: corrected rates with intervals, next to what it says itself, and how it errs.

    Parameters
    ----------
    correction : what was found.
    settings : names and values that give the same again.
    focus : the class of the answer and the first in charts; None for the last.
    """
    place = position_of(correction.classes, focus)
    first = len(correction.classes) - 1 if place is None else place
    sections = [Section("All together", _paragraphs(correction), charts=(_whole_chart(correction),))]
    if correction.keys:
        told = f"Shown: the {ROWS} largest of {len(correction.groups):,} groups; the table has all."
        sections.append(
            Section(
                f"By {listing(list(map(str, correction.keys)))}",
                (*correction.assumptions(), *((told,) if len(correction.groups) > ROWS else ())),
                charts=(_groups_chart(correction, None if place is None else first),),
            )
        )
    if correction.rates is not None:
        sections.append(Section("How the judge errs", tables=(_rates(correction),)))
    source = f" in {correction.source}" if correction.source else ""
    facts = [
        ("instances", f"{correction.sizes.sum():,}"),
        ("human labels", f"{correction.labelled:,}"),
        ("level of the intervals", level_text(correction.level)),
        *([("groups", f"{len(correction.groups):,}")] if correction.keys else []),
        *skipped_facts(correction.skipped),
    ]
    return Summary(
        title=f"Corrected rates{source}",
        answer=_answer(correction, first),
        cautions=_doubts(correction),
        facts=tuple(facts),
        sections=tuple(sections),
        settings=reproduction(settings),
        data={"class": plain(correction.classes[first]), **_data(correction)},
    )


def _doubts(correction: Correction) -> tuple[Finding, ...]:
    """A caution where the judge's errors differ and some groups have too few labels to know theirs."""
    doubtful = [group_name(group) for group, open_ in zip(correction.groups, correction.doubtful, strict=True) if open_]
    if not correction.keys or not doubtful:
        return ()
    named = listing(doubtful) if len(doubtful) <= NAMED else f"{listing(doubtful[:NAMED])} and others"
    return (
        Finding(
            "errors",
            "warning",
            f"The judge errs differently from group to group, and {many(len(doubtful), 'group')} of "
            f"{len(correction.groups):,} use the labels of all groups: {named}.",
            "Do not compare these with other groups before people have labelled more of their rows.",
        ),
    )


def _answer(correction: Correction, c: int) -> str:
    estimate, lower, upper, judged = correction.total[:, c]
    source = f" in {correction.source}" if correction.source else ""
    beside = "" if np.isnan(judged) else f"; the judge alone says {percent(judged)}"
    return (
        f"{correction.classes[c]} {percent(estimate)} ({between(lower, upper)}) of "
        f"{many(int(correction.sizes.sum()), 'instance')}{source}, corrected by "
        f"{many(correction.labelled, 'human label')}{beside}."
    )


def _paragraphs(correction: Correction) -> tuple[str, ...]:
    gap = correction.total[0] - correction.total[3]
    if np.isnan(gap).all():
        return (USED[correction.calibration],)
    c = int(np.nanargmax(np.abs(gap)))
    return (
        f"The judge says {percent(correction.total[3, c])} {correction.classes[c]}: {points(abs(gap[c]))} "
        f"{'less' if gap[c] > 0 else 'more'} than the corrected rate.",
        USED[correction.calibration],
    )


def _whole_chart(correction: Correction) -> Chart:
    estimate, lower, upper, judged = correction.total
    order = np.argsort(-estimate, kind="stable")
    rows = Rows(
        tuple(str(correction.classes[c]) for c in order),
        ("",),
        estimate[order, None],
        lower[order, None],
        upper[order, None],
        f"corrected, {level_text(correction.level)} interval",
        asides=tuple(percent(estimate[c]) for c in order),
        marks={} if np.isnan(judged).all() else {JUDGE: judged[order, None]},
    )
    table = Table(
        f"Rates in %, with {level_text(correction.level)} intervals",
        (Column("corrected"), Column(JUDGE)),
        tuple(
            (str(correction.classes[c]), (share_entry(estimate[c], lower[c], upper[c]), _percent_entry(judged[c])))
            for c in order
        ),
        corner="class",
    )
    told = " ".join(_paragraphs(correction))
    return make_chart(
        "classes",
        "Corrected rate of every class in all instances together, beside what the judge says.",
        f"A dot with its interval for each of {many(len(order), 'class', 'classes')}. {told}".strip(),
        table,
        lambda width: rows_figure(rows, width=width),
    )


def _groups_chart(correction: Correction, focus: int | None) -> Chart:
    k = len(correction.classes)
    order = np.argsort(-correction.total[0], kind="stable").tolist()
    picked = [k - 1 if focus is None else focus] if k == 2 else order[:COLUMNS]
    if focus is not None and k > 2:
        picked = [focus, *(c for c in order if c != focus)][:COLUMNS]
    kept = np.argsort(-correction.sizes, kind="stable")[:ROWS]
    kept = kept[np.argsort(-correction.estimate[kept, picked[0]], kind="stable")]

    def rows(columns: list[int]) -> Rows:
        both = np.ix_(kept, np.array(columns))
        several = len(columns) > 1
        return Rows(
            tuple(group_name(correction.groups[g]) for g in kept),
            tuple(str(correction.classes[c]) for c in columns) if several else ("",),
            correction.estimate[both],
            correction.lower[both],
            correction.upper[both],
            f"{correction.classes[columns[0]] if not several else 'share'}, corrected",
            asides=tuple(f"n = {correction.sizes[g]:,}" for g in kept),
            marks={} if np.isnan(correction.judged).all() else {JUDGE: correction.judged[both]},
            faint=correction.small[kept],
            around=correction.total[:3, columns],
        )

    first = int(kept[0])
    told = f"The most {correction.classes[picked[0]]}: {group_name(correction.groups[first])} with "
    told += percent(correction.estimate[first, picked[0]])
    return make_chart(
        "groups",
        f"Corrected rates by {listing(list(map(str, correction.keys)))}, with {level_text(correction.level)} "
        "intervals; grey: all together.",
        f"A dot with its interval for each of {many(len(correction.groups), 'group')}. {told}.",
        _group_table(correction),
        lambda width: rows_figure(rows(picked), width=width),
    )


def _group_table(correction: Correction) -> Table:
    names = [str(name) for name in correction.classes]
    rows = []
    for g, group in enumerate(correction.groups):
        marks = "*" * bool(correction.small[g]) + "†" * bool(correction.doubtful[g])
        entries = [Entry(f"{correction.sizes[g]:,}", marks), Entry(correction.labels_used[g])]
        for c in range(len(names)):
            ends = (correction.estimate[g, c], correction.lower[g, c], correction.upper[g, c])
            entries += [share_entry(*ends), _percent_entry(correction.judged[g, c])]
        rows.append((group_name(group), tuple(entries)))
    return Table(
        f"Rates in %, with {level_text(correction.level)} intervals",
        (
            Column("n"),
            Column("labels used"),
            *(Column(part, name) for name in names for part in ("corrected", "judge")),
        ),
        tuple(rows),
        _notes(correction),
        " · ".join(map(str, correction.keys)),
    )


def _notes(correction: Correction) -> tuple[str, ...]:
    notes = ["* A small group: its interval is too wide to say much."] if correction.small.any() else []
    if correction.doubtful.any():
        notes.append("† Corrected by all human labels, though the judge errs differently from group to group.")
    return (*notes, "Labels used: the group's own human labels, or those of all groups.")


def _percent_entry(share: float) -> Entry:
    return Entry(NONE if np.isnan(share) else f"{100 * share:.1f}")


def _rates(correction: Correction) -> Table:
    assert correction.rates is not None
    names = [str(name) for name in correction.classes]
    return Table(
        "What the judge says (columns) of instances that a human labelled (rows), in %",
        tuple(Column(name) for name in names),
        tuple(
            (name, tuple(Entry(f"{100 * share:.1f}", best=i == j) for j, share in enumerate(correction.rates[i])))
            for i, name in enumerate(names)
        ),
        ("Bold: where both agree.",),
        "human label",
    )


def _data(correction: Correction) -> dict[str, Any]:
    parts = (
        "classes",
        "groups",
        "sizes",
        "estimate",
        "lower",
        "upper",
        "judged",
        "rates",
        "labelled",
        "level",
        "small",
    )
    found: dict[str, Any] = plain({name: getattr(correction, name) for name in parts})
    names = ("estimate", "lower", "upper", "judged")
    found["total"] = {name: plain(values) for name, values in zip(names, correction.total, strict=True)}
    found["keys"] = [{"column": key.column, "period": key.period} for key in correction.keys]
    found["labels_used"], found["assumptions"] = correction.labels_used, correction.assumptions()
    return {**found, "skipped": correction.skipped, "source": correction.source}
