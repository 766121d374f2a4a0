"""What a report states about a judge's errors: sentences, a caution, and the table of human and judged labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quanet.diagnostics.findings import Finding
from quanet.report.groups import group_name
from quanet.report.phrases import listing, many
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
        return f"The judge's errors do not differ significantly between groups (p = {test.p_value:.2g})."
    worst = group_name(correction.groups[int(np.argmin(test.p_values))])
    return f"The judge's errors differ between groups (p = {test.p_value:.2g}), most clearly in {worst}."


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
        sentences.append(f"{own} of {g} groups are corrected by their own human labels.")
    if own < g:
        rest = f"The other {g - own} groups have" if own else "All groups have"
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
