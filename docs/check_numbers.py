"""Check that the figures that README.md and docs/ quote are those of benchmarks/results/.

python docs/check_numbers.py

docs/quoted/*.toml has three kinds of entries. A `quote` is a text of a page with fields, and says in which cell of a
results file each field was measured: the page must show that cell, rounded to the decimals that the page has. Of a
`verbatim` section, paragraphs and list items with numbers occur word for word in a results file, except for what is
`reworded`. A `free` text has numbers that no benchmark measures, and says why.

Numbers need an entry in README's tables, in paragraphs, lists and tables that link to benchmarks/results/ or to
"figures", and in lists and tables next to such a paragraph. docs/decisions and docs/experiments are records of their
time, so they are not checked.

result_figures.py explains the keys of a field; a quote may give those that its fields share. `rows`
repeats the text of a quote for the rows of a table. A row has its own keys, and names to replace, such as {label}.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))  # for pytest, which imports this file for its doctests
from result_figures import FIGURE, NUMBER, RESULTS, Missing, agree, literal, measured, name_of, read, tables

ROOT = Path(__file__).parents[1]
NOT_CHECKED = (  # records of their time; what the site builds; what make_reference.py writes from results
    *("docs/decisions/", "docs/experiments/"),
    *("docs/_build/", "docs/auto_gallery/", "docs/measurements/", "docs/changelog.md", "docs/contributing.md"),
    *("docs/reference/api/", "docs/reference/command-line.md", "docs/reference/methods.md"),
)
KEYS = {
    "field": {"file", "table", "row", "column", "nth", "prose", "number", "pick", "times", "digits", "over", "below"},
    "quote": {"page", "text", "fields", "rows"},
    "verbatim": {"page", "section", "file"},
    "free": {"page", "text", "why"},
}
FENCE = re.compile(r"^```.*?^```[ ]*$|^ {4,}\S.*$|<!--.*?-->|\$\$.*?\$\$", re.MULTILINE | re.DOTALL)
HIDDEN = re.compile(  # code, addresses, headings, list numbers, formulas, years and dates
    r"`[^`]+`|(?<=\]\()[^)\s]+|https?://\S+|^#+ .*$|^\s*\d+\. |\$[^$\n]+\$|"
    r"(?<![\d.,])(?:19|20)\d\d(?:-\d\d){0,2}(?![\d,]|\.\d)",
    re.MULTILINE,
)


class Place(NamedTuple):
    """Where something is on a page."""

    page: str
    start: int
    end: int


def blank(pattern: re.Pattern[str], text: str) -> str:
    """The text with every match overwritten by spaces, so that positions and lines stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def pattern_of(text: str) -> re.Pattern[str]:
    """A pattern for a quoted text: a field is a number, or - where nothing was measured; it may be bold."""
    field = r"\*{0,2}(?P<NAME>[-+]?FIGURE|-)\*{0,2}".replace("FIGURE", FIGURE)
    return re.compile(re.sub(r"\\\{(\w+)\\\}", lambda name: field.replace("NAME", name[1]), literal(text)))


def line_of(text: str, position: int) -> int:
    """The number of the line of a position."""
    return text.count("\n", 0, position) + 1


def filled(item: Any, names: dict[str, Any]) -> Any:
    """An entry whose texts have {name} replaced."""
    if isinstance(item, dict):
        return {key: filled(part, names) for key, part in item.items()}
    if isinstance(item, list):
        return [filled(part, names) for part in item]
    return re.sub(r"\{(\w+)\}", lambda name: names.get(name[1], name[0]), item) if isinstance(item, str) else item


def sources(quote: dict[str, Any]) -> tuple[str, dict[str, dict[str, Any]]]:
    """The text of a quote, once for each of its rows, and where each of its fields was measured."""
    texts, found = [], {}
    for at, row in enumerate(quote.get("rows", [{}])):
        one = filled({**quote, **row}, row)
        shared = {key: one[key] for key in KEYS["field"] & set(one)}
        fields = {name: shared | one.get("fields", {}).get(name, {}) for name in re.findall(r"\{(\w+)\}", one["text"])}
        texts.append(re.sub(r"\{(\w+)\}", rf"{{\1_{at}}}", one["text"]))
        found |= {f"{name}_{at}": where for name, where in fields.items()}
    return " ".join(texts), found


def check_quote(root: Path, quote: dict[str, Any], _: list[str]) -> Iterator[str | Place]:
    """Problems of a quote, and where its figures are on the page."""
    page, text = quote["page"], read(root / quote["page"])
    quoted_text, fields = sources(quote)
    found = list(pattern_of(quoted_text).finditer(text))
    if len(found) != 1:
        yield f"{page}: occurs {len(found)} times, not once: {re.sub(r'_[0-9]+}', '}', quoted_text)}"
        return
    for name, where in fields.items():
        quoted, line = found[0][name], f"{page}:{line_of(text, found[0].start(name))}"
        yield Place(page, *found[0].span(name))
        try:
            figure = measured(root, where)
        except Missing as error:
            yield f"{line}: {quoted} has no source: {error}"
            continue
        if figure is None and quoted != "-":
            yield f"{line}: {quoted} is quoted, nothing was measured: {name_of(where)}"
        elif figure is not None and (quoted == "-" or not agree(quoted, figure, where.get("digits"))):
            yield f"{line}: {quoted} is quoted, {figure:.6g} was measured: {name_of(where)}"


def check_verbatim(root: Path, entry: dict[str, Any], _: list[str]) -> Iterator[str | Place]:
    """Paragraphs and list items of a section that do not occur in the results file, and where all of them are."""
    page, text = entry["page"], read(root / entry["page"])
    section = re.search(rf"^#+ {re.escape(entry['section'])}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    if not section:
        yield f"{page}: no section {entry['section']!r}"
        return
    source = " ".join(read(root / RESULTS / entry["file"]).split())
    for item in re.finditer(r"(?:^|\n)(.+(?:\n(?!- ).+)*)", section[1]):
        start = section.start(1) + item.start(1)
        if NUMBER.search(blank(HIDDEN, item[1])):
            yield Place(page, start, start + len(item[1]))
            recorded = " ".join(item[1].split())
            for now, then in entry.get("reworded", {}).items():
                recorded = recorded.replace(now, then)
            if recorded not in source:
                yield f"{page}:{line_of(text, start)}: not in {RESULTS}{entry['file']}: {item[1]}"


def check_free(root: Path, entry: dict[str, Any], pages: list[str]) -> Iterator[str | Place]:
    """Where a free text is; a problem if it is nowhere."""
    places = pages if entry["page"] == "*" else [entry["page"]]
    for text in [entry["text"]] if isinstance(entry["text"], str) else entry["text"]:
        found = [(page, match) for page in places for match in re.finditer(literal(text), read(root / page))]
        yield from (Place(page, *match.span()) for page, match in found)
        if not found:
            yield f"{entry['page']}: the free text {text!r} does not occur"


def blocks_with_figures(page: str, text: str) -> Iterator[Place]:
    """Paragraphs, lists and tables whose numbers need an entry."""
    unfenced = blank(FENCE, text)
    blocks = [Place(page, *block.span()) for block in re.finditer(r"(?:^.*\S.*\n?)+", unfenced, re.MULTILINE)]
    texts = [unfenced[block.start : block.end] for block in blocks]
    kinds = ["table" if one[0] == "|" else "list" if re.match(r"- |\d+\. ", one) else "text" for one in texts]
    named = [RESULTS in one or bool(re.search(r"(?<!!)\[[^\]]*\bfigures\b", one, re.IGNORECASE)) for one in texts]
    for at, block in enumerate(blocks):
        beside = any(named[other] for other in (at - 1, at + 1) if 0 <= other < len(blocks) and kinds[other] == "text")
        if named[at] or (kinds[at] != "text" and beside) or (kinds[at] == "table" and page == "README.md"):
            yield block


def uncovered(page: str, text: str, covered: list[Place]) -> Iterator[str]:
    """Numbers that need an entry and have none."""
    shown = blank(HIDDEN, blank(FENCE, text))
    for block in blocks_with_figures(page, text):
        for number in NUMBER.finditer(shown, block.start, block.end):
            if not any(place.start <= number.start() and number.end() <= place.end for place in covered):
                around = " ".join(text[max(block.start, number.start() - 30) : number.end() + 20].split())
                yield f"{page}:{line_of(text, number.start())}: {number[0]} has no entry in docs/quoted ({around!r})"


def check_keys(kind: str, entry: dict[str, Any]) -> Iterator[str]:
    """Keys of an entry that do not exist, or that it lacks."""
    shared = KEYS["field"] if kind == "quote" else {"reworded"}
    fields = entry.get("fields", {}).values()
    unknown = (set(entry) - KEYS[kind] - shared).union(*(set(field) - KEYS["field"] for field in fields))
    missing = KEYS[kind] - {"fields", "rows"} - set(entry)
    for key in sorted(unknown | missing):
        yield f"docs/quoted: a {kind} of {entry.get('page')} has {'no' if key in missing else 'an unknown'} key {key!r}"


def check_entry(root: Path, kind: str, entry: dict[str, Any], pages: list[str]) -> Iterator[str | Place]:
    """Problems of an entry, and what it covers."""
    wrong = list(check_keys(kind, entry))
    if wrong:
        yield from wrong
        return
    try:
        yield from {"quote": check_quote, "verbatim": check_verbatim, "free": check_free}[kind](root, entry, pages)
    except Missing as error:
        yield f"docs/quoted: a {kind} of {entry['page']}: {error}"


def problems(root: Path = ROOT) -> list[str]:
    """What is wrong with the figures quoted in README.md and docs/."""
    read.cache_clear()
    tables.cache_clear()
    pages = [page.relative_to(root).as_posix() for page in (root / "README.md", *sorted(root.glob("docs/**/*.md")))]
    pages = [page for page in pages if not page.startswith(NOT_CHECKED)]
    found: list[str | Place] = []
    for file in sorted((root / "docs" / "quoted").glob("*.toml")):
        for kind, entries in tomllib.loads(file.read_text()).items():
            for entry in entries:
                found += check_entry(root, kind, entry, pages)
    wrong = [item for item in found if isinstance(item, str)]
    for page in pages:
        covered = [item for item in found if isinstance(item, Place) and item.page == page]
        wrong += uncovered(page, read(root / page), covered)
    return wrong


if __name__ == "__main__":
    wrong = problems()
    print("\n".join(wrong) or "README.md and docs: quoted figures are those of benchmarks/results.")
    sys.exit(bool(wrong))
