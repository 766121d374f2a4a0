"""What a report states about a judge's errors: sentences, a caution, and the table of human and judged labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quanet.evaluation.findings import Finding
from quanet.labels.judge_groups import ALPHA
from quanet.report.groups import group_name
from quanet.report.phrases import listing, many, p_value, probability
from quanet.report.summary import Column, Table, TableEntry

if TYPE_CHECKING:
    from quanet.workflows.correct import Correction

NAMED = 3  # groups named in a caution


def assumptions(correction: Correction) -> list[str]:
    """Sentences about the judge's errors in groups: what was tested, and what the correction assumes."""
    if not correction.keys or len(correction.groups) < 2:
        return []
    return [_tested(correction), *_assumed(correction)]


def _tested(correction: Correction) -> str:
    test = correction.errors
    if test is None:
        return "Not tested whether the judge errs the same way in all groups: the human labels come from another file."
    if not test.tested:
        return "Too few human labels per group to test whether the judge errs the same way in all groups."
    if not test.differ:
        return f"The judge's errors do not differ significantly between groups ({p_value(test.p_value)})."
    worst = group_name(correction.groups[int(np.argmin(test.p_values))])
    return f"The judge's errors differ between groups ({p_value(test.p_value)}), most clearly in {worst}."


def _assumed(correction: Correction) -> list[str]:
    own, g = int(correction.own_labels.sum()), len(correction.groups)
    differ = correction.errors is not None and correction.errors.differ
    if correction.assumed:
        but = ", which the human labels contradict" if differ else ""
        return [f"As requested, all human labels correct every group. This assumes equal errors in all groups{but}."]
    sentences = []
    if own == g:
        sentences.append("Every group is corrected by its own human labels.")
    elif own:
        sentences.append(f"Corrected by their own human labels: {own:,} of {many(g, 'group')}.")
    if own < g:
        rest = "The others have" if own else "All groups have"
        sentences.append(
            f"{rest} too few labels of their own and are corrected by all human labels. This assumes that the judge "
            "errs there as it does on average." + (" That is doubtful here: label more rows of them." if differ else "")
        )
    if own and not differ:
        sentences.append("If the judge errs the same way in all groups, --same-errors gives narrower intervals.")
    return sentences


def error_cautions(correction: Correction) -> tuple[Finding, ...]:
    """A caution if the judge's errors differ and some groups have too few labels of their own."""
    doubtful = [group_name(group) for group, bad in zip(correction.groups, correction.doubtful, strict=True) if bad]
    if not correction.keys or not doubtful:
        return ()
    named = listing(doubtful) if len(doubtful) <= NAMED else f"{listing(doubtful[:NAMED])} and others"
    return (
        Finding(
            "errors",
            "warning",
            f"The judge's errors differ between groups, but {many(len(doubtful), 'group')} of "
            f"{len(correction.groups):,} are corrected by the labels of all groups: {named}.",
            "Label more rows of these groups before you compare them with others.",
        ),
    )


def confusion_table(correction: Correction) -> Table:
    """Labels of the judge for instances of every human label."""
    assert correction.rates is not None
    names = [str(name) for name in correction.classes]
    return Table(
        "Labels of the judge (columns) by human label (rows), in %",
        tuple(Column(name) for name in names),
        tuple(
            (name, tuple(TableEntry(f"{100 * share:.1f}", best=i == j) for j, share in enumerate(correction.rates[i])))
            for i, name in enumerate(names)
        ),
        ("Bold: both agree.",),
        "human label",
    )


def group_error_table(correction: Correction) -> Table | None:
    """How often the judge agrees with people in every group, by human label, and the test of each group."""
    test, tables = correction.errors, correction.tables
    if correction.rates is None or test is None or not test.tested or tables is None or len(correction.groups) < 2:
        return None
    k = len(correction.classes)
    rows = []
    for g, group in enumerate(correction.groups):
        labels = tables[g].sum(axis=1)
        shares = 100 * tables[g, range(k), range(k)] / np.maximum(labels, 1)
        entries = [
            TableEntry(f"{share:.1f}", detail=f"of {number:,}") if number else TableEntry()
            for share, number in zip(shares, labels, strict=True)
        ]
        p = test.p_values[g]
        rows.append((group_name(group), (*entries, TableEntry(probability(p), best=bool(p <= ALPHA)))))
    return Table(
        "Human labels that the judge gives too, in %, by group",
        (*(Column(str(name)) for name in correction.classes), Column("p")),
        tuple(rows),
        (
            "p: permutation test of the group's errors against those of all other groups, corrected for the number of "
            "groups. Bold: they differ.",
        ),
        " · ".join(map(str, correction.keys)),
    )


def cluster_sentences(correction: Correction) -> list[str]:
    """Sentences about clusters: how many there are, what they cost, what is assumed."""
    found = correction.clusters
    if found is None:
        return []
    if found.largest == 1:
        return ["Every cluster has one row, so rows count as independent and intervals are the plain ones."]
    wider = float(np.sqrt(found.effect.max()))
    sentences = [
        f"{many(found.judged, 'cluster')}, {found.labelled:,} with human labels, of up to {found.largest:,} rows. "
        f"Errors are {f'{wider:.2f} times' if round(wider, 2) > 1 else 'no larger than'} those of as many independent "
        "rows."
    ]
    if found.shared:
        sentences.append(
            f"{many(found.shared, 'cluster')} in both files: rows with the same name in both count as one cluster."
        )
    return sentences
