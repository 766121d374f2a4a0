"""Shares and their intervals in tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from quanet.report.grouped import group_name
from quanet.report.numbers import level_text
from quanet.report.tables import Column, Entry, Table

if TYPE_CHECKING:
    from quanet.answers.shares import Shares
    from quanet.arrays import FloatArray


def shares_table(shares: Shares, *, truth: FloatArray | None = None) -> Table:
    """Every group's shares and intervals."""
    two = len(shares.classes) == 2
    columns = [Column("n")]
    columns += [Column(str(name)) for name in shares.classes]
    columns += [Column(f"{shares.classes[1]}, counted")] if two else []
    columns += [Column("true " + str(name)) for name in shares.classes[-1 if two else 0 :]] if truth is not None else []
    rows = []
    for g, group in enumerate(shares.groups):
        marks = "*" * bool(shares.small[g]) + "†" * (shares.diagnoses[g] == "alarm")
        entries = [Entry(f"{shares.sizes[g]:,}", marks)]
        entries += [share_entry(*ends) for ends in zip(*_ends(shares, g), strict=True)]
        entries += [Entry(f"{100 * shares.counted[g, 1]:.1f}")] if two else []
        if truth is not None:
            entries += [Entry(f"{100 * share:.1f}") for share in truth[g][-1 if two else 0 :]]
        rows.append((group_name(group), tuple(entries)))
    notes = ["* A small group: its interval is too wide to say much."] if shares.small.any() else []
    if "alarm" in shares.diagnoses:
        notes.append("† Unlike training, whatever its shares: it may be off by more than its interval says.")
    if two:
        notes.append("Counted: the share of predicted labels, not corrected.")
    title = f"Shares in %, with {level_text(shares.total.level)} intervals"
    return Table(title, tuple(columns), tuple(rows), tuple(notes), " · ".join(map(str, shares.keys)) or "group")


def share_entry(estimate: float, lower: float, upper: float) -> Entry:
    """A share and its interval in a table in percent; nothing where there is none."""
    if math.isnan(estimate):
        return Entry()
    return Entry(f"{100 * estimate:.1f}", detail=f"{100 * lower:.1f} to {100 * upper:.1f}")


def _ends(shares: Shares, g: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    return shares.interval.estimate[g], shares.interval.lower[g], shares.interval.upper[g]
