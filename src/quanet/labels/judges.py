r"""Correct the rates of a fallible judge: true prevalences with intervals.

A judge (a classifier, a crowd, a language model) labels many instances, and people label a few of them too. If the
judge gives label j to a fraction :math:`\theta_{cj}` of class c, its rates are :math:`q_j = \sum_c p_c \theta_{cj}`.
The prevalences p and their intervals follow from the likelihood of all counts.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers.cross_fitting import check_labels
from quanet.errors import InvalidData
from quanet.labels.judge_covariance import JudgedUnits, cluster_codes, joint_spread
from quanet.labels.judge_likelihood import PSEUDO_COUNT, likelihood_intervals
from quanet.parameters import check_level, one_of
from quanet.simplex import classes_of, count, encode
from quanet.wording import between, percent

MIN_PER_CLASS = 5  # human labels per class; fewer do not show how the judge errs
MAX_BINS = 8
CHUNK = 500  # groups corrected together; bounds the memory


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
