"""Expected accuracy in reports: a section with F1 and the confusion matrix, and its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.report.phrases import between, focus_first, level_text, percent, share_entry
from quanet.report.summary import Column, Section, Table, TableEntry

if TYPE_CHECKING:
    from quanet.evaluation.accuracy import ExpectedAccuracy, Measure

MAX_CLASSES = 12  # in the confusion matrix
ASSUMPTION = (
    "No labels of these instances were used. Held-out training instances show how often each class is mistaken for "
    "another, and posteriors show how difficult these instances are. This assumes that the meaning of the labels has "
    "not changed, and that instances as difficult as these are classified as well as in training."
)


def accuracy_sections(
    found: ExpectedAccuracy | None, *, focus: Any = None, detail: bool = False
) -> tuple[Section, ...]:
    """The section about expected accuracy; none if it is unknown.

    Parameters
    ----------
    found : the answer of `predict_accuracy`, or None.
    focus : the class shown first.
    detail : whether a terminal shows it only with --verbose.
    """
    if found is None:
        return ()
    order = focus_first(np.arange(len(found.classes)), found.classes, focus)
    confusion = (_confusion_table(found, order),) if len(order) <= MAX_CLASSES else ()
    sentences = (accuracy_sentence(found), ASSUMPTION)
    tables = (_f1_table(found, order), *confusion)
    return (Section("How accurate are single labels?", sentences, tables=tables, detail=detail),)


def accuracy_sentence(found: ExpectedAccuracy) -> str:
    """Accuracy and macro F1 in a sentence."""
    one, macro = found.accuracy, found.macro_f1
    return (
        f"Expected accuracy of the predicted labels: {percent(float(one.estimate))} "
        f"({between(float(one.lower), float(one.upper))}); macro F1: {percent(float(macro.estimate))} "
        f"({between(float(macro.lower), float(macro.upper))})."
    )


def _f1_table(found: ExpectedAccuracy, order: Any) -> Table:
    rows = [("accuracy", _entry(found.accuracy)), ("macro F1", _entry(found.macro_f1))]
    rows += [(f"F1 of {found.classes[c]}", _entry(found.f1, c)) for c in order]
    title = f"Expected accuracy of predicted labels in %, with {level_text(found.level)} intervals"
    return Table(title, (Column("expected"),), tuple((name, (entry,)) for name, entry in rows), corner="measure")


def _confusion_table(found: ExpectedAccuracy, order: Any) -> Table:
    shares = found.confusion
    rows = [
        (
            str(found.classes[c]),
            (*(_entry(shares, (c, j)) for j in order), TableEntry(f"{100 * shares.estimate[c].sum():.1f}")),
        )
        for c in order
    ]
    totals = tuple(TableEntry(f"{100 * shares.estimate[:, j].sum():.1f}") for j in order)
    rows.append(("predicted in total", (*totals, TableEntry("100.0"))))
    return Table(
        f"Expected confusion matrix in % of all instances, with {level_text(found.level)} intervals",
        (*(Column(f"predicted {found.classes[j]}") for j in order), Column("in total")),
        tuple(rows),
        corner="true class",
    )


def _entry(measure: Measure, at: Any = ()) -> TableEntry:
    ends = (float(getattr(measure, part)[at]) for part in ("estimate", "lower", "upper"))
    estimate, lower, upper = ends
    return TableEntry(f"{100 * estimate:.1f}") if np.isnan(lower) else share_entry(estimate, lower, upper)


def accuracy_data(found: ExpectedAccuracy | None) -> dict[str, Any]:
    """Expected accuracy as JSON has it, under one key; empty if it is unknown."""
    if found is None:
        return {}
    names = [str(name) for name in found.classes.tolist()]
    f1 = {name: _plain(found.f1, c) for c, name in enumerate(names)}
    confusion = {
        true: {predicted: _plain(found.confusion, (c, j)) for j, predicted in enumerate(names)}
        for c, true in enumerate(names)
    }
    measures = {"accuracy": _plain(found.accuracy), "macro_f1": _plain(found.macro_f1), "f1": f1}
    return {"expected_accuracy": measures | {"confusion": confusion, "level": found.level, "assumption": ASSUMPTION}}


def _plain(measure: Measure, at: Any = ()) -> dict[str, float | None]:
    values = {part: float(getattr(measure, part)[at]) for part in ("estimate", "lower", "upper")}
    return {part: None if np.isnan(value) else round(value, 6) for part, value in values.items()}
