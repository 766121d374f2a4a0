import numpy as np
import pytest

from quanet.errors import InvalidData
from quanet.evaluation.evaluate import Cell
from quanet.report.experiment_curves import bias_boxes, error_curves, estimate_curves
from tests.made_cells import GRID, constant_cells, noisy_cells, outcome


def test_an_estimate_curve_is_the_mean_over_bags_and_runs_with_its_deviation():
    panels = estimate_curves(constant_cells({("imdb", "CC"): [0.04, 0.08]}, prior=0.7))
    curve = panels.shown["imdb", "CC"]
    np.testing.assert_allclose(curve.x, GRID)
    np.testing.assert_allclose(curve.middle, GRID + 0.06)
    np.testing.assert_allclose(curve.low, GRID + 0.04)
    np.testing.assert_allclose(curve.high, np.minimum(GRID + 0.08, 1))
    assert (curve.error, curve.runs) == (pytest.approx(0.06), 2)
    assert panels.priors == {"imdb": pytest.approx(0.7)}
    assert panels.label == "positive"


def test_a_band_stays_within_the_shares():
    cells = {Cell("imdb", "CC", run): outcome(np.full(5, share)) for run, share in enumerate([0.0, 1.0, 0.0])}
    curve = estimate_curves(cells).shown["imdb", "CC"]
    assert curve.low.min() == 0
    assert curve.high.max() <= 1


def test_errors_are_by_prevalence_or_by_shift():
    cells = constant_cells({("imdb", "CC"): [0.04, 0.08]}, prior=0.7)
    by_prevalence = error_curves(cells).shown["imdb", "CC"]
    np.testing.assert_allclose(by_prevalence.x, GRID)
    np.testing.assert_allclose(by_prevalence.middle, 0.06)
    np.testing.assert_allclose(by_prevalence.low, 0.05)  # a quarter of the way from one run's error to the other's
    by_shift = error_curves(cells, against="shift").shown["imdb", "CC"]
    np.testing.assert_allclose(by_shift.x, [0.0, 0.2, 0.4, 0.6], atol=1e-12)  # .5 and .9 are both .2 away
    squared = error_curves(cells, metric="se").shown["imdb", "CC"]
    np.testing.assert_allclose(squared.middle, (0.04**2 + 0.08**2) / 2)


def test_many_truths_are_grouped():
    rng = np.random.default_rng(0)
    truth = rng.random(3000)
    cells = {Cell("imdb", "CC", 0): outcome(truth + 0.0, truth=truth)}
    curve = estimate_curves(cells).shown["imdb", "CC"]
    assert len(curve.x) == 21
    np.testing.assert_allclose(curve.middle, curve.x)
    np.testing.assert_allclose(curve.x[1:-1], np.arange(1, 20) / 20, atol=0.01)


def test_boxes_hold_the_bias_in_groups():
    boxes = bias_boxes(constant_cells({("imdb", "CC"): [0.02] * 3})).shown["imdb", "CC"]
    np.testing.assert_allclose(boxes.x, (np.array([0, 2, 3, 4, 6]) + 0.5) / 7)
    np.testing.assert_allclose(boxes.quantiles, 0.02)
    spread = bias_boxes(constant_cells({("imdb", "CC"): [0.0, 0.01, 0.02, 0.03, 0.04]})).shown["imdb", "CC"]
    np.testing.assert_allclose(spread.quantiles[0], [0.002, 0.01, 0.02, 0.03, 0.038])


def test_pairs_without_cells_have_nothing_and_runs_are_counted():
    cells = noisy_cells()
    for run in range(3):
        del cells[Cell("imdb", "EMQ", run)]
    del cells[Cell("imdb", "QuaNet", 0)]
    panels = estimate_curves(cells)
    assert ("imdb", "EMQ") not in panels.shown
    assert panels.methods == ("CC", "QuaNet", "EMQ")
    assert (panels.shown["imdb", "QuaNet"].runs, panels.runs("imdb")) == (2, 3)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(InvalidData, match="no finished cell"):
        estimate_curves({})
    cells = constant_cells({("imdb", "CC"): [0.1]}) | {Cell("imdb", "EMQ", 0): outcome(GRID, truth=GRID / 2)}
    with pytest.raises(InvalidData, match="have different bags"):
        bias_boxes(cells)
