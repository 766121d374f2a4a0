"""Figures quoted in README.md and docs/ are those of benchmarks/results/, and the check notices what is wrong."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = """# A page

EMQ has AE .0145, QuaNet .012 in 500 bags, on 1,200 rows: 38 s and 1.5 GB ([figures](../benchmarks/results/made.md)).

| | AE | times slower |
|---|---|---|
| EMQ | **.0145** | - |
| QuaNet | .012 | 1,097 |

A number that needs no entry: 42. It was 17 % lower, 1.2 times, from .012 to .0145, one in 3rd.
"""
RESULTS = """# Made

## Errors

| method | k | AE | slower by |
|---|---|---|---|
| EMQ | 2 | **0.01449** (0.01 to 0.02) | - |
| QuaNet | 2 | 0.0120 | **1,096.9** (1,000 to 1,200) |

38.2 s, 1,471 MB at the peak; 1,200 rows.
"""
ENTRIES = """
[[quote]]
page = "docs/page.md"
text = "EMQ has AE {emq}, QuaNet {quanet} in 500 bags, on {rows} rows: {seconds} s and {memory} GB"
file = "made.md"
[quote.fields]
emq = { table = "Errors", row = ["EMQ", "2"], column = "AE" }
quanet = { table = "Errors", row = ["QuaNet"], column = "AE" }
rows = { prose = "{any} MB at the peak; {} rows" }
seconds = { prose = "{} s, {any} MB" }
memory = { prose = "{} MB at the peak", times = 0.001 }

[[quote]]
page = "docs/page.md"
text = "| {label} | {ae} | {slower} |"
file = "made.md"
rows = [{ label = "EMQ", row = ["{label}"] }, { label = "QuaNet", row = ["QuaNet"] }]
fields.ae = { column = "AE" }
fields.slower = { column = "slower by" }

[[quote]]
page = "docs/page.md"
text = "It was {below} % lower, {over} times, from {least} to {greatest},"
file = "made.md"
column = "AE"
[quote.fields]
below = { row = ["QuaNet"], below = { row = ["EMQ"] } }
over = { row = ["EMQ"], over = { row = ["QuaNet"] } }
least = { pick = "least" }
greatest = { pick = "greatest" }
"""
FREE = """
[[free]]
page = "docs/page.md"
text = "500 bags"
why = "the protocol"
"""


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_numbers", ROOT / "docs" / "check_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.problems


@pytest.fixture
def made(tmp_path, check):
    """Check a small tree whose files have texts replaced: file name to (old, new)."""
    files = {"docs/page.md": PAGE, "benchmarks/results/made.md": RESULTS, "docs/quoted/made.toml": ENTRIES + FREE}

    def changed(**changes):
        for name, text in {**files, "README.md": "# A project\n"}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            old, new = changes.get(path.stem if path.suffix == ".md" else "entries", ("", ""))
            assert old in text
            path.write_text(text.replace(old, new) if old else text + new)
        return check(tmp_path)

    return changed


def test_figures_quoted_in_the_docs_were_measured(check):
    assert check(ROOT) == []


def test_entries_that_fit_are_accepted(made):
    assert made() == []


@pytest.mark.parametrize(
    ("old", "new", "quoted"),
    [
        ("EMQ has AE .0145", "EMQ has AE .0146", "docs/page.md:3: .0146 is quoted, 0.01449 was measured"),
        ("1.5 GB", "1.6 GB", "docs/page.md:3: 1.6 is quoted, 1.471 was measured"),
        ("1,097", "1,096", "docs/page.md:8: 1,096 is quoted, 1096.9 was measured"),
        ("| - |", "| 5 |", "docs/page.md:7: 5 is quoted, nothing was measured"),
        ("17 % lower", "18 % lower", "docs/page.md:10: 18 is quoted, 17.1843 was measured"),
    ],
)
def test_a_figure_that_differs_is_named_with_its_source(made, old, new, quoted):
    problems = made(page=(old, new))
    assert len(problems) == 1
    assert problems[0].startswith(quoted)
    assert "benchmarks/results/made.md" in problems[0]


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("| QuaNet | 2 |", "| HistNetQ | 2 |", "QuaNet, AE: 0 found, one is needed"),
        ("| AE |", "| error |", "AE: 0 found"),
        ("## Errors", "## Times", "Errors, EMQ | 2, AE: 0 found"),
        ("at the peak", "in all", "{} MB at the peak': 0 found"),
        ("| QuaNet | 2 | 0.0120 |", "| QuaNet | 2 | 0.0120 | 1 |\n| QuaNet | 2 | 0.0120 |", "QuaNet, AE: 2 found"),
    ],
)
def test_a_row_column_table_or_text_that_is_missing_is_named(made, old, new, missing):
    assert any(missing in problem and "docs/page.md:" in problem for problem in made(made=(old, new)))


def test_a_text_that_is_not_on_the_page_is_named(made):
    assert "docs/page.md: occurs 0 times, not once: It was {below} % lower" in made(page=("It was", "That is"))[0]


@pytest.mark.parametrize("number", ["7", "1,000", ".5", "3e-6", "99 %", "-2.5"])
def test_a_number_without_an_entry_is_named(made, number):
    (problem,) = made(page=("([figures]", f"and {number} ([figures]"))
    assert problem.startswith(f"docs/page.md:3: {number.split()[0]} has no entry in docs/quoted")


@pytest.mark.parametrize(
    "text", ["F1", "T50", "0.1.0", "`12`", "2018", "2015-02-20", "$x_1 = 2$", "[page](page9.md#5)"]
)
def test_names_versions_dates_code_and_formulas_need_no_entry(made, text):
    assert made(page=("([figures]", f"and {text} ([figures]")) == []


def test_a_table_next_to_figures_and_every_table_of_the_readme_need_entries(made):
    assert "docs/page.md:9: 3 has no entry" in made(page=("| 1,097 |\n", "| 1,097 |\n| CC | 3 | 4 |\n"))[0]
    (problem,) = made(README=("", "\n| | AE |\n|---|---|\n| EMQ | .0145 |\n"))
    assert problem.startswith("README.md:5: .0145 has no entry")


def test_records_of_their_time_are_not_checked(made, tmp_path):
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    (tmp_path / "docs" / "decisions" / "0001.md").write_text(
        "Then 5 s ([figures](../../benchmarks/results/made.md)).\n"
    )
    assert made() == []


def test_a_free_text_that_is_gone_and_an_unknown_key_are_named(made):
    assert made(entries=('"500 bags"', '"600 bags"'))[0] == "docs/page.md: the free text '600 bags' does not occur"
    assert "has an unknown key 'colum'" in made(entries=("fields.ae = { column", "fields.ae = { colum"))[0]
    assert "a free of docs/page.md has no key 'why'" in made(entries=('why = "the protocol"', ""))[0]
    assert "neither column nor prose" in made(entries=('fields.ae = { column = "AE" }', ""))[0]
    assert "a free of docs/old.md: old.md does not exist" in made(entries=("", FREE.replace("page.md", "old.md")))[0]


def test_recorded_output_is_compared_word_for_word(made):
    section = "\n## Output\n\nIntro.\n\nFine, 5 texts:\n\n- ok: 3 % are new.\n"
    entry = '\n[[verbatim]]\npage = "docs/page.md"\nsection = "Output"\nfile = "made.md"\n'
    entry += 'reworded = { "new." = "unknown." }\n'
    recorded = "\nFine, 5 texts:\n\n- ok: 3 % are unknown.\n"
    assert made(page=("", section), made=("", recorded), entries=("", entry)) == []
    (problem,) = made(page=("", section.replace("3 %", "4 %")), made=("", recorded), entries=("", entry))
    assert problem == "docs/page.md:18: not in benchmarks/results/made.md: - ok: 4 % are new."
