import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from quanet.evaluation.scores import score
from quanet.report.render import FORMATS, to_html, to_latex, to_markdown, to_plain, to_terminal
from quanet.report.tables import Column, Entry, Table, comparison_table, error_table, ranking_table
from tests.made_cells import noisy_cells

METHODS = ("CC", "EMQ_100%", "QuaNet.paper")
SCORES = score(noisy_cells(methods=METHODS, runs=4))
TABLES = [error_table(SCORES), comparison_table(SCORES), ranking_table(SCORES)]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_every_figure(name):
    text = FORMATS[name](TABLES)
    if name == "latex":
        text = re.sub(r"\$([+<=-])\$", r"\1", text).replace(r"\,", " ").replace("\\", "")
    text = text.replace("&lt;", "<").replace("\\", "")
    for table in TABLES:
        for method, entries in table.rows:
            assert method in text.replace("{[}", "[")
            for entry in entries:
                assert entry.text in text
                assert entry.detail in text


def test_latex_is_well_formed():
    text = to_latex(TABLES)
    environments = re.findall(r"\\(begin|end)\{([a-z*]+)\}", text)
    opened = []
    for what, name in environments:
        if what == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    bare = re.sub(r"\\[\\{}%&_$#]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[†≥≤<>]", re.sub(r"\$[^$]*\$", "", text))
    for tabular in text.split(r"\begin{tabular}")[1:]:
        shape, body = tabular.split("\n", 1)
        width = len(re.sub(r"@\{\\hspace\{[^}]*\}\}|[{}]", "", shape))
        rows = [line for line in body.split(r"\bottomrule")[0].splitlines() if line.endswith(r"\\")]
        assert len(rows) >= 4
        for row in rows:
            spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            assert len(re.findall(r"(?<!\\)&", row)) + 1 + sum(spans) - len(spans) == width
        for first, last in re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", body):
            assert 2 <= int(first) <= int(last) <= width


def test_special_letters_are_taken_as_they_are():
    names = r"a_b & 50% <b>$\x{y}^~#|[*]"
    table = Table(names, (Column(names, names),), ((names, (Entry("1", detail="-5 %"),)),), (names,))
    assert r"{[}" in to_latex([table])
    assert r"a\_b \& 50\% $<$b$>$\$\textbackslash{}x\{y\}\textasciicircum{}\textasciitilde{}\#|" in to_latex([table])
    assert r"$-$5\,\%" in to_latex([table])
    assert "<b>" not in to_html([table])
    assert r"a\_b & 50% \<b>$\\x{y}^~#\|\[\*\]" in to_markdown([table])
    assert names in to_plain([table])


class Counts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.cells, self.rows = [], 0, []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)
        if tag == "tr":
            self.cells = 0
        if tag in ("td", "th"):
            self.cells += int(dict(attrs).get("colspan", 1))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr":
            self.rows.append(self.cells)


def test_html_is_well_formed_and_stands_alone():
    text = to_html(TABLES)
    for table in TABLES:
        parser = Counts()
        parser.feed(to_html([table]))
        assert parser.open == []
        assert set(parser.rows) == {1 + len(table.columns)}
        assert len(parser.rows) == 2 + len(table.rows)
    assert "http" not in text
    assert "<script" not in text
    assert text.count("<table>") == 3


def test_markdown_has_as_many_cells_in_every_row():
    for table in TABLES:
        rows = [line for line in to_markdown([table]).splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {len(table.columns) + 2}
        assert len(rows) == 2 + len(table.rows)
    best = next(entry for _, entries in TABLES[0].rows for entry in entries if entry.best)
    assert f"**{best.text}**" in to_markdown(TABLES)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_terminal_of_any_width_loses_no_digit(width):
    text = to_plain(TABLES, width=width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    for table in TABLES:
        for _, entries in table.rows:
            assert all(entry.text in text for entry in entries)
    assert ("Mean errors: IMDB" in text) == (width < 200)


def test_digits_stand_below_each_other():
    lines = to_plain([error_table(SCORES)], width=200).splitlines()
    dots = [[m.start() for m in re.finditer(r"\d\.\d{3}", line)] for line in lines if line.strip().startswith(METHODS)]
    assert len(dots) == 3
    assert dots[0] == dots[1] == dots[2]


def test_the_terminal_has_the_best_in_bold():
    console = Console(width=200, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(to_terminal(TABLES, console))
    best = next(entry for _, entries in TABLES[0].rows for entry in entries if entry.best)
    assert re.search(rf"\x1b\[1;32m *{re.escape(best.text)}", capture.get())
