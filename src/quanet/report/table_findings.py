"""Findings about a table, each a sentence with the number of rows, the first rows and what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from quanet.data.columns import label_variants, spellings
from quanet.data.duplicates import RowOrder
from quanet.data.languages import UNKNOWN
from quanet.evaluation.findings import Finding
from quanet.report.phrases import listing, many, percent

if TYPE_CHECKING:
    from quanet.workflows.check import GroupCheck, LabelCheck, TableCheck
    from quanet.workflows.check_dates import DateCheck
    from quanet.workflows.check_texts import Found, TextCheck

FOLDS = 5  # of `fit`: each needs an instance of every class
FEW = 50  # instances of a class; with fewer, errors are hardly known
MOST_LABELS = 200  # as in `quanet.workflows.labelled`
MANY_COPIES = 0.05  # share of the texts
SMALL_GROUP = 100  # rows
SECOND = 0.03  # share of the texts in a further language that is worth a note
KNOWN = 0.5  # share of the texts with a known language; with less, nothing is said about languages


def table_findings(check: TableCheck) -> list[Finding]:
    """Findings about columns."""
    found = [Finding("columns", "note", problem[:1].upper() + problem[1:]) for problem in check.unclear]
    roles = {"text", "label", "date"}
    holes = [one for one in check.columns if one.empty and one.kind not in roles and one.empty < check.rows]
    empty = [one for one in check.columns if one.empty == check.rows]
    for one in (one for one in check.columns if one.kind == "text" and one.empty):
        sentence = f"{many(one.empty, 'row')} of {check.rows:,} {_have(one.empty)} no text in {one.name!r}."
        found.append(_finding("empty cells", "note", sentence, "They are skipped.", one.empty))
    if holes:
        names = listing([f"{one.name!r} ({one.empty:,})" for one in holes])
        advice = "Rows with an empty cell in a column that you use are skipped."
        found.append(
            _finding("empty cells", "note", f"Some cells are empty: {names}.", advice, sum(one.empty for one in holes))
        )
    if empty:
        names = listing([repr(one.name) for one in empty])
        found.append(_finding("empty cells", "note", f"Columns without any value: {names}.", "", check.rows))
    return found


def text_findings(texts: TextCheck) -> list[Finding]:
    """Findings about texts."""
    found = _copy_findings(texts)
    for rows, name, severity, what, advice in (
        (texts.short, "short texts", "note", "one word long", "One word says little about the class."),
        (texts.long, "long texts", "note", "longer than 20,000 characters", "Check for rows that were joined."),
        (
            *(texts.numbers, "numbers as texts", "warning", "only a number"),
            "If this is another column, choose the text with --text.",
        ),
        (
            *(texts.broken, "encoding errors", "warning", "damaged by a wrong encoding, such as 'Ã©' instead of 'é'"),
            "Export the file again as UTF-8, or set --encoding.",
        ),
    ):
        if rows:
            subject = f"{many(rows.count, 'text')} {'is' if rows.count == 1 else 'are'}"
            found.append(_from(rows, name, severity, f"{subject} {what}.", advice))
    found += _language_findings(texts)
    for label, own, others in texts.leaks:
        found.append(
            _finding(
                "labels in texts",
                "warning",
                f"{percent(own, digits=0)} of the texts with the label {label!r} contain this word, and "
                f"{percent(others, digits=0)} of the others.",
                "If the label was written into the texts, remove it: the model would only learn this word.",
                0,
            )
        )
    return found


def _copy_findings(texts: TextCheck) -> list[Finding]:
    found = []
    share = texts.copies.count / max(texts.present, 1)
    if texts.copies:
        found.append(
            _from(
                texts.copies,
                "copies",
                "warning" if share > MANY_COPIES else "note",
                f"{many(texts.copies.count, 'text')} ({percent(share)}) {_equal(texts.copies.count)} an earlier one.",
                "fit keeps copies together when it splits the data. Remove them if the export repeated rows.",
            )
        )
    if texts.near_copies:
        found.append(
            _from(
                texts.near_copies,
                "near copies",
                "note",
                f"{many(texts.near_copies.count, 'text')} {_equal(texts.near_copies.count)} an earlier one except for "
                "links, names, punctuation or numbers.",
                "Such texts are often templates or automatic messages. Remove them if they are not what you count.",
            )
        )
    if texts.conflicts:
        found.append(
            _from(
                texts.conflicts,
                "contradicting labels",
                "warning",
                f"{many(texts.conflicts.count, 'text')} {_occur(texts.conflicts.count)} with different labels.",
                "Correct the labels, or remove these rows.",
            )
        )
    return found


def _language_findings(texts: TextCheck) -> list[Finding]:
    total = sum(texts.languages.values())
    known = {name: number for name, number in texts.languages.items() if name != UNKNOWN}
    if not known or sum(known.values()) < KNOWN * total:
        return []
    shares = {name: number / sum(known.values()) for name, number in known.items()}
    several = [name for name, share in shares.items() if share >= SECOND]
    if len(several) < 2:
        return []
    sure = percent(sum(known.values()) / total, digits=0)
    listed = listing([f"{name} ({percent(shares[name], digits=0)})" for name in several])
    sentence = f"The texts are in several languages: {listed}; guessed for {sure} of the texts that were looked at."
    second = shares[several[1]]
    advice = "Classes may then be learned from the language. Add a column of languages and check the shares with --by."
    return [Finding("languages", "warning" if second >= 0.1 else "note", sentence, advice, shares)]


def label_findings(labels: LabelCheck) -> list[Finding]:
    """Findings about labels."""
    found = []
    counts = labels.counts
    for group in label_variants(counts):
        ordered = sorted(group, key=lambda name: -counts[name])
        listed = listing([f"{name!r} ({counts[name]:,})" for name in ordered])
        rows = sum(counts[name] for name in ordered[1:])
        sentence = f"These labels look like one class: {listed}."
        found.append(_finding("label variants", "warning", sentence, "Use --normalize-labels to merge them.", rows))
    if labels.empty:
        count = labels.empty.count
        found.append(
            _from(
                labels.empty,
                "missing labels",
                "note",
                f"{many(count, 'row')} {_have(count)} no label.",
                "fit skips them.",
            )
        )
    if labels.order:
        found.append(Finding("row order", "note", labels.order, RowOrder.advice))
    return found + _size_findings(labels)


def _size_findings(labels: LabelCheck) -> list[Finding]:
    spelling = spellings(list(labels.counts))
    counts: Counter[str] = Counter()
    for name, number in labels.counts.items():
        counts[spelling[name]] += number
    if len(counts) < 2:
        sentence = f"Column {labels.column!r} has {many(len(counts), 'class', 'classes')}."
        return [_finding("class sizes", "alarm", sentence, "fit needs rows of at least two classes.", 0)]
    if len(counts) > MOST_LABELS:
        sentence = f"Column {labels.column!r} has {len(counts):,} different labels."
        return [_finding("class sizes", "alarm", sentence, "Choose the label column with --label.", 0)]
    found = []
    tiny = [name for name, number in counts.items() if number < FOLDS]
    few = [name for name, number in counts.items() if FOLDS <= number < FEW]
    for names, severity, bound, advice in (
        (tiny, "alarm", FOLDS, "fit needs at least 5 different texts of every class. Add rows, or merge classes."),
        (few, "warning", FEW, "Errors of these classes are then hardly known, and intervals wide. Label more rows."),
    ):
        if names:
            listed = listing([f"{name!r} ({counts[name]})" for name in names])
            sentence = f"{many(len(names), 'class has', 'classes have')} fewer than {bound} rows: {listed}."
            found.append(_finding("class sizes", severity, sentence, advice, sum(counts[name] for name in names)))
    return found


def date_findings(dates: DateCheck) -> list[Finding]:
    """Findings about dates."""
    found = []
    where = f"column {dates.column!r}"
    if dates.choices:
        choices = " or ".join(f"'{form}'" for form in dates.choices)
        sentence = f"Dates in {where} may be in several formats, such as {dates.example!r}."
        found.append(_finding("date format", "warning", sentence, f"Set --date-format: {choices}.", 0))
    elif dates.unreadable:
        sentence = (
            f"{many(dates.unreadable.count, 'date')} in {where} cannot be read, such as {dates.example!r}; the others "
            f"have the format {dates.form}."
            if dates.form
            else f"No date in {where} can be read, such as {dates.example!r}."
        )
        advice = "Correct them, or set --date-format."
        found.append(_from(dates.unreadable, "date format", "warning", sentence, advice))
    if dates.empty:
        sentence = f"{many(dates.empty, 'row')} {_have(dates.empty)} no date in {where}."
        found.append(_finding("empty cells", "note", sentence, 'They form the group "(empty)" with --by.', dates.empty))
    if dates.gaps:
        sentence = (
            f"{many(len(dates.gaps), dates.period)} without rows in {where}: {listing(list(dates.gaps), most=4)}."
        )
        found.append(_finding("gaps in time", "note", sentence, "Check that the export is complete.", 0))
    return found


def group_findings(groups: GroupCheck) -> list[Finding]:
    """Findings about groups."""
    small = sorted((number, name) for name, number in groups.sizes.items() if number < SMALL_GROUP)
    if not small:
        return []
    listed = listing([f"{name!r} ({number:,})" for number, name in small], most=4)
    which = f"{len(small):,} of {many(len(groups.sizes), 'group')} in {groups.column!r}"
    sentence = f"{which} {_have(len(small))} fewer than {SMALL_GROUP} rows: {listed}."
    return [_finding("small groups", "note", sentence, "Their intervals will be wide.", sum(n for n, _ in small))]


def _finding(name: str, severity: str, sentence: str, advice: str, rows: int) -> Finding:
    return Finding(name, severity, sentence, advice, {"rows": rows} if rows else {})


def _from(found: Found, name: str, severity: str, sentence: str, advice: str) -> Finding:
    return Finding(name, severity, f"{sentence[:-1]} ({_places(found)}).", advice, {"rows": found.count})


def _places(found: Found) -> str:
    """The first rows: "rows 3, 7, 12, ..."; with several files, each with its file."""
    files = {place.rpartition(", row ")[0] for place in found.rows}
    more = ", ..." if found.count > len(found.rows) else ""
    if len(files) > 1:
        return ", ".join(found.rows) + more
    numbers = [place.rpartition(", row ")[2] for place in found.rows]
    return f"row{'s' * (found.count > 1)} {', '.join(numbers)}{more}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _equal(number: int) -> str:
    return "equals" if number == 1 else "equal"


def _occur(number: int) -> str:
    return "occurs" if number == 1 else "occur"
