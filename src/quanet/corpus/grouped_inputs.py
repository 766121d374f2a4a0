"""Instances that a quantifier has read, by group: rows of small groups as read, and weighted ones of large groups.

Cells of a state are weighted rows already. Rows of a sample get weights whose sums are those of all instances: the mean
of a sample differs from the mean of the group, which is known exactly. Weights are changed as little as possible so
that both agree (calibration; Deville and Sarndal 1992). An estimate that depends on the rows mostly through their means
is then nearly that of all instances: exact sums serve as control variates.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from quanet.arrays import FloatArray, IntArray, LabelArray, Merged
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.corpus.batch_reader import own_columns
from quanet.corpus.fixed_point import COUNTS, DESCRIPTIONS, WEIGHTED
from quanet.corpus.kept_rows import Cells, KeptRows
from quanet.corpus.layout import Layout
from quanet.corpus.state import MOST_TEXTS, State
from quanet.data.copies import GroupHashes
from quanet.data.instances import Inputs
from quanet.data.periods import Codes, group_order
from quanet.drift.profile import GroupDescriptions
from quanet.errors import InvalidData
from quanet.evaluation.contents import SomeTexts, UnknownWords, classifier_of, overlap_count
from quanet.simplex import spread_counts

MANY_ROWS = 2**20  # of all groups, above which fewer are used for the estimate of all instances
# How weights of samples are calibrated.
LEAST = 1e-6  # of a weight, relative to the weight before
ROUNDS, HALVINGS = 60, 20  # of Newton's method, and of one of its steps
FARTHEST = 12.0  # logarithm of the largest weight, relative to the weight before
CLOSE = 1e-9  # a difference of means that is none
SLOW = 0.8  # of a difference that is left after a step; the matrix is then computed again
MATRICES = 8  # that are computed; one of a thousand columns takes seconds, and more hardly help
RIDGE = 1e-8  # above the rounding of the products of a thousand columns
RIDGES = (RIDGE, 1e-6, 1e-5, 1e-3)  # tried in this order, until means agree and few rows do not get most of the weight
SOFTER = 1e2  # how much larger the ridge of sums is that need not agree to the last digit, see `Layout.main_controls`
FAR = 1e-4  # of another mean from the wanted one, in standard deviations; that of a plain sample is fifty times as far
FEWEST = 0.25  # of the effective size, that is left after calibration
STEPS = 20
CHUNK = 2**22  # control variates that are computed at a time


@dataclass(slots=True, eq=False)
class GroupedInputs:
    """Instances that a quantifier has read, with their groups.

    Attributes
    ----------
    instances : input of `Quantifier.predict`, with descriptions if the quantifier has a drift scale.
    codes : (n,) the group of every instance, a position in `groups`.
    groups : values of the keys, sorted.
    skipped : rows skipped, by reason.
    unknown_words : share of unknown words, if the classifier has a vocabulary.
    training_texts : number of texts that the model was trained on; None if it does not record them.
    labels : number of rows by label, if a label column was given.
    weights, weight : (n,) weights of the instances, and the name of their column; None and "" without weights.
    some_texts : a random selection of the texts.
    merged, merged_weights : if rows stand for several instances, how many, and the weight (n,) of all these.
    all_rows : the same instances as one group, if they are too many to be estimated once more.
    clusters, cluster : (n,) names of the clusters of the instances, and of their column; None and "" without clusters.
    left_out : (rows,) 0 for every row that is an instance; else why not, a position in `reasons`.
    """

    instances: Inputs
    codes: Codes
    groups: list[tuple[str, ...]]
    skipped: dict[str, int]
    unknown_words: float | None
    labels: Counter[str] = field(default_factory=Counter)
    some_texts: SomeTexts = field(default_factory=SomeTexts)
    training_texts: int | None = None
    weights: FloatArray | None = None
    weight: str = ""
    left_out: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    reasons: tuple[str, ...] = ("",)
    merged: Merged | None = None
    merged_weights: FloatArray | None = None
    all_rows: "GroupedInputs | None" = None
    clusters: LabelArray | None = None
    cluster: str = ""

    @property
    def rows(self) -> IntArray:
        """(n,) the row of every instance in the source, counted from 0 over all its files."""
        return np.flatnonzero(self.left_out == 0)

    @property
    def without_weight(self) -> int:
        """Rows of weight 0, which do not count; merged rows are not counted."""
        return 0 if self.weights is None else int((self.weights == 0).sum())

    @property
    def total(self) -> int:
        """The number of instances."""
        return len(self.codes) if self.merged is None else int(self.merged.counts.sum())

    def bags(self) -> Bags:
        """A bag for every group, with its name and the weights."""
        in_order = bool((self.codes[1:] >= self.codes[:-1]).all())
        small = np.int32 if len(self.codes) < 2**31 else np.intp  # row numbers, of which there may be many
        order = np.arange(len(self.codes), dtype=small) if in_order else np.argsort(self.codes, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(self.codes))[:-1])
        labels = [", ".join(group) or "all" for group in self.groups]
        return Bags(members, labels=labels, weights=self.row_weights, merged=self.merged)

    def whole(self) -> Bags:
        """One bag of all instances, with the weights."""
        weights, merged = self.row_weights, self.merged
        return Bags(np.arange(len(self.codes))[None], labels=["all"], weights=weights, merged=merged)

    def as_one(self) -> "GroupedInputs":
        """The same instances as one group; of very many rows, fewer are kept."""
        if self.all_rows is not None:
            return self.all_rows
        return replace(self, codes=np.zeros_like(self.codes), groups=[()])

    @property
    def row_weights(self) -> FloatArray | None:
        """(n,) how much every row counts: its weight, or that of its instances; None if all count alike."""
        return self.weights if self.merged is None else self.merged_weights


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


def calibrate_samples(
    cells: Cells, rows: FloatArray, weights: FloatArray, whole: Cells, layout: Layout
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Weights and squared weights (n, 2) and instances (n,) that rows of samples stand for, and their noise (n,).

    Parameters
    ----------
    cells : the distinct rows of the samples, sorted by group and hash.
    rows, weights : their values (n, d), and the weights (n,) of their instances in the sample.
    whole : the same groups, sorted, with the sums of their control variates.
    layout : of the rows.
    """
    totals, sums = whole.floats(layout), layout.sums.floats(whole.sums)
    found, instances, noise = np.empty((len(rows), 2)), np.empty(len(rows), dtype=np.intp), np.empty(len(rows))
    starts = np.searchsorted(cells.groups, whole.groups)
    ends = np.searchsorted(cells.groups, whole.groups, side="right")
    for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        part, total = slice(start, end), float(totals[at, 0])
        if not total:  # all weights are 0, which `Bags` reports
            found[part], instances[part], noise[part] = 0.0, cells.counts[part], 0.0
            continue
        known = _Controls(rows[part], layout, sums[at] / total)
        drawn_weights = weights[part] if weights[part].any() else np.ones(end - start)
        share = drawn_weights / drawn_weights.sum()
        products = known.products(share)
        calibrated = total * _calibrated(known, share, products)
        # Squares in proportion, so that the effective size is that of all instances.
        found[part] = np.column_stack([calibrated, calibrated * (totals[at, 1] / total)])
        instances[part] = spread_counts(calibrated[None], np.array([whole.counts[at]]))[0]
        kept = int(cells.counts[part].sum()) / int(whole.counts[at])
        noise[part] = (1 - kept) / _effective_size(share) * _unexplained(rows[part], known, share, products, layout)
    return found, instances, noise


class _Controls:
    """Control variates of n rows: differences from the means of all instances, in standard deviations, after a 1.

    Parameters
    ----------
    rows : (n, d).
    layout : of the rows.
    means : (c,) of all instances.

    Attributes
    ----------
    parts : some rows, and their columns (c, rows). Together they may be too large for one array more.
    main : (c,) whether the mean of a column must be right.
    """

    def __init__(self, rows: FloatArray, layout: Layout, means: FloatArray) -> None:
        step = CHUNK // max(len(means), 1) + 1
        parts = [slice(start, start + step) for start in range(0, len(rows), step)]
        controls = [layout.control_variates(rows[part]) - means[:, None] for part in parts]
        mean, square = np.sum([(one.sum(axis=1), (one**2).sum(axis=1)) for one in controls], axis=0) / len(rows)
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        used = spread > 1e-9
        self.size = 1 + int(used.sum())
        self.main = np.append(True, np.arange(len(means))[used] < layout.main_controls)
        self.parts: list[tuple[slice, FloatArray]] = []
        while controls:
            values = controls.pop(0)[used] / spread[used, None]
            self.parts.append((parts[len(self.parts)], np.vstack([np.ones(values.shape[1]), values])))

    def ridge(self, least: float) -> FloatArray:
        """A ridge (c,) that is larger for columns whose mean need not be right."""
        return np.where(self.main, least, SOFTER * least)

    def products(self, weights: FloatArray) -> FloatArray:
        """Sums of the products of columns (c, c) times weights (n,)."""
        found = np.zeros((self.size, self.size))
        for part, columns in self.parts:
            scaled = columns * np.sqrt(weights[part])
            found += scaled @ scaled.T
        return found


def _unexplained(
    rows: FloatArray, known: _Controls, weights: FloatArray, products: FloatArray, layout: Layout
) -> float:
    """The part of the variance of responsibilities that control variates do not explain, for the worst class.

    Responsibilities are posteriors at the prevalences of the sample, where they differ most from what is known exactly.
    """
    if not layout.classes:
        return 1.0
    likelihoods, shares = layout.likelihoods_of(rows), np.array(layout.prior)
    for _ in range(STEPS):  # of expectation and maximisation
        joint = likelihoods * shares
        responsibilities = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        shares = weights @ responsibilities
    wanted = responsibilities - shares
    both = sum(columns @ (weights[part, None] * wanted[part]) for part, columns in known.parts)
    slopes = cho_solve(_factor(products, known.ridge(RIDGE)), both)
    left = sum(
        (weights[part, None] * (wanted[part] - columns.T @ slopes) ** 2).sum(axis=0) for part, columns in known.parts
    )
    spread = weights @ wanted**2
    return float(np.max(left[spread > 1e-12] / spread[spread > 1e-12], initial=0.0))


def _calibrated(known: _Controls, weights: FloatArray, products: FloatArray) -> FloatArray:
    """Weights (n,) close to the given ones, with which the control variates have a mean of 0. Their sum is 1.

    Parameters
    ----------
    known : of the rows.
    weights : (n,), with a sum of 1.
    products : of the columns, with these weights.
    """
    for ridge in RIDGES:
        found, far = _raked(known, weights, products, known.ridge(ridge))
        if far <= FAR and _effective_size(found) >= FEWEST * _effective_size(weights):
            break
    return found / found.sum()


def _effective_size(weights: FloatArray) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def _raked(known: _Controls, base: FloatArray, products: FloatArray, ridge: FloatArray) -> tuple[FloatArray, float]:
    """Weights with the wanted means of columns that are closest in entropy, and how far off the means are.

    The weights are exp(at @ columns) times the base. Columns are nearly dependent, hence the ridge. The function is
    convex, so Newton's method finds its minimum. Its matrix is the same for several steps, as long as they come
    closer: it costs far more than a step.
    """
    at, factor, exact, matrices = np.zeros(known.size), _factor(products, ridge), True, 1
    function, found, missing = _at(known, base, at, ridge)
    for _ in range(ROUNDS):
        far = np.abs(missing).max()
        if far < CLOSE:
            break
        step = cho_solve(factor, missing)
        lengths = 0.5 ** np.arange(HALVINGS if exact else 1)
        tried = ((length, _at(known, base, at + length * step, ridge)) for length in lengths)
        better = next((one for one in tried if one[1][0] < function or np.abs(one[1][2]).max() < far), None)
        if better is not None:
            at = at + better[0] * step
            function, found, missing = better[1]
        elif exact:
            break
        exact = better is None or np.abs(missing).max() > SLOW * far
        if exact:
            matrices += 1
            if matrices > MATRICES:
                break
            factor = _factor(known.products(found), ridge)
    return np.maximum(found, LEAST * base), float(np.abs(missing + ridge * at)[known.main].max())


def _factor(products: FloatArray, ridge: FloatArray) -> tuple[FloatArray, bool]:
    return cho_factor(products + np.diag(ridge))


def _at(known: _Controls, base: FloatArray, at: FloatArray, ridge: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """The function that is minimised, the weights there, and what is missing in their sums: minus the gradient."""
    found, sums = np.empty(len(base)), np.zeros(known.size)
    for part, columns in known.parts:
        logarithms = at @ columns
        if logarithms.max(initial=0.0) > FARTHEST:
            return np.inf, base, np.full(known.size, np.inf)
        found[part] = base[part] * np.exp(logarithms)
        sums += columns @ found[part]
    wanted = np.zeros(known.size)
    wanted[0] = 1.0
    return float(found.sum() - at[0] + (ridge * at) @ at / 2), found, wanted - sums - ridge * at
