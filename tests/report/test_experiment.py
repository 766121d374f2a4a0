import re
from pathlib import Path

import pytest

from quanet.errors import InvalidData
from quanet.evaluation.evaluate import Cell
from quanet.evaluation.scores import score
from quanet.evaluation.significance import paired_t_test
from quanet.report.experiment import (
    Column,
    TableEntry,
    comparison_table,
    daggers,
    error_table,
    experiment_tables,
    ranking_table,
)
from quanet.report.paper_figures import TABLE_1
from tests.made_cells import constant_cells, noisy_cells

PAPER = Path(__file__).parents[2].parent / "shared" / "paper" / "quanet-cikm2018.tex"
ERRORS = {
    ("imdb", "CC"): [0.088, 0.092, 0.090],
    ("imdb", "EMQ"): [0.0201, 0.0200, 0.0215],
    ("imdb", "QuaNet.paper"): [0.020, 0.021, 0.019],
    ("kindle-device", "CC"): [0.09, 0.08, 0.07],
    ("kindle-device", "EMQ"): [0.02, 0.03, 0.02],
    ("kindle-device", "QuaNet.paper"): [0.03, 0.03, 0.04],
}


def column(table, number):
    return {name: entries[number] for name, entries in table.rows}


def test_a_column_has_means_the_best_and_how_far_the_others_are():
    scores = score(constant_cells(ERRORS), ["ae", "kld"])
    table = error_table(scores)
    assert table.columns == (
        Column("AE", "IMDB"),
        Column("KLD", "IMDB"),
        Column("AE", "kindle-device (stand-in for KINDLE)"),
        Column("KLD", "kindle-device (stand-in for KINDLE)"),
    )
    first = column(table, 0)
    assert first["QuaNet.paper"] == TableEntry("0.0200", best=True)
    assert first["CC"] == TableEntry("0.0900", "", "+350 %")
    assert first["EMQ"] == TableEntry("0.0205", "††", "+2.7 %")
    assert "Mean over 3 runs of 5 bags of 100." in table.notes[0]
    assert any("Stand-ins are not the paper's data: kindle-device" in note for note in table.notes)


def test_daggers_are_the_t_tests():
    scores = score(noisy_cells(runs=6), ["ae", "rae", "kld"])
    table = error_table(scores)
    keys = [(metric, dataset) for dataset in scores.datasets for metric in scores.metrics]
    for number, key in enumerate(keys):
        entries = column(table, number)
        best = next(name for name, entry in entries.items() if entry.best)
        for name, entry in entries.items():
            p = float(paired_t_test(scores.errors[*key, name], scores.errors[*key, best]))
            assert entry.mark == ("" if name == best else daggers(p))
    assert [daggers(p) for p in (0.05, 0.0499, 0.005, 0.00499)] == ["††", "†", "†", ""]


def test_one_run_has_no_t_test_and_says_so():
    table = error_table(score(noisy_cells(["imdb"], runs=1)))
    assert not any(entry.mark for _, entries in table.rows for entry in entries)
    assert "No t-test, because there is only one run: IMDB." in table.notes
    assert not any("t-test over runs" in note for note in table.notes)
    mixed = noisy_cells(["imdb"], runs=1) | noisy_cells(["hp"], runs=3)
    notes = error_table(score(mixed)).notes
    assert "IMDB: 1 run of 40 bags of 100; HP: 3 runs of 40 bags of 100" in notes[0]
    assert "No t-test, because there is only one run: IMDB." in notes


def test_missing_cells_are_named_and_the_rest_is_shown():
    cells = constant_cells(ERRORS)
    for run in (0, 2):
        del cells[Cell("imdb", "QuaNet.paper", run)]
    table = error_table(score(cells, ["ae"]))
    assert column(table, 0)["QuaNet.paper"] == TableEntry()
    assert column(table, 0)["EMQ"].best
    assert table.notes[-1] == "Incomplete: 2 cells are missing (-- above): imdb / QuaNet.paper: runs 0, 2."
    nothing = error_table(score(cells, ["ae"], expected=[*constant_cells(ERRORS), Cell("hp", "CC", 0)]))
    assert set(column(nothing, 2).values()) == {TableEntry()}


def test_a_method_aside_is_shown_but_does_not_compete():
    table = error_table(score(constant_cells(ERRORS), ["ae"], aside=["QuaNet.paper"]))
    assert column(table, 0)["EMQ"].best
    assert column(table, 0)["QuaNet.paper"] == TableEntry("0.0200", "", "-2.6 %")
    assert any("not competing" in note and "QuaNet.paper" in note for note in table.notes)
    assert "QuaNet.paper" not in dict(ranking_table(score(constant_cells(ERRORS), ["ae"], aside=["QuaNet.paper"])).rows)
    alone = error_table(score(constant_cells({("imdb", "CC"): [0.1, 0.2]}), ["ae"], aside=["CC"]))
    assert not column(alone, 0)["CC"].best


def test_our_figures_stand_beside_the_papers_and_stand_ins_do_not():
    table = comparison_table(score(constant_cells(ERRORS), ["ae"]))
    assert [c.title for c in table.columns] == ["here", "paper", "difference"]
    assert {c.group for c in table.columns} == {"IMDB AE"}
    rows = {name: [entry.text for entry in entries] for name, entries in table.rows}
    assert rows == {
        "CC": ["0.0900", "0.096", "-6.3 %"],
        "QuaNet.paper [QuaNet]": ["0.0200", "0.018", "+11 %"],
    }
    assert "Not in the paper: EMQ." in table.notes
    assert any("not the paper's data: kindle-device (stand-in for KINDLE)" in note for note in table.notes)


def test_an_incomplete_method_keeps_the_papers_figure():
    cells = constant_cells(ERRORS)
    del cells[Cell("imdb", "CC", 0)]
    table = comparison_table(score(cells, ["ae"]))
    assert [entry.text for entry in dict(table.rows)["CC"]] == ["--", "0.096", "--"]


def test_a_dataset_that_is_said_to_stand_in_is_never_compared():
    scores = score(noisy_cells(["imdb", "hp"]), ["ae"], stand_ins={"hp": "stand-in for HP"})
    assert {c.group for c in error_table(scores).columns} == {"IMDB", "hp (stand-in for HP)"}
    assert {c.group for c in comparison_table(scores).columns} == {"IMDB AE"}


def test_a_table_that_cannot_be_made_leaves_a_note():
    scores = score(noisy_cells(["amazon-devices"], ["CC"]), ["ae"])
    [table] = experiment_tables(scores, against_paper=True, tests=True)
    assert any(note.startswith("No comparison: the paper's table has AE, RAE and KLD") for note in table.notes)
    assert any(note.startswith("No ranks: Ranks need at least 2 methods") for note in table.notes)
    assert experiment_tables(scores) == [error_table(scores)]
    assert len(experiment_tables(score(noisy_cells()), against_paper=True, tests=True)) == 3


def test_stand_ins_alone_have_nothing_to_be_compared_with():
    with pytest.raises(InvalidData, match="Stand-ins are not compared"):
        comparison_table(score(noisy_cells(["amazon-devices"])))


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not here")
def test_the_published_figures_are_the_papers():
    names = {r"SVM$^{\mathit{KLD}}$": "SVM-KLD", r"SVM$^{\mathit{NKLD}}$": "SVM-NKLD", r"SVM$^{\mathit{Q}}$": "SVM-Q"}
    read = {}
    for line in PAPER.read_text(encoding="utf-8").splitlines():
        figures = [float(figure) for figure in re.findall(r"(?<![\d.])\d\.\d{3}", line)]
        if line.count("&") == 18 and len(figures) == 9:
            name = line.split("&")[0].strip()
            read[names.get(name, name)] = figures
    assert len(read) == 9
    for number, rows in enumerate(TABLE_1.values()):
        assert rows == {name: tuple(figures[3 * number : 3 * number + 3]) for name, figures in read.items()}


def test_the_ranking_is_by_mean_ranks_with_the_tests():
    table = ranking_table(score(noisy_cells(runs=6), ["ae", "kld"]))
    assert [name for name, _ in table.rows] == ["EMQ", "QuaNet", "CC"]
    ranks = column(table, 0)
    assert ranks["EMQ"] == TableEntry("1.00", best=True)
    assert ranks["CC"] == TableEntry("3.00")
    # The differences of 12 pairs all have one sign: p = 2 / 2^12, doubled by Holm.
    assert column(table, 1) == {"EMQ": TableEntry(), "QuaNet": TableEntry("< .001"), "CC": TableEntry("< .001")}
    # Three methods, twelve blocks, one order: chi-squared is N (m - 1).
    assert table.notes[0].startswith("AE: Friedman chi-squared 24.0, p < .001; Iman-Davenport F inf")
    assert "critical distance of mean ranks (Nemenyi, 0.05) 0.96" in table.notes[0]


def test_what_lies_within_the_critical_distance_is_marked():
    table = ranking_table(score(noisy_cells(["imdb"], runs=3), ["ae"]), blocks="runs")
    assert column(table, 0)["QuaNet"].mark == "="  # the distance of three methods on three blocks is 1.91
    cells = noisy_cells()
    del cells[Cell("imdb", "CC", 0)]
    notes = ranking_table(score(cells, ["ae"]), blocks="datasets").notes
    assert "Not ranked, because runs are missing: CC." in notes
    assert any(note.startswith("Ranks over 2 datasets") for note in notes)


def test_a_test_that_cannot_be_significant_says_so():
    notes = " ".join(ranking_table(score(noisy_cells(["imdb"], runs=5), ["ae"])).notes)
    methods = len(ranking_table(score(noisy_cells(["imdb"], runs=5), ["ae"])).rows)
    least = f"{(methods - 1) / 16:.3f}".replace("0.", ".", 1)
    assert f"Wilcoxon's test cannot be significant here: with 5 runs of datasets and {methods - 1} comparisons" in notes
    assert f"its smallest p is {least}." in notes
    assert "cannot be significant" not in " ".join(ranking_table(score(noisy_cells(runs=6), ["ae"])).notes)


def test_ranks_of_very_few_runs_cannot_reach_the_critical_distance():
    notes = " ".join(ranking_table(score(noisy_cells(["imdb"], runs=2), ["ae"])).notes)
    assert "Nemenyi's test cannot be significant here" in notes
