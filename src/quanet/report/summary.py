"""A report as plain data, so that page, Markdown and JSON cannot disagree."""

from dataclasses import dataclass, field
from typing import Any

from quanet.diagnostics.findings import Finding
from quanet.report.tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A picture in a report.

    Attributes
    ----------
    name : short, unlike that of any other in the report.
    caption : what it shows, in a sentence.
    alt : what one sees in it, for those who do not.
    svg : the picture for a page that names the palette's colours, light or dark; and `narrow`, the same for a phone.
    table : the numbers behind it.
    """

    name: str
    caption: str
    alt: str
    svg: str
    narrow: str
    table: Table


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A part of a report: a title, then paragraphs, findings, pictures, tables, as far as there are any."""

    title: str
    paragraphs: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """A report.

    Attributes
    ----------
    title : of what.
    answer : the one sentence that matters, first.
    cautions : findings without which the answer should not be read; they stand below it.
    facts : a few figures under it: name and value.
    sections : the rest.
    settings : what gives the same again: command, versions, seeds, files with their checksums.
    data : the figures as JSON has them.
    """

    title: str
    answer: str
    cautions: tuple[Finding, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
