import numpy as np
import pytest
from matplotlib.text import Text

from quanet.errors import InvalidSetting
from quanet.evaluation.evaluate import Cell
from quanet.evaluation.limits import Limit
from quanet.evaluation.scores import rank, score
from quanet.report.charts.canvas import save_figure, wide_figure
from quanet.report.charts.experiment_figures import KINDS, experiment_figure
from quanet.report.charts.panels import BLUE, ORANGE, PALE
from quanet.report.charts.ranks import critical_difference
from quanet.report.experiment_curves import error_curves, estimate_curves
from tests.made_cells import noisy_cells

CELLS = noisy_cells()
LIMITS = {
    "imdb": Limit(np.array([0.1, 0.9]), np.array([0.004, 0.005])),
    "kindle-device": Limit(np.array([0.1, 0.9]), np.array([0.004, 0.005]), ("EMQ",)),
}


def panel(figure, block, number):
    return figure.subfigs[block].axes[number]


def lines(ax, colour):
    return [line.get_xydata() for line in ax.lines if line.get_color() == colour]


def texts(ax):
    return [ax.get_title(loc="left"), *(text.get_text() for text in ax.texts)]


def test_a_panel_has_its_method_in_front_and_the_others_behind():
    figure = experiment_figure(CELLS, "estimates")
    curves = estimate_curves(CELLS).shown
    assert [part.get_suptitle() for part in figure.subfigs[:2]] == ["IMDB", "kindle-device (stand-in for KINDLE)"]
    for block, dataset in enumerate(("imdb", "kindle-device")):
        for number, method in enumerate(("CC", "EMQ", "QuaNet")):
            ax = panel(figure, block, number)
            [own] = lines(ax, BLUE)
            np.testing.assert_allclose(own[:, 1], curves[dataset, method].middle)
            assert len(lines(ax, PALE)) == 2
            assert texts(ax)[0] == method
            assert texts(ax)[1].startswith("AE .")
    [prior] = [line for line in panel(figure, 0, 0).lines if line.get_marker() == "o"]
    np.testing.assert_allclose(prior.get_xydata(), [[0.7, 0.7]])


def test_the_limit_is_drawn_where_it_holds():
    figure = experiment_figure(CELLS, "error", limits=LIMITS)
    [limit] = lines(panel(figure, 0, 0), ORANGE)
    np.testing.assert_allclose(limit, [[0.1, 0.004], [0.9, 0.005]])
    assert [len(lines(panel(figure, 1, number), ORANGE)) for number in range(3)] == [0, 1, 0]
    assert panel(figure, 0, 0).get_ylim()[0] <= 0.004
    keys = [text.get_text() for text in figure.subfigs[-1].legends[0].get_texts()]
    assert keys[-1].startswith("Cramér-Rao bound")
    other = experiment_figure(CELLS, "error", metric="rae", limits=LIMITS)
    assert not lines(panel(other, 0, 0), ORANGE)  # the bound is of absolute errors


def test_errors_by_shift_reach_as_far_as_the_bags():
    figure = experiment_figure(CELLS, "shift")
    curve = error_curves(CELLS, against="shift").shown["imdb", "CC"]
    [own] = lines(panel(figure, 0, 0), BLUE)
    np.testing.assert_allclose(own, np.column_stack([curve.x, curve.middle]))
    assert panel(figure, 0, 0).get_xlim()[1] == pytest.approx(0.6 * 1.02)


def test_boxes_are_around_no_bias():
    ax = panel(experiment_figure(CELLS, "bias"), 0, 0)
    assert len(ax.patches) == 5
    heights = [patch.get_y() + patch.get_height() / 2 for patch in ax.patches]
    assert heights[0] > 0.1 > -0.1 > heights[-1]  # the first method flattens towards the middle


def test_what_is_missing_is_said_in_its_panel():
    cells = dict(CELLS)
    del cells[Cell("imdb", "CC", 1)]
    for run in range(3):
        del cells[Cell("kindle-device", "QuaNet", run)]
    figure = experiment_figure(cells, "estimates")
    assert "2 of 3 runs" in texts(panel(figure, 0, 0))[1]
    assert texts(panel(figure, 1, 2)) == ["QuaNet", "not run"]


def test_ranks_are_where_they_belong():
    ranking = rank(score(CELLS, ["ae"]), "ae")
    figure = experiment_figure(CELLS, "ranks")
    [ax] = figure.axes
    shown = [text.get_text() for text in ax.texts]
    assert "critical distance 1.35" in shown
    for method, mean in zip(ranking.methods, ranking.friedman.ranks, strict=True):
        assert any(method in text and f"{mean:.2f}" in text for text in shown)
    starts = sorted(line.get_xdata()[0] for line in ax.lines)
    np.testing.assert_allclose(starts, np.sort(ranking.friedman.ranks))
    without = experiment_figure(CELLS, "ranks", aside=["CC"], blocks="datasets")
    assert not any("CC" in text.get_text() for text in without.axes[0].texts)
    assert "over 2 datasets" in without.get_suptitle()


@pytest.mark.parametrize("methods", [2, 3, 11, 20])
def test_labels_of_ranks_do_not_overlap(methods):
    ranks = np.linspace(1, methods, methods) ** 0.999
    figure, ax = wide_figure(4)
    names = [f"method number {number}" for number in range(methods)]
    critical_difference(ax, names, ranks, distance=2.5, groups=[np.array([0, 1])])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts if "method" in text.get_text()]
    assert len(boxes) == methods
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_no_text_of_a_panel_runs_into_another(tmp_path):
    names = ("CC", "SVM-NKLD", "QuaNet.paper (selected on test)", "EMQ", "PACC", "QuaNet", "ACC")
    figure = experiment_figure(noisy_cells(["imdb"], names, runs=2, repeats=2), "estimates")
    save_figure(figure, tmp_path / "picture.png")
    figure.draw_without_rendering()
    boxes = []
    for ax in figure.subfigs[0].axes:
        titles = [text for text in ax.findobj(Text) if text.get_text() == ax.get_title(loc="left")]
        boxes += [text.get_window_extent() for text in (*titles, *ax.texts)]
    assert len(boxes) == 14
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_an_unknown_figure_is_refused():
    with pytest.raises(InvalidSetting, match=f"Unknown figure 'pie'. Choose from {', '.join(KINDS)}"):
        experiment_figure(CELLS, "pie")
    with pytest.raises(InvalidSetting, match="Unknown metric 'rea'"):
        experiment_figure(CELLS, "shift", metric="rea")
