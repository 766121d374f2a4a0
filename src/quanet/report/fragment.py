"""An answer as a part of a page of the service: no styles, no scripts, bounded in size."""

import re

from quanet.report.render import LONG, Pictures, page_template
from quanet.report.summary import Summary

MOST_BYTES = 90_000
MOST_ROWS = 60  # of a table
STYLE = re.compile(r' style="([^"]*)"')


def to_fragment(summary: Summary, pictures: Pictures) -> str:
    """Findings, sections, charts and tables as HTML. What makes it too large is left out: it is in the report.

    Parameters
    ----------
    summary : the answer.
    pictures : its charts (`draw_charts`).
    """
    plain = {name: {kind: without_styles(svg) for kind, svg in each.items()} for name, each in pictures.items()}
    wide = {name: {"any-picture": each["wide-picture"]} for name, each in plain.items()}
    none: Pictures = {name: {} for name in plain}
    content = ""
    for shown, most in ((plain, MOST_ROWS), (plain, 0), (wide, 0), (none, 0)):
        content = page_template("fragment.html").render(summary=summary, pictures=shown, long=LONG, most=most)
        if len(content.encode()) <= MOST_BYTES:
            break
    return content


def without_styles(svg: str) -> str:
    """SVG whose style attributes are presentation attributes, which a Content-Security-Policy allows.

    Examples
    --------
    >>> without_styles('<path d="M 0 0" style="fill: none; stroke: var(--blue)"/>')
    '<path d="M 0 0" fill="none" stroke="var(--blue)"/>'
    """
    return STYLE.sub(lambda found: _attributes(found[1]), svg)


def _attributes(style: str) -> str:
    parts = (part.split(":", 1) for part in style.split(";") if ":" in part)
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in parts)
