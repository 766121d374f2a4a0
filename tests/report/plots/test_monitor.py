"""A monitor's picture shows what its course says."""

import numpy as np
import pytest

from quanet.errors import InvalidSetting
from quanet.monitoring import Course
from quanet.report.plots import monitor_figure, save_figure


def course(since=None):
    shares = np.column_stack([np.linspace(0.8, 0.5, 5), np.linspace(0.2, 0.5, 5)])
    return Course(
        classes=np.array(["no", "yes"]),
        dates=np.arange(np.datetime64("2026-03-01"), np.datetime64("2026-03-06")),
        sizes=np.array([100, 200, 50, 100, 100]),
        estimate=shares,
        windowed=shares,
        lower=shares - 0.05,
        upper=shares + 0.05,
        weighted=shares,
        since=since,
        level=0.95,
    )


def test_lines_follow_the_class_asked_for():
    for label, c in ((None, 1), ("no", 0)):
        [ax] = monitor_figure(course(), label=label).axes
        np.testing.assert_allclose(ax.lines[0].get_ydata(), course().windowed[:, c])
        assert ax.get_ylabel() == f"prevalence of {['no', 'yes'][c]}"


def test_a_change_is_marked_where_it_began():
    when = np.datetime64("2026-03-03")
    assert len(monitor_figure(course()).axes[0].lines) == 2
    [ax] = monitor_figure(course(when)).axes
    assert ax.lines[2].get_xdata()[0] == when


def test_the_same_course_gives_the_same_bytes(tmp_path):
    for name in ("a.svg", "b.svg"):
        save_figure(monitor_figure(course()), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_class_that_is_not_there_is_named():
    with pytest.raises(InvalidSetting, match="no class is called 'maybe'"):
        monitor_figure(course(), label="maybe")
