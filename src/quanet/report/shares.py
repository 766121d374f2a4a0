"""The report of shares: what `quanet predict` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.diagnostics.findings import Finding
from quanet.report.grouped import (
    class_rows,
    group_name,
    group_note,
    group_rows,
    position_of,
    shown_classes,
    strands,
    time_key,
    trend_grid,
    trend_note,
)
from quanet.report.numbers import between, level_text, listing, many, percent, plain, points
from quanet.report.plots.lines import lines_figure
from quanet.report.plots.rows import rows_figure
from quanet.report.plots.vector import make_chart
from quanet.report.share_tables import share_entry, shares_table
from quanet.report.summary import Section, Summary
from quanet.report.tables import Column, Entry, Table
from quanet.report.versions import reproduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.answers.shares import Shares
    from quanet.arrays import FloatArray
    from quanet.diagnostics.findings import Diagnosis

TOLD = 3  # classes in the answer


def summarize_shares(shares: Shares, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """The report of shares: the answer, over time or by group, all together, whether to believe it.

    Parameters
    ----------
    shares : what was found.
    settings : names and values that give the same again.
    focus : the class that charts show; None for the second of two, or the commonest ones.
    """
    position_of(shares.classes, focus)
    sections = []
    if time_key(shares) is not None and strands(shares):
        sections.append(trend_section(shares, focus=focus))
    elif shares.keys:
        sections.append(group_section(shares, focus=focus))
    sections.append(_whole_section(shares))
    sections += [diagnosis_section(shares.diagnosis)] if len(shares.diagnosis) else []
    return Summary(
        title=f"Shares in {shares.source}" if shares.source else "Shares",
        answer=_answer(shares, focus),
        cautions=(*cautions_of(shares.diagnosis), *_drifted(shares)),
        facts=_facts(shares),
        sections=tuple(sections),
        settings=reproduction(settings, shares.model),
        data=_data(shares),
    )


def cautions_of(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """Findings that stand below the answer."""
    return tuple(finding for finding in diagnosis if finding.severity == "alarm")


def _drifted(shares: Shares) -> tuple[Finding, ...]:
    drifted = [
        group_name(group) for group, found in zip(shares.groups, shares.diagnoses, strict=True) if found == "alarm"
    ]
    if not drifted:
        return ()
    named = listing(drifted) if len(drifted) <= TOLD else f"{listing(drifted[:TOLD])} and others"
    return (
        Finding(
            "groups",
            "alarm",
            f"{many(len(drifted), 'group')} of {len(shares.groups):,} are unlike training, in words or posteriors, "
            f"whatever their shares: {named}.",
            "Where a group has words of its own, such as a product's name, classes may look different there: label a "
            "small random part of it and use refine, or train on texts like these.",
        ),
    )


def diagnosis_section(diagnosis: Diagnosis) -> Section:
    """What was checked, in words, the gravest first."""
    order = ("alarm", "warning", "note", "ok")
    return Section(
        "Can it be believed?",
        ("Intervals and corrections suppose that only the shares have changed since training. This was checked:",),
        findings=tuple(sorted(diagnosis, key=lambda finding: order.index(finding.severity))),
    )


def _answer(shares: Shares, focus: Any) -> str:
    order = np.argsort(-shares.total.estimate, kind="stable").tolist()
    if focus is not None:
        first = shown_classes(shares, focus, 1)[0]
        order = [first]
    told = [
        f"{shares.classes[c]} {percent(shares.total.estimate[c])} "
        f"({between(shares.total.lower[c], shares.total.upper[c])})"
        for c in (order[:TOLD] if len(order) > TOLD + 1 else order)
    ]
    more = len(order) - len(told)
    rest = f" and {more} more classes" if more else ""
    where = f" in {shares.source}" if shares.source else ""
    return f"{listing(told)}{rest} of {many(int(shares.sizes.sum()), 'instance')}{where}."


def _facts(shares: Shares) -> tuple[tuple[str, str], ...]:
    facts = [("instances", f"{shares.sizes.sum():,}")]
    if shares.keys:
        small = int(shares.small.sum())
        told = f", {small:,} of them small" if small else ""
        facts.append((f"groups by {' and '.join(map(str, shares.keys))}{told}", f"{len(shares.groups):,}"))
    facts.append(("level of the intervals", level_text(shares.total.level)))
    facts += [("gravest finding", shares.diagnosis.severity)] if len(shares.diagnosis) else []
    facts += skipped_facts(shares.skipped)
    return tuple(facts)


def skipped_facts(skipped: dict[str, int]) -> list[tuple[str, str]]:
    """How many rows were left out, and why."""
    told = {reason: number for reason, number in skipped.items() if number}
    reasons = ", ".join(told if len(told) == 1 else (f"{reason} {number:,}" for reason, number in told.items()))
    return [(f"rows left out: {reasons}", f"{sum(told.values()):,}")] if told else []


def trend_section(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Section:
    """Shares over time; beside the truth, (g, k), where that is known."""
    at = time_key(shares)
    assert at is not None
    others = [str(key) for place, key in enumerate(shares.keys) if place != at]
    c = shown_classes(shares, focus, 1)[0]
    alone = position_of(shares.classes, focus) is not None
    found = strands(shares)
    paragraphs = [_range(shares, c)] if not others else [_differing(shares, c)] if alone else []
    paragraphs.append(trend_note(shares, focus=focus))
    what = f"Share of {shares.classes[c]}" if alone else "Shares of classes"
    by = f" and {listing(others)}" if others else ""
    caption = (
        f"{what} by {shares.keys[at]}{by}. Bands: {level_text(shares.total.level)} intervals"
        + ("; hollow: small groups" if shares.small.any() else "")
        + (f"; dashed: {'all together' if truth is None else 'the truth'}." if alone else ".")
    )
    panels = f", for each of {many(len(found), 'group')}" if others else ""
    told = " ".join(filter(None, paragraphs))
    alt = f"Lines with bands over {many(len(found[0].dates), 'period')}{panels}. {told}".strip()
    chart = make_chart(
        "trend",
        caption,
        alt,
        shares_table(shares, truth=truth),
        lambda width: lines_figure(trend_grid(shares, focus=focus, truth=truth), width=width),
    )
    return Section("Over time", tuple(filter(None, paragraphs)), charts=(chart,))


def _range(shares: Shares, c: int) -> str:
    """The highest and the lowest group that is not small, and whether their intervals meet."""
    kept = np.flatnonzero(~shares.small)
    if len(kept) < 2:
        return ""
    low, high = (int(kept[pick(shares.interval.estimate[kept, c])]) for pick in (np.argmin, np.argmax))
    told = [
        f"{group_name(shares.groups[g])} with {percent(shares.interval.estimate[g, c])} "
        f"({between(shares.interval.lower[g, c], shares.interval.upper[g, c])})"
        for g in (high, low)
    ]
    apart = shares.interval.lower[high, c] > shares.interval.upper[low, c]
    return (
        f"{shares.classes[c]}: the most in {told[0]}, the least in {told[1]}; "
        f"their intervals {'do not overlap' if apart else 'overlap'}."
    )


def _differing(shares: Shares, c: int) -> str:
    """How many groups differ from all together, beside how many would by chance."""
    apart = (shares.interval.lower[:, c] > shares.total.estimate[c]) | (
        shares.interval.upper[:, c] < shares.total.estimate[c]
    )
    chance = (1 - shares.total.level) * len(shares.groups)
    return (
        f"The interval of {many(int(apart.sum()), 'group')} of {len(shares.groups):,} leaves out the share of all "
        f"together, {percent(shares.total.estimate[c])} {shares.classes[c]}; by chance alone about {chance:.0f} would."
    )


def group_section(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Section:
    """Groups side by side; beside the truth, (g, k), where that is known."""
    c = shown_classes(shares, focus, 1)[0]
    marks = {} if truth is None else {"plain count": shares.counted, "truth": truth}
    paragraphs = [_range(shares, c), _differing(shares, c), group_note(shares, focus=focus)]
    told = " ".join(filter(None, paragraphs))
    chart = make_chart(
        "groups",
        f"Shares by {listing(list(map(str, shares.keys)))}, ordered by that of {shares.classes[c]}. "
        f"Lines: {level_text(shares.total.level)} intervals; grey: all together with its interval.",
        f"A dot with its interval for each of {many(len(shares.groups), 'group')}. {told}",
        shares_table(shares, truth=truth),
        lambda width: rows_figure(group_rows(shares, focus=focus, marks=marks), width=width),
    )
    return Section(f"By {listing(list(map(str, shares.keys)))}", tuple(filter(None, paragraphs)), charts=(chart,))


def _whole_section(shares: Shares) -> Section:
    gap = shares.total.estimate - shares.total_counted
    c = int(np.abs(gap).argmax())
    rows = class_rows(shares)
    counted = (
        f"A plain count of predicted labels says {percent(shares.total_counted[c])} {shares.classes[c]}: "
        f"{points(abs(gap[c]))} {'less' if gap[c] > 0 else 'more'} than the corrected estimate."
    )
    order = np.argsort(-shares.total.estimate, kind="stable")
    table = Table(
        f"Shares of all together in %, with {level_text(shares.total.level)} intervals",
        (Column("share"), Column("plain count")),
        tuple(
            (
                str(shares.classes[c]),
                (
                    share_entry(shares.total.estimate[c], shares.total.lower[c], shares.total.upper[c]),
                    Entry(f"{100 * shares.total_counted[c]:.1f}"),
                ),
            )
            for c in order
        ),
        corner="class",
    )
    chart = make_chart(
        "classes",
        "Estimated share of every class in all instances together, beside the plain count of predicted labels.",
        f"A dot with its interval for each of {many(len(shares.classes), 'class', 'classes')}. {counted}",
        table,
        lambda width: rows_figure(rows, width=width),
    )
    return Section("All together", (counted,), charts=(chart,))


def _data(shares: Shares) -> dict[str, Any]:
    found: dict[str, Any] = plain(
        {
            "classes": shares.classes,
            "keys": [{"column": key.column, "period": key.period} for key in shares.keys],
            "level": shares.total.level,
            "total": {
                "n": shares.sizes.sum(),
                "estimate": shares.total.estimate,
                "lower": shares.total.lower,
                "upper": shares.total.upper,
                "counted": shares.total_counted,
            },
            "groups": [
                {
                    "group": group,
                    "n": shares.sizes[g],
                    "estimate": shares.interval.estimate[g],
                    "lower": shares.interval.lower[g],
                    "upper": shares.interval.upper[g],
                    "counted": shares.counted[g],
                    "small": shares.small[g],
                    "diagnosis": shares.diagnoses[g],
                }
                for g, group in enumerate(shares.groups)
            ],
            "skipped": shares.skipped,
            "source": shares.source,
        }
    )
    return found
