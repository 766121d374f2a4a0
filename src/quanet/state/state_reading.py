"""A state as instances and bags: rows of small groups as they were read, cells of large groups as weighted rows."""

from typing import Any

import numpy as np

from quanet.arrays import FloatArray
from quanet.bags import Merged
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.data.periods import Codes, group_order
from quanet.diagnostics.contents import SomeTexts
from quanet.diagnostics.text_drift import UnknownWords, classifier_of, overlap_count
from quanet.drift.profile import GroupDescriptions
from quanet.errors import InvalidData
from quanet.state.fixed_point import COUNTS, DESCRIPTIONS, WEIGHTED
from quanet.state.grouped_inputs import GroupedInputs
from quanet.state.kept_rows import KeptRows
from quanet.state.kept_texts import MOST_TEXTS
from quanet.state.own_likelihoods import own_likelihoods
from quanet.state.samples import calibrate_samples
from quanet.state.state import State

MANY_ROWS = 2**20  # of all groups, above which fewer are used for the estimate of all instances


def reading_of(state: State, quantifier: Quantifier, name: str = "") -> GroupedInputs:
    """The instances of a state, by group, as `estimate_shares` and other workflows accept them.

    Parameters
    ----------
    state : of at least one instance.
    quantifier : the model that has read it.
    name : of the data, for messages.
    """
    if not state.groups:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in state.skipped.items())
        raise InvalidData(f"{name or 'The data'}: none of the {state.rows:,} rows can be used ({reasons}).")
    order = group_order(state.groups)
    state = state.bounded().renumbered({group: at for at, group in enumerate(order)})
    reading = _grouped(state, quantifier, name)
    reading.groups = order
    if len(reading.codes) > MANY_ROWS and len(order) > 1:
        reading.all_rows = _grouped(state.as_one(), quantifier, name)
    return reading


def _grouped(state: State, quantifier: Quantifier, name: str) -> GroupedInputs:
    kept = state.kept.in_order()
    values, codes, weights, merged = _as_rows(kept, quantifier)
    weighted, texts = kept.layout.weighted, state.texts
    if weighted and weights is not None and not weights.any():
        raise InvalidData(
            f"{name or 'The data'}: all weights in column {state.header.weight!r} are 0. Choose another column of "
            "weights."
        )
    words = UnknownWords(classifier_of(quantifier))
    some = texts.strings()
    words.add(some)
    return GroupedInputs(
        Inputs(values, _descriptions(state, codes)),
        codes,
        list(state.groups),
        dict(state.skipped),
        words.share,
        state.labels,
        SomeTexts(some, texts.descriptions[:MOST_TEXTS], texts.groups[:MOST_TEXTS].astype(np.intp)),
        overlap_count(*state.overlap),
        weights if weighted else None,
        state.header.weight,
        merged=merged,
        merged_weights=None if merged is None else weights,
    )


def _as_rows(kept: KeptRows, quantifier: Quantifier) -> tuple[Any, Codes, FloatArray | None, Merged | None]:
    """Values (n, d), groups (n,) and weights (n,) of rows and cells, and how many instances each stands for."""
    rows, cells, layout = kept.rows, kept.cells, kept.layout
    inputs = rows.values[:, : layout.inputs]
    if not len(cells.groups):
        return inputs, rows.groups, rows.weights, None
    totals, sums = cells.floats(layout), layout.sums.floats(cells.sums)
    # A cell whose weights are all 0 has no mean, and needs none.
    means = np.where(totals[:, :1] > 0, sums / np.maximum(totals[:, :1], 1e-300), 1.0)
    if layout.classes:
        means[:, : layout.classes] /= means[:, : layout.classes].sum(axis=1, keepdims=True)  # rounded sums
    instances, noise = cells.counts, np.zeros(len(cells.groups))
    if not layout.has_cells:
        totals, instances, noise = calibrate_samples(
            cells, np.hstack([means, own_likelihoods(quantifier, means)]), totals[:, 0], kept.sampled, layout
        )
    ones = np.ones(len(rows.groups))
    alone = ones if rows.weights is None else rows.weights
    groups = np.concatenate([rows.groups, cells.groups])
    order = np.argsort(groups, kind="stable")
    weights: FloatArray = np.concatenate([alone, totals[:, 0]])[order]
    merged = Merged(
        counts=np.concatenate([ones, instances])[order].astype(np.intp),
        squares=np.concatenate([alone**2, totals[:, 1]])[order],
        noise=np.concatenate([0 * ones, noise])[order],
    )
    return np.concatenate([inputs, means])[order], groups[order], weights, merged


def _descriptions(state: State, codes: Codes) -> GroupDescriptions | None:
    if not state.header.described:
        return None
    weighted = state.header.layout.weighted
    sums = (WEIGHTED if weighted else DESCRIPTIONS).floats(state.sums)
    totals = (WEIGHTED if weighted else COUNTS).floats(state.totals)
    return GroupDescriptions(sums[:, :-1], sums[:, -1], totals[:, 1], totals[:, 2], codes)
