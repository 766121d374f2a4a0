r"""Corrected rates: what a fallible judge's labels say about the true prevalence, with an interval.

A judge (a classifier, a crowd, a language model) labels many instances; people label a few of its cases too. With
:math:`\theta_{jc}` the share of class c that the judge gives the label j, the judged shares are
:math:`q = \theta p`, and the prevalence p and how sure it is follow from the likelihood of all counts together.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers import check_labels
from quanet.errors import InvalidData, InvalidSetting
from quanet.simplex import classes_of, count, encode, project

FEWEST = 5  # human labels of every class, below which the judge's errors are a guess
PSEUDO = 0.25  # cases added to every kind of judgement, so that none counts as impossible
STEPS, HALVINGS = 60, 40
MOST_BINS = 8
DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedRate:
    """Corrected prevalences with their intervals.

    Attributes
    ----------
    classes : (k,) labels, sorted.
    estimate, lower, upper : (k,) prevalences and the ends of their intervals.
    judged : (k,) shares that the judge gives, as they are; NaN for scores.
    level : of confidence.
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
            f"{name}: {p:.1%} ({low:.1%} to {high:.1%})" + (f", judged {judged:.1%}" if np.isfinite(judged) else "")
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
    random_state: int | None = 0,
) -> CorrectedRate:
    r"""The true prevalence behind a judge's labels or scores, from a part that people have labelled too.

    For two classes the estimate is that of Rogan and Gladen (1978), :math:`(q - fpr) / (tpr - fpr)`, kept within [0, 1]
    by maximum likelihood, and the interval holds all prevalences that a likelihood-ratio test does not reject: the
    judge's own error rates are profiled out, so it is wide where the human part is small, reaches 0 or 1 where these
    are plausible, and is all of [0, 1] for a judge who guesses. For more classes the interval comes from draws of the
    error rates and the judged shares around what was counted.

    Parameters
    ----------
    judged : (n,) the judge's labels of the instances in question; or scores, of the larger class.
    human : (m,) labels by people, of instances that the judge has labelled as well.
    judge_on_human : (m,) what the judge says of those.
    level : of confidence.
    calibration : "apart", instances from anywhere that the judge treats the same way: only its error rates count; or
        "part", a random part of the instances in question (and not in `judged`): its human labels count as well.
    scores : whether the judge gives scores instead of labels; for two classes.
    random_state : of the draws for more than two classes.

    References
    ----------
    W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening test", 1978.

    Examples
    --------
    A judge that calls 80 % of the good ones good, and 10 % of the bad ones:

    >>> human = ["good"] * 100 + ["bad"] * 100
    >>> judge = ["good"] * 80 + ["bad"] * 20 + ["good"] * 10 + ["bad"] * 90
    >>> print(correct_rate(["good"] * 450 + ["bad"] * 550, human, judge))
    bad: 50.0% (41.0% to 58.4%), judged 55.0%
    good: 50.0% (41.6% to 59.0%), judged 45.0%
    """
    if not 0 < level < 1:
        raise InvalidSetting(f"level lies between 0 and 1, such as 0.95; got {level}.")
    if calibration not in ("apart", "part"):
        raise InvalidSetting(f"calibration is 'apart' or 'part'; got {calibration!r}.")
    truth = check_labels(human, len(np.asarray(human)))
    classes = classes_of(truth)
    codes = encode(truth, classes)
    cells, on_human = judgement_cells(judged, judge_on_human, classes, codes, scores=scores)
    if len(on_human) != len(codes):
        raise InvalidData(f"there are {len(codes)} human labels but {len(on_human)} of the judge on them.")
    k, j = len(classes), int(max(cells.max(), on_human.max(), 0 if scores else len(classes) - 1)) + 1
    if k < 2:
        raise InvalidData(f"the human labels are all {classes.tolist()[0]!r}; add some of the other class.")
    counts = count(codes, k)
    if counts.min() < FEWEST:
        raise InvalidData(
            f"class {classes.tolist()[int(counts.argmin())]!r} has {counts.min()} human labels; the judge's errors on "
            f"it need at least {FEWEST}, better 50. Label more of it."
        )
    bag = count(cells, j)
    table = np.array([count(on_human[codes == c], j) for c in range(k)])
    own = counts if calibration == "part" else np.zeros(k, dtype=int)
    judged_shares = np.full(k, np.nan) if scores else bag / bag.sum()
    found = correct_counts(bag[None], table, own[None], level=level, random_state=random_state)
    estimate, lower, upper = (one[0] for one in found)
    return CorrectedRate(classes, estimate, lower, upper, judged_shares, level)


def correct_counts(
    bags: IntArray, table: IntArray, own: IntArray, *, level: float, random_state: int | None = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Corrected prevalences and their intervals from counts, of many groups that one judge has judged.

    Parameters
    ----------
    bags : (r, j) how often the judge gave each of its labels in every group, without those that people labelled too.
    table : (k, j) the same by the human label, over all groups: what is known of the judge.
    own : (r, k) human labels that count as a random part of their group; zeros where there are none.
    level : of confidence.
    random_state : of the draws for more than two classes; every group has its own.

    Returns
    -------
    estimate, lower, upper : (r, k).

    Examples
    --------
    >>> judge, groups = np.array([[90, 10], [20, 80]]), np.array([[550, 450], [900, 100]])
    >>> estimate, lower, upper = correct_counts(groups, judge, np.zeros((2, 2), dtype=int), level=0.95)
    >>> estimate[:, 1].round(3), lower[:, 1].round(3), upper[:, 1].round(3)
    (array([0.5, 0. ]), array([0.416, 0.   ]), array([0.59, 0.07]))
    """
    r, k = own.shape
    if k == 2:
        tables = np.broadcast_to(table, (r, *table.shape))
        p, low, high = profile(bags, tables, own, level=level)
        return np.stack([1 - p, p], axis=1), np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)
    parts = []
    for bag, human in zip(bags, own, strict=True):
        rng = np.random.default_rng(random_state)
        parts.append(_drawn(bag, table, human, level=level, rng=rng))
    estimate, lower, upper = (np.stack(one) for one in zip(*parts, strict=True))
    return estimate, lower, upper


def profile(
    bags: IntArray, tables: IntArray, own: IntArray, *, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate and interval of the second class's prevalence: (r, j), (r, 2, j), (r, 2) -> three of (r,).

    Given p, the likelihood is concave in the judge's error rates, so these are found by Newton's method, for all r
    problems at once; the ends of the interval by halving.
    """
    added = np.asarray(tables + PSEUDO, dtype=float)
    best = _maximise(bags, added, own)
    top = _profiled(best, bags, added, own)
    cut = top - stats.chi2.ppf(level, 1) / 2
    ends = []
    for end in (0.0, 1.0):
        inside, outside = best.copy(), np.full(len(best), end)
        reached = _profiled(outside, bags, added, own) >= cut
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            fine = _profiled(middle, bags, added, own) >= cut
            inside, outside = np.where(fine, middle, inside), np.where(fine, outside, middle)
        ends.append(np.where(reached, end, inside))
    return best, ends[0], ends[1]


def _maximise(bags: IntArray, tables: FloatArray, own: IntArray) -> FloatArray:
    """The most likely prevalence of the second class: (r,), by a grid and golden sections around its best point."""
    grid = np.linspace(0, 1, 33)
    values = np.stack([_profiled(np.full(len(bags), p), bags, tables, own) for p in grid])
    at = values.argmax(axis=0)
    low, high = grid[np.maximum(at - 1, 0)], grid[np.minimum(at + 1, len(grid) - 1)]
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(HALVINGS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        better = _profiled(left, bags, tables, own) >= _profiled(right, bags, tables, own)
        low, high = np.where(better, low, left), np.where(better, right, high)
    return (low + high) / 2


def _profiled(p: FloatArray, bags: IntArray, tables: FloatArray, own: IntArray) -> FloatArray:
    r"""Log-likelihood at p with the error rates that suit it best: (r,).

    The best rates are :math:`\theta_{jc} = t_{jc} / (\mu_c - p_c u_j)` with :math:`u_j = b_j / q_j`; for two outcomes
    that leaves one unknown in each class, found by Newton's method on both.
    """
    shares = np.stack([1 - p, p], axis=1)  # (r, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        known = np.where(own > 0, own * np.log(shares), 0.0).sum(axis=1)
    return _best_rates(shares, bags.astype(float), tables) + known


def _best_rates(shares: FloatArray, bags: FloatArray, tables: FloatArray) -> FloatArray:
    """Largest log-likelihood over the rates (r, 2, j), by damped Newton steps in log rates' differences."""
    r, k, j = tables.shape
    rates = tables / tables.sum(axis=2, keepdims=True)
    eye = np.eye(j - 1)

    def value(rates: FloatArray) -> FloatArray:
        mixed = np.maximum(np.einsum("rk,rkj->rj", shares, rates), 1e-300)
        return (bags * np.log(mixed)).sum(axis=1) + (tables * np.log(np.maximum(rates, 1e-300))).sum(axis=(1, 2))

    now = value(rates)
    for _ in range(STEPS):
        mixed = np.einsum("rk,rkj->rj", shares, rates)
        # In the first j - 1 rates of each class; the last one is what they leave.
        slope_cells = tables / rates + shares[:, :, None] * (bags / mixed)[:, None]
        slope = (slope_cells[..., :-1] - slope_cells[..., -1:]).reshape(r, -1)
        own_curve = tables / rates**2
        blocks = np.zeros((r, k, j - 1, k, j - 1))
        joint = bags / mixed**2
        cross = joint[:, -1, None, None] + joint[:, :-1, None] * eye
        for a in range(k):
            blocks[:, a, :, a] += own_curve[:, a, -1, None, None] + own_curve[:, a, :-1, None] * eye
            for b in range(k):
                blocks[:, a, :, b] += (shares[:, a] * shares[:, b])[:, None, None] * cross
        step = np.linalg.solve(blocks.reshape(r, slope.shape[1], -1), slope[..., None])[..., 0]
        if np.abs((step * slope).sum(axis=1)).max() < 1e-9:
            break
        moves = step.reshape(r, k, j - 1)
        moves = np.concatenate([moves, -moves.sum(axis=2, keepdims=True)], axis=2)
        # No further than most of the way to where a rate would be zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(moves < 0, -rates / moves, np.inf).min(axis=(1, 2))
        length = np.minimum(1.0, 0.9 * room)
        for _ in range(20):
            tried = value(rates + length[:, None, None] * moves)
            worse = tried < now - 1e-12
            if not worse.any():
                break
            length = np.where(worse, length / 2, length)
        rates = rates + length[:, None, None] * moves
        now = value(rates)
    return now


def judgement_cells(
    judged: ArrayLike, judge_on_human: ArrayLike, classes: LabelArray, codes: IntArray, *, scores: bool
) -> tuple[IntArray, IntArray]:
    """Both parts of the judge's work as numbers of cells, (n,) and (m,): labels, or bins of scores.

    Parameters
    ----------
    judged, judge_on_human : labels, or scores of the second class, of the instances in question and of those that
        people have labelled too.
    classes, codes : (k,) and (m,): the human labels, and which each of the latter has.
    scores : whether the judge gives scores.
    """
    given, beside = np.asarray(judged), np.asarray(judge_on_human)
    if given.ndim != 1 or beside.ndim != 1 or not len(given):
        raise InvalidData(f"judgements are one for each instance, at least one; their shape is {given.shape}.")
    if not scores:
        return encode(given, classes), encode(beside, classes)
    if len(classes) != 2:
        raise InvalidData(f"scores are for two classes; the human labels have {len(classes)}. Give the judge's labels.")
    given, beside = given.astype(float), beside.astype(float)
    if not (np.isfinite(given).all() and np.isfinite(beside).all()):
        raise InvalidData("some scores are NaN or infinite. Drop those instances.")
    # Five human labels a bin or so: finer ones would say more of the chance in the few than of the judge.
    bins = int(np.clip(count(codes, 2).min() // 10, 2, MOST_BINS))
    cuts = np.unique(np.quantile(beside, np.arange(1, bins) / bins))
    return np.searchsorted(cuts, given, side="right"), np.searchsorted(cuts, beside, side="right")


def _drawn(
    bag: IntArray, table: IntArray, own: IntArray, *, level: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate and interval for any number of classes, by draws of the rates and the judged shares."""
    k = len(table)
    if not bag.any():  # people have labelled all there is
        human = rng.dirichlet(own + PSEUDO, size=DRAWS)
        lower, upper = np.quantile(human, [(1 - level) / 2, (1 + level) / 2], axis=0)
        shares = own / own.sum()
        return shares, np.minimum(lower, shares), np.maximum(upper, shares)
    rates = np.stack([rng.dirichlet(row + PSEUDO, size=DRAWS) for row in table], axis=2)  # (s, j, k)
    shares = rng.dirichlet(bag + PSEUDO, size=DRAWS)
    found = _solved(rates, shares)
    estimate = _solved((table / table.sum(axis=1, keepdims=True)).T[None], (bag / bag.sum())[None])[0]
    if own.any():
        human = rng.dirichlet(own + PSEUDO, size=DRAWS)
        # The two are independent; each class is weighted by how sure either is of it.
        sure, surer = found.var(axis=0).mean(), human.var(axis=0).mean()
        weight = surer / (sure + surer)
        found = weight * found + (1 - weight) * human
        estimate = weight * estimate + (1 - weight) * own / own.sum()
    lower, upper = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    assert estimate.shape == (k,)
    return estimate, np.minimum(lower, estimate), np.maximum(upper, estimate)


def _solved(rates: FloatArray, shares: FloatArray) -> FloatArray:
    """Prevalences that the rates turn into judged shares: (s, j, k), (s, j) -> (s, k)."""
    quadratic = rates.swapaxes(1, 2) @ rates
    quadratic += 1e-6 * np.eye(rates.shape[2])
    linear = rates.swapaxes(1, 2) @ shares[..., None]
    both = np.linalg.solve(quadratic, np.concatenate([linear, np.ones_like(linear)], axis=2))
    free, ones = both[..., 0], both[..., 1]
    return project(free - (free.sum(axis=1, keepdims=True) - 1) / ones.sum(axis=1, keepdims=True) * ones)
