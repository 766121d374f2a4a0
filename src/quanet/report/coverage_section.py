"""Part of the report of an evaluation: the coverage of intervals, with and without drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quanet.evaluation.significance import can_be_too_wide, coverage_test
from quanet.report.phrases import level_text, many, p_value, percent, points
from quanet.report.summary import Column, Section, Table, TableEntry

if TYPE_CHECKING:
    from quanet.arrays import FloatArray
    from quanet.workflows.evaluate import Evaluation

ALPHA = 0.05  # significance level


def coverage_sentence(covered: FloatArray, level: float, *, with_drift: bool = False) -> str:
    """Coverage of intervals (b, k), and whether it differs significantly from their level.

    Intervals with drift allow for a bias, which bags of one file share: they contain the truth in most bags or in few.
    """
    bags = len(covered)
    sentence = f"{percent(float(covered.mean()))} of the {level_text(level)} intervals contain the truth"
    p, direction = coverage_test(covered, level)
    test = f"exact binomial test over {many(bags, 'bag')}, {p_value(p)}"
    if p < ALPHA and direction < 0:
        return f"{sentence}, fewer than expected ({test}): the classes may have changed since training."
    if p < ALPHA and with_drift:
        return f"{sentence}. All bags share the bias of this file, so that this may exceed {level_text(level)} by far."
    if p < ALPHA:
        return f"{sentence}, more than expected ({test}): the intervals are wider than necessary."
    few = "" if can_be_too_wide(bags, level, ALPHA) else " So few bags cannot show whether intervals are too wide."
    return f"{sentence}. This does not differ significantly from {level_text(level)} ({test}).{few}"


def drift_sections(evaluation: Evaluation) -> tuple[Section, ...]:
    """Intervals with and without drift, and the states of the bags; none if drift is not included."""
    found = drift_data(evaluation)
    if found is None:
        return ()
    if found["states"]["unknown"] == 1:
        return (Section("Drift", (f"Unknown, so that intervals do not include it: {found['source']}.",)),)
    states = ", ".join(f"{percent(share, digits=0)} {state}" for state, share in found["states"].items() if share)
    table = Table(
        f"{level_text(evaluation.interval.level)} intervals with and without drift",
        (Column("contain the truth"), Column("mean width")),
        tuple(
            (name, (TableEntry(percent(found[key]["coverage"])), TableEntry(points(found[key]["width"]))))
            for name, key in (("with drift", "with"), ("without drift", "without"))
        ),
        (
            "Trusted: drift that can be seen adds at most half of the sampling error. Few rows: the same, but chance "
            "may hide drift. Widened: more. Refused: a few labelled rows would be more accurate than the estimate.",
        ),
        corner="intervals",
    )
    return (
        Section(
            "Drift",
            (f"States of the bags: {states}. The cost of drift is estimated {found['source']}.",),
            tables=(table,),
        ),
    )


def drift_data(evaluation: Evaluation) -> dict[str, Any] | None:
    """Coverage and width of intervals with and without drift, and the states of the bags; None without drift."""
    interval, drift = evaluation.interval, evaluation.interval.drift
    if drift is None:
        return None
    return {
        "with": {"coverage": evaluation.covered.mean(), "width": interval.width.mean()},
        "without": {"coverage": evaluation.plain_covered.mean(), "width": interval.without_drift.width.mean()},
        "states": evaluation.states,
        "source": drift.source,
    }
