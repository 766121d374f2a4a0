"""A monitor's picture shows what its history says."""

from dataclasses import replace

import numpy as np
import pytest

from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.monitor_batches import Change, History
from quanet.report.charts import monitor_figure, save_figure


def history(since=None):
    shares = np.column_stack([np.linspace(0.8, 0.5, 5), np.linspace(0.2, 0.5, 5)])
    return History(
        classes=np.array(["no", "yes"]),
        dates=np.arange(np.datetime64("2026-03-01"), np.datetime64("2026-03-06")),
        sizes=np.array([100, 200, 50, 100, 100]),
        estimate=shares,
        windowed=shares,
        lower=shares - 0.05,
        upper=shares + 0.05,
        weighted=shares,
        baseline=shares,
        batch_lower=shares - 0.1,
        batch_upper=shares + 0.1,
        changes=() if since is None else (Change(since, since, shares[0], shares[-1]),),
        level=0.95,
    )


def test_lines_follow_the_class_asked_for():
    for label, c in ((None, 1), ("no", 0)):
        [ax] = monitor_figure(history(), label=label).axes
        np.testing.assert_allclose(ax.lines[0].get_ydata(), history().baseline[:, c])
        np.testing.assert_allclose(ax.lines[1].get_ydata(), history().windowed[:, c])
        assert ax.get_ylabel() == f"prevalence of {['no', 'yes'][c]}"


def test_a_change_is_marked_where_it_began():
    when = np.datetime64("2026-03-03")
    assert len(monitor_figure(history()).axes[0].lines) == 2
    [ax] = monitor_figure(history(when)).axes
    assert len(ax.lines) == 4  # the level before and after, the window, and the change
    assert ax.lines[3].get_xdata()[0] == when


def test_the_same_course_gives_the_same_bytes(tmp_path):
    for name in ("a.svg", "b.svg"):
        save_figure(monitor_figure(history()), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_class_that_is_not_there_is_named():
    with pytest.raises(InvalidSetting, match="Unknown class 'maybe'"):
        monitor_figure(history(), label="maybe")


def test_a_course_without_batches_cannot_be_drawn():
    empty = {name: getattr(history(), name)[:0] for name in ("dates", "sizes", "estimate", "windowed", "baseline")}
    with pytest.raises(InvalidData, match="no batches"):
        monitor_figure(replace(history(), **empty))
