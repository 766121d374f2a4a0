import numpy as np

from quanet.report.charts import new_figure
from quanet.report.charts.coverage_figure import coverage_by_prevalence


def test_lines_are_the_coverage_of_every_method_under_the_level():
    _, [ax] = new_figure()
    shares = {"one": np.array([0.9, 1.0]), "two": np.array([0.6, 0.95])}
    assert coverage_by_prevalence(ax, np.array([0.1, 0.9]), shares, level=0.95) is ax
    level, one, two = ax.lines
    np.testing.assert_allclose(level.get_ydata(), 95)
    np.testing.assert_allclose(one.get_xydata(), [[0.1, 90], [0.9, 100]])
    np.testing.assert_allclose(two.get_ydata(), [60, 95])
    assert ax.get_ylim()[0] < 60
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["95 %", "one", "two"]
