import os
import re
import signal
from io import StringIO

import pytest
from rich.console import Console

from quanet.cli import console, experiment
from quanet.lab.store import Store, read_cells
from tests.cli.test_main import call
from tests.lab.conftest import PLAN, write_words


@pytest.fixture
def home(tmp_path, monkeypatch):
    write_words(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_plan_is_run_shown_continued_and_packed(home, monkeypatch, capsys):
    assert call(monkeypatch, "experiment", "run", "plan.toml", "--jobs", "1", "--only", "method=CC") == 0
    assert "2 of 2 cells are in plan" in capsys.readouterr().err
    assert call(monkeypatch, "experiment", "show", "plan") == 0
    printed = capsys.readouterr().out
    assert re.search(r"CC +2/2", printed)
    assert re.search(r"SVM-KLD +0/2", printed)
    assert "2 done, 4 missing, 0 failed" in printed
    assert call(monkeypatch, "experiment", "run", "plan.toml", "--jobs", "1") == 0
    assert "2/6 cells already exist" in capsys.readouterr().err
    assert call(monkeypatch, "experiment", "pack", "plan", "-o", "packed") == 0
    assert "4 files" in capsys.readouterr().out
    assert len(read_cells(home / "packed")) == 6
    assert call(monkeypatch, "experiment", "show", "packed") == 0
    assert "6 done, 0 missing, 0 failed" in capsys.readouterr().out


def test_a_damaged_cell_is_a_line_of_warning(home, monkeypatch, capsys):
    words = ("experiment", "run", "plan.toml", "--jobs", "1", "--only", "method=CC")
    assert call(monkeypatch, *words) == 0
    next((home / "plan" / "cells").iterdir()).write_bytes(b"nothing")
    assert call(monkeypatch, *words) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Warning: ")]
    assert len(warned) == 1
    assert "will be computed again" in warned[0]


def test_a_failed_cell_is_one_line_and_exit_code_1(home, monkeypatch, capsys):
    (home / "plan.toml").write_text(PLAN + '[methods.BAD]\nkind = "DeepSets"\nclassifier = "text"\ndevice = "[none]"\n')
    assert call(monkeypatch, "experiment", "run", "plan.toml", "--jobs", "1", "-o", "out") == 1
    printed = capsys.readouterr().err
    lines = [line for line in printed.splitlines() if line.startswith("Error: ")]
    assert [line.split(":")[1] for line in lines] == [" words, BAD, run 0 failed", " words, BAD, run 1 failed"]
    assert "device '[none]' is not available" in lines[0]
    assert "6 of 8 cells are in out" in printed
    assert call(monkeypatch, "experiment", "show", "out") == 0
    shown = capsys.readouterr().out
    assert "6 done, 0 missing, 2 failed" in shown
    assert "failed: words, BAD, run 1" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "nothing.toml"), "The plan nothing.toml cannot be read"),
        (("run", "plan.toml", "--only", "method=CX"), "The plan has no method 'CX'. Did you mean 'CC'?"),
        (("run", "plan.toml", "--engine", "spark"), "Unknown engine 'spark'"),
        (("run", "wrong.toml"), "wrong.toml, line 16: quanet has no 'EQM'. Did you mean 'EMQ'?"),
        (("show", "nowhere"), "nowhere is not an experiment folder"),
        (("pack", "nowhere", "-o", "packed"), "nowhere is not an experiment folder"),
    ],
)
def test_a_wrong_call_is_one_line(home, monkeypatch, capsys, words, message):
    (home / "wrong.toml").write_text(PLAN.replace("methods.EMQ", "methods.EQM"))
    assert call(monkeypatch, "experiment", *words) == 1
    printed = capsys.readouterr().err
    assert message in printed
    assert "Traceback" not in printed


def test_a_plan_instead_of_results_says_where_they_are(home, monkeypatch, capsys):
    for verb in (
        ("table", "plan.toml"),
        ("show", "plan.toml"),
        ("figure", "plan.toml", "--kind", "bias", "-o", "x.svg"),
    ):
        assert call(monkeypatch, "experiment", *verb) == 1
        said = capsys.readouterr().err
        assert "plan.toml is a plan. Pass its results folder instead." in said
        assert "quanet experiment run plan.toml writes to plan" in said
    only = ("--only", "method=CC,run=0")
    assert call(monkeypatch, "experiment", "run", "plan.toml", "--jobs", "1", *only) == 0
    assert call(monkeypatch, "experiment", "table", "plan.toml") == 1
    assert "Pass its results folder instead: plan." in capsys.readouterr().err


def test_what_was_not_asked_for_is_not_missing(home, monkeypatch, capsys):
    run = ("experiment", "run", "plan.toml", "--jobs", "1")
    assert call(monkeypatch, *run, "--only", "method=CC,run=0") == 0
    capsys.readouterr()
    assert call(monkeypatch, "experiment", "table", "plan") == 0
    table = capsys.readouterr().out
    assert "CC" in table
    assert "EMQ" not in table
    assert "missing" not in table
    assert call(monkeypatch, *run, "--only", "method=EMQ,run=0") == 0  # what was asked for before stays
    capsys.readouterr()
    assert call(monkeypatch, "experiment", "table", "plan") == 0
    table = capsys.readouterr().out
    assert "CC" in table
    assert "EMQ" in table
    assert "SVM-KLD" not in table


def test_markup_in_the_names_of_folders_and_data_is_shown_as_it_is(home, monkeypatch, capsys):
    (home / "plan.toml").write_text(PLAN.replace('name = "words"', 'name = "[/]"'))
    run = ("experiment", "run", "plan.toml", "--jobs", "1", "-o", "[/red]", "--only", "method=CC,run=0")
    assert call(monkeypatch, *run) == 0
    for verb in (("show", "[/red]"), ("table", "[/red]"), ("pack", "[/red]", "-o", "[/x]")):
        assert call(monkeypatch, "experiment", *verb) == 0
    out = capsys.readouterr().out
    assert "[/red]" in out
    assert "[/x]" in out


def test_a_second_runner_is_told_who_is_first(home, monkeypatch, capsys):
    with Store(home / "plan").locked():
        assert call(monkeypatch, "experiment", "run", "plan.toml", "--jobs", "1") == 1
    assert f"plan is in use by another runner (process {os.getpid()} on" in capsys.readouterr().err


def test_on_a_terminal_a_bar_moves(home, monkeypatch):
    shown = StringIO()
    monkeypatch.setattr(experiment, "notes", Console(file=shown, force_terminal=True, width=120))
    assert call(monkeypatch, "experiment", "run", "plan.toml", "--jobs", "1") == 0
    assert "6/6" in shown.getvalue()
    assert "words, SVM-KLD, run 1" in shown.getvalue()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_work_and_is_no_keyboard_interrupt(home, number, code):
    before = signal.getsignal(number)

    def train():
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        except KeyboardInterrupt:
            pytest.fail("a training would have taken it for its own end")

    with pytest.raises(SystemExit) as ended, console.exit_on_signals():
        train()
    assert ended.value.code == code
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("seconds", "said"), [(None, ""), (30, ", about 30 s left"), (600, ", about 10 min left")])
def test_time_left_is_said_in_round_numbers(seconds, said):
    from quanet.lab.runner import Fact

    assert experiment._time_left(Fact(None, 0.0, "", 1, 2, seconds)) == said
