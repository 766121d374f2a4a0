"""The report of a comparison: what `quanet compare` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.bag_charts import bag_sizes, bags_data, estimates_chart, mean_error, methods_chart, shift_chart
from quanet.report.coverage_section import ALPHA
from quanet.report.phrases import listing, many, points, probability, reproduction
from quanet.report.summary import Column, Section, Summary, Table, TableEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.arrays import FloatArray
    from quanet.workflows.compare import Comparison


def summarize_comparison(
    comparison: Comparison, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None
) -> Summary:
    """Methods on the same bags, best first, and which of them do not differ significantly from the best.

    Parameters
    ----------
    comparison : what `quanet compare` computes (`quanet.workflows.compare.rank_methods`).
    settings : names and values that reproduce it, shown at the end.
    focus : the class that charts show first; None for the second of two, or the most common one.

    Returns
    -------
    Summary
        for `write_report`; plain data, such as `answer`, the most important sentence.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> from quanet.workflows.compare import rank_methods, run_methods, share_classifier
    >>> from quanet.workflows.drawing import Drawing, draw_bags
    >>> sets = [Gaussians().draw([0.5, 0.5], 300, rng=seed) for seed in (0, 1)]
    >>> shared = share_classifier(*sets[0], *sets[1])
    >>> drawn = draw_bags(Drawing(repeats=2), shared.test_labels, shared.classes, rng=0)
    >>> outcomes = list(run_methods(["CC", "PACC"], shared, drawn.bags))
    >>> summarize_comparison(rank_methods(outcomes, shared, drawn)).answer
    'PACC has the smallest AE of 2 methods (0.0710): it is off by 7.1 percentage points on average, ...'
    """
    results = comparison.results
    names, first = list(results), next(iter(results.values()))
    metric, p_values = next(iter(comparison.p_values.items()))
    alike = [name for name, p in zip(names[1:], p_values[1:], strict=True) if not p < ALPHA]
    mean = {name: mean_error(one) for name, one in results.items()}
    limit = None if comparison.limit is None else float(comparison.limit.errors.mean())
    failed = f"; {len(comparison.failed)} could not run" if comparison.failed else ""
    facts = [
        (f"methods{failed}", f"{len(names):,}"),
        (f"bags of {bag_sizes(first)}", f"{len(first):,}"),
        (f"mean absolute error of {names[0]}", points(mean[names[0]])),
        *([("of CC, a plain count", points(mean["CC"]))] if "CC" in mean and names[0] != "CC" else []),
        *([] if limit is None else [("smallest possible error of an unbiased method", points(limit))]),
    ]
    verdict = _verdict(names, metric, p_values, alike)
    ranking = methods_chart(results, ~(p_values < ALPHA), _ranking_table(comparison))
    shift = shift_chart(results, comparison.prior, limit=limit)
    estimates = estimates_chart(results, comparison.prior, classes=comparison.classes, focus=focus)
    sections = [
        Section("Methods, best first", (verdict, f"Bags: {comparison.protocol}."), charts=(ranking,)),
        Section("Error by shift", charts=(shift,), detail=True),
        Section("Estimates and true shares", charts=(estimates,), detail=True),
    ]
    if comparison.failed:
        sections.insert(1, Section("Methods that could not run on these data", _failed(comparison.failed)))
    files = (("training file", comparison.train), ("test file", comparison.test), ("protocol", comparison.protocol))
    return Summary(
        title=f"Comparison of {many(len(names), 'method')} on {comparison.test}",
        answer=_answer(names, mean, alike, metric, comparison.errors[metric][0]),
        facts=tuple(facts),
        sections=tuple(sections),
        settings=reproduction((*files, *settings)),
        data=lambda: {
            "train": comparison.train,
            "test": comparison.test,
            "protocol": comparison.protocol,
            "metric": metric,
            "classes": comparison.classes,
            "prior": comparison.prior,
            "counts": comparison.counts,
            "methods": _rows(comparison),
            "not_run": comparison.failed,
            "limit": limit,
        },
        figures=lambda: {
            "classes": comparison.classes,
            "errors": {name: dict(zip(names, values, strict=True)) for name, values in comparison.errors.items()},
            "p_values": {name: dict(zip(names, p, strict=True)) for name, p in comparison.p_values.items()},
            "seconds": dict(zip(names, comparison.seconds, strict=True)),
            "failed": comparison.failed,
            "prior": comparison.prior,
            "counts": comparison.counts,
            "limit": limit,
            "bags": bags_data(results),
        },
        rows=lambda: _rows(comparison),
    )


def _verdict(names: list[str], metric: str, p_values: FloatArray, alike: list[str]) -> str:
    if len(names) == 1:
        return "Only one method ran, so there is no comparison."
    if np.isnan(p_values[1:]).all():
        return "Differences are not tested: a paired test needs at least two bags."
    test = f"paired t-test of {metric.upper()}"
    if alike:
        return f"No significant difference from {names[0]}: {listing(alike)} ({test}, p ≥ {ALPHA})."
    others = "All others are" if len(names) > 2 else f"{names[1]} is"
    return f"{others} significantly worse than {names[0]} ({test}, p < {ALPHA})."


def _answer(names: list[str], mean: Mapping[str, float], alike: list[str], metric: str, error: float) -> str:
    best = names[0]
    near = f"; {listing(alike, most=3)} may be as good" if alike else ""
    own = f"{best} has the smallest {metric.upper()} of {many(len(names), 'method')} ({error:.4f}): it is off by "
    counted = f", a plain count by {points(mean['CC'])}" if "CC" in mean and best != "CC" else ""
    return f"{own}{points(mean[best], full=True)} on average{counted}{near}."


def _ranking_table(comparison: Comparison) -> Table:
    """Errors of every method; a narrow terminal leaves out the p-values of all metrics but the first."""
    ranked_by = next(iter(comparison.errors))
    columns = [
        Column(part, metric.upper(), spare=part == "p" and metric != ranked_by)
        for metric in comparison.errors
        for part in ("mean", "p")
    ]
    rows = []
    for i, name in enumerate(comparison.results):
        entries = []
        for metric, errors in comparison.errors.items():
            p = comparison.p_values[metric][i] if metric in comparison.p_values else np.nan
            entries += [
                TableEntry(f"{errors[i]:.4f}", best=bool(errors[i] == np.nanmin(errors))),
                TableEntry() if np.isnan(p) else TableEntry(probability(p)),
            ]
        rows.append((name, (*entries, TableEntry(f"{comparison.seconds[i]:.2f}"))))
    return Table(
        "Mean errors, best first",
        (*columns, Column("seconds")),
        tuple(rows),
        (
            "p: two-tailed paired t-test over bags against the best method, Holm's correction. Seconds: fitting and "
            "estimating, without the shared classifier.",
        ),
    )


def _failed(failed: Mapping[str, str]) -> tuple[str, ...]:
    """Methods that could not run, by reason."""
    reasons: dict[str, list[str]] = {}
    for method, reason in failed.items():
        reasons.setdefault(reason, []).append(method)
    return tuple(f"{', '.join(methods)}: {reason.rstrip('.')}." for reason, methods in reasons.items())


def _rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One row for every method."""
    rows = []
    for i, (name, results) in enumerate(comparison.results.items()):
        row: dict[str, Any] = {"rank": i + 1, "method": name}
        for metric, errors in comparison.errors.items():
            deviation = results.error(metric).std()
            row |= {metric: errors[i], f"{metric}_sd": deviation, f"{metric}_p": comparison.p_values[metric][i]}
        rows.append(row | {"bags": len(results), "seconds": comparison.seconds[i]})
    return rows
