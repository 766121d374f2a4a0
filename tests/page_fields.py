"""Fields that a reference page lists in its tables, compared with those that are really written."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
TABLE = re.compile(r"^\| (\w+) \|[^\n]*\n\|---[^\n]*\n((?:\|[^\n]*\n)+)", re.MULTILINE)


def sections(page):
    """The text below every heading of the second level, and every part that begins with words in bold, by its name."""
    text = (DOCS / page).read_text(encoding="utf-8")
    parts = re.split(r"^(?:## (.*)|\*\*(\w[\w ]*)\*\*.*)$", text, flags=re.MULTILINE)
    return {heading or bold: body for heading, bold, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)}


def listed(section, head):
    """The names in the first column of the tables that have this head; one that begins with a dot is completed."""
    found = []
    for title, rows in TABLE.findall(section):
        for row in rows.splitlines() if title == head else ():
            for name in re.findall(r"`([^`]+)`", re.split(r"(?<!\\)\|", row)[1]):
                found.append(found[-1].rpartition(".")[0] + name if name.startswith(".") else name)
    return found


def paths(value, at=""):
    """The path of every value in JSON: keys with dots between them, [] for the entries of a list."""
    if isinstance(value, dict) and value:
        return {path for key, entry in value.items() for path in paths(entry, f"{at}.{key}" if at else key)}
    if isinstance(value, list) and value:
        return {path for entry in value for path in paths(entry, f"{at}[]")}
    return {at}


def compare(patterns, written, rare=()):
    """Raise an AssertionError that names the paths that no pattern describes, and the patterns that describe none.

    Words in capitals stand for any name. An empty list or object has the path at which a pattern begins. Patterns that
    begin with one of `rare` may describe nothing.
    """
    known = {pattern: re.compile(re.sub(r"\b[A-Z]{2,}\b", ".+", re.escape(pattern))) for pattern in patterns}

    def is_described(path):
        begins = (f"{path}.", f"{path}[")
        return any(one.fullmatch(path) or pattern.startswith(begins) for pattern, one in known.items())

    unknown = sorted(path for path in written if not is_described(path))
    unseen = sorted(pattern for pattern, one in known.items() if not any(map(one.fullmatch, written)))
    assert not unknown, f"not on the page: {unknown}"
    unseen = [pattern for pattern in unseen if not pattern.startswith(tuple(rare))]
    assert not unseen, f"on the page, but not written: {unseen}"
