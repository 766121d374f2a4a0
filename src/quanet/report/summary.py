"""An answer, ready to be shown: sentences, tables and charts as plain data, which every renderer shows alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from quanet.wording import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from quanet.evaluation.findings import Finding


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A cell: its text, marks such as daggers, a detail next to it, and whether it is the best of its column."""

    text: str = NONE
    mark: str = ""
    detail: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    title : its heading.
    group : heading of several columns.
    left : whether it is text, aligned left; leading columns of this kind name the row, as its first cell does.
    spare : whether a terminal that is too narrow may leave it out.
    """

    title: str
    group: str = ""
    left: bool = False
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table: a title, columns in groups, a name and an entry for every column in every row, notes below.

    Attributes
    ----------
    corner : heading of the rows' names.
    strips : estimate, lower and upper end of a share for every row, which a terminal that is wide enough draws.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[TableEntry, ...]], ...]
    notes: tuple[str, ...] = ()
    corner: str = "method"
    strips: tuple[tuple[float, float, float], ...] = ()

    @property
    def grouped(self) -> bool:
        """Whether columns have headings in common."""
        return any(column.group for column in self.columns)

    @property
    def naming(self) -> list[int]:
        """Positions of the leading columns that name a row."""
        return [i for i, _ in enumerate(self.columns) if all(column.left for column in self.columns[: i + 1])]

    @property
    def groups(self) -> list[list[int]]:
        """Positions of the columns of every group, without those that name a row."""
        numbers = [i for i in range(len(self.columns)) if i not in self.naming]
        names = dict.fromkeys(self.columns[i].group for i in numbers)
        return [[i for i in numbers if self.columns[i].group == name] for name in names]

    @property
    def needed(self) -> Table:
        """The table without spare columns."""
        return self._select([i for i, column in enumerate(self.columns) if not column.spare])

    def part(self, columns: Sequence[int]) -> Table:
        """Some columns after those that name a row, without notes and strips.

        If all are of one group, its name moves into the title.
        """
        chosen = self._select([*(i for i in self.naming if i not in columns), *columns])
        title, names = self.title, {self.columns[i].group for i in columns}
        if len(names) == 1:
            title = ": ".join(filter(None, (title, *names)))
            chosen = replace(chosen, columns=tuple(replace(column, group="") for column in chosen.columns))
        return replace(chosen, title=title, notes=(), strips=())

    def _select(self, positions: Sequence[int]) -> Table:
        rows = tuple((name, tuple(entries[i] for i in positions)) for name, entries in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in positions), rows=rows)


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A chart with its numbers.

    Attributes
    ----------
    name : short and unique in the report.
    caption : what the chart shows, in a sentence.
    alt : what a reader sees in it, for readers who cannot.
    table : the numbers behind it; renderers without pictures show this table.
    draw : returns a figure of a width in inches; only pages call it.
    """

    name: str
    caption: str
    alt: str
    table: Table
    draw: Callable[[float], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A part of a report: a title, then paragraphs, findings, charts and tables, all optional.

    A section with `detail` is shown on the terminal only with --verbose.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    detail: bool = False


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """An answer, ready to be shown.

    Attributes
    ----------
    title : what the report is about.
    answer : the most important sentence; it comes first.
    cautions : findings that a reader of the answer must know; they follow it.
    facts : a few figures: name and value.
    sections : the rest.
    settings : what reproduces the answer: command, model, versions.
    data : returns the answer as `--format json` writes it.
    figures : returns all figures in full, which the JSON report has under "data"; None for those of `data`.
    rows : returns the tidy table for CSV and Parquet: dictionaries, or values by column.
    columns : its columns; needed only if there may be no rows.
    digits : significant digits of numbers in CSV; None for all.
    """

    title: str
    answer: str = ""
    cautions: tuple[Finding, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    data: Callable[[], Any] = _nothing
    figures: Callable[[], Mapping[str, Any]] | None = None
    rows: Callable[[], Sequence[Mapping[str, Any]] | Mapping[str, Any]] = list
    columns: tuple[str, ...] | None = None
    digits: int | None = None

    def findings_of(self, section: Section) -> tuple[Finding, ...]:
        """The findings of a section that do not already follow the answer: a reader sees each once."""
        return tuple(finding for finding in section.findings if finding not in self.cautions)

    def with_bad_files(self, bad_files: Mapping[str, str]) -> Summary:
        """The same answer, which names the files that were skipped, and why."""
        from quanet.evaluation.findings import Finding

        if not bad_files:
            return self
        sentence = f"{len(bad_files):,} {'file was' if len(bad_files) == 1 else 'files were'} skipped."
        finding = Finding("skipped files", "warning", f"{sentence} {next(iter(bad_files.values()))}")
        return replace(
            self,
            cautions=(*self.cautions, finding),
            settings=(*self.settings, *((f"skipped {name}", reason) for name, reason in bad_files.items())),
            data=lambda: {**self.data(), "skipped_files": dict(bad_files)},
        )

    @property
    def tables(self) -> list[Table]:
        """All tables, in their order, with those behind charts."""
        return [
            table
            for section in self.sections
            for table in (*(chart.table for chart in section.charts), *section.tables)
        ]
