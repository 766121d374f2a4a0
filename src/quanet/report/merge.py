"""The report of merged states: what each file adds, and what they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.report.phrases import listing, many, reproduction, skipped_facts
from quanet.report.summary import Column, Section, Summary, Table, TableEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.corpus.state_files import MergedStates, StateFile


def summarize_merge(merged: MergedStates, *, output: str, settings: Sequence[tuple[str, str]] = ()) -> Summary:
    """How many instances and groups the merged state has, and what each file adds.

    Parameters
    ----------
    merged : the state, and its files.
    output : the file it was written to.
    settings : names and values that reproduce it.
    """
    state = merged.state
    again = [one.name for one in merged.files if one.repeated]
    added = "" if not again else f" {listing(again)} {'adds' if len(again) == 1 else 'add'} nothing new."
    return Summary(
        title=f"Merged states in {output}",
        answer=(
            f"{output} has {many(state.instances, 'instance')} in {many(len(state.groups), 'group')}, "
            f"from {many(len(merged.files), 'state')}.{added}"
        ),
        facts=(
            ("instances", f"{state.instances:,}"),
            ("rows", f"{state.rows:,}"),
            ("groups", f"{len(state.groups):,}"),
            ("grouped by", listing([str(key) for key in state.header.keys]) or "nothing"),
            *((("weighted by", state.header.weight),) if state.header.weight else ()),
            *skipped_facts(state.skipped),
        ),
        sections=(Section("States", tables=(_table(merged.files),)),),
        settings=reproduction(settings),
        data=lambda: _data(merged, output),
        rows=lambda: [_row(one) for one in merged.files],
    )


def _table(files: Sequence[StateFile]) -> Table:
    rows = [
        (one.name, tuple(TableEntry(f"{number:,}") for number in (one.rows, one.instances, one.groups)))
        for one in files
    ]
    return Table("", (Column("rows"), Column("instances"), Column("groups")), tuple(rows), corner="state")


def _row(one: StateFile) -> dict[str, Any]:
    return {
        "state": one.name,
        "rows": one.rows,
        "instances": one.instances,
        "groups": one.groups,
        "partitions": len(one.partitions),
        "repeated": one.repeated,
    }


def _data(merged: MergedStates, output: str) -> dict[str, Any]:
    state = merged.state
    return {
        "output": output,
        "rows": state.rows,
        "instances": state.instances,
        "groups": len(state.groups),
        "keys": [{"column": key.column, "period": key.period} for key in state.header.keys],
        "weight": state.header.weight,
        "partitions": len(state.partitions),
        "skipped": dict(state.skipped),
        "states": [_row(one) for one in merged.files],
    }
