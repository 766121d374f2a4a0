"""The runner notices what is wrong with a page, and names the page and the line."""

import re

import pytest

from tests.pages.blocks import blocks_of, commands_of
from tests.pages.printed import missing_line
from tests.pages.problems import problems_of
from tests.pages.running import run_page


def page(language, *lines, before=""):
    return "\n".join(["# Title", "", before, f"```{language}", *lines, "```", ""])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (page("", "quanet methods"), "page.md, line 5, block: no language"),
        (page("bash", "quanet methods"), "unknown language"),
        ("Run it:\n\n    quanet methods\n", "page.md, line 3, .* indented block"),
        (page("console", "$ quanet methods", before="<!-- not run -->"), "without a reason"),
        (page("console", "$ quanet methods", before="<!-- not run: -->"), "without a reason"),
        ("<!-- not run: far away -->\n\n" + page("console", "$ quanet methods"), "the line before a block"),
        (page("text", "1", before="<!-- not run: output -->"), "says nothing here"),
        (page("console", "$ quanet predikt model new.csv", before="<!-- not run: data -->"), "no command predikt"),
        (page("console", "$ cd x && quanet predict --buy x", before="<!-- not run: data -->"), "no option --buy"),
        (page("console", "$ /opt/bin/quanet token make ann", before="<!-- not run: rights -->"), "no command make"),
        (page("text", "$ quanet predict model new.csv --buy product"), "quanet predict has no option --buy"),
        (page("console", "$ make tea", before="<!-- not run: thirst -->"), "no make target tea"),
        (page("console", "$ python benchmarks/tea.py", before="<!-- not run: thirst -->"), "no file benchmarks/tea.py"),
        ("Use `quanet predict\n--buy product`.", "has no option --buy"),
        ("Use `--buy product`.", "no command has the option --buy"),
        ("By `python benchmarks/trust.py --tea`.", "benchmarks/trust.py has no option --tea"),
        (page("console", "$ pip install x"), "cannot run in a test"),
        (page("console", "$ quanet methods --json | jq ."), "cannot run in a test"),
        (page("console", "quanet methods"), "begin with a command"),
        (page("console", "output", "$ quanet methods"), "begin with a command"),
        (page("python", "x = 1", "x ="), r"invalid syntax \(line 6\)"),
        (page("python", ">>> 1 + 1", "2"), "from docs and README alone"),
        (page("toml", "runs = 3"), "no name"),
        (page("{note}", "x"), "a directive"),
    ],
)
def test_a_problem_is_found_before_anything_runs(text, problem):
    found = problems_of("page.md", text)
    assert len(found) == 1
    assert re.search(problem, found[0]), found[0]


@pytest.mark.parametrize(
    "text",
    [
        "1. First\n\n    more of the first\n",
        "Use `quanet ... --help`, `quanet VERB --help` or `quanet monitor ... --format json | jq .alarm`.",
        page("console", "$ quanet methods --json | jq .", "$ pip install x", before="<!-- not run: needs jq -->"),
        page("text", "quanet serves http://127.0.0.1"),
        page("toml", "# plan.toml", "runs = 3") + page("json", "// plan.json", "{}"),
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(text):
    assert problems_of("page.md", text) == []


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        (page("python", "x = 1", "", "y = x + unknown"), r"page.md, line 7, python: NameError: name 'unknown'"),
        (page("python", "def f():", "    raise ValueError('no')", "f()"), r"page.md, line 6, python: ValueError: no"),
        (
            page("console", "$ quanet methods emq", "This is not printed."),
            r"(?s)line 5, console: .*in this order,\nThis is",
        ),
        (page("console", "$ quanet methods", "$ quanet methods nothing"), r"(?s)line 6, console.*exit code 2.*nothing"),
        (page("console", "$ quanet methods --unknown"), "exit code 2"),
        (page("console", "$ quanet methods", "Error: no method"), "exit code 0, but the page shows an error"),
        (page("console", "$ quanet methods nothing", "$ echo $?", "0"), "is 2"),
    ],
)
def test_a_failure_is_noticed_and_named(text, failure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=failure):
        run_page("page.md", text)


def test_blocks_share_names_files_and_variables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page("toml", "# folder/quanet.toml", "quiet = true")
    text += page("python", "# own.py", "from pathlib import Path", "name = 'a'")
    text += page(
        "python", "Path(name).write_text(Path('folder/quanet.toml').read_text())", "Path('b.csv').write_text('x')"
    )
    wrong = ["$ QUANET_CHECK_LABEL=y quanet check \\", "    b.csv", "Error: b.csv ... no column 'y'.", "$ echo $?", "1"]
    text += page("console", *wrong)
    text += page("python", "1 / 0", before="<!-- not run: never -->")
    text = page("python", "assert first") + text + page("python", "first = True", before="<!-- run first -->")
    shown = []
    run_page("page.md", text, lambda command, printed: shown.append(command))
    assert shown == ["QUANET_CHECK_LABEL=y quanet check b.csv"]
    assert (tmp_path / "own.py").exists()
    assert (tmp_path / "a").read_text() == "quiet = true\n"


PRINTED = "Report: r.html\nnegative 35.9 % (23.1 to 51.0 %) of 2,000\ninstances. p = 0.034\n ─────\n"
PRINTED += " 2016  26.0\n 2017  45.6\nin 31 s\n"


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (["negative 36.1 % (23.0 to 51.2 %) of 2,000 instances."], None),
        (["negative 35.9 %", "...", " 2017  45.6", "in 2 s"], None),
        (["negative ... of 2,000", "───", " 2016  26.0"], None),
        (["negative 36.9 %"], "negative 36.9 %"),
        (["positive 35.9 %"], "positive 35.9 %"),
        (["p = 0.036"], None),
        (["p = 0.134"], "p = 0.134"),
        ([" 2017  45.6", " 2016  26.0"], " 2016  26.0"),
        (["of 2,100 instances"], "of 2,100 instances"),
    ],
)
def test_output_is_compared_up_to_the_last_digits_and_in_order(shown, missing):
    assert missing_line(shown, PRINTED) == missing


def test_blocks_know_their_lines():
    text = "a\n\n- item\n\n  ```console\n  $ quanet x \\\n    --y\n  out\n  $ quanet z\n  ```\n\n````text\n```\n````\n"
    first, second = blocks_of(text)
    assert [(one.line, one.words, one.shown) for one in commands_of(first)] == [
        (6, "quanet x --y", ("out",)),
        (9, "quanet z", ()),
    ]
    assert second.code == "```\n"
