"""Answers in every stored form: JSON, CSV, Parquet, a report, Markdown, and a part of a page."""

from quanet.files import as_utf8
from quanet.report.fragment import to_fragment
from quanet.report.render import draw_charts, render, to_html
from quanet.report.summary import Summary
from quanet.serve.store.blobs import Blobs

TABLES = ("csv", "parquet")


def stored_forms(blobs: Blobs, summary: Summary) -> dict[str, str]:
    """Store an answer in every form. Returns the blobs by form; a summary without a table has no CSV and Parquet."""
    pictures = draw_charts(summary)
    contents = {"json": render(summary, "json"), "md": render(summary, "md")}
    contents |= {"html": as_utf8(to_html(summary, pictures)), "fragment": as_utf8(to_fragment(summary, pictures))}
    if summary.rows is not list:
        contents |= {form: render(summary, form) for form in TABLES}
    suffixes = {"fragment": "html"}
    return {form: blobs.put_bytes(content, suffixes.get(form, form)) for form, content in contents.items()}
