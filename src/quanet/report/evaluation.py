"""The report of an evaluation: what `quanet evaluate` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.evaluation.cells import Cell, Outcome
from quanet.report.bagged import coverage_chart, estimates_chart, shift_chart
from quanet.report.charts import Rows
from quanet.report.numbers import between, level_text, many, percent, plain, points
from quanet.report.plots.rows import rows_figure
from quanet.report.plots.vector import make_chart
from quanet.report.shares import cautions_of, diagnosis_section, share_entry
from quanet.report.summary import Section, Summary
from quanet.report.tables import Column, Entry, Table
from quanet.report.versions import reproduction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.answers.evaluation import Evaluation
    from quanet.arrays import FloatArray
    from quanet.evaluation.results import Results
    from quanet.report.summary import Chart

METRICS = ("ae", "rae", "kld")
ALPHA = 0.05


def summarize_evaluation(evaluation: Evaluation, *, settings: Sequence[tuple[str, str]] = ()) -> Summary:
    """The report of a model on labelled bags: how far off it is, beside a plain count; whether intervals hold."""
    name, first = next(iter(evaluation.results.items()))
    errors = {method: float(results.error().mean()) for method, results in evaluation.results.items()}
    cells = cells_of(evaluation.results, evaluation.prior)
    level = evaluation.interval.level
    covered = float(evaluation.covered.mean())
    facts = [
        (f"bags of {sizes_of(first)}", f"{len(first):,}"),
        (f"mean absolute error of {name}", points(errors[name])),
        *(
            (f"of {other}, a plain count", points(errors[other]))
            for other in ("CC",)
            if other in errors and other != name
        ),
        (f"of the {level_text(level)} intervals hold the truth", percent(covered)),
    ]
    if evaluation.limit is not None:
        facts.append(("least error of an unbiased method", points(float(evaluation.limit.errors.mean()))))
    limit = None if evaluation.limit is None else float(evaluation.limit.errors.mean())
    sections = [
        Section(
            "Estimates against the truth",
            (f"Bags: {evaluation.protocol}.",),
            charts=(estimates_chart(cells, evaluation.results),),
        ),
        Section("Error by shift", charts=(shift_chart(cells, limit=limit),), tables=(_errors(evaluation.results),)),
        Section(
            "Do the intervals hold the truth?",
            (_coverage(covered, level),),
            charts=(coverage_chart(first, evaluation.covered, level),),
        ),
        Section("All labelled instances as one bag", charts=(_whole_chart(evaluation),)),
        diagnosis_section(evaluation.diagnosis),
    ]
    return Summary(
        title=f"Evaluation of {name}" + (f" on {evaluation.source}" if evaluation.source else ""),
        answer=_answer(name, errors, evaluation),
        cautions=cautions_of(evaluation.diagnosis),
        facts=tuple(facts),
        sections=tuple(sections),
        settings=reproduction((("protocol", evaluation.protocol), *settings), evaluation.model),
        data={
            "classes": first.classes,
            "errors": _mean_errors(evaluation.results),
            "coverage": covered,
            "level": level,
            "prior": evaluation.prior,
            "whole": {
                "truth": evaluation.whole_truth,
                "estimate": evaluation.whole.estimate,
                "lower": evaluation.whole.lower,
                "upper": evaluation.whole.upper,
            },
            "limit": None if limit is None else limit,
            "bags": bags_of(evaluation.results),
        },
    )


def cells_of(results: Mapping[str, Results], prior: FloatArray) -> dict[Cell, Outcome]:
    """Results as one run of an experiment, for the curves that experiments have."""
    return {Cell("", name, 0): Outcome(one, prior, 0.0) for name, one in results.items()}


def _answer(name: str, errors: Mapping[str, float], evaluation: Evaluation) -> str:
    own, counted = errors[name], errors.get("CC")
    beside = ""
    if counted is not None and name != "CC" and own > 0:
        factor = counted / own
        worse = f"{factor:.1f} times as much" if factor > 1.05 else "no more" if factor <= 1 else "hardly more"
        beside = f"; a plain count of predicted labels errs by {points(counted)}, {worse}"
    where = f" from {evaluation.source}" if evaluation.source else ""
    bags = len(evaluation.interval.estimate)
    return f"{name} errs by {in_full(own)} on average over {many(bags, 'bag')}{where}{beside}."


def _coverage(covered: float, level: float) -> str:
    told = f"{percent(covered)} of the {level_text(level)} intervals hold the truth"
    if covered < level - 0.03:
        return f"{told}: they promise more than they keep, so that something besides the shares has changed."
    return f"{told}{': they are wider than they need be' if covered > (1 + level) / 2 else ''}."


def sizes_of(results: Results) -> str:
    """The size of bags, or the least and the greatest."""
    low, high = int(results.sizes.min()), int(results.sizes.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _mean_errors(results: Mapping[str, Results]) -> dict[str, dict[str, float]]:
    return {metric: {name: float(one.error(metric).mean()) for name, one in results.items()} for metric in METRICS}


def bags_of(results: Mapping[str, Results]) -> dict[str, Any]:
    """Sizes, truths and estimates of all bags, as data."""
    first = next(iter(results.values()))
    found: dict[str, Any] = plain(
        {
            "sizes": first.sizes,
            "truth": first.truth,
            "estimate": {name: one.estimate for name, one in results.items()},
        }
    )
    return found


def _errors(results: Mapping[str, Results]) -> Table:
    """Mean and standard deviation over bags of every error."""
    rows = []
    for name, one in results.items():
        errors = [one.error(metric) for metric in METRICS]
        rows.append((name, tuple(Entry(f"{error.mean():.4f}", detail=f"± {error.std():.4f}") for error in errors)))
    least = [min(float(one.error(metric).mean()) for one in results.values()) for metric in METRICS]
    rows = [
        (
            name,
            tuple(
                Entry(entry.text, detail=entry.detail, best=entry.text == f"{low:.4f}")
                for entry, low in zip(entries, least, strict=True)
            ),
        )
        for name, entries in rows
    ]
    return Table(
        "Mean errors ± standard deviation over bags",
        tuple(Column(metric.upper()) for metric in METRICS),
        tuple(rows),
        ("AE: absolute error, as a share. RAE: relative to the true share. KLD: Kullback-Leibler divergence.",),
    )


def in_full(error: float) -> str:
    """Points, said in full where they come first."""
    return points(error).replace("points", "percentage points")


def _whole_chart(evaluation: Evaluation) -> Chart:
    whole, truth = evaluation.whole, evaluation.whole_truth
    order = np.argsort(-truth, kind="stable")
    inside = int(((whole.lower <= truth) & (truth <= whole.upper)).sum())
    rows = Rows(
        tuple(str(whole.classes[c]) for c in order),
        ("",),
        whole.estimate[order, None],
        whole.lower[order, None],
        whole.upper[order, None],
        f"estimate, {level_text(whole.level)} interval",
        asides=tuple(percent(whole.estimate[c]) for c in order),
        marks={"in training": evaluation.prior[order, None], "truth": truth[order, None]},
    )
    table = Table(
        f"Shares in %, with {level_text(whole.level)} intervals",
        (Column("estimate"), Column("truth"), Column("in training")),
        tuple(
            (
                str(whole.classes[c]),
                (
                    share_entry(whole.estimate[c], whole.lower[c], whole.upper[c]),
                    Entry(f"{100 * truth[c]:.1f}"),
                    Entry(f"{100 * evaluation.prior[c]:.1f}"),
                ),
            )
            for c in order
        ),
        corner="class",
    )
    c = order[0]
    told = (
        f"{whole.classes[c]}: estimated {percent(whole.estimate[c])} ({between(whole.lower[c], whole.upper[c])}), "
        f"true {percent(truth[c])}; {inside} of {many(len(truth), 'interval')} hold the truth."
    )
    return make_chart(
        "whole", told, f"A dot with its interval for each class. {told}", table, lambda w: rows_figure(rows, width=w)
    )
