import sys

import numpy as np
import pytest

from quanet.errors import InvalidSetting, MissingExtra
from quanet.report.chart_data import IntervalRows
from quanet.report.charts import check_suffix, new_figure, save_figure
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.charts.panels import panel_figure

STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def drawn():
    figure, [ax] = new_figure()
    ax.plot([0, 1], [0, 1], label="a line")
    ax.fill_between([0, 1], [0, 0], [1, 1], hatch="/")
    ax.legend()
    return figure


@pytest.mark.parametrize("suffix", STARTS)
def test_a_figure_has_its_endings_format_and_the_same_bytes_every_time(tmp_path, suffix):
    for name in ("one", "two"):
        save_figure(drawn(), tmp_path / f"{name}{suffix}")
    one, two = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert one.startswith(STARTS[suffix])
    assert one == two
    assert b"CreationDate" not in one
    assert b"dc:date" not in one
    assert len(list(tmp_path.iterdir())) == 2


def test_a_figure_is_written_whole_or_not_at_all(tmp_path):
    figure = drawn()
    with pytest.raises(InvalidSetting, match=r"'picture\.doc'. Use a name ending in \.svg, \.png, \.pdf"):
        save_figure(figure, tmp_path / "picture.doc")
    with pytest.raises(InvalidSetting, match="cannot be written"):
        save_figure(figure, tmp_path / "no folder" / "picture.png")
    assert not list(tmp_path.iterdir())
    check_suffix(tmp_path / "picture.PDF")


def test_saving_leaves_no_global_setting(tmp_path):
    from matplotlib import rcParams

    before = dict(rcParams)
    save_figure(drawn(), tmp_path / "picture.svg")
    assert dict(rcParams) == before


@pytest.mark.parametrize(("panels", "rows", "columns"), [(1, 1, 1), (6, 1, 6), (7, 2, 4), (11, 2, 6)])
def test_blocks_have_their_panels_in_even_rows(panels, rows, columns):
    figure, blocks, strip = panel_figure(["one", "two"], panels, height=1.0, xlabel="x", ylabel="y")
    assert [len(axes) for axes in blocks] == [panels, panels]
    grid = blocks[0][0].get_gridspec()
    assert (grid.nrows, grid.ncols) == (rows, columns)
    assert [part.get_suptitle() for part in figure.subfigs] == ["one", "two", ""]
    assert figure.subfigs[-1] is strip


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pip install 'quanet\[plot\]'"):
        new_figure()


def test_rows_without_any_error_still_have_a_scale():
    nothing = np.zeros((2, 1))
    figure = rows_figure(
        IntervalRows(("CC", "EMQ"), ("",), nothing, nothing, nothing, "mean absolute error", unit="points")
    )
    low, high = figure.axes[0].get_xlim()
    assert low == 0 < high
