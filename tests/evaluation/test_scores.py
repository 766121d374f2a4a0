from dataclasses import replace

import numpy as np
import pytest

from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.evaluate import Cell
from quanet.evaluation.scores import rank, score
from tests.made_cells import GRID, constant_cells, noisy_cells, outcome

ERRORS = {
    ("imdb", "CC"): [0.05, 0.06, 0.07],
    ("imdb", "EMQ"): [0.01, 0.02, 0.01],
    ("hp", "CC"): [0.08, 0.09],
    ("hp", "EMQ"): [0.02, 0.02],
}


def test_a_score_is_a_runs_mean_error():
    scores = score(constant_cells(ERRORS), ["ae", "se"])
    for (dataset, method), by_run in ERRORS.items():
        np.testing.assert_allclose(scores.errors["ae", dataset, method], by_run)
        np.testing.assert_allclose(scores.errors["se", dataset, method], np.square(by_run))
    assert (scores.datasets, scores.methods, scores.metrics) == (("imdb", "hp"), ("CC", "EMQ"), ("ae", "se"))
    assert scores.runs == {"imdb": (0, 1, 2), "hp": (0, 1)}
    assert scores.bags["imdb"] == (5, 100, 100)
    assert scores.missing == ()


def test_what_is_missing_is_told_and_the_rest_stays():
    cells = constant_cells(ERRORS)
    del cells[Cell("imdb", "EMQ", 1)]
    scores = score(cells, ["ae"])
    assert scores.missing == (Cell("imdb", "EMQ", 1),)
    assert ("ae", "imdb", "EMQ") not in scores.errors
    assert ("ae", "imdb", "CC") in scores.errors
    planned = [*cells, Cell("kindle", "CC", 0)]
    scores = score(cells, ["ae"], expected=planned)
    assert scores.datasets == ("imdb", "hp", "kindle")
    assert scores.missing == (Cell("kindle", "CC", 0),)
    assert scores.bags["kindle"] == (0, 0, 0)


def test_order_is_the_plans():
    cells = constant_cells(ERRORS)
    scores = score(cells, ["ae"], expected=sorted(cells, reverse=True))
    assert (scores.datasets, scores.methods) == (("imdb", "hp"), ("EMQ", "CC"))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (outcome(GRID, truth=GRID + np.array([0, 0, 0.02, 0, 0.02])), "the truth differs in 2 of 5 bags"),
        (outcome(GRID[:4], truth=GRID[:4]), "5 and 4 bags"),
        (outcome(GRID, size=50), "the sizes of the bags differ"),
    ],
)
def test_methods_that_met_other_bags_are_not_compared(other, told):
    cells = constant_cells({("imdb", "CC"): [0.1, 0.1]}) | {Cell("imdb", "EMQ", 1): other}
    with pytest.raises(InvalidData, match=rf"imdb, run 1: CC and EMQ have different bags: {told}"):
        score(cells)


def test_other_classes_and_estimates_that_are_no_numbers_are_named():
    cells = constant_cells({("imdb", "CC"): [0.1]})
    results = cells[Cell("imdb", "CC", 0)].results
    turned = replace(cells[Cell("imdb", "CC", 0)], results=replace(results, classes=results.classes[::-1]))
    with pytest.raises(InvalidData, match=r"CC has the classes \['negative', 'positive'\], but EMQ has"):
        score(cells | {Cell("imdb", "EMQ", 0): turned})
    with pytest.raises(InvalidData, match="run 0: estimates of EMQ are not finite"):
        score(cells | {Cell("imdb", "EMQ", 0): outcome(GRID * np.nan)})


def test_metrics_that_have_no_table_are_refused():
    cells = constant_cells(ERRORS)
    with pytest.raises(InvalidSetting, match=r"Unknown metric 'aee'.*Did you mean 'ae'"):
        score(cells, ["aee"])
    with pytest.raises(InvalidSetting, match="'bias' is computed per class"):
        score(cells, ["bias"])
    with pytest.raises(InvalidData, match="no finished cell"):
        score({})
    with pytest.raises(InvalidSetting, match=r"Unknown method 'XY'\. Choose from CC, EMQ"):
        score(cells, aside=["XY"])
    assert score(cells, ["AE", "ae"]).metrics == ("ae",)


def test_ranks_are_over_runs_or_over_datasets():
    scores = score(constant_cells(ERRORS), ["ae"])
    ranking = rank(scores, "ae")
    assert ranking.errors.shape == (5, 2)
    np.testing.assert_allclose(ranking.friedman.ranks, [2, 1])
    assert rank(scores, "ae", blocks="datasets").errors.shape == (2, 2)
    with pytest.raises(InvalidSetting, match="blocks must be 'runs' or 'datasets'; got 'bags'"):
        rank(scores, "ae", blocks="bags")


def test_methods_that_lack_a_block_are_not_ranked():
    cells = noisy_cells()
    del cells[Cell("imdb", "EMQ", 1)]
    ranking = rank(score(cells, ["ae"]), "ae")
    assert (ranking.methods, ranking.left_out) == (("CC", "QuaNet"), ("EMQ",))
    del cells[Cell("imdb", "CC", 1)]
    with pytest.raises(InvalidData, match="at least 2 methods with complete results"):
        rank(score(cells, ["ae"]), "ae")
