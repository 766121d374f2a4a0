"""An answer as JSON: the figures alone, or all that a report shows. docs/reference/answers.md lists the fields."""

from typing import Any

from quanet import __version__
from quanet.files import json_text
from quanet.report.phrases import plain_finding
from quanet.report.summary import Chart, Section, Summary, Table, TableEntry

ANSWER_FORMAT = 1  # a new number if a field is removed or changes its meaning
VERSIONS: dict[str, Any] = {"quanet_answer": ANSWER_FORMAT, "quanet": __version__}


def to_json(summary: Summary) -> str:
    """The answer as JSON."""
    return json_text(VERSIONS | summary.data())


def to_report_json(summary: Summary) -> str:
    """The whole answer as JSON: sentences and tables as shown, and all figures in full under "data"."""
    return json_text(_plain_summary(summary))


def _plain_summary(summary: Summary) -> dict[str, Any]:
    return VERSIONS | {
        "title": summary.title,
        "answer": summary.answer,
        "cautions": [plain_finding(finding) for finding in summary.cautions],
        "facts": dict(summary.facts),
        "sections": [_plain_section(section) for section in summary.sections],
        "settings": dict(summary.settings),
        "data": (summary.figures or summary.data)(),
    }


def _plain_section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "paragraphs": list(section.paragraphs),
        "findings": [plain_finding(finding) for finding in section.findings],
        "charts": [_plain_chart(chart) for chart in section.charts],
        "tables": [_plain_table(table) for table in section.tables],
    }


def _plain_chart(chart: Chart) -> dict[str, Any]:
    return {"name": chart.name, "caption": chart.caption, "alt": chart.alt, "table": _plain_table(chart.table)}


def _plain_table(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "columns": [": ".join(filter(None, (column.group, column.title))) for column in table.columns],
        "rows": [[name, *map(_plain_entry, entries)] for name, entries in table.rows],
        "notes": list(table.notes),
    }


def _plain_entry(entry: TableEntry) -> str:
    return f"{entry.text}{entry.mark}" + (f" ({entry.detail})" if entry.detail else "")
