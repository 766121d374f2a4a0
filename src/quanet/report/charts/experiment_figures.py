"""The figures of an experiment: one panel per method, one block per dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from quanet.errors import InvalidSetting
from quanet.evaluation.scores import rank, score
from quanet.evaluation.significance import alike
from quanet.report.charts.canvas import SMALL, TINY, wide_figure
from quanet.report.charts.panels import (
    BLUE,
    COLUMNS,
    GREY,
    ORANGE,
    PALE,
    SKY,
    bias_panel,
    error_panel,
    estimate_panel,
    panel_columns,
    panel_figure,
)
from quanet.report.charts.ranks import critical_difference, diagram_height
from quanet.report.experiment_curves import Boxes, ErrorCurve, bias_boxes, error_curves, estimate_curves
from quanet.report.paper_figures import dataset_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from quanet.evaluation.evaluate import Cell, CellOutcome
    from quanet.evaluation.limits import Limit
    from quanet.evaluation.scores import Scores
    from quanet.report.experiment_curves import Panels

KINDS = ("estimates", "shift", "bias", "error", "ranks")


def experiment_figure(
    cells: Mapping[Cell, CellOutcome],
    kind: str,
    *,
    metric: str = "ae",
    limits: Mapping[str, Limit] | None = None,
    blocks: str = "runs",
    aside: Sequence[str] = (),
    stand_ins: Mapping[str, str] | None = None,
) -> Figure:
    """A figure over the outcomes of an experiment.

    Parameters
    ----------
    cells : cells and their outcomes.
    kind : "estimates" (mean estimate by truth, the paper's Figure 2), "shift" (error by distance from training),
        "bias" (boxes of signed errors by prevalence), "error" (error by prevalence, with the Cramér-Rao bound if
        `limits` has it), "ranks" (critical-difference diagram).
    metric : error for "shift", "error" and "ranks".
    limits : limits of the absolute error by dataset; drawn for the metric "ae" only.
    blocks : "runs" or "datasets", see `rank`.
    aside : methods that are not ranked.
    stand_ins : datasets that stand in for others, and for which: "stand-in for KINDLE".
    """
    if kind == "ranks":
        return _ranks(score(cells, [metric], aside=aside), blocks)
    titles = {cell.dataset: dataset_title(cell.dataset, stand_ins or {}) for cell in cells}
    if kind == "estimates":
        return _estimates(estimate_curves(cells), titles)
    if kind == "shift":
        return _errors(error_curves(cells, metric=metric, against="shift"), titles, metric, {}, shift=True)
    if kind == "bias":
        return _bias(bias_boxes(cells), titles)
    if kind == "error":
        panels = error_curves(cells, metric=metric)
        bounds = (limits or {}) if metric == "ae" else {}
        return _errors(panels, titles, metric, bounds)
    raise InvalidSetting(f"Unknown figure {kind!r}. Choose from {', '.join(KINDS)}.")


def _estimates(panels: Panels, titles: Mapping[str, str]) -> Figure:
    labels = (f"true prevalence of {panels.label}", "estimate")
    figure, blocks, strip = _blocks(panels, titles, 1.02, *labels)
    for dataset, axes in blocks.items():
        for ax in axes:
            ax.set_aspect("equal")  # also of an empty panel
        for _, ax, curve, others in _drawn(panels, dataset, axes, "AE"):
            estimate_panel(ax, curve, others=others, prior=panels.priors[dataset])
    _key(
        strip,
        {
            "mean estimate": _line(BLUE),
            "± 1 standard deviation over bags": _patch(BLUE),
            "other methods": _line(PALE, 0.8),
            "training prevalence": _dot(SKY),
            "truth": _line(GREY, 0.8, dashed=True),
        },
    )
    return figure


def _errors(
    panels: Panels, titles: Mapping[str, str], metric: str, limits: Mapping[str, Limit], *, shift: bool = False
) -> Figure:
    xlabel = "distance of a bag's prevalence from training" if shift else f"true prevalence of {panels.label}"
    figure, blocks, strip = _blocks(panels, titles, 0.85, xlabel, f"{metric.upper()} (logarithmic)")
    for dataset, axes in blocks.items():
        curves = _of(panels, dataset)
        end = max(float(curve.x.max()) for curve in curves.values()) if shift else 1.0
        for method, ax, curve, others in _drawn(panels, dataset, axes, metric.upper()):
            limit = limits.get(dataset)
            if limit is not None and limit.methods and method not in limit.methods:
                limit = None  # another classifier's posteriors have another limit
            error_panel(ax, curve, others=others, limit=limit, end=end)
        lines = [curve.middle for curve in curves.values() if isinstance(curve, ErrorCurve)]
        least = min(line[line > 0].min(initial=1.0) for line in lines)
        if dataset in limits:
            least = min(least, float(limits[dataset].errors.min()))
        axes[0].set_ylim(max(least, 1e-6) / 2, 1.6 * max(line.max() for line in lines))
    key = {
        "mean over bags and runs": _line(BLUE),
        "middle half of bags": _patch(BLUE),
        "other methods": _line(PALE, 0.8),
    }
    if limits:
        key["Cramér-Rao bound of unbiased estimates"] = _line(ORANGE, 1.0, dashed=True)
    _key(strip, key)
    return figure


def _bias(panels: Panels, titles: Mapping[str, str]) -> Figure:
    labels = (f"true prevalence of {panels.label}", "estimate minus truth")
    figure, blocks, strip = _blocks(panels, titles, 0.85, *labels)
    for dataset, axes in blocks.items():
        for _, ax, boxes, _ in _drawn(panels, dataset, axes, "AE"):
            bias_panel(ax, boxes)
    _key(strip, {"median": _line("black"), "middle half of bags": _patch(BLUE), "90 % of bags": _line(BLUE, 0.8)})
    return figure


def _ranks(scores: Scores, blocks: str) -> Figure:
    [metric] = scores.metrics
    ranking = rank(scores, metric, blocks=blocks)
    ranks = ranking.friedman.ranks
    groups = alike(ranks, ranking.distance)
    figure, ax = wide_figure(diagram_height(len(ranks), len(groups)) + 0.3)
    critical_difference(ax, ranking.methods, ranks, distance=ranking.distance, groups=groups)
    unit = "runs of datasets" if blocks == "runs" else "datasets"
    figure.suptitle(
        f"Mean rank in {metric.upper()} over {ranking.friedman.blocks} {unit}; a bar joins methods that do not differ "
        f"significantly (Nemenyi, {ranking.alpha:g})",
        fontsize=8.5,
    )
    return figure


def _of(panels: Panels, dataset: str) -> dict[str, ErrorCurve | Boxes]:
    return {method: one for (name, method), one in panels.shown.items() if name == dataset}


def _blocks(
    panels: Panels, titles: Mapping[str, str], height: float, xlabel: str, ylabel: str
) -> tuple[Figure, dict[str, list[Axes]], SubFigure]:
    """A figure with a block of axes for every dataset, and a strip for its legend."""
    names = [titles[name] for name in panels.datasets]
    figure, blocks, strip = panel_figure(names, len(panels.methods), height=height, xlabel=xlabel, ylabel=ylabel)
    return figure, dict(zip(panels.datasets, blocks, strict=True)), strip


def _drawn(
    panels: Panels, dataset: str, axes: Sequence[Axes], metric: str
) -> Iterator[tuple[str, Axes, Any, list[ErrorCurve]]]:
    """Methods with results: name, axes, what to draw, and the curves of the other methods."""
    shown = _of(panels, dataset)
    for method, ax in zip(panels.methods, axes, strict=True):
        if _title(ax, panels, dataset, method, metric):
            others = [cast("ErrorCurve", curve) for name, curve in shown.items() if name != method]
            yield method, ax, shown[method], others


def _title(ax: Axes, panels: Panels, dataset: str, method: str, metric: str) -> bool:
    """Write the title of a panel with its mean error; return whether there is anything to draw."""
    room = 17 * COLUMNS / panel_columns(len(panels.methods))
    size = SMALL * min(1, room / len(method))  # a long name stays within its panel
    ax.set_title(method, loc="left", fontsize=size, fontweight="bold", pad=10)
    one = panels.shown.get((dataset, method))
    if one is None:
        ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", va="center", fontsize=TINY)
        return False
    figures = f"{one.error:.4f}" if one.error < 0.0995 else f"{one.error:.3f}"
    most = panels.runs(dataset)
    partly = f", {one.runs} of {most} runs" if one.runs < most else ""
    text = f"{metric} {figures.replace('0.', '.', 1)}{partly}"
    ax.annotate(text, (0, 1), (0, 2.5), xycoords="axes fraction", textcoords="offset points", fontsize=TINY, color=GREY)
    return True


def _key(strip: SubFigure, entries: Mapping[str, Artist]) -> None:
    strip.legend(
        entries.values(),
        entries.keys(),
        loc="center",
        ncols=len(entries),
        frameon=False,
        fontsize=SMALL,
        handlelength=1.6,
    )


def _line(colour: str, width: float = 1.4, *, dashed: bool = False) -> Artist:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, linewidth=width, linestyle=(0, (4, 1.5)) if dashed else "-")


def _dot(colour: str) -> Artist:
    from matplotlib.lines import Line2D

    return Line2D([], [], marker="o", markersize=5, linestyle="none", color=colour, alpha=0.6)


def _patch(colour: str) -> Artist:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, alpha=0.3)
