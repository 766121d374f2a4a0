import numpy as np

from quanet import Results
from quanet.report.charts import error_by_shift, estimate_against_truth, new_figure

TRUTH = np.repeat([0.1, 0.5, 0.9], 4)
NOISE = np.tile([-0.05, 0.0, 0.0, 0.05], 3)


def results(offset):
    truth, estimate = (np.column_stack([1 - p, p]) for p in (TRUTH, TRUTH + NOISE + offset))
    return Results(truth, estimate, np.array(["no", "yes"]), np.full(12, 100), np.arange(12))


def test_lines_are_the_mean_estimate_at_every_truth():
    _, [ax] = new_figure()
    assert estimate_against_truth(ax, {"one": results(0.0), "two": results(0.04)}) is ax
    truth, one, two = ax.lines
    np.testing.assert_allclose(truth.get_xydata(), [[0, 0], [1, 1]])
    np.testing.assert_allclose(one.get_xydata(), [[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]])
    np.testing.assert_allclose(two.get_ydata(), [0.14, 0.54, 0.94])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["truth", "one", "two"]
    assert ax.get_xlabel() == "true prevalence of yes"


def test_errors_are_drawn_by_distance_from_training():
    _, [ax] = new_figure()
    error_by_shift(ax, {"one": results(0.0)}, prior=np.array([0.9, 0.1]))
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.0, 0.025], [0.4, 0.025], [0.8, 0.025]], atol=1e-12)
