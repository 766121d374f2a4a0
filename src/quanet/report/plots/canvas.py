"""Empty figures, and figures to files: no global state, the same bytes every time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from quanet.errors import InvalidSetting, MissingExtra
from quanet.report.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# By ending: what would otherwise say when the file was made.
FORMATS = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
WIDTH = 7.2  # inches: a page's text, or both columns of a paper
NARROW = 3.4  # a phone's screen
COLUMNS = 6
SMALL, TINY = 7.5, 6.5  # points, of titles and of figures


def new_figure(panels: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure with panels side by side, which no global state knows of."""
    figure = sized_figure(5.2 * panels, 5.0)
    return figure, list(figure.subplots(1, panels, squeeze=False)[0])


def panel_figure(
    titles: Sequence[str], panels: int, *, height: float, xlabel: str, ylabel: str
) -> tuple[Figure, list[list[Axes]], SubFigure]:
    """Small panels in blocks, a title over every block, and a strip below for the key.

    Parameters
    ----------
    titles : of the blocks.
    panels : in every block.
    height : of a panel in inches, where there are six in a row; fewer are larger.
    xlabel, ylabel : of the whole; ticks stand at the blocks' edges alone.
    """
    columns = panel_columns(panels)
    rows = -(-panels // columns)
    block, strip = rows * (height * min(COLUMNS / columns, 2) + 0.25) + 0.44, 0.3
    heights = [*[block] * (len(titles) - 1), block + 0.22, strip]  # the last block has the label of the x-axis
    figure = sized_figure(WIDTH, sum(heights))
    parts: list[SubFigure] = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).flat)
    blocks = []
    for title, part in zip(titles, parts[:-1], strict=True):
        grid = part.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        axes = list(grid.flat)
        for ax in axes[panels:]:
            ax.remove()
        for ax in axes[max(panels - columns, 0) : panels]:
            ax.tick_params(labelbottom=True)  # the last of its column, also where a row below is not full
        for ax in axes[:panels]:
            ax.tick_params(labelsize=TINY, length=2, pad=1.5, width=0.6)
            ax.grid(alpha=0.25, linewidth=0.5)
            for side in ax.spines.values():
                side.set_linewidth(0.6)
        part.suptitle(title, x=0.01, ha="left", fontsize=9, fontweight="bold")
        if part is parts[-2]:
            part.supxlabel(xlabel, fontsize=SMALL)
        part.supylabel(ylabel, fontsize=SMALL)
        blocks.append(axes[:panels])
    return figure, blocks, parts[-1]


def panel_columns(panels: int) -> int:
    """Panels in a row: as even as rows of up to six can be.

    Examples
    --------
    >>> [panel_columns(panels) for panels in (1, 6, 7, 11, 13)]
    [1, 6, 4, 6, 5]
    """
    rows = -(-panels // COLUMNS)
    return -(-panels // rows)


def wide_figure(height: float) -> tuple[Figure, Axes]:
    """One panel of a page's width."""
    figure = sized_figure(WIDTH, height)
    return figure, figure.subplots()


def check_suffix(path: Path) -> None:
    """Say which endings a picture may have, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidSetting(
            f"a picture's file ends in {', '.join(FORMATS)}; {path.name!r} is not supported. Give it such an ending."
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as its file's ending says: whole or not at all, and the same bytes for the same figure."""
    from matplotlib import rc_context

    check_suffix(path)
    as_plain_text(figure)
    suffix = path.suffix.lower()
    page = io.BytesIO()
    # Identifiers in SVG come from the salt, which is random otherwise; 42 keeps PDF text as text.
    with rc_context({"svg.hashsalt": "quanet", "pdf.fonttype": 42}):
        figure.savefig(page, format=suffix.lstrip("."), metadata=FORMATS[suffix])
    write_whole(path, page.getvalue())


def as_plain_text(figure: Figure) -> None:
    """Show all words as they are: a label such as $5 is no formula."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)


def sized_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("pictures need matplotlib. Install it: pip install 'quanet[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=150)
