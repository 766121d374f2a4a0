"""A state as instances and bags: rows of small groups as they were read, cells of large groups as weighted rows."""

from dataclasses import replace
from typing import Any

import numpy as np

from quanet.arrays import FloatArray, Merged
from quanet.base import Quantifier
from quanet.corpus.batch_reader import own_columns
from quanet.corpus.fixed_point import COUNTS, DESCRIPTIONS, WEIGHTED
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.corpus.kept_rows import KeptRows
from quanet.corpus.samples import calibrate_samples
from quanet.corpus.state import MOST_TEXTS, State
from quanet.data.copies import GroupHashes
from quanet.data.instances import Inputs
from quanet.data.periods import Codes, group_order
from quanet.drift.profile import GroupDescriptions
from quanet.errors import InvalidData
from quanet.evaluation.contents import SomeTexts, UnknownWords, classifier_of, overlap_count

MANY_ROWS = 2**20  # of all groups, above which fewer are used for the estimate of all instances


def check_usable(state: State, name: str = "") -> None:
    """Raise `InvalidData` if a state has no instances, or only some without weight."""
    if not state.groups:
        reasons = ", ".join(f"{reason}: {count:,}" for reason, count in state.skipped.items())
        raise InvalidData(f"{name or 'The data'}: none of the {state.rows:,} rows can be used ({reasons}).")
    weights = state.kept.rows.weights
    if weights is not None and not (weights.any() or state.totals[:, 1].any()):
        raise InvalidData(
            f"{name or 'The data'}: all weights in column {state.header.weight!r} are 0. Choose another column of "
            "weights."
        )


def reading_of(state: State, quantifier: Quantifier, name: str = "") -> GroupedInputs:
    """The instances of a state, by group, as `estimate_shares` and other workflows accept them.

    Parameters
    ----------
    state : of at least one instance.
    quantifier : the model that has read it.
    name : of the data, for messages.
    """
    check_usable(state, name)
    order = group_order(state.groups)
    state = _in_order(state.bounded().renumbered({group: at for at, group in enumerate(order)}))
    reading = _grouped(state, quantifier)
    reading.groups = order
    if len(reading.codes) > MANY_ROWS and len(order) > 1:
        reading.all_rows = _grouped(_in_order(state.as_one()), quantifier)
    return reading


def _in_order(state: State) -> State:
    return replace(state, kept=state.kept.in_order())


def _grouped(state: State, quantifier: Quantifier) -> GroupedInputs:
    """The instances of a state with rows in order."""
    kept = state.kept
    values, codes, hashes, weights, merged = _as_rows(kept, quantifier)
    weighted, texts = kept.layout.weighted, state.texts
    words = UnknownWords(classifier_of(quantifier))
    some = texts.strings()
    words.add(some)
    return GroupedInputs(
        Inputs(values, _descriptions(state, codes), hashes),
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


def _as_rows(kept: KeptRows, quantifier: Quantifier) -> tuple[Any, Codes, Any, FloatArray | None, Merged | None]:
    """Values (n, d), groups, hashes and weights (n,) of rows and cells, and how many instances each stands for."""
    rows, cells, layout = kept.rows, kept.cells, kept.layout
    inputs = rows.values[:, : layout.inputs]
    if not len(cells.groups):
        return inputs, rows.groups, rows.hashes, rows.weights, None
    totals, means = cells.floats(layout), cells.means(layout)
    instances, noise = cells.counts, np.zeros(len(cells.groups))
    if not layout.has_cells:
        totals, instances, noise = calibrate_samples(
            cells, np.hstack([means, own_columns(quantifier, means)[1]]), totals[:, 0], kept.sampled, layout
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
    codes, every = groups[order], np.append(rows.hashes, np.zeros(len(cells.groups), dtype=np.uint32))[order]
    hashes = GroupHashes(codes, every, kept.copies.groups, layout.totals.floats(kept.copies.sums))
    return np.concatenate([inputs, means])[order], codes, hashes, weights, merged


def _descriptions(state: State, codes: Codes) -> GroupDescriptions | None:
    if not state.header.described:
        return None
    weighted = state.header.layout.weighted
    sums = (WEIGHTED if weighted else DESCRIPTIONS).floats(state.sums)
    totals = (WEIGHTED if weighted else COUNTS).floats(state.totals)
    return GroupDescriptions(sums[:, :-1], sums[:, -1], totals[:, 1], totals[:, 2], codes)
