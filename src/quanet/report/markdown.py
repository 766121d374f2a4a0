"""Answers and tables in GitHub's Markdown."""

import re
from typing import TYPE_CHECKING

from quanet.report.summary import Summary, Table, TableEntry

if TYPE_CHECKING:
    from quanet.evaluation.findings import Finding


def to_markdown(summary: Summary) -> str:
    """The whole answer in GitHub's Markdown; charts as captions and tables."""
    parts = [f"# {_escaped(summary.title)}", f"**{_escaped(summary.answer)}**" if summary.answer else ""]
    parts += [_finding(finding) for finding in summary.cautions]
    parts += ["\n".join(f"- {_escaped(name)}: {_escaped(value)}" for name, value in summary.facts)]
    for section in summary.sections:
        parts += [f"## {_escaped(section.title)}" if section.title else "", *map(_escaped, section.paragraphs)]
        parts += ["\n".join(f"- {_finding(finding)}" for finding in summary.findings_of(section))]
        for chart in section.charts:
            parts += [f"*{_escaped(chart.caption)}*", markdown_table(chart.table)]
        parts += [markdown_table(table) for table in section.tables]
    if summary.settings:
        parts.append("## To reproduce this")
        parts.append("\n".join(f"- {_escaped(name)}: {_escaped(value)}" for name, value in summary.settings))
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_table(table: Table) -> str:
    """A table in GitHub's Markdown; a column's group is part of its title."""

    def clean(text: str) -> str:
        return re.sub(r"([\\|*_\[\]]|<(?=[a-zA-Z/!]))", r"\\\1", " ".join(text.split()))

    def cell(entry: TableEntry) -> str:
        value = f"**{clean(entry.text)}**" if entry.best else clean(entry.text)
        return f"{value}{clean(entry.mark)}" + (f" ({clean(entry.detail)})" if entry.detail else "")

    titles = [clean(" ".join(filter(None, (column.group, column.title)))) for column in table.columns]
    lines = [
        f"| {' | '.join([clean(table.corner), *titles])} |",
        f"|---|{''.join('---|' if column.left else '---:|' for column in table.columns)}",
        *(f"| {' | '.join([clean(name), *map(cell, entries)])} |" for name, entries in table.rows),
    ]
    title = [f"**{clean(table.title)}**"] if table.title else []
    return "\n\n".join([*title, "\n".join(lines), *map(clean, table.notes)])


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    line = " ".join(text.split())
    return re.sub(r"([\\|*_`\[\]]|<(?=[a-zA-Z/!?])|^[#>+-](?=\s)|&(?=[#\w]+;))", r"\\\1", line)


def _finding(finding: "Finding") -> str:
    advice = f" {_escaped(finding.advice)}" if finding.advice else ""
    examples = f" Examples: {' · '.join(map(_escaped, finding.examples))}" if finding.examples else ""
    return f"**{finding.severity}** ({_escaped(finding.name)}): {_escaped(finding.sentence)}{advice}{examples}"
