r"""How far to trust estimates when the classifier hardly separates the classes.

Every method divides, in one way or another, by what the classifier knows. Where it knows little they magnify chance,
and the training prevalences would be the better answer. So estimates :math:`\hat p` are moved towards the training
prevalences :math:`\rho`:

.. math:: \hat p - s\, (\hat p - \rho), \qquad 0 \le s \le 1.

The shrinkage s is learnt from held-out instances alone. First, from their posteriors, the share of the variance of
prevalences spread evenly over the simplex that could be known from them (`knowledge`). From one half on, s = 0: no
digit of an estimate changes. Below, what the method has learnt is learnt again from one half of the instances, and bags
of the other half show by how much its estimates overshoot (`believable`). This is the shrinkage of James and Stein
(1961), with noise measured instead of assumed.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.stats import chi2

from quanet.arrays import FloatArray, IntArray
from quanet.errors import QuanetWarning
from quanet.simplex import count, draw_uniformly, to_counts

FEWEST = 30  # held-out instances; with fewer, nothing is measured and nothing shrunk
FEWEST_OF_CLASS = 4  # held-out instances of a class, so that either half has two
KNOWN = 0.5  # share of the variance from which a classifier is good enough
CHANCE = 0.01  # p-value above which a classifier is taken to know nothing
LUCK = 0.001  # probability that chance adds more to what it seems to know than is subtracted
BAGS, SIZE = 100, 200  # drawn from either half of the held-out instances
ADVICE = "More labelled instances or better features would help."
RIDGE = 1e-12  # variance added to posteriors, which may be constant


def shrinkage_of(quantifier: Any, scores: FloatArray, inputs: FloatArray, codes: IntArray) -> float:
    """The shrinkage of a fitted quantifier, between 0 (none) and 1 (the training prevalences).

    Parameters
    ----------
    quantifier : fitted; its estimates are not shrunk yet.
    scores : (m, k) what it counts or averages of held-out instances: posteriors, or predicted labels as one-hot rows.
    inputs : (m, d) what it learns from.
    codes : (m,) their classes.
    """
    counts = count(codes, scores.shape[1])
    if len(codes) < FEWEST or counts.min() < 2:  # one instance does not show how those of its class differ
        return 0.0
    known = knowledge(scores, codes)
    if known >= KNOWN:
        return 0.0
    # By chance, out-of-fold posteriors of a class may well be lower in this class; no new bag will be like that.
    weight = known / KNOWN if _points_right(scores, codes) else 0.0
    if weight > 0 and counts.min() >= FEWEST_OF_CLASS:
        weight = min(weight, believable(quantifier, inputs, codes))
    return 1 - weight


def knowledge(scores: FloatArray, codes: IntArray) -> float:
    r"""Share of the variance of prevalences that scores (m, k) of instances with classes (m,) can explain: 0 to 1.

    Class means of the scores, :math:`\mu_c`, are known up to a covariance of :math:`\Sigma / m_c`. Prevalences are
    then known with a precision (inverse covariance) of about

    .. math:: J_{cd} = \frac{\mu_c^\top \Sigma^{-1} \mu_d}{\sum_c \mathrm{E}[p_c^2] / m_c},

    less what chance may add to it: more in one case of a thousand. With prevalences uniform on the simplex, and so of
    variance :math:`v` in every direction, the share explained is the mean of :math:`v \lambda / (1 + v \lambda)` over
    the eigenvalues of J. It is 0 where Bartlett's test does not show that the class means differ at all.

    Examples
    --------
    >>> codes = np.repeat([0, 1], 20)
    >>> knowledge(np.eye(2)[codes], codes) > 0.999, knowledge(np.full((40, 2), 0.5), codes)
    (True, 0.0)
    """
    m, k = scores.shape
    counts = count(codes, k)
    means = (np.eye(k)[codes].T @ scores) / counts[:, None]
    centred, within = scores - scores.mean(axis=0), scores - means[codes]
    total = centred.T @ centred / m
    rank = max(1, int(np.linalg.matrix_rank(total, hermitian=True)))
    ridge = RIDGE * np.eye(k)
    inside = within.T @ within / m
    gain = np.linalg.slogdet(total + ridge)[1] - np.linalg.slogdet(inside + ridge)[1]
    degrees = rank * (k - 1)
    if chi2.sf(max(0.0, m - 1 - (rank + k) / 2) * gain, degrees) > CHANCE:
        return 0.0
    chance = chi2.isf(LUCK, degrees) / (k - 1) * np.diag(1 / counts)
    precision = means @ np.linalg.inv(inside * m / (m - k) + ridge) @ means.T - chance
    centre = np.eye(k) - 1 / k
    # Uniform prevalences have a variance of 1 / (k (k + 1)) in every direction, and a mean square of twice that.
    ratios = np.linalg.eigvalsh(centre @ precision @ centre).clip(0) / (2 * (1 / counts).sum())
    return float((ratios / (1 + ratios)).sum() / (k - 1))


def _points_right(scores: FloatArray, codes: IntArray) -> bool:
    """Whether the scores of a class are higher in this class than in others, on average over the classes."""
    own = np.eye(scores.shape[1])[codes]
    means = (own.T @ scores) / own.sum(axis=0)[:, None]
    return bool(np.trace(means) > means.sum() / len(means))


def believable(quantifier: Any, inputs: FloatArray, codes: IntArray) -> float:
    """By how much deviations of estimates from the training prevalences should be multiplied, at most 1.

    The true deviations are regressed on the estimated ones, in bags at prevalences uniform on the simplex. What has
    been learnt from held-out inputs (m, d) of classes (m,) is learnt again from one half, and bags are drawn from the
    other; then the other way round. Halves are neighbours, so that they come from other folds where there are folds.
    Both halves have chance errors of their own, so that the excess of estimates over truth is twice what it should be.
    """
    prior = quantifier.prior_
    order = np.unique(codes, return_index=True)[1].argsort()  # of first appearance: names of classes decide nothing
    place = order.argsort()
    half = _first_half(codes, len(prior))
    rng = np.random.default_rng(0)
    along = squared = 0.0
    for own in (half, ~half):
        counts = to_counts(draw_uniformly(BAGS, len(prior), rng=rng), SIZE)
        drawn = _draw(place[codes[own]], counts, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuanetWarning)  # fit has reported it
            relearnt = quantifier._relearnt(inputs[~own], codes[~own])  # noqa: SLF001
            estimated = relearnt.aggregate(relearnt._rows(inputs[own])[drawn]) - prior  # noqa: SLF001
        along += float(((counts[:, place] / SIZE - prior) * estimated).sum())
        squared += float((estimated**2).sum())
    slope = min(max(along / max(squared, RIDGE), 0.0), 1.0)
    return 2 * slope / (1 + slope)


@contextmanager
def members_are_quiet() -> Iterator[None]:
    """While members of a method are fitted: that they are shrunk is reported once, for all of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The classifier (hardly|does not) separate", QuanetWarning)
        yield


def shrinkage_of_members(members: Sequence[Any]) -> float:
    """The mean shrinkage of the fitted members of a method; if it is not 0, it is reported."""
    shrinkage = float(np.mean([member.shrinkage_ for member in members]))
    warn_of_shrinkage(shrinkage)
    return shrinkage


def joint_shrinkage(members: Sequence[Any]) -> float:
    """The shrinkage of members together, which they then leave to the method: it is reported if it is not 0.

    For members that were trained at other prevalences than those of all data, and so would be shrunk towards others.
    Their median, since some of these members have very few instances of a class.
    """
    shrinkage = float(np.median([member.shrinkage_ for member in members]))
    for member in members:
        member.shrinkage_ = 0.0
    warn_of_shrinkage(shrinkage)
    return shrinkage


def warn_of_shrinkage(shrinkage: float) -> None:
    """Report that estimates are shrunk, and what would help, if they are."""
    if shrinkage:
        warnings.warn(f"{shrinkage_sentence(shrinkage)} {ADVICE}", QuanetWarning, stacklevel=4)


def shrinkage_sentence(shrinkage: float) -> str:
    """The sentence for people, in warnings and reports.

    Examples
    --------
    >>> shrinkage_sentence(0.87)
    'The classifier hardly separates the classes; estimates are shrunk by 87 % towards the training prevalence.'
    >>> shrinkage_sentence(1.0)
    'The classifier does not separate the classes; the training prevalence is given as the estimate.'
    """
    if shrinkage == 1:
        return "The classifier does not separate the classes; the training prevalence is given as the estimate."
    return (
        f"The classifier hardly separates the classes; estimates are shrunk by {100 * shrinkage:.0f} % "
        "towards the training prevalence."
    )


def one_hot(posteriors: FloatArray) -> FloatArray:
    """Predicted labels as rows of 0 and 1: (m, k) -> (m, k)."""
    return np.asarray(np.eye(posteriors.shape[1])[posteriors.argmax(axis=1)])


def _first_half(codes: IntArray, k: int) -> Any:
    """The first half of the instances of every class, as a mask (m,)."""
    half = np.zeros(len(codes), dtype=bool)
    for c in range(k):
        members = np.flatnonzero(codes == c)
        half[members[: len(members) // 2]] = True
    return half


def _draw(codes: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """Positions (b, n) of instances of classes (m,), drawn with replacement to give the class counts (b, k)."""
    sizes = count(codes, counts.shape[1])
    owner = (np.arange(counts[0].sum()) >= counts.cumsum(axis=1)[:, :, None]).sum(axis=1)
    within = (rng.random(owner.shape) * sizes[owner]).astype(np.intp)
    return np.asarray(np.argsort(codes, kind="stable")[(np.cumsum(sizes) - sizes)[owner] + within])
