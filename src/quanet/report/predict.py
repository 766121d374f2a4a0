"""The report of `quanet predict`: the headline, shares over time or by group, the total, and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.evaluation.findings import WORTH_A_SENTENCE
from quanet.report.accuracy_section import accuracy_sections
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.charts.lines import lines_figure
from quanet.report.groups import (
    class_rows,
    group_name,
    group_note,
    group_rows,
    shares_table,
    shown_classes,
    trend_grid,
    trend_note,
)
from quanet.report.phrases import (
    between,
    cautions_of,
    class_name,
    diagnosis_section,
    focus_first,
    level_text,
    listing,
    many,
    of_weight,
    percent,
    points,
    position_of,
    quantity,
    reproduction,
    share_entry,
    share_text,
    skipped_facts,
    with_share,
)
from quanet.report.shares_data import shares_figures, shares_json
from quanet.report.summary import Chart, Column, Section, Summary, Table, TableEntry
from quanet.report.time_series import time_key, time_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.arrays import FloatArray
    from quanet.evaluation.findings import Finding
    from quanet.workflows.predict import Shares

NAMED = 3  # classes or groups named in a sentence; the others are counted


def summarize_shares(shares: Shares, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None) -> Summary:
    """The report of estimated shares: overall and by group, with intervals, and whether they can be trusted.

    Parameters
    ----------
    shares : what `quanet predict` computes; `quanet.ray.predict` and `quanet.spark.predict` return it.
    settings : names and values that reproduce it, shown at the end.
    focus : the class that charts show; None for the second of two, or the most common ones.

    Returns
    -------
    Summary
        for `write_report`; plain data, such as `answer`, the most important sentence.

    Examples
    --------
    >>> from quanet import EMQ, WordBags
    >>> from quanet.corpus.grouped_inputs import GroupedInputs
    >>> from quanet.workflows.predict import estimate_shares
    >>> quantifier = EMQ().fit(*WordBags().draw([0.5, 0.5], 300, rng=0))
    >>> inputs = quantifier.read(WordBags().draw([0.7, 0.3], 100, rng=1)[0])
    >>> reading = GroupedInputs(inputs, np.zeros(100, dtype=np.int32), [()], {}, None)
    >>> summarize_shares(estimate_shares(quantifier, reading)).answer
    'class 0: 71.5 % (64.6 to 78.3 %) and class 1: 28.5 % (21.7 to 35.4 %) of 100 instances.'
    """
    position_of(shares.classes, focus)
    sections = []
    if time_key(shares) is not None and time_series(shares):
        sections.append(trend_section(shares, focus=focus))
    elif shares.keys:
        sections.append(group_section(shares, focus=focus))
    sections.append(_whole_section(shares, focus))
    sections += [diagnosis_section(shares.diagnosis)] if len(shares.diagnosis) else []
    sections += accuracy_sections(shares.accuracy, focus=focus, detail=True)
    return Summary(
        title=f"Shares{of_weight(shares.weight)}{f' in {shares.source}' if shares.source else ''}",
        answer=_answer(shares, focus),
        cautions=(*cautions_of(shares.diagnosis), *_dominated(shares)),
        facts=_facts(shares),
        sections=tuple(sections),
        settings=reproduction(settings, shares.model),
        data=lambda: shares_json(shares),
        figures=lambda: shares_figures(shares),
        rows=shares.rows,
        digits=6,
    )


def _answer(shares: Shares, focus: Any) -> str:
    order = shown_classes(shares, focus, 1) if focus is not None else np.argsort(-shares.total.estimate, kind="stable")
    named = [
        with_share(
            shares.classes[c], share_text(shares.total.estimate[c], shares.total.lower[c], shares.total.upper[c])
        )
        for c in (order[:NAMED] if len(order) > NAMED + 1 else order)
    ]
    more = len(order) - len(named)
    rest = f" and {many(more, 'more class', 'more classes')}" if more else ""
    where = f" in {shares.source}" if shares.source else ""
    what = f"the {shares.weight} of " if shares.weight else ""
    return f"{listing(named)}{rest} of {what}{many(int(shares.sizes.sum()), 'instance')}{where}."


def _dominated(shares: Shares) -> tuple[Finding, ...]:
    """The warning that a few instances have most of the weight, if they do."""
    return tuple(one for one in shares.diagnosis if one.name == "weights" and one.severity == "warning")


def _facts(shares: Shares) -> tuple[tuple[str, str], ...]:
    facts = [("instances", f"{shares.sizes.sum():,}")]
    if shares.totals is not None:
        facts += [
            (shares.weight, quantity(float(shares.totals.sum()))),
            ("effective size", f"{shares.total.effective_sizes:,}"),
        ]
    if shares.keys:
        small, number = int(shares.small.sum()), len(shares.groups)
        few = f", {'all' if small == number else f'{small:,}'} of them small" if small and number > 1 else ""
        groups = "group" if number == 1 else "groups"
        facts.append((f"{groups} by {' and '.join(map(str, shares.keys))}{few}", f"{number:,}"))
    if shares.cluster:
        facts.append((f"clusters by {shares.cluster}", f"{shares.clusters:,}; intervals are those of their source"))
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
    what = f"{what} (of {shares.weight})" if shares.weight else what
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
        shares_table(shares, focus=focus, truth=truth),
        lambda width: lines_figure(trend_grid(shares, focus=focus, truth=truth), width=width),
    )
    return Section("Over time", tuple(filter(None, paragraphs)), charts=(chart,))


def _range(shares: Shares, c: int) -> str:
    """The highest and the lowest group that is not small, and whether they overlap; empty if all look alike."""
    kept = np.flatnonzero(~shares.small)
    if len(kept) < 2 or _alike(shares.interval.estimate[kept, c]):
        return ""
    low, high = (int(kept[pick(shares.interval.estimate[kept, c])]) for pick in (np.argmin, np.argmax))
    ends = [
        f"{group_name(shares.groups[g])} with {percent(shares.interval.estimate[g, c])} "
        f"({between(shares.interval.lower[g, c], shares.interval.upper[g, c])})"
        for g in (high, low)
    ]
    apart = shares.interval.lower[high, c] > shares.interval.upper[low, c]
    return (
        f"{class_name(shares.classes[c])}: highest in {ends[0]}, lowest in {ends[1]}; "
        f"their intervals {'do not overlap' if apart else 'overlap'}."
    )


def _alike(estimates: FloatArray) -> bool:
    """Whether all shares (g,) look the same when they are printed."""
    return percent(float(estimates.min())) == percent(float(estimates.max()))


def _differing(shares: Shares, c: int) -> str:
    """How many groups differ from the total, and how many would by chance; empty if all look alike."""
    if _alike(shares.interval.estimate[:, c]):
        return ""
    apart = (shares.interval.lower[:, c] > shares.total.estimate[c]) | (
        shares.interval.upper[:, c] < shares.total.estimate[c]
    )
    number, chance = int(apart.sum()), round((1 - shares.total.level) * len(shares.groups))
    every = f"{len(shares.groups):,} groups"
    who = f"All {every}" if number == len(shares.groups) else f"{f'{number:,}' if number else 'None'} of {every}"
    by_chance = f"; by chance alone, about {chance:,} would" if number and chance else ""
    return (
        f"{who} {'differ' if number > 1 else 'differs'} clearly from the total share of "
        f"{class_name(shares.classes[c])}, {percent(shares.total.estimate[c])}{by_chance}."
    )


def group_section(shares: Shares, *, focus: Any = None, truth: FloatArray | None = None) -> Section:
    """Groups side by side; with the truth, (g, k), if known."""
    c = shown_classes(shares, focus, 1)[0]
    marks = {} if np.isnan(shares.counted).any() else {"plain count": shares.counted}
    marks |= {} if truth is None else {"truth": truth}
    sentences = (_range(shares, c), _differing(shares, c), group_note(shares, focus=focus))
    paragraphs = tuple(filter(None, sentences))
    keys = listing(list(map(str, shares.keys)))
    chart = Chart(
        "groups",
        f"Shares{of_weight(shares.weight)} by {keys}, ordered by {shares.classes[c]}. "
        f"Lines: {level_text(shares.total.level)} intervals; grey: the total with its interval.",
        f"A dot with its interval for each of {many(len(shares.groups), 'group')}. {' '.join(paragraphs)}",
        shares_table(shares, focus=focus, truth=truth),
        lambda width: rows_figure(group_rows(shares, focus=focus, marks=marks), width=width),
    )
    return Section(f"By {keys}", paragraphs, charts=(chart,))


def _whole_section(shares: Shares, focus: Any) -> Section:
    counted = _plain_count(shares)
    order = focus_first(np.argsort(-shares.total.estimate, kind="stable"), shares.classes, focus)
    ends = [(shares.total.estimate[c], shares.total.lower[c], shares.total.upper[c]) for c in order]
    plain_counts = [TableEntry(f"{100 * shares.total_counted[c]:.1f}") for c in order]
    table = Table(
        f"Total shares{of_weight(shares.weight)} in %, with {level_text(shares.total.level)} intervals",
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
        f"Estimated share of every class in all {shares.weight or 'instances'}, and the plain count of predicted "
        "labels.",
        f"A dot with its interval for each of {many(len(shares.classes), 'class', 'classes')}. {counted}".strip(),
        table,
        lambda width: rows_figure(class_rows(shares, focus=focus), width=width),
    )
    return Section("Total", tuple(filter(None, (counted,))), charts=(chart,))


def _plain_count(shares: Shares) -> str:
    """How far a plain count of labels is from the estimate; empty if the two look alike or nothing was counted."""
    gap = shares.total.estimate - shares.total_counted
    if np.isnan(gap).any():
        return ""
    c = int(np.abs(gap).argmax())
    counted, estimate = float(shares.total_counted[c]), float(shares.total.estimate[c])
    if percent(counted) == percent(estimate) or abs(gap[c]) < WORTH_A_SENTENCE:
        return ""
    return (
        f"A plain count of predicted labels gives {percent(counted)} for {class_name(shares.classes[c])}: "
        f"{points(abs(gap[c]))} {'less' if gap[c] > 0 else 'more'} than the corrected estimate."
    )
