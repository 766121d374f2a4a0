import sys

import numpy as np
import pytest
import typer

from quanet.cli import experiment, main
from quanet.cli.main import Commands
from quanet.evaluation.evaluate import Cell
from quanet.evaluation.limits import Limit, limits_to_json
from quanet.lab import store
from tests.made_cells import noisy_cells

METHODS = ("CC", "EMQ", "QuaNet.paper", "Leaking")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An experiment's folder, whose store gives made cells; and the commands in an app of their own."""
    cells = noisy_cells(methods=METHODS)
    planned = dict.fromkeys(cells, "key")
    del cells[Cell("kindle-device", "EMQ", 2)]
    datasets = {"imdb": {"stand_in": ""}, "kindle-device": {"stand_in": "stand-in for KINDLE"}}
    manifest = {"cells": planned, "datasets": datasets, "aside": ["Leaking"]}
    monkeypatch.setattr(store, "read_cells", lambda folder: cells)
    monkeypatch.setattr(store, "read_manifest", lambda folder: manifest)
    monkeypatch.setattr(store, "asked_cells", lambda said: said["cells"])
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    app.command()(experiment.table)
    app.command()(experiment.figure)
    monkeypatch.setattr(main, "app", app)
    return tmp_path


def call(monkeypatch, *words, width="200"):
    monkeypatch.setattr(sys, "argv", ["quanet", *map(str, words)])
    monkeypatch.setenv("COLUMNS", width)
    with pytest.raises(SystemExit) as ended:
        main.run()
    return ended.value.code


def test_the_table_is_printed_with_what_is_missing(monkeypatch, capsys, folder):
    assert call(monkeypatch, "table", folder, "--tests", "--against-paper", "--aside", "Leaking") == 0
    printed = capsys.readouterr().out
    for word in ("Mean errors", "IMDB", "Comparison with the paper", "Friedman", "QuaNet.paper", "difference"):
        assert word in printed
    assert "not competing (neither bold nor tested): Leaking." in printed
    assert "kindle-device" in printed
    assert "(stand-in for KINDLE)" in printed
    assert "missing (-- above): kindle-device / EMQ: run 2." in printed.replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "start"),
    [("t.md", "# Experiment"), ("t.tex", r"\begin{table"), ("t.html", "<!doctype html>"), ("t.txt", "Mean errors")],
)
def test_the_files_ending_says_the_format(monkeypatch, capsys, folder, name, start):
    assert call(monkeypatch, "table", folder, "-o", folder / name, "--metric", "ae", "--metric", "SE") == 0
    text = (folder / name).read_text(encoding="utf-8")
    assert text.startswith(start)
    assert "SE" in text
    assert capsys.readouterr().out == ""
    assert [file.name for file in folder.iterdir()] == [name]


def test_a_format_can_be_named_and_goes_to_the_screen_as_it_is(monkeypatch, capsys, folder):
    assert call(monkeypatch, "table", folder, "--format", "md", width="40") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| method | IMDB AE | IMDB RAE") for line in lines)
    assert call(monkeypatch, "table", folder, "--format", "latex", "-o", folder / "table.inc") == 0
    assert (folder / "table.inc").read_text().startswith(r"\begin{table")


@pytest.mark.same_lines
@pytest.mark.parametrize("kind", ["estimates", "shift", "bias", "error", "ranks"])
def test_every_figure_is_drawn(monkeypatch, capsys, folder, kind):
    limit = Limit(np.array([0.1, 0.9]), np.array([0.01, 0.01]))
    (folder / "limits.json").write_text(limits_to_json({"imdb": limit}))
    words = ("--kind", kind, "-o", folder / "figure.svg", "--aside", "CC", "--limits", folder / "limits.json")
    assert call(monkeypatch, "figure", folder, *words) == (1 if kind == "ranks" else 0)
    if kind == "ranks":  # two methods are left, one of them incomplete
        assert "at least 2 methods with complete results" in capsys.readouterr().err
        assert call(monkeypatch, "figure", folder, *words[:4], *words[6:]) == 0
    assert (folder / "figure.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("table", "--metric", "aae"), "Did you mean 'ae'?"),
        (("table", "--aside", "XY"), "Unknown method 'XY'. Choose from CC, EMQ, QuaNet.paper, Leaking"),
        (("figure", "--kind", "bias", "-o", "f.gif"), "'f.gif'. Use a name ending in .svg, .png, .pdf"),
        (("figure", "--kind", "error", "-o", "f.svg", "--limits", "none.json"), "none.json does not contain limits"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(monkeypatch, capsys, folder, words, told):
    monkeypatch.chdir(folder)
    assert call(monkeypatch, words[0], folder, *words[1:]) == 1
    printed = capsys.readouterr()
    assert told in printed.err.replace("\n", " ")
    assert printed.err.startswith("Error: ")
    assert not list(folder.iterdir())


def test_an_unknown_kind_or_format_is_a_wrong_call(monkeypatch, capsys, folder):
    assert call(monkeypatch, "figure", folder, "--kind", "pie", "-o", "f.svg") == 2
    assert call(monkeypatch, "table", folder, "--format", "word") == 2
    assert call(monkeypatch, "table", folder, "-o", "table.doc") == 2
    assert "Traceback" not in capsys.readouterr().err
