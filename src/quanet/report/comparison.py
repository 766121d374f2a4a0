"""The report of a comparison: what `quanet compare` found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from quanet.report.bagged import estimates_chart, methods_chart, shift_chart
from quanet.report.evaluation import ALPHA, bags_of, cells_of, in_full, sizes_of
from quanet.report.numbers import listing, many, points
from quanet.report.summary import Section, Summary
from quanet.report.tables import Column, Entry, Table
from quanet.report.versions import reproduction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.answers.evaluation import Comparison


def summarize_comparison(comparison: Comparison, *, settings: Sequence[tuple[str, str]] = ()) -> Summary:
    """The report of methods on the same bags: which is best, and which others might be as good."""
    results = comparison.results
    cells = cells_of(results, comparison.prior)
    names, first = list(results), next(iter(results.values()))
    metric, p_values = next(iter(comparison.p_values.items()))
    alike = [name for name, p in zip(names[1:], p_values[1:], strict=True) if p >= ALPHA]
    mean = {name: float(one.error().mean()) for name, one in results.items()}
    limit = None if comparison.limit is None else float(comparison.limit.errors.mean())
    facts = [
        ("methods" + (f"; {len(comparison.failed)} could not run" if comparison.failed else ""), f"{len(names):,}"),
        (f"bags of {sizes_of(first)}", f"{len(first):,}"),
        (f"mean absolute error of {names[0]}", points(mean[names[0]])),
        *((f"of {name}, a plain count", points(mean[name])) for name in ("CC",) if name in mean and name != names[0]),
    ]
    facts += [] if limit is None else [("least error of an unbiased method", points(limit))]
    verdict = (
        f"No significant difference from {names[0]}: {listing(alike)} (paired test of {metric.upper()}, p ≥ {ALPHA})."
        if alike
        else f"All others are significantly worse than {names[0]} (paired test of {metric.upper()}, p < {ALPHA})."
    )
    sections = [
        Section(
            "Methods, best first",
            (verdict, f"Bags: {comparison.protocol}.", *_failed(comparison.failed)),
            charts=(methods_chart(results, p_values >= ALPHA, _ranking(comparison)),),
        ),
        Section("Error by shift", charts=(shift_chart(cells, limit=limit),)),
        Section("Estimates against the truth", charts=(estimates_chart(cells, results),)),
    ]
    return Summary(
        title=f"Comparison of {many(len(names), 'method')} on {comparison.test}",
        answer=_best(names, mean, alike),
        facts=tuple(facts),
        sections=tuple(sections),
        settings=reproduction(
            (
                ("training file", comparison.train),
                ("test file", comparison.test),
                ("protocol", comparison.protocol),
                *settings,
            )
        ),
        data={
            "classes": comparison.classes,
            "errors": {metric: dict(zip(names, values, strict=True)) for metric, values in comparison.errors.items()},
            "p_values": {metric: dict(zip(names, p, strict=True)) for metric, p in comparison.p_values.items()},
            "seconds": dict(zip(names, comparison.seconds, strict=True)),
            "failed": comparison.failed,
            "prior": comparison.prior,
            "counts": comparison.counts,
            "limit": limit,
            "bags": bags_of(results),
        },
    )


def _best(names: list[str], mean: Mapping[str, float], alike: list[str]) -> str:
    best = names[0]
    near = f"; {listing(alike, most=3)} may be as good" if alike else ""
    if "CC" in mean and best != "CC":
        return (
            f"{best} is the best of {many(len(names), 'method')}: it errs by {in_full(mean[best])} on average, "
            f"a plain count by {points(mean['CC'])}{near}."
        )
    return f"{best} is the best of {many(len(names), 'method')}: it errs by {in_full(mean[best])} on average{near}."


def _ranking(comparison: Comparison) -> Table:
    columns = [
        *(Column(part, metric.upper()) for metric in comparison.errors for part in ("mean", "p")),
        Column("seconds"),
    ]
    rows = []
    for i, name in enumerate(comparison.results):
        entries = []
        for metric, errors in comparison.errors.items():
            p = float(comparison.p_values[metric][i]) if metric in comparison.p_values else math.nan
            best = bool(errors[i] == np.nanmin(errors))
            entries += [Entry(f"{errors[i]:.4f}", best=best), Entry(*(() if np.isnan(p) else (_probability(p),)))]
        rows.append((name, (*entries, Entry(f"{comparison.seconds[i]:.2f}"))))
    return Table(
        "Mean errors, best first",
        tuple(columns),
        tuple(rows),
        ("p: paired test against the best, adjusted for the number of methods. Seconds: to fit and to estimate.",),
    )


def _probability(p: float) -> str:
    return "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def _failed(failed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name} could not run on these data: {reason.rstrip('.')}." for name, reason in failed.items())
