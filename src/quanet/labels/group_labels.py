r"""Refine the shares of groups with a few labels: own labels where there are enough, all labels elsewhere.

A group's share is λ times its mean posterior plus its correction, the mean of y - λf. A group with at least
`MIN_LABELS` labels is corrected by these alone, which is valid however groups differ. A group with fewer borrows from
the others: corrections are taken to be drawn from a normal distribution whose variance τ² is estimated, and intervals
include τ² and its uncertainty (Morris 1983; a flat prior for τ).
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.labels.prediction_powered import (
    PSEUDO,
    ExposedDesign,
    LabelDesign,
    PoweredMean,
    prediction_powered,
    score_interval,
)
from quanet.labels.refine import MIN_LABELS, responsibilities
from quanet.simplex import project

BORROWED = 20  # instances with the shares of all, added to each group when its posteriors are adapted
PRIOR_LABELS = 10  # labels that the residual variance of all groups counts for in each group
ITERATIONS = 200
DEVIATIONS = np.linspace(0, 0.5, 101)  # τ
NEVER = 1e6  # variance of the correction of a group without labels


@dataclass(frozen=True, slots=True, eq=False)
class GroupLabels:
    """Labelled instances of groups.

    Attributes
    ----------
    ratios : (N, k) likelihood ratios of all instances, labelled or not.
    owner : (N,) group of each instance, from 0.
    known : (n, k) likelihood ratios of the labelled instances.
    known_owner : (n,) their groups.
    codes : (n,) their classes.
    design : how they were drawn.
    exposure : (N,) weights of the instances in a share; None for equal ones.
    instances, squares : (N,) if rows stand for several instances each: how many, and the sum of their squared weights.
        `exposure` is then the sum of their weights.
    """

    ratios: FloatArray
    owner: IntArray
    known: FloatArray
    known_owner: IntArray
    codes: IntArray
    design: LabelDesign | ExposedDesign
    exposure: FloatArray | None = None
    instances: FloatArray | None = None
    squares: FloatArray | None = None

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.owner.max()) + 1

    @property
    def counts(self) -> FloatArray:
        """(N,) instances that each row stands for."""
        return np.ones(len(self.ratios)) if self.instances is None else self.instances

    @property
    def weights(self) -> FloatArray:
        """(N,) weight of each row."""
        return self.counts if self.exposure is None else self.exposure


@dataclass(frozen=True, slots=True, eq=False)
class RefinedGroups:
    """Refined shares of groups.

    Attributes
    ----------
    estimate, lower, upper : (g, k).
    labelled : (g,) labels in each group.
    own : (g,) groups corrected by their own labels alone.
    p_value : of the hypothesis that the corrections of all groups are equal; NaN if fewer than two have own labels.
    effective : (g, k) number of random labels whose plain share has the same variance; infinite if all are labelled.
    sizes : (g,) number of instances of equal weight.
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    labelled: IntArray
    own: BoolArray
    p_value: float
    effective: FloatArray
    sizes: FloatArray

    def interval_of_sources(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits (g, k), (g, k) of the shares of the sources that the instances of each group were drawn from.

        The variance is that of the group itself plus p (1 - p) / n for its n instances. Where posteriors are useless,
        it is that of the plain share of the labels, without finite-population correction.

        Examples
        --------
        Sixteen of 64 instances, all labelled: Wilson's interval of 16 of 64.

        >>> share = np.array([[0.75, 0.25]])
        >>> n, known = np.array([64]), np.full((1, 2), np.inf)
        >>> found = RefinedGroups(share, share, share, n, n > 9, np.nan, known, np.array([64.0]))
        >>> lower, upper = found.interval_of_sources(0.95)
        >>> lower[0].round(3), upper[0].round(3)
        (array([0.632, 0.16 ]), array([0.84 , 0.368]))
        """
        return score_interval(self.estimate, 1 / (1 / self.effective + 1 / self.sizes[:, None]), level)


def refine_groups(labels: GroupLabels, shares: FloatArray, *, level: float) -> RefinedGroups:
    """Shares of groups and their intervals; `shares` (k,) are those of all instances."""
    adapted, known = adapt_posteriors(labels, shares)
    weights, k, g = labels.weights, len(shares), labels.groups
    powered = prediction_powered(adapted, known, labels.codes, design=labels.design, exposure=weights)
    total = np.bincount(labels.owner, weights)
    mean = _sums(labels.owner, weights[:, None] * adapted, g) / total[:, None]
    own = _OwnCorrections.of(labels, powered.residuals, g)
    sizes = np.bincount(labels.owner, labels.counts)
    base = powered.weight * mean
    enough = own.n >= MIN_LABELS
    relative = _relative(powered)
    concentration = np.bincount(labels.owner, weights**2 if labels.squares is None else labels.squares) / total**2
    usual = (np.clip(powered.estimate, 0, 1) * powered.n + 1 / k) / (powered.n + 1)  # never 0
    # Groups are weighted by variances at the shares of all: those at its own labels are smaller where a group has by
    # chance too few labels of a rare class, which would pull all groups towards such labels.
    alike = relative * usual * (1 - usual)
    common = np.minimum(own.spread * (1 - own.n / sizes), 1 / PRIOR_LABELS)[:, None]
    lent = np.where(own.n[:, None] > 0, alike * (own.spread * (1 - own.n / sizes))[:, None], NEVER)
    borrowed, doubt = _borrow(own.correction, lent, alike * concentration[:, None])
    estimate = base + np.where(enough[:, None], own.correction, borrowed)
    trust = np.maximum(own.n, PRIOR_LABELS)[:, None]
    smooth = (np.clip(estimate, 0, 1) * trust + usual) / (trust + 1)
    spread = smooth * (1 - smooth)
    variance = own.smoothed(relative * spread) * (1 - own.n / sizes)[:, None]
    final = np.where(enough[:, None], variance, doubt)
    # As in `effective_labels`; a group without labels has none that could agree by chance.
    doubtful = np.where(own.n > 0, PSEUDO / np.maximum(own.n, PRIOR_LABELS), 0.0)[:, None]
    with np.errstate(divide="ignore"):
        effective = (spread + doubtful) / (final + doubtful * common)
    lower, upper = score_interval(estimate, effective, level)
    if isinstance(labels.design, ExposedDesign):
        found = (estimate, lower, upper, effective)
        _refine_exposed(labels, labels.design, (adapted, known), powered.weight, enough, found, level)
    # Errors of the posteriors themselves: y - f.
    errors = prediction_powered(adapted, known, labels.codes, design=labels.design, exposure=weights, weight=1.0)
    apart = _OwnCorrections.of(labels, errors.residuals, g)
    p_value = _equal(apart.correction[enough], apart.smoothed(_relative(errors) * spread)[enough], k)
    return RefinedGroups(project(estimate), lower, upper, own.n, enough, p_value, effective, 1 / concentration)


def _refine_exposed(
    labels: GroupLabels,
    design: ExposedDesign,
    posteriors: tuple[FloatArray, FloatArray],
    weight: float,
    enough: BoolArray,
    found: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    level: float,
) -> None:
    """Estimate groups with enough labels as bags of their own, whose exposure differs much: `found` is changed."""
    rows, known = (_members(owner, labels.groups) for owner in (labels.owner, labels.known_owner))
    for g in np.flatnonzero(enough).tolist():
        part = design.part(rows[g], known[g])
        if part is None:
            continue
        powered = prediction_powered(
            posteriors[0][rows[g]],
            posteriors[1][known[g]],
            labels.codes[known[g]],
            design=part,
            exposure=labels.weights[rows[g]],
            weight=weight,
        )
        values_of_group = (powered.estimate, *powered.interval(level), powered.effective)
        for values, value in zip(found, values_of_group, strict=True):
            values[g] = value


def _members(owner: IntArray, g: int) -> list[IntArray]:
    """Positions of the members of each group."""
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=g))[:-1])


def adapt_posteriors(labels: GroupLabels, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posteriors for the prevalence of each instance's group, by EM with the labels fixed: (N, k), (n, k).

    Each group starts from `shares` and counts `BORROWED` instances of them, so that small groups stay close to all.
    """
    k, g, counts = len(shares), labels.groups, labels.counts[:, None]
    ratios, owner, known, theirs = labels.ratios, labels.owner, labels.known, labels.known_owner
    fixed = BORROWED * shares + _sums(theirs, np.eye(k)[labels.codes], g)
    found = np.tile(shares, (g, 1))
    for _ in range(ITERATIONS):
        every = _sums(owner, counts * responsibilities(ratios, found[owner]), g)
        updated = fixed + np.maximum(every - _sums(theirs, responsibilities(known, found[theirs]), g), 0)
        updated /= updated.sum(axis=1, keepdims=True)
        moved = np.abs(updated - found).max()
        found = updated
        if moved < 1e-5:
            break
    return responsibilities(ratios, found[owner]), responsibilities(known, found[theirs])


@dataclass(frozen=True, slots=True, eq=False)
class _OwnCorrections:
    """The labels of each group alone: their number (g,), correction (g, k), its variance (g, k), and spread (g,)."""

    n: IntArray
    correction: FloatArray
    variance: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, labels: GroupLabels, residuals: FloatArray, g: int) -> "_OwnCorrections":
        owner, influence, strata = labels.known_owner, labels.design.influence, labels.design.strata
        n = np.bincount(owner, minlength=g)
        total = np.maximum(np.bincount(owner, influence, minlength=g), 1e-12)
        correction = _sums(owner, influence[:, None] * residuals, g) / total[:, None]
        scaled = (influence / total[owner])[:, None] * (residuals - correction[owner])
        # Strata that lie within one group, as in a plan by group, make the variance smaller.
        nested = len(np.unique(np.stack([owner, strata]), axis=1).T) == strata.max() + 1
        cell = strata if nested else owner
        sizes = np.maximum(np.bincount(cell), 1)
        centred = scaled - (_sums(cell, scaled, len(sizes)) / sizes[:, None])[cell]
        factors = (sizes / np.maximum(sizes - 1, 1))[cell]
        variance = _sums(owner, factors[:, None] * centred**2, g)
        return cls(n, correction, variance, np.bincount(owner, influence**2, minlength=g) / total**2)

    def smoothed(self, expected: FloatArray) -> FloatArray:
        """Variances (g, k) of which those expected, per label (g, k), are a part: groups have few labels."""
        counted = np.where(self.n > 1, self.n, 0)[:, None]
        prior = PRIOR_LABELS * expected * self.spread[:, None]
        return np.asarray((counted * self.variance + prior) / (counted + PRIOR_LABELS))


def _relative(powered: PoweredMean) -> FloatArray:
    """The variance of a residual, relative to p (1 - p), in all groups together: (k,)."""
    return np.asarray(1 / (powered.effective * max(powered.spread, 1e-12)))


def _borrow(correction: FloatArray, variance: FloatArray, finite: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corrections that borrow from all groups, and their variances: (g, k) each.

    Corrections are normal with a common mean and variance τ² plus `finite`, the variance of a group of finite size.
    """
    between = DEVIATIONS[:, None, None] ** 2 + finite  # (τ, g, k)
    weights = 1 / np.maximum(variance + between, 1e-12)  # 0 if all groups are labelled completely
    doubt = 1 / weights.sum(axis=1)  # (τ, k)
    mean = (weights * correction).sum(axis=1) * doubt
    misfit = (weights * (correction - mean[:, None]) ** 2).sum(axis=1)
    likelihood = 0.5 * (np.log(weights).sum(axis=1) + np.log(doubt) - misfit)
    chance = np.exp(likelihood - likelihood.max(axis=0))
    chance = (chance / chance.sum(axis=0))[:, None]  # (τ, 1, k)
    lent = variance * weights
    each = lent * mean[:, None] + (1 - lent) * correction
    spread = (1 - lent) * variance + lent**2 * doubt[:, None]
    found = (chance * each).sum(axis=0)
    return found, np.asarray((chance * (spread + (each - found) ** 2)).sum(axis=0))


def _equal(correction: FloatArray, variance: FloatArray, k: int) -> float:
    """P-value of equal corrections (g, k), by Cochran's Q of the class that differs most, corrected for classes."""
    if len(correction) < 2:
        return float("nan")
    weights = 1 / np.maximum(variance, 1e-12)
    mean = (weights * correction).sum(axis=0) / weights.sum(axis=0)
    misfit = (weights * (correction - mean) ** 2).sum(axis=0)
    p_value = stats.chi2.sf(misfit, len(correction) - 1).min() * (1 if k == 2 else k)
    return min(float(p_value), 1.0)


def _sums(owner: IntArray, values: FloatArray, g: int) -> FloatArray:
    """Sums of the rows of each group: (n,), (n, k) -> (g, k)."""
    return np.stack([np.bincount(owner, column, minlength=g) for column in values.T], axis=1)
