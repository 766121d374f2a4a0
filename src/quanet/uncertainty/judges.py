r"""Corrected rates: what a fallible judge's labels say about the true prevalence, with an interval.

A judge (a classifier, a crowd, a language model) labels many instances; people label a few of its cases too. With
:math:`\theta_{cj}` the share of class c that gets the label j from the judge, the judged shares are
:math:`q_j = \sum_c p_c \theta_{cj}`. The prevalences p and their intervals follow from the likelihood of all counts.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers import check_labels
from quanet.errors import InvalidData, InvalidSetting
from quanet.simplex import classes_of, count, encode
from quanet.uncertainty.judge_likelihood import likelihood_intervals

FEWEST = 5  # human labels of every class, below which the judge's errors are a guess
# Cases added to every cell of the table of human and judged labels, for the interval only. Without it, intervals of
# judges with 10 labels a class cover in 90 % at worst, with it in 93 % (benchmarks/judges.py, 500 trials a setting).
PSEUDO = 0.1
MOST_BINS = 8
AT_ONCE = 500  # groups that are corrected together, so that memory is bounded


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
) -> CorrectedRate:
    r"""The true prevalence behind a judge's labels or scores, from a part that people have labelled too.

    For two classes the estimate is that of Rogan and Gladen (1978), :math:`(q - fpr) / (tpr - fpr)`, clipped to [0, 1];
    for more it solves :math:`q = \theta^T p`, or is the most likely vector of prevalences where the solution has a
    negative one. Scores, and human labels of the instances themselves, make it the most likely vector too.

    The interval of a class holds all prevalences that a likelihood-ratio test does not reject, whatever the judge's
    error rates and the other prevalences are. So it is wide where the human part is small, reaches 0 or 1 where these
    are plausible, and is all of [0, 1] for a judge who guesses. For the interval, not for the estimate, a tenth of a
    case is added to every cell of the table of human and judged labels, so that no error counts as impossible.

    Parameters
    ----------
    judged : (n,) the judge's labels of the instances in question; or scores, of the larger class.
    human : (m,) labels by people, of instances that the judge has labelled as well.
    judge_on_human : (m,) what the judge says of those.
    level : of confidence.
    calibration : "apart", instances from anywhere that the judge treats the same way: only its error rates count; or
        "part", a random part of the instances in question (and not in `judged`): its human labels count as well.
    scores : whether the judge gives scores instead of labels; for two classes.

    References
    ----------
    W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening test", 1978.

    Examples
    --------
    A judge that calls 80 % of the good ones good, and 10 % of the bad ones:

    >>> human = ["good"] * 100 + ["bad"] * 100
    >>> judge = ["good"] * 80 + ["bad"] * 20 + ["good"] * 10 + ["bad"] * 90
    >>> print(correct_rate(["good"] * 450 + ["bad"] * 550, human, judge))
    bad: 50.0% (41.0% to 58.3%), judged 55.0%
    good: 50.0% (41.7% to 59.0%), judged 45.0%

    A judge that was right on 40 of 40 and says 2 %, which it may owe to an error that 40 labels did not show:

    >>> print(correct_rate([1] * 20 + [0] * 980, [0, 1] * 20, [0, 1] * 20))
    0: 98.0% (97.1% to 100.0%), judged 98.0%
    1: 2.0% (0.0% to 2.9%), judged 2.0%
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
    found = correct_counts(bag[None], table[None], own[None], level=level)
    estimate, lower, upper = (one[0] for one in found)
    return CorrectedRate(classes, estimate, lower, upper, judged_shares, level)


def correct_counts(
    bags: IntArray, tables: IntArray, own: IntArray, *, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Corrected prevalences and their intervals from counts, of many groups.

    Parameters
    ----------
    bags : (r, j) how often the judge gave each of its labels in every group, without those that people labelled too.
    tables : (r, k, j) the same by the human label: what is known of how the judge errs in the group. Equal ones say
        that it errs the same way everywhere.
    own : (r, k) human labels that count as a random part of their group; zeros where there are none.
    level : of confidence.

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
    parts = [slice(at, at + AT_ONCE) for at in range(0, len(bags), AT_ONCE)]
    found = [likelihood_intervals(bags[one], tables[one], own[one], level=level, added=PSEUDO) for one in parts]
    estimate, lower, upper = (np.concatenate(one) for one in zip(*found, strict=True))
    return estimate, lower, upper


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
