"""Check the texts of a table: copies, contradicting labels, lengths, encoding errors, languages, labels in texts."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.arrays import IntArray
from quanet.data.columns import as_number, label_key
from quanet.data.duplicates import hash_texts, normalize_text
from quanet.data.languages import guess_language
from quanet.data.streams import TableSource

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 5_000_000  # whose hashes are kept, 20 bytes each
MAX_GUESSED = 1000  # texts of a chunk whose language is guessed
SHOWN = 3  # rows named as examples
SHORT, LONG = 2, 20_000  # words; characters
MIN_WORDS = 5  # of texts that may be near copies; shorter ones are equal by chance
MAX_LEAKS = 20  # labels that are searched for in texts
VARIABLE = re.compile(r"https?://\S+|www\.\S+|[@#]\w+|\b\d+\b|[^\w\s@#]+|[_@#]")  # links, names, numbers, punctuation
# UTF-8 that was read as cp1252, and characters that could not be read.
BROKEN = re.compile("\ufffd|\u00c3[\u0080-\u00bf\u20ac-\u2122]|\u00e2\u20ac[\u0080-\u00bf\u0153\u02dc\u2018-\u2122]")


@dataclass(frozen=True, slots=True)
class Found:
    """How many rows have a problem, and the first ones."""

    count: int = 0
    rows: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass(frozen=True, slots=True, eq=False)
class TextCheck:
    """Texts of a table.

    Attributes
    ----------
    column, present : its name, and the number of texts.
    copies : texts that equal an earlier one up to case and white space.
    near_copies : those that equal one up to links, names, punctuation and numbers.
    conflicts : different texts whose copies have different labels.
    short, long, numbers, broken : texts of one word, very long texts, numbers, texts with encoding errors.
    languages : texts by language, of a part of the texts; see `quanet.data.languages`.
    leaks : label, share of its texts that contain it, share of other texts that do; if the label gives itself away.
    checked : rows among which copies were searched.
    """

    column: str
    present: int
    copies: Found
    near_copies: Found
    conflicts: Found
    short: Found
    long: Found
    numbers: Found
    broken: Found
    languages: dict[str, int]
    leaks: tuple[tuple[str, float, float], ...]
    checked: int


class TextChecker:
    """Collects what `TextCheck` reports, chunk by chunk."""

    def __init__(self, column: str) -> None:
        self.column, self.present, self.rows = column, 0, 0
        self.hashes: list[Any] = []
        self.near: list[Any] = []
        self.codes: list[Any] = []
        self.counts = Counter[str]()
        self.examples: dict[str, list[int]] = {}
        self.languages = Counter[str]()
        self.inside: dict[int, list[int]] = {}  # label: its texts, those with the label; other texts, those with it
        self.keys: dict[int, str] = {}

    def add(self, table: "pd.DataFrame", codes: Sequence[int] | None, names: Sequence[str]) -> None:
        """Add the rows of a chunk; `codes` are positions of their labels in `names`, -1 for none."""
        texts = [cell if isinstance(cell, str) else "" if cell is None else str(cell) for cell in table[self.column]]
        there = [bool(text.strip()) for text in texts]
        self.present += sum(there)
        for row, text in zip(table.index, texts, strict=True):
            self._look_at(int(row), text)
        filled = [text for text, kept in zip(texts, there, strict=True) if kept]
        for text in filled[:: -(-len(filled) // MAX_GUESSED) or 1]:
            self.languages[guess_language(text)] += 1
        bare = [" ".join(VARIABLE.sub(" ", normalize_text(text)).split()) for text in texts]
        if codes is not None:
            self._search_labels(bare, codes, names)
        if self.rows >= MAX_ROWS:
            return
        self.rows += len(texts)
        kept = np.array(there)
        long = np.array([text.count(" ") >= MIN_WORDS - 1 for text in bare])
        self.hashes.append(np.where(kept, hash_texts(texts), 0))
        self.near.append(np.where(kept & long, hash_texts(bare), 0))
        self.codes.append(np.array(codes if codes is not None else [-1] * len(texts), dtype=np.int32))

    def _look_at(self, row: int, text: str) -> None:
        words = text.count(" ") + 1
        if words > SHORT and len(text) <= LONG and (text.isascii() or not BROKEN.search(text)):
            return
        stripped = text.strip()
        if not stripped:
            return
        number = words == 1 and as_number(stripped) is not None
        short = not number and len(stripped.split()) < SHORT and stripped.isascii()
        problems = {"long": len(text) > LONG, "broken": bool(BROKEN.search(text)), "numbers": number, "short": short}
        for problem in (name for name, there in problems.items() if there):
            self.counts[problem] += 1
            shown = self.examples.setdefault(problem, [])
            shown += [row] * (len(shown) < SHOWN)

    def _search_labels(self, bare: list[str], codes: Sequence[int], names: Sequence[str]) -> None:
        """Count texts that contain a label, among those with the label and among the others."""
        for code in range(len(self.keys), min(len(names), MAX_LEAKS)):
            key = VARIABLE.sub(" ", label_key(names[code])).strip()
            self.keys[code] = key if len(key) > 2 else ""
            self.inside[code] = [0, 0, 0, 0]
        keys = {code: f" {key} " for code, key in self.keys.items() if key}
        for text, own in zip(bare, codes, strict=True):
            padded = f" {text} "
            if own < 0:
                continue
            for code, key in keys.items():
                counted = self.inside[code]
                at = 0 if code == own else 2
                counted[at] += 1
                counted[at + 1] += key in padded

    def result(self, source: TableSource) -> TextCheck:
        """The result for all chunks."""

        def found(problem: str) -> Found:
            return Found(self.counts[problem], tuple(map(source.place, self.examples.get(problem, []))))

        hashes, near = np.concatenate(self.hashes), np.concatenate(self.near)
        copies, conflicts = _copies(hashes), _conflicts(hashes, np.concatenate(self.codes))
        near_copies = np.setdiff1d(_copies(near), copies)
        return TextCheck(
            column=self.column,
            present=self.present,
            copies=_found(copies, source),
            near_copies=_found(near_copies, source),
            conflicts=_found(conflicts, source),
            short=found("short"),
            long=found("long"),
            numbers=found("numbers"),
            broken=found("broken"),
            languages=dict(self.languages.most_common()),
            leaks=tuple(self._leaks()),
            checked=self.rows,
        )

    def _leaks(self) -> "list[tuple[str, float, float]]":
        found = []
        for code, (own, with_own, others, with_others) in self.inside.items():
            shares = with_own / max(own, 1), with_others / max(others, 1)
            if own >= 10 and others and shares[0] > 0.8 and shares[1] < 0.2:
                found.append((self.keys[code], *shares))
        return found


def _found(rows: IntArray, source: TableSource) -> Found:
    return Found(len(rows), tuple(source.place(int(row)) for row in rows[:SHOWN]))


def _copies(hashes: Any) -> IntArray:
    """Rows with the hash of an earlier row, ascending; hash 0 does not count."""
    _, first = np.unique(hashes, return_index=True)
    later = np.ones(len(hashes), dtype=bool)
    later[first] = False
    return np.flatnonzero(later & (hashes != 0))


def _conflicts(hashes: Any, codes: Any) -> IntArray:
    """The first row of each text whose copies have different labels, ascending."""
    labelled = np.flatnonzero((codes >= 0) & (hashes != 0))
    if not len(labelled):
        return labelled
    pairs = np.unique(np.column_stack([hashes[labelled], codes[labelled].astype(np.uint64)]), axis=0)[:, 0]
    several, number = np.unique(pairs, return_counts=True)
    wanted = several[number > 1]
    known, first = np.unique(hashes[labelled], return_index=True)
    return np.sort(labelled[first[np.isin(known, wanted)]])
