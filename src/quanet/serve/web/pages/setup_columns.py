"""The columns of a labelled file and their roles: as detected, as a person corrects them, and as settings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ROLES = (("text", "Text"), ("label", "Label"), ("by", "Date or group"), ("weight", "Weight"), ("", "Leave out"))
PERIODS = ("day", "week", "month", "quarter", "year")
DATE_FORMATS = (
    ("", "as detected"),
    ("%Y-%m-%d", "2024-01-31"),
    ("%d/%m/%Y", "31/01/2024 (day first)"),
    ("%m/%d/%Y", "01/31/2024 (month first)"),
    ("%d.%m.%Y", "31.01.2024"),
    ("%d-%m-%Y", "31-01-2024"),
    ("%Y%m%d", "20240131"),
)
ENCODINGS = (
    ("", "as detected"),
    ("utf-8", "UTF-8"),
    ("utf-16", "UTF-16"),
    ("cp1252", "Windows (cp1252)"),
    ("latin-1", "Latin-1"),
    ("cp1251", "Cyrillic (cp1251)"),
    ("shift_jis", "Japanese (Shift JIS)"),
)
DELIMITERS = (("", "as detected"), (",", "Comma"), (";", "Semicolon"), ("tab", "Tab"), ("|", "Bar"))
METHODS = (("", "Thorough: takes minutes, smaller errors"), ("EMQ", "Quick: takes seconds"))
MOST_COLUMNS = 60
OPTIONS = {
    "--text": "text",
    "--label": "label",
    "--by": "by",
    "--weight": "weight",
    "--date-format": "date_format",
    "--encoding": "encoding",
    "--delimiter": "delimiter",
    "--normalize-labels": "normalize_labels",
    "--method": "method",
}


@dataclass(frozen=True, slots=True)
class ColumnRole:
    """A column of the file; `period` of a date, such as month; `role` of a group or date is "by"."""

    number: int
    name: str
    content: str
    empty: int
    first: str
    role: str
    date: bool
    period: str


def column_roles(check: Mapping[str, Any], settings: Mapping[str, Any]) -> list[ColumnRole]:
    """The columns with their roles: those of the settings, else as detected."""
    dates = {one["column"]: one.get("period") or "month" for one in check.get("dates") or []}
    text = settings.get("text") or check.get("text")
    label = settings.get("label") or check.get("label")
    keys = settings.get("by")
    if keys is None:
        keys = [f"{name}:{period}" for name, period in list(dates.items())[:1]]
    names = {one["name"] for one in check.get("columns") or []}
    periods = dict(_split(key, names) for key in keys)
    found = []
    for number, one in enumerate((check.get("columns") or [])[:MOST_COLUMNS]):
        name = one["name"]
        roles = {text: "text", label: "label", settings.get("weight"): "weight"}
        role = "by" if name in periods else roles.get(name, "")
        period = periods.get(name) or dates.get(name, "month")
        content, empty, first = (
            one.get("content") or "",
            int(one.get("empty") or 0),
            str(one.get("first") or "").strip("'\""),
        )
        found.append(ColumnRole(number, name, content, empty, first, role, name in dates, period))
    return found


def _split(key: str, names: set[str]) -> tuple[str, str]:
    """A key's column and period."""
    column, _, period = key.rpartition(":")
    return (column, period) if column and key not in names and period in PERIODS else (key, "")


def as_chosen(columns: Sequence[ColumnRole], fields: Mapping[str, str]) -> list[ColumnRole]:
    """The columns with the roles and periods of a form."""
    return [
        replace(
            column,
            role=fields.get(f"role-{column.number}", column.role),
            period=fields.get(f"period-{column.number}", column.period),
        )
        for column in columns
    ]


def chosen_settings(
    columns: Sequence[ColumnRole], fields: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings that a form asks for. Raises `ValueError` with the sentence and the field if they do not fit."""
    single: dict[str, str | None] = {}
    for role, what in (("text", "the text"), ("label", "the label"), ("weight", "the weight")):
        names = [column.name for column in columns if column.role == role]
        if len(names) > 1:
            raise ValueError(f"Choose one column as {what}; {' and '.join(map(repr, names))} are chosen.", role)
        single[role] = names[0] if names else None
    if single["label"] is None:
        raise ValueError("Which column has the labels? Click “Label” there.", "label")
    chosen = [one for one in columns if one.role == "by"]
    known = {one.name for one in columns}
    kept = [key for key in settings.get("by") or [] if _split(key, known)[0] not in known]  # columns of new data alone
    return {
        **single,
        "by": [
            *kept,
            *(f"{one.name}:{one.period}" if one.date and one.period in PERIODS else one.name for one in chosen),
        ],
        "date_format": fields.get("date_format") or None,
        "encoding": fields.get("encoding") or None,
        "delimiter": fields.get("delimiter") or None,
        "normalize_labels": fields.get("normalize_labels") == "yes",
        "method": fields.get("method") or None,
    }


def _key(column: ColumnRole) -> str:
    return f"{column.name}:{column.period}" if column.date and column.period in PERIODS else column.name


def without_options(sentence: str) -> str:
    """A sentence of the command line without the parts that name its options.

    Examples
    --------
    >>> without_options("Several columns may be the label: 'a', 'b'. Name the column: --label NAME.")
    "Several columns may be the label: 'a', 'b'."
    """
    parts = re.split(r"(?<=[.?!]) +", sentence)
    return " ".join(part for part in parts if "--" not in part)


def field_of(sentence: str) -> str:
    """The field of the form that a sentence of the command line is about; "" if it is about the file.

    Examples
    --------
    >>> field_of("reviews.csv has no column 'txt'. Name it with --text."), field_of("The file is empty.")
    ('text', '')
    """
    return next((field for option, field in OPTIONS.items() if option in sentence), "")
