"""A report as a page of its own, as Markdown or as JSON: three forms of one summary."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.errors import InvalidSetting, MissingExtra
from quanet.files import as_utf8
from quanet.report.files import write_whole
from quanet.report.numbers import plain
from quanet.report.palette import DARK, LIGHT
from quanet.report.render import html_table
from quanet.report.render import to_markdown as tables_to_markdown

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Environment, Template

    from quanet.diagnostics.findings import Finding
    from quanet.report.summary import Chart, Section, Summary
    from quanet.report.tables import Entry, Table

INTERVAL = re.compile(r"\((\d[\d.,]* to [\d.,]+\u00a0%)\)")
SOFT = r'<span class="interval">(\1)</span>'  # an interval is read after its estimate
LONG = 60  # rows of a table, beyond which it is not printed on paper


def check_report(path: Path) -> None:
    """Say which endings a report may have, and what it needs, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidSetting(
            f"a report's file ends in {', '.join(FORMATS)}; {path.name!r} does not. Give it such an ending."
        )
    _environment()
    try:
        import quanet.report.plots.vector as _  # noqa: F401
        from quanet.report.plots.canvas import sized_figure

        sized_figure(1, 1)
    except MissingExtra:
        raise MissingExtra("a report needs matplotlib. Install it: pip install 'quanet[report]'") from None


def write_report(summary: Summary, path: Path) -> None:
    """Write a report as its file's ending says: whole or not at all."""
    check_report(path)
    write_whole(path, as_utf8(FORMATS[path.suffix.lower()](summary)))


def to_html(summary: Summary) -> str:
    """One page that stands alone: no script, no address, light and dark, for screens, phones and paper."""
    return _template().render(summary=summary, light=LIGHT, dark=DARK, long=LONG)


def to_markdown(summary: Summary) -> str:
    """The same in GitHub's Markdown; of pictures, their captions and tables."""
    parts = [f"# {_marked(summary.title)}", f"**{_marked(summary.answer)}**"]
    parts += [_finding(finding) for finding in summary.cautions]
    parts += ["\n".join(f"- {_marked(name)}: {_marked(value)}" for name, value in summary.facts)]
    for section in summary.sections:
        parts += [f"## {_marked(section.title)}", *map(_marked, section.paragraphs)]
        parts += ["\n".join(f"- {_finding(finding)}" for finding in section.findings)]
        for chart in section.charts:
            parts += [f"*{_marked(chart.caption)}*", tables_to_markdown([chart.table]).rstrip()]
        parts += [tables_to_markdown([table]).rstrip() for table in section.tables]
    if summary.settings:
        parts.append("## To get this again")
        parts.append("\n".join(f"- {_marked(name)}: {_marked(value)}" for name, value in summary.settings))
    return "\n\n".join(filter(None, parts)) + "\n"


def to_json(summary: Summary) -> str:
    """The same as JSON: words and tables as they are shown, and under "data" all figures in full."""
    return json.dumps(_plain_summary(summary), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _marked(text: str) -> str:
    """Text that Markdown takes as it is."""
    line = " ".join(text.split())
    return re.sub(r"([\\|*_`\[\]]|<(?=[a-zA-Z/!?])|^[#>+-](?=\s)|&(?=[#\w]+;))", r"\\\1", line)


def _finding(finding: Finding) -> str:
    advice = f" {_marked(finding.advice)}" if finding.advice else ""
    return f"**{finding.severity}** ({_marked(finding.name)}): {_marked(finding.sentence)}{advice}"


def _plain_summary(summary: Summary) -> dict[str, Any]:
    return {
        "title": summary.title,
        "answer": summary.answer,
        "cautions": [_plain_finding(finding) for finding in summary.cautions],
        "facts": dict(summary.facts),
        "sections": [_plain_section(section) for section in summary.sections],
        "settings": dict(summary.settings),
        "data": plain(summary.data),
    }


def _plain_section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "paragraphs": list(section.paragraphs),
        "findings": [_plain_finding(finding) for finding in section.findings],
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


def _plain_entry(entry: Entry) -> str:
    return f"{entry.text}{entry.mark}" + (f" ({entry.detail})" if entry.detail else "")


def _plain_finding(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "severity": finding.severity,
        "sentence": finding.sentence,
        "advice": finding.advice,
        "numbers": plain(dict(finding.numbers)),
    }


def _kept(text: str) -> str:
    """A figure and its unit on one line."""
    return text.replace(" %", "\u00a0%")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtra("a report needs jinja2. Install it: pip install 'quanet[report]'") from None
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["kept"] = _kept
    environment.filters["softened"] = lambda text: INTERVAL.sub(SOFT, html.escape(_kept(text)))
    environment.filters["table"] = html_table
    return environment


@cache
def _template() -> Template:
    return _environment().from_string((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))


FORMATS: dict[str, Callable[[Summary], str]] = {".html": to_html, ".md": to_markdown, ".json": to_json}
