"""What a report states about several judges, differences between groups, and the check on an anchor set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.evaluation.findings import Finding
from quanet.report.phrases import (
    between,
    class_name,
    level_text,
    many,
    p_value,
    percent,
    points,
    probability,
    share_entry,
    signed,
    signed_span,
    span,
)
from quanet.report.summary import Column, Section, Table, TableEntry

if TYPE_CHECKING:
    from quanet.uncertainty.differences import Differences
    from quanet.workflows.correct import Correction

NAMED = 3  # differences named in a sentence


def panel_section(correction: Correction, c: int) -> Section:
    """The rate of a class by each judge alone and by all together, and how far judges agree."""
    panel = correction.panel
    assert panel is not None
    rates = [
        (name, (share_entry(*total[:3, c]), TableEntry(f"{100 * total[3, c]:.1f}")))
        for name, total in zip(panel.names, panel.totals, strict=True)
    ]
    rates.append(("all judges", (share_entry(*correction.total[:3, c]), TableEntry())))
    people = (*panel.names, "people")
    kappa = [
        (name, tuple(TableEntry("" if i == j else f"{value:.2f}") for j, value in enumerate(row)))
        for i, (name, row) in enumerate(zip(people, panel.kappa, strict=True))
    ]
    return Section(
        "Judges",
        (
            "All judges together: every combination of their labels counts as one label, and the human labels show how "
            "often it occurs in each class. Judges may depend on each other in any way.",
        ),
        tables=(
            Table(
                f"Rates of {correction.classes[c]} in %, with {level_text(correction.level)} intervals",
                (Column("corrected"), Column("judge, uncorrected")),
                tuple(rates),
                corner="judge",
            ),
            Table(
                "Agreement: Cohen's kappa",
                tuple(Column(name) for name in people),
                tuple(kappa),
                ("1: always equal; 0: as often as by chance. On the human-labelled rows.",),
                "judge",
            ),
        ),
    )


def difference_section(correction: Correction, c: int) -> Section:
    """Differences between groups: a sentence about the significant ones, and all in a table."""
    found = correction.differences
    assert found is not None
    return Section("Differences", (difference_sentence(found, c),), tables=(_difference_table(found, c),))


def difference_sentence(found: Differences, c: int) -> str:
    """The largest significant differences of a class."""
    clear = np.flatnonzero(found.significant[:, c])
    if not len(clear):
        tests = many(len(found), "comparison")
        return f"{class_name(found.classes[c])}: no difference is significant (Holm's correction for {tests})."
    order = clear[np.argsort(-np.abs(found.estimate[clear, c]), kind="stable")]
    parts = []
    for i in order[:NAMED]:
        estimate, lower, upper = (float(one[i, c]) for one in (found.estimate, found.lower, found.upper))
        ends = span(*((lower, upper) if estimate > 0 else (-upper, -lower)))
        parts.append(
            f"{found.second[i]} {points(abs(estimate))} {'above' if estimate > 0 else 'below'} {found.first[i]} "
            f"({ends})"
        )
    more = f"; {len(clear) - NAMED:,} more {'is' if len(clear) == NAMED + 1 else 'are'} significant"
    more = more if len(clear) > NAMED else ""
    return f"{class_name(found.classes[c])}: {'; '.join(parts)}{more}."


def _difference_table(found: Differences, c: int) -> Table:
    rows = []
    for i in range(len(found)):
        estimate, lower, upper = (float(one[i, c]) for one in (found.estimate, found.lower, found.upper))
        entries = (
            TableEntry(signed(estimate), detail=signed_span(lower, upper), best=bool(found.significant[i, c])),
            TableEntry(probability(float(found.p_value[i, c]))),
            TableEntry(probability(float(found.adjusted[i, c]))),
        )
        rows.append((f"{found.second[i]} \u2212 {found.first[i]}", entries))
    return Table(
        f"Differences of {found.classes[c]} in points, with {level_text(found.level)} intervals",
        (Column("difference"), Column("p"), Column("p, Holm")),
        tuple(rows),
        (
            "Bold: significant after Holm's correction. Groups that share human labels or clusters share their errors; "
            "the intervals account for it.",
        ),
        "comparison",
    )


def anchor_finding(correction: Correction) -> tuple[Finding, ...]:
    """Whether the judge errs on the anchor set as before, and what to do."""
    check = correction.anchor
    if check is None:
        return ()
    whose = f"The errors of judge {check.judge}" if check.judge else "The judge's errors"
    number = int(check.numbers[1].sum())
    if not check.test.tested:
        return (
            Finding(
                "anchor",
                "warning",
                f"Too few human labels to test the judge on {check.source}: {number:,}.",
                "Label at least 5 rows of a class there, better 50 of each.",
            ),
        )
    p = p_value(check.test.p_value)
    if not check.test.differ:
        sentence = f"{whose} on {check.source} ({number:,} labels) do not differ significantly ({p})."
        return (Finding("anchor", "ok", sentence, numbers={"p": check.test.p_value}),)
    return (
        Finding(
            "anchor",
            "alarm",
            f"{whose} on {check.source} differ from those on the rows that correct its rates ({p})"
            f"{_changed(correction)}.",
            "The judge may have changed: label rows of the current data, and correct with these alone (--calibration).",
            numbers={"p": check.test.p_value},
        ),
    )


def _changed(correction: Correction) -> str:
    """The largest change of how often the judge gives a human label."""
    check = correction.anchor
    assert check is not None
    if check.before.shape[0] != check.before.shape[1]:
        return ""
    change = np.diagonal(check.now - check.before)
    if np.isnan(change).all():
        return ""
    c = int(np.nanargmax(np.abs(change)))
    return (
        f": it gives {class_name(correction.classes[c])} to {percent(check.now[c, c])} of the rows that people label "
        f"so ({percent(check.before[c, c])} before)"
    )


def anchor_section(correction: Correction, c: int) -> Section:
    """How the judge errs on the anchor set and before, and the rates corrected by each."""
    check = correction.anchor
    assert check is not None
    names = [str(name) for name in correction.classes]
    tables = []
    if correction.rates is not None or correction.panel is not None:
        rows = [
            (
                name,
                tuple(
                    TableEntry(f"{100 * rates[i, i]:.1f}", detail=f"of {check.numbers[at, i]:,}")
                    if check.numbers[at, i]
                    else TableEntry()
                    for at, rates in enumerate((check.before, check.now))
                ),
            )
            for i, name in enumerate(names)
        ]
        tables.append(
            Table(
                "Human labels that the judge gives too, in %",
                (Column("correcting labels"), Column("anchor set")),
                tuple(rows),
                corner="human label",
            )
        )
    said = [finding.sentence for finding in anchor_finding(correction)]
    if not np.isnan(check.rates).any():
        said.append(
            f"If human labels only show how the judge errs, the rate of {class_name(names[c])} is "
            f"{percent(check.rates[0, 0, c])} ({between(*check.rates[0, 1:, c])}) by the correcting labels, and "
            f"{percent(check.rates[1, 0, c])} ({between(*check.rates[1, 1:, c])}) by those of the anchor set."
        )
    return Section("Anchor set", tuple(said), tables=tuple(tables))


def audit_data(correction: Correction) -> dict[str, Any]:
    """Clusters, judges, differences and the anchor set as data; without what was not asked for."""
    data: dict[str, Any] = {}
    names = correction.classes.tolist()
    if (found := correction.clusters) is not None:
        data["clusters"] = {
            "judged": found.judged,
            "labelled": found.labelled,
            "shared": found.shared,
            "largest": found.largest,
            "design_effect": dict(zip(map(str, names), found.effect.tolist(), strict=True)),
            "few": bool(found.few[-1]),
        }
    if (panel := correction.panel) is not None:
        keys = ("estimate", "lower", "upper", "judged")
        data["judges"] = {
            name: {str(label): dict(zip(keys, total[:, c], strict=True)) for c, label in enumerate(names)}
            for name, total in zip(panel.names, panel.totals, strict=True)
        }
        data["kappa"] = {"names": [*panel.names, "people"], "values": panel.kappa}
    if correction.differences is not None:
        columns = correction.differences.columns()
        data["differences"] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if (check := correction.anchor) is not None:
        data["anchor"] = {
            "source": check.source,
            "judge": check.judge or None,
            "p_value": check.test.p_value if check.test.tested else None,
            "differ": check.test.differ if check.test.tested else None,
            "labels": check.numbers,
            "before": check.before,
            "now": check.now,
        }
    return data
