"""The report of `quanet predict`: the headline, shares over time or by group, the total, and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.charts.interval_rows import rows_figure
from quanet.report.charts.lines import lines_figure
from quanet.report.groups import (
    class_rows,
    group_name,
    group_note,
    group_rows,
    position_of,
    shares_table,
    shown_classes,
    time_key,
    time_series,
    trend_grid,
    trend_note,
)
from quanet.report.phrases import (
    between,
    cautions_of,
    diagnosis_section,
    level_text,
    listing,
    many,
    percent,
    plain_finding,
    points,
    reproduction,
    share_entry,
    skipped_facts,
)
from quanet.report.summary import Chart, Column, Section, Summary, Table, TableEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.arrays import FloatArray
    from quanet.uncertainty.regions import Interval
    from quanet.workflows.predict import Shares

NAMED = 3  # classes or groups named in a sentence; the others are counted


def summarize_shares(shares: Shares, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """The report of estimated shares.

    Parameters
    ----------
    shares : the estimates.
    settings : names and values that reproduce them.
    focus : the class that charts show; None for the second of two, or the most common ones.
    """
    position_of(shares.classes, focus)
    sections = []
    if time_key(shares) is not None and time_series(shares):
        sections.append(trend_section(shares, focus=focus))
    elif shares.keys:
        sections.append(group_section(shares, focus=focus))
    sections.append(_whole_section(shares))
    sections += [diagnosis_section(shares.diagnosis)] if len(shares.diagnosis) else []
    return Summary(
        title=f"Shares in {shares.source}" if shares.source else "Shares",
        answer=_answer(shares, focus),
        cautions=cautions_of(shares.diagnosis),
        facts=_facts(shares),
        sections=tuple(sections),
        settings=reproduction(settings, shares.model),
        data=lambda: _data(shares),
        figures=lambda: _figures(shares),
        rows=shares.rows,
        digits=6,
    )


def _answer(shares: Shares, focus: Any) -> str:
    order = shown_classes(shares, focus, 1) if focus is not None else np.argsort(-shares.total.estimate, kind="stable")
    named = [
        f"{shares.classes[c]} {percent(shares.total.estimate[c])} "
        f"({between(shares.total.lower[c], shares.total.upper[c])})"
        for c in (order[:NAMED] if len(order) > NAMED + 1 else order)
    ]
    more = len(order) - len(named)
    rest = f" and {more} more classes" if more else ""
    where = f" in {shares.source}" if shares.source else ""
    return f"{listing(named)}{rest} of {many(int(shares.sizes.sum()), 'instance')}{where}."


def _facts(shares: Shares) -> tuple[tuple[str, str], ...]:
    facts = [("instances", f"{shares.sizes.sum():,}")]
    if shares.keys:
        small = int(shares.small.sum())
        few = f", {small:,} of them small" if small else ""
        facts.append((f"groups by {' and '.join(map(str, shares.keys))}{few}", f"{len(shares.groups):,}"))
    facts.append(("confidence level", level_text(shares.total.level)))
    facts += [("worst finding", shares.diagnosis.severity)] if len(shares.diagnosis) else []
    facts += skipped_facts(shares.skipped)
    return tuple(facts)


def trend_section(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Section:
    """Shares over time; with the truth, (g, k), if known."""
    at = time_key(shares)
    assert at is not None
    others = [str(key) for place, key in enumerate(shares.keys) if place != at]
    c = shown_classes(shares, focus, 1)[0]
    alone = position_of(shares.classes, focus) is not None
    found = time_series(shares)
    paragraphs = [_range(shares, c)] if not others else [_differing(shares, c)] if alone else []
    paragraphs.append(trend_note(shares, focus=focus))
    what = f"Share of {shares.classes[c]}" if alone else "Shares of classes"
    by = f" and {listing(others)}" if others else ""
    caption = (
        f"{what} by {shares.keys[at]}{by}. Bands: {level_text(shares.total.level)} intervals"
        + ("; hollow: small groups" if shares.small.any() else "")
        + (f"; dashed: {'total' if truth is None else 'truth'}." if alone else ".")
    )
    panels = f", for each of {many(len(found), 'group')}" if others else ""
    alt = f"Lines with bands over {many(len(found[0].dates), 'period')}{panels}. {' '.join(filter(None, paragraphs))}"
    chart = Chart(
        "trend",
        caption,
        alt.strip(),
        shares_table(shares, truth=truth),
        lambda width: lines_figure(trend_grid(shares, focus=focus, truth=truth), width=width),
    )
    return Section("Over time", tuple(filter(None, paragraphs)), charts=(chart,))


def _range(shares: Shares, c: int) -> str:
    """The highest and the lowest group that is not small, and whether their intervals overlap."""
    kept = np.flatnonzero(~shares.small)
    if len(kept) < 2:
        return ""
    low, high = (int(kept[pick(shares.interval.estimate[kept, c])]) for pick in (np.argmin, np.argmax))
    ends = [
        f"{group_name(shares.groups[g])} with {percent(shares.interval.estimate[g, c])} "
        f"({between(shares.interval.lower[g, c], shares.interval.upper[g, c])})"
        for g in (high, low)
    ]
    apart = shares.interval.lower[high, c] > shares.interval.upper[low, c]
    return (
        f"{shares.classes[c]}: highest in {ends[0]}, lowest in {ends[1]}; "
        f"their intervals {'do not overlap' if apart else 'overlap'}."
    )


def _differing(shares: Shares, c: int) -> str:
    """How many groups differ from the total, and how many would by chance."""
    apart = (shares.interval.lower[:, c] > shares.total.estimate[c]) | (
        shares.interval.upper[:, c] < shares.total.estimate[c]
    )
    chance = (1 - shares.total.level) * len(shares.groups)
    return (
        f"The intervals of {many(int(apart.sum()), 'group')} of {len(shares.groups):,} exclude the total share of "
        f"{shares.classes[c]}, {percent(shares.total.estimate[c])}; by chance alone, about {chance:.0f} would."
    )


def group_section(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Section:
    """Groups side by side; with the truth, (g, k), if known."""
    c = shown_classes(shares, focus, 1)[0]
    marks = {} if truth is None else {"plain count": shares.counted, "truth": truth}
    sentences = (_range(shares, c), _differing(shares, c), group_note(shares, focus=focus))
    paragraphs = tuple(filter(None, sentences))
    keys = listing(list(map(str, shares.keys)))
    chart = Chart(
        "groups",
        f"Shares by {keys}, ordered by {shares.classes[c]}. "
        f"Lines: {level_text(shares.total.level)} intervals; grey: the total with its interval.",
        f"A dot with its interval for each of {many(len(shares.groups), 'group')}. {' '.join(paragraphs)}",
        shares_table(shares, truth=truth),
        lambda width: rows_figure(group_rows(shares, focus=focus, marks=marks), width=width),
    )
    return Section(f"By {keys}", paragraphs, charts=(chart,))


def _whole_section(shares: Shares) -> Section:
    gap = shares.total.estimate - shares.total_counted
    c = int(np.abs(gap).argmax())
    counted = (
        f"A plain count of predicted labels gives {percent(shares.total_counted[c])} {shares.classes[c]}: "
        f"{points(abs(gap[c]))} {'less' if gap[c] > 0 else 'more'} than the corrected estimate."
    )
    order = np.argsort(-shares.total.estimate, kind="stable")
    ends = [(shares.total.estimate[c], shares.total.lower[c], shares.total.upper[c]) for c in order]
    plain_counts = [TableEntry(f"{100 * shares.total_counted[c]:.1f}") for c in order]
    table = Table(
        f"Total shares in %, with {level_text(shares.total.level)} intervals",
        (Column("share"), Column("plain count")),
        tuple(
            (str(shares.classes[c]), (share_entry(*values), count))
            for c, values, count in zip(order, ends, plain_counts, strict=True)
        ),
        corner="class",
        strips=tuple(ends),
    )
    chart = Chart(
        "classes",
        "Estimated share of every class in all instances, and the plain count of predicted labels.",
        f"A dot with its interval for each of {many(len(shares.classes), 'class', 'classes')}. {counted}",
        table,
        lambda width: rows_figure(class_rows(shares), width=width),
    )
    return Section("Total", (counted,), charts=(chart,))


def _figures(shares: Shares) -> dict[str, Any]:
    states, labels = shares.states, shares.labels
    return {
        "classes": shares.classes,
        "keys": [{"column": key.column, "period": key.period} for key in shares.keys],
        "level": shares.total.level,
        "total": {"n": shares.sizes.sum(), **_parts(shares.total, shares.total_counted, ())},
        "groups": [
            {
                "group": group,
                "n": shares.sizes[g],
                **_parts(shares.interval, shares.counted, g),
                "small": shares.small[g],
                "state": states[g],
                "labels": labels[g],
            }
            for g, group in enumerate(shares.groups)
        ],
        "skipped": shares.skipped,
        "source": shares.source,
    }


def _parts(interval: Interval, counted: FloatArray, g: Any) -> dict[str, FloatArray]:
    return {
        "estimate": interval.estimate[g],
        "lower": interval.lower[g],
        "upper": interval.upper[g],
        "counted": counted[g],
        "drift": np.full(len(interval.classes), np.nan) if interval.drift is None else interval.drift.cost[g],
    }


def _state(interval: Interval, g: Any) -> dict[str, Any]:
    """The state of a group, and the labels that would settle its shares; empty if intervals do not include drift."""
    drift = interval.drift
    if drift is None:
        return {}
    return {"state": str(np.asarray(drift.state)[g]), "labels": int(np.asarray(drift.labels)[g])}


def _data(shares: Shares) -> dict[str, Any]:
    groups = [
        {
            "group": dict(zip(shares.key_names, values, strict=True)),
            "n": int(shares.sizes[g]),
            "small": bool(shares.small[g]),
            **_state(shares.interval, g),
            "classes": _classes(shares, shares.interval, shares.counted, g),
        }
        for g, values in enumerate(shares.groups)
    ]
    total = {
        "n": int(shares.sizes.sum()),
        **_state(shares.total, ()),
        "classes": _classes(shares, shares.total, shares.total_counted, ()),
    }
    return {
        "source": shares.source,
        "model": shares.model,
        "level": shares.total.level,
        "interval": shares.total.method,
        "total": total,
        **({"groups": groups} if shares.keys else {}),
        "diagnosis": [
            plain_finding(one) | {"numbers": {name: _rounded(value) for name, value in one.numbers.items()}}
            for one in shares.diagnosis
        ],
        "skipped": shares.skipped,
    }


def _classes(shares: Shares, interval: Interval, counted: FloatArray, g: Any) -> dict[str, dict[str, float | None]]:
    parts = _parts(interval, counted, g).items()
    return {
        str(name): {part: _rounded(values[c]) for part, values in parts}
        for c, name in enumerate(shares.classes.tolist())
    }


def _rounded(value: float) -> float | None:
    """Six digits are far more than is known; JSON has no infinity."""
    return round(float(value), 6) if abs(value) < float("inf") else None
