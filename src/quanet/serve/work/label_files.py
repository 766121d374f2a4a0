"""The sheet of a label plan with the labels that people gave: what `quanet refine` reads, and what is exported."""

import csv
import io
from collections.abc import Mapping

SHEET = "to-label.csv"  # the name of the plan in answers and commands
LABELS = "labels.csv"  # the name of the sheet with labels


def filled_sheet(content: bytes, labels: Mapping[int, str], column: str) -> bytes:
    r"""A sheet with labels.

    Parameters
    ----------
    content : the sheet as CSV, in UTF-8.
    labels : by the row of the sheet, counted from 0.
    column : the column of labels.

    Examples
    --------
    >>> filled_sheet(b"text,label\ngood film,\nbad film,\n", {1: "negative"}, "label")
    b'text,label\ngood film,\nbad film,negative\n'
    """
    header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    place = header.index(column)
    for row, label in labels.items():
        rows[row][place] = label
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def has_gaps(labels: Mapping[int, str]) -> bool:
    """Whether a row before the last labelled one has no label, so that `quanet refine` needs --random.

    Examples
    --------
    >>> has_gaps({0: "a", 1: "b"}), has_gaps({0: "a", 2: "b"})
    (False, True)
    """
    return bool(labels) and len(labels) <= max(labels)
