"""Answers in every stored form: JSON, CSV, Parquet, a report, Markdown, and a part of a page."""

import csv
import io
from contextlib import suppress

from quanet.files import as_utf8
from quanet.report.fragment import to_fragment
from quanet.report.render import draw_charts, render, to_html
from quanet.report.summary import Summary
from quanet.serve.store.blobs import Blobs

TABLES = ("csv", "parquet")
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet would compute


def stored_forms(blobs: Blobs, summary: Summary) -> dict[str, str]:
    """Store an answer in every form. Returns the blobs by form; a summary without a table has no CSV and Parquet."""
    pictures = draw_charts(summary)
    contents = {"json": render(summary, "json"), "md": render(summary, "md")}
    contents |= {"html": as_utf8(to_html(summary, pictures)), "fragment": as_utf8(to_fragment(summary, pictures))}
    if summary.rows is not list:
        contents |= {form: render(summary, form) for form in TABLES}
        contents["csv"] = without_formulas(contents["csv"])
    suffixes = {"fragment": "html"}
    return {form: blobs.put_bytes(content, suffixes.get(form, form)) for form, content in contents.items()}


def without_formulas(table: bytes) -> bytes:
    r"""CSV in which no text is a formula to a spreadsheet: groups and classes come from uploads.

    Examples
    --------
    >>> without_formulas(b"product,estimate\n=1+1,-0.5\nlamp,0.5\n")
    b"product,estimate\n'=1+1,-0.5\nlamp,0.5\n"
    """
    rows = list(csv.reader(io.StringIO(table.decode("utf-8"), newline="")))
    safe = [[f"'{cell}" if _is_formula(cell) else cell for cell in row] for row in rows]
    if safe == rows:
        return table  # byte for byte what the command line writes
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(safe)
    return as_utf8(written.getvalue())


def _is_formula(cell: str) -> bool:
    with suppress(ValueError):
        float(cell)
        return False
    return cell.startswith(FORMULAS)
