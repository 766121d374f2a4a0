"""The report of an evaluation: what `quanet evaluate` found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.bag_charts import bag_sizes, bags_data, coverage_chart, estimates_chart, mean_error, shift_chart
from quanet.report.chart_data import IntervalRows
from quanet.report.charts.interval_rows import rows_figure
from quanet.report.coverage_section import coverage_sentence, drift_data, drift_sections
from quanet.report.phrases import (
    between,
    class_name,
    diagnosis_section,
    focus_first,
    level_text,
    many,
    percent,
    points,
    reproduction,
    share_entry,
)
from quanet.report.summary import Chart, Column, Section, Summary, Table, TableEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quanet.evaluation.evaluate import Results
    from quanet.workflows.evaluate import Evaluation

METRICS = ("ae", "rae", "kld")
WORTH_COMPARING = 0.00005  # of a share; smaller errors are printed as less than 0.01 points


def summarize_evaluation(
    evaluation: Evaluation, *, settings: Sequence[tuple[str, str]] = (), focus: Any = None
) -> Summary:
    """Errors of a model on labelled bags, next to a plain count, and the coverage of its intervals.

    Parameters
    ----------
    evaluation : what `quanet evaluate` computes (`quanet.workflows.evaluate.evaluate_model`).
    settings : names and values that reproduce it, shown at the end.
    focus : the class that charts and tables show first; None for the second of two, or the most common one.

    Returns
    -------
    Summary
        for `write_report`; plain data, such as `answer`, the most important sentence.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> from quanet.corpus.grouped_inputs import GroupedInputs
    >>> from quanet.workflows.drawing import Drawing, draw_bags
    >>> from quanet.workflows.evaluate import evaluate_model
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 300, rng=0))
    >>> X, y = Gaussians().draw([0.3, 0.7], 300, rng=1)
    >>> drawn = draw_bags(Drawing(repeats=2), y, quantifier.classes_, rng=2)
    >>> reading = GroupedInputs(quantifier.read(X), np.zeros(300, dtype=np.int32), [()], {}, None)
    >>> summarize_evaluation(evaluate_model(quantifier, reading, y, drawn)).answer
    'EMQ is off by 5.4 percentage points on average over 42 bags; a plain count of predicted labels is off by 9.9 ...'
    """
    name, first = next(iter(evaluation.results.items()))
    errors = {method: mean_error(results) for method, results in evaluation.results.items()}
    level, limit = evaluation.interval.level, _limit(evaluation)
    facts = [
        (f"bags of {bag_sizes(first)}", f"{len(first):,}"),
        (f"mean absolute error of {name}", points(errors[name])),
        *([("of CC, a plain count", points(errors["CC"]))] if "CC" in errors and name != "CC" else []),
        (f"of the {level_text(level)} intervals contain the truth", percent(float(evaluation.covered.mean()))),
        *([] if limit is None else [("smallest possible error of an unbiased method", points(limit))]),
    ]
    estimates = estimates_chart(evaluation.results, evaluation.prior, focus=focus)
    shift = shift_chart(evaluation.results, evaluation.prior, limit=limit)
    coverage = coverage_chart(first, evaluation.covered, level)
    sections = (
        Section("Estimates and true shares", charts=(estimates,), detail=True),
        Section("Errors", (f"Bags: {evaluation.protocol}.",), tables=(_error_table(evaluation.results),)),
        Section("Error by shift", charts=(shift,), detail=True),
        Section(
            "Do the intervals contain the truth?",
            (coverage_sentence(evaluation.covered, level, with_drift=evaluation.interval.drift is not None),),
            charts=(coverage,),
            detail=True,
        ),
        *drift_sections(evaluation),
        Section("All labelled instances as one bag", charts=(_whole_chart(evaluation, focus),)),
        diagnosis_section(evaluation.diagnosis),
    )
    return Summary(
        title=f"Evaluation of {name}" + (f" on {evaluation.source}" if evaluation.source else ""),
        answer=_answer(name, errors, evaluation),
        cautions=tuple(finding for finding in evaluation.diagnosis if finding.severity == "alarm"),
        facts=tuple(facts),
        sections=sections,
        settings=reproduction((("protocol", evaluation.protocol), *settings), evaluation.model),
        data=lambda: _data(evaluation),
        figures=lambda: _figures(evaluation),
        rows=lambda: _rows(evaluation),
    )


def bag_rows(evaluation: Evaluation) -> Any:
    """Truth, estimate and interval of the model for every bag and class, as a data frame; and what drift may cost."""
    table = next(iter(evaluation.results.values())).frame().rename(columns={"label": "bag"})
    table["lower"], table["upper"] = evaluation.interval.lower.ravel(), evaluation.interval.upper.ravel()
    drift = evaluation.interval.drift
    if drift is not None:
        table["drift"], table["state"] = drift.cost.ravel(), np.repeat(drift.state, drift.cost.shape[1])
    return table


def _limit(evaluation: Evaluation) -> float | None:
    return None if evaluation.limit is None else float(evaluation.limit.errors.mean())


def _answer(name: str, errors: Mapping[str, float], evaluation: Evaluation) -> str:
    own, counted = errors[name], errors.get("CC")
    compared = ""
    if counted is not None and name != "CC":
        compared = f"; a plain count of predicted labels is off by {points(counted)}{_times(counted, own)}"
    source = f" from {evaluation.source}" if evaluation.source else ""
    bags = many(len(evaluation.interval.estimate), "bag")
    return f"{name} is off by {points(own, full=True)} on average over {bags}{source}{compared}."


def _times(counted: float, own: float) -> str:
    """How many times one error is the other; empty if the smaller one is too small to be compared."""
    if min(counted, own) < WORTH_COMPARING:
        return ""
    factor = counted / own
    if factor > 1.05:
        return f", {factor:,.{1 if factor < 10 else 0}f} times as much"
    return ", hardly more" if factor > 1 else ", no more" if factor == 1 else ", less"


def _error_table(results: Mapping[str, Results]) -> Table:
    """Mean and standard deviation over bags of every error."""
    errors = {metric: np.array([one.error(metric) for one in results.values()]) for metric in METRICS}
    smallest = {metric: f"{values.mean(axis=1).min():.4f}" for metric, values in errors.items()}
    rows = []
    for i, name in enumerate(results):
        means = {metric: f"{values[i].mean():.4f}" for metric, values in errors.items()}
        entries = tuple(
            TableEntry(text, detail=f"± {errors[metric][i].std():.4f}", best=text == smallest[metric])
            for metric, text in means.items()
        )
        rows.append((name, entries))
    return Table(
        "Mean errors ± standard deviation over bags",
        tuple(Column(metric.upper()) for metric in METRICS),
        tuple(rows),
        ("AE: absolute error, as a share. RAE: relative to the true share. KLD: Kullback-Leibler divergence.",),
    )


def _whole_chart(evaluation: Evaluation, focus: Any) -> Chart:
    whole, truth = evaluation.whole, evaluation.whole_truth
    order = focus_first(np.argsort(-truth, kind="stable"), whole.classes, focus)
    inside = int(((whole.lower <= truth) & (truth <= whole.upper)).sum())
    rows = IntervalRows(
        tuple(str(whole.classes[c]) for c in order),
        ("",),
        whole.estimate[order, None],
        whole.lower[order, None],
        whole.upper[order, None],
        f"estimate, {level_text(whole.level)} interval",
        asides=tuple(percent(whole.estimate[c]) for c in order),
        marks={"training": evaluation.prior[order, None], "truth": truth[order, None]},
    )
    width, covered = evaluation.interval.width.mean(axis=0), evaluation.covered.mean(axis=0)
    others = (truth, evaluation.prior, covered, width)
    table = Table(
        f"Shares in %, with {level_text(whole.level)} intervals",
        (Column("estimate"), Column("truth"), Column("training"), Column("covered"), Column("width")),
        tuple(
            (
                str(whole.classes[c]),
                (
                    share_entry(whole.estimate[c], whole.lower[c], whole.upper[c]),
                    *(TableEntry(f"{100 * values[c]:.1f}") for values in others),
                ),
            )
            for c in order
        ),
        ("Covered: bags whose interval contains the truth. Width: mean width of the bags' intervals, in points.",),
        corner="class",
    )
    c = order[0]
    sentence = (
        f"{class_name(whole.classes[c])}: estimate {percent(whole.estimate[c])} "
        f"({between(whole.lower[c], whole.upper[c])}), "
        f"truth {percent(truth[c])}; {inside} of {many(len(truth), 'interval')} contain the truth."
    )
    draw = lambda width: rows_figure(rows, width=width)  # noqa: E731
    return Chart("whole", sentence, f"A dot with its interval for each class. {sentence}", table, draw)


def _rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """One row for every method."""
    rows: list[dict[str, Any]] = []
    for number, (name, result) in enumerate(evaluation.results.items()):
        row: dict[str, Any] = {"method": name, "bags": len(result)}
        for metric in METRICS:
            errors = result.error(metric)
            row |= {metric: errors.mean(), f"{metric}_sd": errors.std()}
        rows.append(row | {"coverage": evaluation.covered.mean() if number == 0 else float("nan")})
    return rows


def _data(evaluation: Evaluation) -> dict[str, Any]:
    whole, width, covered = evaluation.whole, evaluation.interval.width, evaluation.covered
    return {
        "source": evaluation.source,
        "model": evaluation.model,
        "protocol": evaluation.protocol,
        "level": evaluation.interval.level,
        "interval": evaluation.interval.method,
        "methods": _rows(evaluation),
        "limit": _limit(evaluation),
        "drift": drift_data(evaluation),
        "whole": {
            str(name): {
                "training": evaluation.prior[c],
                "truth": evaluation.whole_truth[c],
                "estimate": whole.estimate[c],
                "lower": whole.lower[c],
                "upper": whole.upper[c],
                "covered": covered[:, c].mean(),
                "width": width[:, c].mean(),
            }
            for c, name in enumerate(whole.classes.tolist())
        },
        "diagnosis": [
            {"name": one.name, "severity": one.severity, "sentence": one.sentence, "numbers": dict(one.numbers)}
            for one in evaluation.diagnosis
        ],
    }


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    whole, results = evaluation.whole, evaluation.results
    return {
        "classes": whole.classes,
        "errors": {metric: {name: one.error(metric).mean() for name, one in results.items()} for metric in METRICS},
        "coverage": evaluation.covered.mean(),
        "level": evaluation.interval.level,
        "prior": evaluation.prior,
        "whole": {
            "truth": evaluation.whole_truth,
            "estimate": whole.estimate,
            "lower": whole.lower,
            "upper": whole.upper,
        },
        "limit": _limit(evaluation),
        "bags": bags_data(results),
    }
