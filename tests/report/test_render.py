import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from quanet.cli.options import ENDINGS, OutputFormat
from quanet.evaluation.scores import score
from quanet.report.experiment import comparison_table, error_table, ranking_table
from quanet.report.latex import to_latex
from quanet.report.markdown import to_markdown
from quanet.report.render import FORMATS, VERSIONS, html_table, render, to_csv, to_json
from quanet.report.summary import Chart, Column, Section, Summary, Table, TableEntry
from quanet.report.terminal import print_summary, to_text
from tests.made_cells import noisy_cells

METHODS = ("CC", "EMQ_100%", "QuaNet.paper")
SCORES = score(noisy_cells(methods=METHODS, runs=4))
TABLES = [error_table(SCORES), comparison_table(SCORES), ranking_table(SCORES)]


def with_tables(*tables):
    return Summary("Experiment", sections=(Section("", tables=tables),))


ALL = with_tables(*TABLES)


@pytest.mark.parametrize("name", ["table", "md", "latex", "html"])
def test_every_format_shows_every_figure(name):
    text = render(ALL, name).decode()
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
    text = to_latex(ALL)
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
    table = Table(names, (Column(names, names),), ((names, (TableEntry("1", detail="-5 %"),)),), (names,))
    assert r"{[}" in to_latex(with_tables(table))
    assert r"a\_b \& 50\% $<$b$>$\$\textbackslash{}x\{y\}\textasciicircum{}\textasciitilde{}\#|" in to_latex(
        with_tables(table)
    )
    assert r"$-$5\,\%" in to_latex(with_tables(table))
    assert "<b>" not in html_table(table)
    assert r"a\_b & 50% \<b>$\\x{y}^~#\|\[\*\]" in to_markdown(with_tables(table))
    assert names in to_text(with_tables(table))


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


def test_html_tables_are_well_formed():
    for table in TABLES:
        parser = Counts()
        parser.feed(html_table(table))
        assert parser.open == []
        assert set(parser.rows) == {1 + len(table.columns)}
        assert len(parser.rows) == 2 + len(table.rows)


def test_markdown_has_as_many_cells_in_every_row():
    for table in TABLES:
        rows = [line for line in to_markdown(with_tables(table)).splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {len(table.columns) + 2}
        assert len(rows) == 2 + len(table.rows)
    best = next(entry for _, entries in TABLES[0].rows for entry in entries if entry.best)
    assert f"**{best.text}**" in to_markdown(ALL)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_terminal_of_any_width_loses_no_digit(width):
    text = to_text(ALL, width=width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    for table in TABLES:
        for _, entries in table.rows:
            assert all(entry.text in text for entry in entries)
    assert ("Mean errors: IMDB" in text) == (width < 200)


def test_digits_stand_below_each_other():
    lines = to_text(with_tables(error_table(SCORES)), width=200).splitlines()
    dots = [[m.start() for m in re.finditer(r"\d\.\d{3}", line)] for line in lines if line.strip().startswith(METHODS)]
    assert len(dots) == 3
    assert dots[0] == dots[1] == dots[2]


def test_the_terminal_has_the_best_in_bold():
    console = Console(width=200, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        print_summary(ALL, console)
    best = next(entry for _, entries in TABLES[0].rows for entry in entries if entry.best)
    assert re.search(rf"\x1b\[1;32m *{re.escape(best.text)}", capture.get())


def test_rows_and_data_are_written_as_they_are():
    summary = Summary(
        "t",
        data=lambda: {"share": np.float64("nan"), "n": np.int64(3)},
        rows=lambda: [{"a": 1 / 3, "b": "x"}],
        digits=3,
    )
    assert to_csv(summary) == "a,b\n0.333,x\n"
    assert json.loads(to_json(summary)) == VERSIONS | {"share": None, "n": 3}
    assert pd.read_parquet(io.BytesIO(render(summary, "parquet"))).to_dict("list") == {"a": [1 / 3], "b": ["x"]}
    assert to_csv(Summary("t", columns=("a", "b"))) == "a,b\n"


def test_the_command_line_offers_every_format():
    assert [form.value for form in OutputFormat] == list(FORMATS)
    assert set(ENDINGS.values()) == set(OutputFormat)


def test_no_chart_is_drawn_for_the_terminal_or_for_data():
    def fail(width):
        raise AssertionError

    chart = Chart("c", "caption", "alt", TABLES[0], fail)
    summary = Summary("t", "a", sections=(Section("s", charts=(chart,)),))
    for form in FORMATS:
        if form != "html":
            render(summary, form)
