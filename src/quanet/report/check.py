"""The report of `quanet check`: what a table contains, what to fix before `fit`, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.evaluation.findings import SEVERITIES, Finding
from quanet.report.phrases import listing, many, percent, short
from quanet.report.summary import Column, Section, Summary, Table, TableEntry
from quanet.report.table_findings import date_findings, group_findings, label_findings, table_findings, text_findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quanet.workflows.check import TableCheck

MOST_ROWS = 30  # of a table of classes or periods
KINDS = ("copies", "near copies", "contradicting labels", "short texts", "long texts", "numbers as texts")
CHECKS = {
    "texts": (*KINDS, "encoding errors", "languages", "labels in texts"),
    "labels": ("label variants", "class sizes", "missing labels", "row order"),
    "dates": ("date format", "gaps in time"),
}


def summarize_check(check: TableCheck, *, settings: Sequence[tuple[str, str]] = ()) -> Summary:
    """The report of a check."""
    findings = find_problems(check)
    sections = [_problems(check, findings), Section("Columns", tables=(_columns_table(check),))]
    if check.labels:
        rows = list(check.labels.counts.items())
        sections.append(Section("Classes", tables=(_sizes_table("Rows by label", "label", rows),)))
    for dates in check.dates:
        if dates.sizes:
            title = f"Rows by {dates.period} of {dates.column!r}"
            sections.append(Section("Time", tables=(_sizes_table(title, dates.period, list(dates.sizes.items())),)))
    if check.texts and check.texts.languages:
        rows = list(check.texts.languages.items())
        note = "Guessed from frequent words and scripts, for a part of the texts. Short texts are often unknown."
        table = _sizes_table("Texts by language", "language", rows, note)
        sections.append(Section("Languages", tables=(table,), detail=len(rows) < 2))
    return Summary(
        title=f"Check of {check.source}",
        answer=_answer(check, findings),
        facts=_facts(check),
        sections=tuple(sections),
        settings=tuple(settings),
        data=lambda: _data(check, findings),
        rows=lambda: [_row(finding) for finding in findings],
        columns=("severity", "finding", "rows", "sentence", "advice"),
    )


def find_problems(check: TableCheck) -> tuple[Finding, ...]:
    """All findings about a table, the worst first."""
    found = table_findings(check)
    if check.texts:
        found += text_findings(check.texts)
    if check.labels:
        found += label_findings(check.labels)
    for dates in check.dates:
        found += date_findings(dates)
    for groups in check.groups:
        found += group_findings(groups)
    return tuple(sorted(found, key=lambda finding: -SEVERITIES.index(finding.severity)))


def _answer(check: TableCheck, findings: tuple[Finding, ...]) -> str:
    labels = "" if check.labels is None else f", label {check.labels.column!r} ({_classes(check)})"
    text = "no text column" if check.texts is None else f"text {check.texts.column!r}"
    what = f"{check.source}: {many(check.rows, 'row')}, {text}{labels}."
    serious = list(dict.fromkeys(one.name for one in findings if one.severity in {"warning", "alarm"}))
    if not serious:
        return f"{what} No problems found{' that need a change' if findings else ''}."
    return f"{what} Look at this before you fit a model: {listing(serious, most=4)}."


def _classes(check: TableCheck) -> str:
    return many(len(check.labels.counts), "class", "classes") if check.labels else ""


def _facts(check: TableCheck) -> tuple[tuple[str, str], ...]:
    facts = [("columns", f"{len(check.columns)}"), *check.facts.items()]
    facts += [(f"format of {one.column!r}", one.form) for one in check.dates if one.form]
    for one in check.dates:
        if one.sizes:
            names = list(one.sizes)
            ends = names[0] if len(names) == 1 else f"from {names[0]} to {names[-1]}"
            facts.append((f"range of {one.column!r}", ends))
    return tuple(facts)


def _problems(check: TableCheck, findings: tuple[Finding, ...]) -> Section:
    possible = [*CHECKS["texts"] * bool(check.texts), *CHECKS["labels"] * bool(check.labels)]
    possible += [*CHECKS["dates"] * bool(check.dates), "empty cells"]
    names = {finding.name for finding in findings}
    fine = [name for name in possible if name not in names]
    paragraph = f"Checked, no problems: {listing(fine, most=20)}." if fine else ""
    return Section("What to look at", tuple(filter(None, (paragraph,))), findings=findings)


def _columns_table(check: TableCheck) -> Table:
    from quanet.workflows.check import MAX_DISTINCT

    def distinct(number: int) -> str:
        return f"{number:,}" if number < MAX_DISTINCT else f"{MAX_DISTINCT:,} or more"

    rows = tuple(
        (
            short(one.name),
            (
                TableEntry(one.kind),
                TableEntry(f"{one.empty:,}"),
                TableEntry(distinct(one.distinct)),
                TableEntry(short(one.example, 40)),
            ),
        )
        for one in check.columns
    )
    columns = (Column("content", left=True), Column("empty"), Column("different values"), Column("first", left=True))
    return Table("What each column contains", columns, rows, corner="column")


def _sizes_table(title: str, corner: str, sizes: list[tuple[str, int]], note: str = "") -> Table:
    total = sum(number for _, number in sizes)
    shown = sizes[:MOST_ROWS]
    rows = [(short(name), (TableEntry(f"{n:,}"), TableEntry(percent(n / total)))) for name, n in shown]
    notes = [f"{len(sizes) - MOST_ROWS:,} more are not shown."] if len(sizes) > MOST_ROWS else []
    return Table(title, (Column("rows"), Column("share")), tuple(rows), (*notes, *filter(None, (note,))), corner)


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "finding": finding.name,
        "rows": int(finding.numbers.get("rows", 0)),
        "sentence": finding.sentence,
        "advice": finding.advice,
    }


def _data(check: TableCheck, findings: tuple[Finding, ...]) -> dict[str, Any]:
    return {
        "source": check.source,
        "rows": check.rows,
        **check.facts,
        "text": check.texts.column if check.texts else None,
        "label": check.labels.column if check.labels else None,
        "columns": [
            {
                "name": one.name,
                "content": one.kind,
                "empty": one.empty,
                "different_values": one.distinct,
                "first": one.example,
            }
            for one in check.columns
        ],
        "classes": check.labels.counts if check.labels else {},
        "languages": check.texts.languages if check.texts else {},
        "dates": [
            {"column": one.column, "format": one.form, "period": one.period, "rows": one.sizes, "gaps": list(one.gaps)}
            for one in check.dates
        ],
        "findings": [_row(finding) for finding in findings],
    }
