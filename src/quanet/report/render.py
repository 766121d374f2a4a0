"""One answer in every format: text, CSV, JSON, Parquet, Excel, Markdown, HTML, LaTeX. No renderer knows about verbs.

JSON has the figures alone, or all that a report shows; docs/reference/answers.md lists the fields.
"""

import html
import io
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet import __version__
from quanet.errors import InvalidSetting, MissingExtra
from quanet.files import as_utf8, json_text, write_whole
from quanet.report.markdown import to_markdown
from quanet.report.palette import DARK, LIGHT
from quanet.report.phrases import plain_finding
from quanet.report.summary import Chart, Column, Section, Summary, Table, TableEntry

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment, Template

INTERVAL = re.compile(r"\((\d[\d.,]* to [\d.,]+\u00a0%)\)")
SOFT = r'<span class="interval">(\1)</span>'  # an interval is less prominent than its estimate
Pictures = dict[str, dict[str, str]]  # SVG by the name of the chart, see `draw_chart`
LONG = 60  # rows of a table; longer ones are not printed on paper
ANSWER_FORMAT = 1  # a new number if a field is removed or changes its meaning
VERSIONS: dict[str, Any] = {"quanet_answer": ANSWER_FORMAT, "quanet": __version__}


def render(summary: Summary, form: str) -> bytes:
    """An answer as the content of a file; `form` is one of `FORMATS`."""
    content = FORMATS[form](summary)
    return content if isinstance(content, bytes) else as_utf8(content)


def write_report(summary: Summary, path: Path | str) -> None:
    """Write a report to a file, in one step.

    Parameters
    ----------
    summary : of `summarize_shares`, `summarize_evaluation`, `summarize_comparison`, `summarize_correction` or
        `summarize_history`.
    path : a file that ends in .html (a page that needs no other file; extra `report`), .md or .json.

    Examples
    --------
    >>> import tempfile
    >>> summary = Summary("Reviews of May", answer="37.2 % are positive.")
    >>> with tempfile.TemporaryDirectory() as home:
    ...     write_report(summary, f"{home}/report.md")
    ...     print(Path(home, "report.md").read_text().strip())
    # Reviews of May
    <BLANKLINE>
    **37.2 % are positive.**
    """
    check_report(Path(path))
    write_whole(Path(path), as_utf8(REPORTS[Path(path).suffix.lower()](summary)))


def check_report(path: Path) -> None:
    """Raise a `QuanetError` if a report cannot be written to a file of this name; before any work."""
    if path.suffix.lower() not in REPORTS:
        raise InvalidSetting(f"Cannot write a report to {path.name!r}. Use a name ending in {', '.join(REPORTS)}.")
    if path.suffix.lower() == ".html":
        check_page()


def _to_text(summary: Summary) -> str:
    from quanet.report.terminal import to_text

    return to_text(summary)


def _to_latex(summary: Summary) -> str:
    from quanet.report.latex import to_latex

    return to_latex(summary)


def to_csv(summary: Summary) -> str:
    """The tidy table as CSV."""
    digits = None if summary.digits is None else f"%.{summary.digits}g"
    return _frame(summary).to_csv(index=False, float_format=digits)


def to_parquet(summary: Summary) -> bytes:
    """The tidy table as Parquet."""
    content = io.BytesIO()
    _frame(summary).to_parquet(content, index=False)
    return content.getvalue()


def to_xlsx(summary: Summary) -> bytes:
    """The tidy table as an Excel workbook."""
    from quanet.data.workbooks import to_workbook

    return to_workbook(_frame(summary), summary.title)


def _frame(summary: Summary) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(summary.rows(), columns=None if summary.columns is None else pd.Index(summary.columns))


def to_html(summary: Summary, pictures: Pictures | None = None) -> str:
    """The answer as a page that stands alone: no script, no address, light and dark, for screens, phones and paper.

    `pictures` are its charts, if they are already drawn.
    """
    drawn = draw_charts(summary) if pictures is None else pictures
    return page_template("page.html").render(summary=summary, pictures=drawn, light=LIGHT, dark=DARK, long=LONG)


def draw_charts(summary: Summary) -> Pictures:
    """The charts of an answer, each drawn once in both widths; the page shows the one that fits."""
    return {chart.name: draw_chart(chart) for section in summary.sections for chart in section.charts}


def draw_chart(chart: Chart) -> dict[str, str]:
    """A chart as SVG for a screen and for a phone, by the class of the element that shows it."""
    from quanet.report.charts.canvas import NARROW, WIDTH, page_svg

    widths = {"wide-picture": WIDTH, "narrow": NARROW}
    return {
        name: page_svg(chart.draw(width), name=f"{chart.name} {width}", alt=chart.alt) for name, width in widths.items()
    }


def check_page() -> None:
    """Raise `MissingExtra` if jinja2 or matplotlib is missing."""
    _environment()
    try:
        from quanet.report.charts.canvas import sized_figure

        sized_figure(1, 1)
    except MissingExtra:
        raise MissingExtra("A report needs matplotlib. Install it: pip install 'quanet[report]'") from None


def shortened(table: Table, most: int | None) -> Table:
    """A table with at most so many rows, and a note on the others."""
    if most is None or len(table.rows) <= most:
        return table
    note = f"The first {most:,} of {len(table.rows):,} rows; the files have all."
    return replace(table, rows=table.rows[:most], notes=(note, *table.notes), strips=())


def html_table(table: Table) -> str:
    """A table with its notes, for a page."""
    details, marks = (
        [any(getattr(e, part) for e in entries) for entries in zip(*(e for _, e in table.rows), strict=True)]
        for part in ("detail", "mark")
    )

    def cell(entry: TableEntry, column: Column, detail: bool, mark: bool) -> str:
        value = f"<b>{html.escape(entry.text)}</b>" if entry.best else html.escape(entry.text)
        value += f"<sup>{html.escape(entry.mark)}</sup>" if mark else ""
        return f"<td{_side(column)}>{value}{f'<small>{html.escape(entry.detail)}</small>' if detail else ''}</td>"

    heads = [f'<th scope="col"{_side(c)}>{html.escape(c.title)}</th>' for c in (Column(table.corner), *table.columns)]
    # A table that scrolls sideways can be reached and scrolled with the keyboard.
    region = f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(table.title)}">'
    lines = [region, "<table>", f"<caption>{html.escape(table.title)}</caption>", "<thead>"]
    if any(column.group for column in table.columns):
        spans = [(name, len(list(members))) for name, members in groupby(table.columns, key=lambda c: c.group)]
        over = "".join(f'<th colspan="{n}" scope="colgroup">{html.escape(name)}</th>' for name, n in spans)
        lines.append(f'<tr class="groups"><td></td>{over}</tr>')
    lines += [f"<tr>{''.join(heads)}</tr>", "</thead>", "<tbody>"]
    for name, entries in table.rows:
        cells = "".join(cell(*parts) for parts in zip(entries, table.columns, details, marks, strict=True))
        lines.append(f'<tr><th scope="row">{html.escape(name)}</th>{cells}</tr>')
    lines += ["</tbody>", "</table>", "</div>"]
    lines += [f'<p class="note">{html.escape(note)}</p>' for note in table.notes]
    return "\n".join(lines)


def _side(column: Column) -> str:
    return ' class="left"' if column.left else ""


def _unbroken(text: str) -> str:
    """A figure and its unit on one line."""
    return text.replace(" %", "\u00a0%")


@cache
def _environment() -> "Environment":
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("A report needs jinja2. Install it: pip install 'quanet[report]'") from None
    loader = FunctionLoader(lambda name: (Path(__file__).parent / name).read_text(encoding="utf-8"))
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["unbroken"] = _unbroken
    environment.filters["softened"] = lambda text: INTERVAL.sub(SOFT, html.escape(_unbroken(text)))
    environment.filters["table"] = html_table
    environment.filters["shortened"] = shortened
    return environment


def page_template(name: str) -> "Template":
    """A template in this folder."""
    return _environment().get_template(name)


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


FORMATS: dict[str, Callable[[Summary], str | bytes]] = {
    "table": _to_text,
    "csv": to_csv,
    "json": to_json,
    "parquet": to_parquet,
    "xlsx": to_xlsx,
    "md": to_markdown,
    "html": to_html,
    "latex": _to_latex,
}
REPORTS: dict[str, Callable[[Summary], str]] = {".html": to_html, ".md": to_markdown, ".json": to_report_json}
