"""The report of `quanet demo`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from quanet.report.evaluate import summarize_evaluation
from quanet.report.phrases import points
from quanet.report.predict import trend_section
from quanet.report.summary import Column, Section, Summary, Table, TableEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.evaluation.evaluate import Results
    from quanet.workflows.demo import Demonstration

METRICS = ("ae", "rae", "kld")


def summarize_demo(demonstration: Demonstration, *, settings: Sequence[tuple[str, str]] = ()) -> Summary:
    """The report of the evaluation, with two made-up years and single bags before it."""
    summary = summarize_evaluation(demonstration.evaluation, settings=settings)
    tables = (_single_bags(demonstration.results), _mean_errors(demonstration.results))
    sections = (_two_years(demonstration), Section("All methods", tables=tables))
    return replace(summary, sections=(*sections, *summary.sections))


def _two_years(demonstration: Demonstration) -> Section:
    shares, truth = demonstration.months, demonstration.truth[:, -1]
    inside = (shares.interval.lower[:, -1] <= truth) & (truth <= shares.interval.upper[:, -1])
    error, counted = (np.abs(part[:, -1] - truth).mean() for part in (shares.interval.estimate, shares.counted))
    paragraphs = (
        f"The reviews are real, the months are not: each has {shares.sizes[0]:,} held-out reviews, drawn so that the "
        f"share of {shares.classes[-1]} ones rises and falls. So the truth is known; the model has not seen it.",
        f"{int(inside.sum())} of {len(inside)} intervals contain the truth. The mean error of the estimate is "
        f"{points(error)}, that of a plain count of predicted labels {points(counted)}.",
    )
    section = trend_section(shares, truth=demonstration.truth)
    return replace(section, title="Two years of reviews", paragraphs=paragraphs, detail=True)


def _single_bags(results: Mapping[str, Results]) -> Table:
    """Estimates and errors of every method, for one bag of every other true share."""
    truth = next(iter(results.values())).truth[:, -1].tolist()
    shown = {name: result for name, result in results.items() if name != "TrainPrevalence"}
    rows = []
    for share in sorted(set(truth))[::2]:
        values = [100 * result.estimate[truth.index(share), -1] for result in shown.values()]
        entries = tuple(TableEntry(f"{value:.1f}", detail=f"{value - 100 * share:+.1f}") for value in values)
        rows.append((f"{100 * share:.1f}", entries))
    constant = 100 * results["TrainPrevalence"].estimate[0, -1]
    return Table(
        "Positive reviews in single bags in %: estimates and errors",
        tuple(Column(name) for name in shown),
        tuple(rows),
        (f"TrainPrevalence always estimates {constant:.1f} %.",),
        "truth",
    )


def _mean_errors(results: Mapping[str, Results]) -> Table:
    means = {name: [float(result.error(metric).mean()) for metric in METRICS] for name, result in results.items()}
    best = [min(column) for column in zip(*means.values(), strict=True)]
    first = next(iter(results.values()))
    return Table(
        f"Mean error over {len(first)} bags of {first.sizes[0]}",
        tuple(Column(metric.upper()) for metric in METRICS),
        tuple(
            (name, tuple(TableEntry(f"{v:.4f}", best=v == low) for v, low in zip(row, best, strict=True)))
            for name, row in means.items()
        ),
    )
