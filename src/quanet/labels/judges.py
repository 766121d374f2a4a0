r"""Correct the rates of a fallible judge: true prevalences with intervals.

A judge (a classifier, a crowd, a language model) labels many instances, and people label a few of them too. If the
judge gives label j to a fraction :math:`\theta_{cj}` of class c, its rates are :math:`q_j = \sum_c p_c \theta_{cj}`.
The prevalences p and their likelihood-ratio intervals follow from the likelihood of all counts: with :math:`b_j`
instances that the judge labels j, :math:`t_{cj}` human-labelled instances with human label c and judge's label j, and
:math:`o_c` human labels that are a random part of the instances to correct, the log-likelihood is

.. math:: \sum_j b_j \log \sum_c p_c \theta_{cj} + \sum_{cj} t_{cj} \log \theta_{cj} + \sum_c o_c \log p_c

It is maximized over the judge's rates θ and the prevalences p by Newton's method on their logits. The curvature is that
of the complete data minus the variance of the missing data, the true classes (Louis 1982).

Several judges of the same instances count as one, whose labels are the combinations of theirs.
"""

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import BoolArray, FloatArray, IntArray, LabelArray
from quanet.classifiers.cross_fitting import check_labels
from quanet.errors import InvalidData
from quanet.labels.judge_covariance import PSEUDO_COUNT, JudgedUnits, cluster_codes, joint_spread
from quanet.parameters import check_level, one_of
from quanet.simplex import classes_of, count, encode, log_softmax, project
from quanet.wording import between, percent

MIN_PER_CLASS = 5  # human labels per class; fewer do not show how the judge errs
MAX_BINS = 8
CHUNK = 500  # groups corrected together; bounds the memory
MAX_STEPS = 100  # Newton steps
MAX_LOGIT_STEP = 3.0  # largest change of a logit in one step
BISECTIONS = 25  # steps that locate each limit of an interval
MIN_START = 1e-9  # smallest prevalence at the start of a search
MIN_CURVATURE = 1e-6
PER_PATTERN = 10  # human-labelled instances with a combination of labels; rarer combinations are merged


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedRate:
    """Corrected prevalences with their intervals.

    Attributes
    ----------
    classes : (k,) labels, sorted.
    estimate, lower, upper : (k,) prevalences and the limits of their intervals.
    judged : (k,) uncorrected rates of the judge; NaN for scores.
    level : confidence level.
    """

    classes: LabelArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    judged: FloatArray
    level: float

    def __str__(self) -> str:
        lines = zip(self.classes.tolist(), self.estimate, self.lower, self.upper, self.judged, strict=True)
        return "\n".join(
            f"{name}: {percent(p)} ({between(low, high)})"
            + (f", judged {percent(judged)}" if np.isfinite(judged) else "")
            for name, p, low, high, judged in lines
        )


def correct_rate(
    judged: ArrayLike,
    human: ArrayLike,
    judge_on_human: ArrayLike,
    *,
    level: float = 0.95,
    calibration: Literal["apart", "part"] = "apart",
    scores: bool = False,
    clusters: tuple[ArrayLike, ArrayLike] | None = None,
) -> CorrectedRate:
    r"""The true prevalences behind a judge's labels or scores, estimated with some human labels.

    Use it for a judge that you cannot fit again, such as a language model. With the judge's rates q and its error rates
    :math:`\theta` on human-labelled instances (:math:`\theta_{ij}`: class i judged as j), the estimate solves

    .. math:: q = \theta^T p, \qquad \text{for two classes} \quad p = \frac{q - fpr}{tpr - fpr},

    which is that of Rogan and Gladen [1]_, clipped to [0, 1]. If that solution has a negative prevalence, for scores,
    and if human labels are part of the instances (``calibration="part"``), it is the maximum-likelihood estimate.

    The interval of a class contains all prevalences that a likelihood-ratio test does not reject, with the judge's
    error rates and the other prevalences as nuisance parameters. It is wide if there are few human labels, reaches 0 or
    1 if these are plausible, and is [0, 1] for a judge that guesses. For the interval (not for the estimate), 0.1 is
    added to every cell of the table of human and judged labels, so that no error counts as impossible.

    Parameters
    ----------
    judged : (n,) the judge's labels of the instances to correct, or its scores for the larger class.
    human : (m,) human labels of instances that the judge has also labelled.
    judge_on_human : (m,) the judge's labels or scores of these instances.
    level : confidence level.
    calibration : "apart": the human-labelled instances come from elsewhere and only show how the judge errs; or "part":
        they are a random part of the instances to correct (not included in `judged`), so their labels count directly
        too.
    scores : True if the judge gives scores instead of labels; two classes only.
    clusters : (n,) and (m,) names of the clusters of `judged` and of the human-labelled instances, such as
        conversations: instances of a cluster are not independent, clusters are. Equal names are one cluster. The
        interval is widened by the design effect.

    Returns
    -------
    CorrectedRate
        `classes`, `estimate`, `lower`, `upper` and `judged`, the uncorrected rates, (k,) each.

    References
    ----------
    .. [1] W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening test", 1978.

    Examples
    --------
    A judge that labels 80 % of the good instances and 10 % of the bad ones as good:

    >>> human = ["good"] * 100 + ["bad"] * 100
    >>> judge = ["good"] * 80 + ["bad"] * 20 + ["good"] * 10 + ["bad"] * 90
    >>> print(correct_rate(["good"] * 450 + ["bad"] * 550, human, judge))
    bad: 50.0 % (41.0 to 58.3 %), judged 55.0 %
    good: 50.0 % (41.7 to 59.0 %), judged 45.0 %

    A judge with no errors on 40 labels and a rate of 2 %, which may come from an error that 40 labels did not show:

    >>> print(correct_rate([1] * 20 + [0] * 980, [0, 1] * 20, [0, 1] * 20))
    0: 98.0 % (97.1 to 100.0 %), judged 98.0 %
    1: 2.0 % (0.0 to 2.9 %), judged 2.0 %

    The first judge, with conversations of four equal answers:

    >>> talks = [np.arange(1000) // 4, 1000 + np.arange(200) // 4]
    >>> print(correct_rate(["good"] * 450 + ["bad"] * 550, human, judge, clusters=talks))
    bad: 50.0 % (28.8 to 68.7 %), judged 55.0 %
    good: 50.0 % (31.3 to 71.2 %), judged 45.0 %
    """
    check_level(level)
    one_of("apart", "part").check("calibration", calibration)
    classes = human_classes(human)
    codes = encode(human, classes)
    cells, on_human = judgement_cells(judged, judge_on_human, classes, codes, scores=scores)
    if len(on_human) != len(codes):
        raise InvalidData(
            f"human has {len(codes)} labels but judge_on_human has {len(on_human)}. Pass one for each instance."
        )
    k, j = len(classes), int(max(cells.max(), on_human.max(), 0 if scores else len(classes) - 1)) + 1
    bag = count(cells, j)
    table = np.array([count(on_human[codes == c], j) for c in range(k)])
    own = count(codes, k) if calibration == "part" else np.zeros(k, dtype=int)
    judged_shares = np.full(k, np.nan) if scores else bag / bag.sum()
    counts = bag[None], table[None], own[None]
    found = correct_counts(*counts, level=level)
    if clusters is not None:
        rows = _rows_of(clusters, codes, cells, on_human, direct=calibration == "part")
        if np.bincount(rows.unit).max() > 1:
            spread = joint_spread(rows, *counts, found[0], np.array([True]))
            found = correct_counts(*counts, level=level, stretch=spread.stretch(level))
    estimate, lower, upper = (one[0] for one in found)
    return CorrectedRate(classes, estimate, lower, upper, judged_shares, level)


def _rows_of(
    clusters: tuple[ArrayLike, ArrayLike], codes: IntArray, cells: IntArray, on_human: IntArray, *, direct: bool
) -> JudgedUnits:
    """The judged and the human-labelled instances with their clusters."""
    names = [np.asarray(one, dtype=object).tolist() for one in clusters]
    for whose, given, n in zip(("judged", "human"), names, (len(cells), len(codes)), strict=True):
        if len(given) != n:
            raise InvalidData(f"{whose} has {n} values but its clusters have {len(given)}. Pass one for each instance.")
    judged = np.repeat([True, False], [len(cells), len(codes)])
    return JudgedUnits(
        cluster_codes([*names[0], *names[1]]),
        np.full(len(judged), -1),
        np.concatenate([np.full(len(cells), -1), codes]),
        np.concatenate([cells, on_human]),
        judged,
        ~judged & direct,
    )


def human_classes(human: ArrayLike) -> LabelArray:
    """The classes of human labels, sorted: (m,) -> (k,); raises if there are too few labels."""
    labels = check_labels(human, len(np.asarray(human)))
    classes = classes_of(labels)
    if len(classes) < 2:
        raise InvalidData(
            f"all {len(labels)} human labels are {classes.tolist()[0]!r}. Add labels of another class to "
            "show the judge's errors on it."
        )
    counts = count(encode(labels, classes), len(classes))
    if counts.min() < MIN_PER_CLASS:
        raise InvalidData(
            f"class {classes.tolist()[int(counts.argmin())]!r} has {counts.min()} human labels; at least "
            f"{MIN_PER_CLASS} are needed, better 50. Label more instances of it."
        )
    return classes


def correct_counts(
    bags: IntArray, tables: IntArray, own: IntArray, *, level: float, stretch: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Corrected prevalences and their intervals for many groups, from counts.

    Parameters
    ----------
    bags : (r, j) how often the judge gave each of its labels in each group, without the human-labelled instances.
    tables : (r, k, j) human-labelled instances by human label and judge's label: how the judge errs in each group.
        Equal tables assume the same errors everywhere.
    own : (r, k) human labels that are a random part of their group; otherwise zeros.
    level : confidence level.
    stretch : (r, k) factors of the critical values, see `JointSpread.stretch`; None if all rows are independent.

    Returns
    -------
    estimate, lower, upper : (r, k).

    Examples
    --------
    >>> judge, groups = np.array([[[90, 10], [20, 80]]] * 2), np.array([[550, 450], [900, 100]])
    >>> estimate, lower, upper = correct_counts(groups, judge, np.zeros((2, 2), dtype=int), level=0.95)
    >>> estimate[:, 1].round(3), lower[:, 1].round(3), upper[:, 1].round(3)
    (array([0.5, 0. ]), array([0.417, 0.   ]), array([0.59 , 0.071]))
    """
    parts = [slice(at, at + CHUNK) for at in range(0, len(bags), CHUNK)]
    found = [
        likelihood_intervals(
            *(counts[one] for counts in (bags, tables, own)),
            level=level,
            added=PSEUDO_COUNT,
            stretch=None if stretch is None else stretch[one],
        )
        for one in parts
    ]
    estimate, lower, upper = (np.concatenate(one) for one in zip(*found, strict=True))
    return estimate, lower, upper


def judgement_cells(
    judged: ArrayLike, judge_on_human: ArrayLike, classes: LabelArray, codes: IntArray, *, scores: bool
) -> tuple[IntArray, IntArray]:
    """The judge's labels, or bins of its scores, as column numbers of a table: (n,) and (m,).

    Parameters
    ----------
    judged, judge_on_human : labels, or scores for the second class, of the instances to correct and of the
        human-labelled ones.
    classes, codes : (k,) and (m,): classes of the human labels, and the class of each human-labelled instance.
    scores : True if the judge gives scores.
    """
    given, on_human = np.asarray(judged), np.asarray(judge_on_human)
    if given.ndim != 1 or on_human.ndim != 1 or not len(given):
        raise InvalidData(f"judged must be one-dimensional with at least one value; its shape is {given.shape}.")
    if not scores:
        return encode(given, classes), encode(on_human, classes)
    if len(classes) != 2:
        raise InvalidData(
            f"scores need two classes; the human labels have {len(classes)}. Pass the judge's labels instead."
        )
    given, on_human = given.astype(float), on_human.astype(float)
    if not (np.isfinite(given).all() and np.isfinite(on_human).all()):
        raise InvalidData("some scores are NaN or infinite. Drop those instances.")
    # At least about five human labels per bin: finer bins would show chance rather than the judge.
    bins = int(np.clip(count(codes, 2).min() // 10, 2, MAX_BINS))
    cuts = np.unique(np.quantile(on_human, np.arange(1, bins) / bins))
    return np.searchsorted(cuts, given, side="right"), np.searchsorted(cuts, on_human, side="right")


def likelihood_intervals(
    bags: IntArray,
    tables: IntArray,
    own: IntArray,
    *,
    level: float,
    added: float = 0.0,
    stretch: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Maximum-likelihood prevalences and likelihood-ratio intervals: (r, j), (r, k, j), (r, k) -> three of (r, k).

    Parameters
    ----------
    bags : judged instances by the judge's label.
    tables : human-labelled instances by human label (rows) and judge's label (columns).
    own : human labels that are a random part of the bag; otherwise zeros.
    level : confidence level.
    added : count added to every cell of `tables` for the interval, not for the estimate.
    stretch : (r, k) factor of the critical value, such as a design effect; None for 1.
    """
    r, k, _ = tables.shape
    counts = _Counts(np.asarray(bags, float), np.asarray(tables, float), np.asarray(own, float))
    start, exact = _start(counts)
    estimate = np.where(exact[:, None], start, _climb(counts, np.maximum(start, MIN_START)).shares)
    # Two classes need one interval. With more classes, each class is a separate problem: (r * classes, ...).
    classes = np.arange(k) if k > 2 else np.array([1])
    fixed = np.tile(classes, r)
    repeated = _Counts(*(np.repeat(one, len(classes), axis=0) for one in (bags, tables + added, own)))
    best = _climb(repeated, np.repeat(np.maximum(estimate, MIN_START), len(classes), axis=0))
    critical = stats.chi2.ppf(level, 1) * (np.ones((r, k)) if stretch is None else stretch)[:, classes].ravel()
    # Both ends of an interval are problems of their own, too, and all are solved together.
    twice = np.tile(np.arange(len(fixed)), 2)
    sides = np.repeat([0.0, 1.0], len(fixed))
    ends = _ends(repeated.take(twice), fixed[twice], best.take(twice), sides, critical[twice])
    lower, upper = ends.reshape(2, r, -1)
    if k == 2:
        lower, upper = np.hstack([1 - upper, lower]), np.hstack([1 - lower, upper])
    return estimate, np.minimum(lower, estimate), np.maximum(upper, estimate)


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Counts of r problems: (r, j), (r, k, j), (r, k); and a fixed prevalence: `free` (r, k) is False for its class."""

    bags: FloatArray
    tables: FloatArray
    own: FloatArray
    free: BoolArray | None = None
    given: FloatArray | None = None  # (r,)

    def take(self, rows: IntArray) -> "_Counts":
        free = None if self.free is None else self.free[rows]
        given = None if self.given is None else self.given[rows]
        return _Counts(self.bags[rows], self.tables[rows], self.own[rows], free, given)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Parameters of r problems, logits (r, k), log rates (r, k, j), shares (r, k), and their log-likelihood (r,)."""

    logits: FloatArray
    log_rates: FloatArray
    shares: FloatArray
    value: FloatArray

    def take(self, rows: IntArray) -> "_Point":
        return _Point(self.logits[rows], self.log_rates[rows], self.shares[rows], self.value[rows])

    def put(self, rows: IntArray, others: "_Point") -> None:
        for one in fields(self):
            getattr(self, one.name)[rows] = getattr(others, one.name)


def _start(counts: _Counts) -> tuple[FloatArray, BoolArray]:
    """Prevalences (r, k) from the formula of Rogan and Gladen, and whether they maximize the likelihood (r,).

    They do if the solution is on the simplex and there are no own human labels; for two classes, the nearest point of
    the simplex does.
    """
    k, j = counts.tables.shape[1:]
    rates = counts.tables / np.maximum(counts.tables.sum(axis=2, keepdims=True), 1)
    seen = counts.bags / np.maximum(counts.bags.sum(axis=1, keepdims=True), 1)
    solved = (np.linalg.pinv(rates.swapaxes(1, 2), rcond=1e-6) @ seen[..., None])[..., 0]
    solved = solved + (1 - solved.sum(axis=1, keepdims=True)) / k
    human, judged = (one.sum(axis=1, keepdims=True) for one in (counts.own, counts.bags))
    weight = human / np.maximum(human + judged, 1)
    start = (1 - weight) * project(solved) + weight * counts.own / np.maximum(human, 1)
    exact = (human[:, 0] == 0) & (j == k) & ((k == 2) | (solved >= 0).all(axis=1))
    return start, exact


def _ends(counts: _Counts, fixed: IntArray, best: _Point, sides: FloatArray, critical: FloatArray) -> FloatArray:
    """The limits, towards `sides` (0 or 1), of the prevalences that a likelihood-ratio test accepts: (r,)."""
    cut = best.value - critical / 2
    rows = np.arange(len(fixed))
    free = np.ones(best.shares.shape, dtype=bool)
    free[rows, fixed] = False
    inside, outside = best.shares[rows, fixed], sides
    near = best

    def accepted(given: FloatArray) -> BoolArray:
        nonlocal near
        found = _climb(replace(counts, free=free, given=given), near.logits, near.log_rates)
        good = found.value >= cut
        near = _chosen(good, found, near)
        return np.asarray(good)

    reached = accepted(outside)
    for _ in range(BISECTIONS):
        middle = np.where(reached, sides, (inside + outside) / 2)
        good = accepted(middle)
        inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
    return np.where(reached, sides, inside)


def _chosen(first: BoolArray, one: _Point, other: _Point) -> _Point:
    """The first of two points where `first` is True, else the second: (r,)."""
    wide, widest = first[:, None], first[:, None, None]
    return _Point(
        np.where(wide, one.logits, other.logits),
        np.where(widest, one.log_rates, other.log_rates),
        np.where(wide, one.shares, other.shares),
        np.where(first, one.value, other.value),
    )


def _climb(counts: _Counts, start: FloatArray, log_rates: FloatArray | None = None) -> _Point:
    """Maximize the likelihood, from prevalences (r, k) or from logits and log rates of an earlier point."""
    if log_rates is None:
        filled = counts.tables + 1e-3
        start, log_rates = np.log(start), np.log(filled / filled.sum(axis=2, keepdims=True))
    now = _point(counts, start, log_rates)
    moving = np.arange(len(start))
    for _ in range(MAX_STEPS):
        some = counts.take(moving)
        before = now.take(moving)
        slope, curvature = _slope_and_curvature(some, before)
        values, vectors = np.linalg.eigh(curvature)
        along = (vectors.swapaxes(1, 2) @ slope[..., None])[..., 0] / np.maximum(np.abs(values), MIN_CURVATURE)
        step = (vectors @ along[..., None])[..., 0]
        step *= np.minimum(1, MAX_LOGIT_STEP / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        after, moved = _line_search(some, before, step)
        now.put(moving, after)
        moving = moving[moved & ((slope * step).sum(axis=1) > 1e-8)]
        if not len(moving):
            break
    return now


def _line_search(counts: _Counts, now: _Point, step: FloatArray) -> tuple[_Point, BoolArray]:
    """Halve the step until the likelihood does not decrease; also return which problems (r,) succeeded."""
    r, k, j = now.log_rates.shape
    length, still = np.ones(r), np.ones(r, dtype=bool)
    for _ in range(20):
        ahead = _point(
            counts,
            now.logits + length[:, None] * step[:, k * j :],
            now.log_rates + length[:, None, None] * step[:, : k * j].reshape(r, k, j),
        )
        good = still & (ahead.value >= now.value - 1e-9)
        now = _chosen(good, ahead, now)
        still &= ~good
        if not still.any():
            break
        length = np.where(still, length / 2, 0.0)
    return now, ~still


def _point(counts: _Counts, logits: FloatArray, log_rates: FloatArray) -> _Point:
    log_rates = log_softmax(log_rates)
    if counts.free is None or counts.given is None:
        logits = log_softmax(logits)
        shares = np.exp(logits)
    else:
        # The logit of the fixed class is kept as a starting point for later; it does not affect the other classes.
        among = log_softmax(np.where(counts.free, logits, -np.inf))
        shares = np.where(counts.free, (1 - counts.given)[:, None] * np.exp(among), counts.given[:, None])
        logits = np.where(counts.free, among, logits)
    mixed = np.einsum("rk,rkj->rj", shares, np.exp(log_rates))
    value = (counts.bags * np.log(np.maximum(mixed, 1e-300))).sum(axis=1)
    value += (counts.tables * log_rates).sum(axis=(1, 2))
    value += (counts.own * np.log(np.maximum(shares, 1e-300))).sum(axis=1)
    return _Point(logits, log_rates, shares, value)


def _slope_and_curvature(counts: _Counts, now: _Point) -> tuple[FloatArray, FloatArray]:
    """Gradient (r, k j + k) and information (r, k j + k, k j + k) in the logits of the rates and of the shares."""
    r, k, j = now.log_rates.shape
    rates, shares = np.exp(now.log_rates), now.shares
    free = np.ones((r, k)) if counts.free is None else counts.free.astype(float)
    among = shares * free / np.maximum((shares * free).sum(axis=1, keepdims=True), 1e-300)
    joint = shares[:, :, None] * rates
    weights = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    expected = weights * counts.bags[:, None]  # of class c and label j: (r, k, j)
    by_class = expected.sum(axis=2)
    seen = counts.tables + expected
    known = free * (counts.own + by_class)
    slope_rates = seen - seen.sum(axis=2, keepdims=True) * rates
    slope_shares = known - known.sum(axis=1, keepdims=True) * among
    # Derivative of the complete data's score with respect to the missing counts: (r, k j + k, k j).
    eye_k, eye_j = np.eye(k), np.eye(j)
    turn = np.zeros((r, k * j + k, k * j))
    within = eye_j[None, None] - rates[..., None]  # (r, k, j, j)
    turn[:, : k * j] = np.einsum("rcab,cd->rcadb", within, eye_k).reshape(r, k * j, k * j)
    between = (eye_k[None] - among[:, :, None]) * free[:, None, :] * free[:, :, None]
    turn[:, k * j :] = np.repeat(between, j, axis=2)
    spread = np.einsum("rcj,cd,jl->rcjdl", expected, eye_k, eye_j)
    spread -= np.einsum("rcj,rdj,jl->rcjdl", expected, weights, eye_j)
    missing = turn @ spread.reshape(r, k * j, k * j) @ turn.swapaxes(1, 2)
    complete = np.zeros_like(missing)
    blocks = seen.sum(axis=2)[:, :, None, None] * (rates[..., None] * (eye_j - rates[:, :, None, :]))
    complete[:, : k * j, : k * j] = np.einsum("rcab,cd->rcadb", blocks, eye_k).reshape(r, k * j, k * j)
    complete[:, k * j :, k * j :] = known.sum(axis=1)[:, None, None] * (
        among[:, :, None] * (eye_k - among[:, None, :]) * free[:, :, None]
    )
    slope = np.concatenate([slope_rates.reshape(r, -1), slope_shares], axis=1)
    return slope, complete - missing


def combine_labels(judged: IntArray, on_human: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """The labels of b judges as those of one judge, whose labels are their combinations: (b, n), (b, m) -> (n,), (m,).

    How often each combination occurs in each class is measured on the human-labelled instances, so judges may depend on
    each other in any way. Combinations with few human labels are merged by the label that most judges gave; if there
    are several, by that of the first of these judges.

    Parameters
    ----------
    judged, on_human : labels as class numbers, of the instances to correct and of the human-labelled ones.
    k : number of classes.

    Examples
    --------
    >>> on_human = np.repeat([[0, 0, 1, 1], [0, 1, 0, 1]], [20, 15, 15, 20], axis=1)
    >>> cells, _ = combine_labels(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), on_human, 2)
    >>> cells
    array([0, 1, 2, 3])
    """
    powers = k ** np.arange(len(judged))[::-1]
    codes, codes_on_human = powers @ judged, powers @ on_human
    patterns, numbers = np.unique(codes_on_human, return_counts=True)
    frequent = patterns[numbers >= PER_PATTERN]
    merged = [
        np.where(np.isin(one, frequent), one, powers.sum() * k + _plurality(labels, k))
        for one, labels in ((codes, judged), (codes_on_human, on_human))
    ]
    names = np.unique(np.concatenate(merged))
    return np.searchsorted(names, merged[0]), np.searchsorted(names, merged[1])


def _plurality(labels: IntArray, k: int) -> IntArray:
    """The most frequent label of each column; among equally frequent ones, that of the first judge: (b, n) -> (n,)."""
    votes = (labels[..., None] == np.arange(k)).sum(axis=0).astype(float)
    first = np.argmax(votes[np.arange(labels.shape[1]), labels], axis=0)
    return np.asarray(labels[first, np.arange(labels.shape[1])])


def agreement(labels: IntArray, k: int) -> FloatArray:
    r"""Cohen's kappa of every pair of judges: (b, n) -> (b, b).

    .. math:: \kappa = (p_o - p_e) / (1 - p_e)

    with the share of equal labels :math:`p_o` and that expected by chance. Labels of -1 are missing.

    Examples
    --------
    >>> agreement(np.repeat([[0, 0, 1, 1], [0, 1, 0, 1]], [20, 5, 10, 15], axis=1), 2).round(2)
    array([[1. , 0.4],
           [0.4, 1. ]])
    """
    b = len(labels)
    kappa = np.ones((b, b))
    for one in range(b):
        for other in range(one):
            both = (labels[one] >= 0) & (labels[other] >= 0)
            pairs = np.bincount(labels[one][both] * k + labels[other][both], minlength=k * k).reshape(k, k)
            pairs = pairs / max(pairs.sum(), 1)
            chance = pairs.sum(axis=1) @ pairs.sum(axis=0)
            kappa[one, other] = kappa[other, one] = (np.trace(pairs) - chance) / (1 - chance) if chance < 1 else np.nan
    return kappa
