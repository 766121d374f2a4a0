"""Plan which rows of files to label, and what interval to expect: the answer of `quanet label plan`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.base import Quantifier
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.data.instances import InputColumns
from quanet.data.periods import Key
from quanet.errors import InvalidBags
from quanet.labels.label_plans import LabelPlan, PlannedPart, plan_posteriors
from quanet.labels.refine import MIN_LABELS, fixed_label_em, likelihood_ratios, responsibilities
from quanet.workflows.label_sheet import make_sheet

if TYPE_CHECKING:
    import pandas as pd

    from quanet.data.streams import TableSource

NUMBERS = (50, 100, 200, 500, 1000)  # of labels, for comparison


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLabels:
    """Rows to label.

    Attributes
    ----------
    plan : the instances chosen.
    sheet : the file to fill in.
    label : its column for the labels.
    classes : (k,) labels of the model.
    wanted : wanted width of the interval; None if a number of labels was given.
    level : confidence level.
    design : "stratified" or "random"; seed : of the choice.
    keys, groups : columns and names of the groups that have a plan each; no keys for one plan.
    sizes, labels : (g,) instances and labels of every group.
    numbers : numbers of labels for comparison; widths : (m, 2) their expected widths for all instances, with calibrated
        and with useless posteriors.
    weight : column of the weights of the rows; "" without weights.
    skipped, source : as in `Shares`.
    """

    plan: LabelPlan
    sheet: "pd.DataFrame"
    label: str
    classes: LabelArray
    wanted: float | None
    level: float
    design: str
    seed: int
    keys: tuple[Key, ...]
    groups: tuple[tuple[str, ...], ...]
    sizes: IntArray
    labels: IntArray
    numbers: tuple[int, ...]
    widths: FloatArray
    weight: str
    skipped: dict[str, int]
    source: str


def plan_source(
    quantifier: Quantifier,
    reading: GroupedInputs,
    source: "TableSource",
    inputs: InputColumns,
    *,
    label: str,
    width: float | None = None,
    number: int | None = None,
    keys: Sequence[Key] = (),
    shown: Sequence[str] = (),
    level: float = 0.95,
    design: str = "stratified",
    seed: int = 0,
) -> PlannedLabels:
    """Plan the labels of a source.

    Parameters
    ----------
    quantifier, reading, source, inputs : the model, what it has read, the files and their columns.
    label : name of the column for the labels.
    width, number : wanted width, or number of labels; for every group if there are keys.
    keys : columns of groups that get a plan each.
    shown : other columns that the sheet shows.
    level, design, seed : as in `plan_labels`.
    """
    ratios = likelihood_ratios(quantifier, reading.instances)
    if len(ratios) < MIN_LABELS:
        raise InvalidBags(f"{source.name} has {len(ratios)} rows that can be used. Label them all; no plan is needed.")
    exposure = reading.row_weights
    posteriors = responsibilities(ratios, fixed_label_em(ratios, ratios[:0], np.empty(0, dtype=np.intp)))
    owner = np.asarray(reading.codes, dtype=np.intp)
    stratify = design == "stratified"
    chosen = plan_posteriors(
        posteriors,
        owner,
        exposure=exposure,
        width=width,
        n=number,
        level=level,
        stratify=stratify,
        rng=np.random.default_rng(seed),
    )
    counted = np.arange(len(posteriors)) if exposure is None else np.flatnonzero(exposure > 0)
    part = PlannedPart(posteriors[counted], stratify=stratify, exposure=None if exposure is None else exposure[counted])
    numbers = tuple(n for n in sorted({*NUMBERS, chosen.n}) if n <= len(counted))
    widths = np.array([(part.width(n, level), part.plain_width(n, level)) for n in numbers])
    columns = [*shown, *(key.column for key in keys)]
    return PlannedLabels(
        plan=chosen,
        sheet=make_sheet(source, inputs, chosen, reading.rows, label=label, shown=columns),
        label=label,
        classes=quantifier.classes_,
        wanted=width,
        level=level,
        design=design,
        seed=seed,
        keys=tuple(keys),
        groups=tuple(reading.groups),
        sizes=np.bincount(owner),
        labels=np.bincount(owner[chosen.indices], minlength=len(reading.groups)),
        numbers=numbers,
        widths=widths,
        weight=reading.weight,
        skipped=reading.skipped,
        source=source.name,
    )


def plan_facts(planned: PlannedLabels) -> dict[str, Any]:
    """The plan in a few figures, for JSON."""
    return {
        "labels": planned.plan.n,
        "width": planned.plan.width,
        "plain_width": planned.plan.plain_width,
        "wanted": planned.wanted,
        "level": planned.level,
        "design": planned.design,
        "seed": planned.seed,
        "label": planned.label,
        "source": planned.source,
        "strata": int(planned.plan.strata.max()) + 1,
        **({"weight": planned.weight} if planned.weight else {}),
    }
