"""Pictures of the gallery: one style for all, and figures that quanet draws outside of pyplot."""

from typing import Any
from weakref import WeakSet

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import matplotlib_scraper

from quanet.report.palette import LIGHT, SERIES

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": LIGHT["muted"],
    "axes.grid": True,
    "axes.labelcolor": LIGHT["ink"],
    "axes.prop_cycle": cycler(color=[LIGHT[name] for name in SERIES]),
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "figure.figsize": (5.6, 3.7),
    "font.size": 10.5,
    "grid.color": LIGHT["rule"],
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 130,
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["muted"],
    "xtick.major.size": 0,
    "ytick.color": LIGHT["muted"],
    "ytick.major.size": 0,
}
_shown: WeakSet[Figure] = WeakSet()


def reset_style(gallery_conf: dict[str, Any], fname: str) -> None:
    """Set the style before every script; sphinx-gallery has just restored matplotlib's."""
    plt.rcParams.update(STYLE)


def scrape_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **options: Any) -> str:
    """Save the figures of a block, also those that are a variable but unknown to pyplot, such as `Interval.plot()`."""
    for figure in block_vars["example_globals"].values():
        if isinstance(figure, Figure) and figure not in _shown:
            plt.figure(figure)
            _shown.add(figure)
    return matplotlib_scraper(block, block_vars, gallery_conf, **options)
