r"""Tables in LaTeX (needs ``\usepackage{booktabs}``)."""

import re
from itertools import groupby

from quanet.report.summary import Summary, Table

TEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "[": "{[}",  # at a row's start it would be read as the distance to the row above
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "=": "$=$",
    "†": r"$\dagger$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
}


def to_latex(summary: Summary) -> str:
    r"""The tables of an answer, for documents that have ``\usepackage{booktabs}`` and ``\usepackage{graphicx}``."""
    return "\n".join(_latex(table) for table in summary.tables)


def _tex(text: str) -> str:
    return "".join(TEX.get(letter, letter) for letter in text)


def _latex(table: Table) -> str:
    details = [
        any(entry.detail for entry in entries) for entries in zip(*(entries for _, entries in table.rows), strict=True)
    ]
    wide = [1 + detail for detail in details]
    groups = [
        (name, [i for i, _ in members])
        for name, members in groupby(enumerate(table.columns), key=lambda indexed: indexed[1].group)
    ]
    # Daggers hang out to the right, so that the digits stay below each other.
    shape = "l" + "".join("r@{\\hspace{1.1em}}" + ("r" if detail else "") for detail in details)
    # Many columns go across a page of two columns, and very many are shrunk to it; a small table would be blown up.
    star = "*" if sum(wide) > 4 else ""
    opened, closed = ("\\resizebox{\\textwidth}{!}{%", "}") if sum(wide) > 8 else ("", "")
    lines = [rf"\begin{{table{star}}}", r"\centering", opened, rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    if table.grouped:
        spans = [sum(wide[i] for i in members) for _, members in groups]
        heads = [rf"\multicolumn{{{n}}}{{c}}{{{_tex(name)}}}" for (name, _), n in zip(groups, spans, strict=True)]
        lines.append(" & ".join(["", *heads]) + r" \\")
        ends = [1 + sum(spans[: i + 1]) for i in range(len(spans))]
        lines.append("".join(rf"\cmidrule(lr){{{e - n + 1}-{e}}}" for e, n in zip(ends, spans, strict=True)))
    titles = [rf"\multicolumn{{{n}}}{{c}}{{{_tex(c.title)}}}" for c, n in zip(table.columns, wide, strict=True)]
    lines += [" & ".join([_tex(table.corner), *titles]) + r" \\", r"\midrule"]
    for name, entries in table.rows:
        cells = [_tex(name)]
        for entry, detail in zip(entries, details, strict=True):
            value = rf"\textbf{{{_figure(entry.text)}}}" if entry.best else _figure(entry.text)
            cells.append(value + (rf"\rlap{{$^{{{_marks(entry.mark)}}}$}}" if entry.mark else ""))
            if detail:
                cells.append(_figure(entry.detail))
        lines.append(" & ".join(cells) + r" \\")
    caption = " ".join(_tex(text) for text in (f"{table.title}.", *table.notes))
    lines += [r"\bottomrule", r"\end{tabular}%", closed, rf"\caption{{{caption}}}", rf"\end{{table{star}}}"]
    return "\n".join(filter(None, lines)) + "\n"


def _marks(mark: str) -> str:
    return mark.replace("†", r"\dagger")


def _figure(text: str) -> str:
    """A figure with a sign of full width, and its unit close by."""
    signed = re.fullmatch(r"([+-])(\d.*)", text)
    return f"${signed[1]}${_tex(signed[2])}".replace(" ", r"\,") if signed else _tex(text)
