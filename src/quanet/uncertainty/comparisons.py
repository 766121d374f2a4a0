"""Differences and trends: `difference` for two bags, `difference_bags` for many, `trend_bags` over periods."""

from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.data.instances import Inputs
from quanet.errors import InvalidBags, InvalidData, InvalidSetting
from quanet.uncertainty.contrasts import Sides, contrast, read_sides
from quanet.uncertainty.differences import Differences, Trend
from quanet.uncertainty.policy import Method, Target

PAIRS = ("rest", "previous")
MIN_PERIODS = 3  # of a trend
ROWS = 2**25  # of all bags that are compared at a time; those with the rest have many
FAR_NOTE = "far from the training data"


class ComparisonOptions(TypedDict, total=False):
    """Options of `difference`, which describes them."""

    method: Method
    target: Target
    held_out: tuple[Any, Any] | None
    rng: int
    drift: bool


class BagComparisonOptions(ComparisonOptions, total=False):
    """Options of `difference_bags` and `trend_bags`."""

    clusters: ArrayLike | None


def difference(
    quantifier: Quantifier,
    X_first: Any,
    X_second: Any,
    level: float = 0.95,
    *,
    names: tuple[Any, Any] = ("first", "second"),
    weights: tuple[ArrayLike, ArrayLike] | None = None,
    clusters: tuple[ArrayLike, ArrayLike] | None = None,
    **options: Unpack[ComparisonOptions],
) -> Differences:
    r"""The difference between the prevalences of two bags: those of X_second minus those of X_first.

    Use it to ask whether a change is more than chance; do not compare two intervals by eye. The interval accounts for
    what both bags share: the quantifier has learned from the same held-out instances, so that its errors cancel where
    the prevalences are equal; and bags that drifted in the same way have the same bias. With the distances
    :math:`r_1` and :math:`r_2` from the estimates to those ends of their intervals that move the difference down, the
    lower end L is that of MOVER [1]_ [2]_, with a separate term for the shared errors :math:`e`:

    .. math:: (\hat p_2 - \hat p_1 - L)^2 = r_1^2 (1 - \lambda_1) + r_2^2 (1 - \lambda_2)
              + z^2\, \mathrm{var}(e_2 - e_1),

    where :math:`\lambda_i` is the part of the variance of bag i that is shared.

    Parameters
    ----------
    quantifier : fitted.
    X_first, X_second : instances of the two bags, which must not share instances.
    level : probability that the interval contains the true difference.
    names : of the two bags.
    weights : of the instances of both bags, such as views.
    clusters : of the instances of both bags, such as their authors, as in `predict_interval`. They matter for the
        difference between sources. A cluster in both bags counts as two, which is cautious.

    Other Parameters
    ----------------
    method, held_out, rng, drift : as in `predict_interval`.
    target : "source" (the default) for the prevalences of the sources from which the bags were drawn at random, because
        the question is usually whether they differ by more than chance. "bag" for those of exactly these instances.

    Returns
    -------
    Differences
        one comparison.

    References
    ----------
    .. [1] G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures", 2008.
    .. [2] R. G. Newcombe, "Interval estimation for the difference between independent proportions", 1998.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> may, _ = Gaussians().draw([0.8, 0.2], 500, rng=1)
    >>> june, _ = Gaussians().draw([0.6, 0.4], 500, rng=2)
    >>> print(difference(EMQ().fit(X, y), may, june, names=("May", "June")))
    May -> June: class 1: +17.8 points (+9.9 to +25.4), p < .001
    """
    check_is_fitted(quantifier, "classes_")
    first, second = quantifier.read(X_first), quantifier.read(X_second)
    both = Inputs.joined([first, second])
    more: dict[str, Any] = {} if weights is None else {"weights": np.concatenate([np.ravel(one) for one in weights])}
    labels = np.empty(2, dtype=object)
    labels[:] = names
    bags = Bags([np.arange(len(first)), np.arange(len(first), len(both))], labels=labels, **more)
    of_both = None if clusters is None else np.concatenate([np.asarray(one, dtype=object) for one in clusters])
    return difference_bags(quantifier, both, bags, [[0, 1]], level, clusters=of_both, **options)


def difference_bags(
    quantifier: Quantifier,
    X: Any,
    bags: Bags,
    pairs: ArrayLike | Literal["rest", "previous"] = "rest",
    level: float = 0.95,
    **options: Unpack[BagComparisonOptions],
) -> Differences:
    r"""Differences between the prevalences of bags of a pool X, with Holm's correction over all comparisons.

    Use it to find the products that differ from the rest, or the months that differ from the month before. Of m
    p-values in ascending order, Holm's adjusted p-value [1]_ is

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min\big(1, (m - j + 1)\, p_{(j)}\big).

    Parameters
    ----------
    quantifier, X, bags : as in `predict_interval_bags`.
    pairs : (m, 2) positions of the first and the second bag of every comparison. Or "rest" (the default), which
        compares every bag with the instances of all other bags; or "previous", every bag with the one before it.
    level : as in `difference`.

    Other Parameters
    ----------------
    method, target, held_out, rng, drift : as in `difference`.
    clusters : (n,) clusters of the instances of the pool, as in `predict_interval`.

    Returns
    -------
    Differences
        one comparison per pair.

    References
    ----------
    .. [1] S. Holm, "A simple sequentially rejective multiple test procedure", 1979.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 1000, rng=0)
    >>> new, _ = Gaussians().draw([0.7, 0.3], 600, rng=1)
    >>> weeks = Bags(np.arange(600).reshape(3, 200), labels=["w1", "w2", "w3"])
    >>> difference_bags(EMQ().fit(X, y), new, weeks, "previous").frame()[["first", "second"]].values.tolist()[::2]
    [['w1', 'w2'], ['w2', 'w3']]
    """
    check_is_fitted(quantifier, "classes_")
    X = quantifier.read(X)
    if isinstance(pairs, str) and pairs == "rest" and len(bags) > 2:
        check_disjoint(bags)
        return _from_rest(quantifier, X, bags, level, options)
    chosen = check_pairs(pairs, len(bags))
    check_disjoint(bags, chosen)
    return differences_of(read_sides(quantifier, X, bags, level, **options), chosen)


def trend_bags(
    quantifier: Quantifier,
    X: Any,
    bags: Bags,
    level: float = 0.95,
    *,
    times: ArrayLike | None = None,
    **options: Unpack[BagComparisonOptions],
) -> Trend:
    r"""The change of the prevalences per period over bags of a pool X, in order.

    Use it for a rise or fall over several periods that no two neighbours show. The slope is that of weighted least
    squares, at times t with inverse variances w as weights, for bags that differ in size or drift:

    .. math:: \hat\beta = \frac{\sum_i w_i (t_i - \bar t)\, \hat p_i}{\sum_i w_i (t_i - \bar t)^2}

    The variances are those at the mean prevalences of all bags, because the weight of a bag must not depend on its own
    estimate. The slope is a contrast of the prevalences, and its interval is computed as that of `difference`.

    Parameters
    ----------
    quantifier, X, bags : as in `predict_interval_bags`; every bag is a period.
    level : as in `difference`.
    times : (b,) when the periods are, in periods; None for 0, 1, 2, ...

    Other Parameters
    ----------------
    method, target, held_out, rng, drift : as in `difference`.
    clusters : (n,) clusters of the instances of the pool, as in `predict_interval`. Clusters in several periods count
        as different ones in each; for a trend, that can be too narrow if they are in neighbouring periods.

    Returns
    -------
    Trend
        the slope of every class.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))
    >>> parts = [Gaussians().draw([1 - p, p], 400, rng=at)[0] for at, p in enumerate((0.3, 0.35, 0.4, 0.45))]
    >>> quarters = Bags(np.arange(1600).reshape(4, 400), labels=["Q1", "Q2", "Q3", "Q4"])
    >>> print(trend_bags(quantifier, np.concatenate(parts), quarters))
    class 1: +5.28 points per period (+2.39 to +8.09), p < .001
    """
    check_disjoint(bags)
    return trend_of(read_sides(quantifier, X, bags, level, **options), times)


def differences_of(sides: Sides, pairs: IntArray) -> Differences:
    """Differences between bags that were read; `pairs` (m, 2) as in `difference_bags`."""
    k = sides.interval.estimate.shape[1]
    weights = np.broadcast_to(np.array([-1.0, 1.0])[:, None], (len(pairs), 2, k))
    found, first, second = contrast(sides, pairs, weights), *pairs.T
    labels = sides.bags.labels
    return Differences.of(
        labels[first],
        labels[second],
        found.estimate,
        found.lower,
        found.upper,
        found.p_value,
        level=sides.interval.level,
        classes=sides.interval.classes,
        first_estimate=sides.interval.estimate[first],
        second_estimate=sides.interval.estimate[second],
        sizes=sides.bags.sizes[pairs],
        drift=None if sides.drift is None else found.drift,
        relative_width=found.relative_width,
        notes=_notes(sides, pairs),
    )


def trend_of(sides: Sides, times: ArrayLike | None = None, members: IntArray | None = None) -> Trend:
    """The trend over bags that were read, in order; `members` are their positions if not all are part of it."""
    members = np.arange(len(sides.bags)) if members is None else members
    t = np.arange(float(len(members))) if times is None else np.asarray(times, dtype=float)
    if len(members) < MIN_PERIODS:
        raise InvalidData(f"A trend needs at least {MIN_PERIODS} periods; got {len(members)}.")
    if t.shape != members.shape or len(np.unique(t)) < 2:
        raise InvalidData(f"times must be {len(members)} numbers, one per period, which are not all equal.")
    estimate = sides.interval.estimate[members]
    weights = _weights_of_periods(sides, members)
    centred = t - weights @ t / weights.sum()
    slope = weights * centred / (weights @ centred**2)
    found = contrast(sides, members[None], np.repeat(slope[None, :, None], estimate.shape[1], axis=2))
    first, last = sides.bags.labels[members[[t.argmin(), t.argmax()]]]
    ends = (found.estimate[0], found.lower[0], found.upper[0], found.p_value[0])
    return Trend(*ends, sides.interval.level, sides.interval.classes, first, last, len(members))


def _weights_of_periods(sides: Sides, members: IntArray) -> FloatArray:
    """Inverse variances (t,) that the estimates of periods would have at their mean prevalences.

    Variances at each estimate are smaller where it is near 0 or 1 by chance. Weights from them would draw the line
    towards such estimates. Classes have the same weights, so that their slopes sum to 0.
    """
    estimate, sizes = sides.interval.estimate[members], sides.bags.effective_sizes[members]
    relative, within = sides.bags.noise[members], (estimate * (1 - estimate)).mean(axis=1)
    variance = np.diagonal(sides.interval.covariance[members], axis1=1, axis2=2) * sides.learned.independent[members]
    of_one_instance = sizes**2 @ np.maximum(variance.mean(axis=1) - relative * within, 0.0) / sizes.sum()
    if sides.drift is not None:
        relative = relative + np.nan_to_num(sides.drift.variance[members])
    mean = sizes @ estimate / sizes.sum()
    return np.asarray(1 / np.maximum(of_one_instance / sizes + relative * (mean * (1 - mean)).mean(), 1e-12))


def _from_rest(
    quantifier: Quantifier, X: Inputs, bags: Bags, level: float, options: BagComparisonOptions
) -> Differences:
    """Every bag compared with the instances of all other bags, in bounded memory."""
    parts = bags.members
    more: dict[str, Any] = {name: value for name in ("weights",) if (value := getattr(bags, name, None)) is not None}
    batch = max(1, ROWS // len(bags.flat))
    found = []
    for start in range(0, len(bags), batch):
        chosen = range(start, min(start + batch, len(bags)))
        rests = [np.concatenate([*parts[:at], *parts[at + 1 :]]) for at in chosen]
        labels = np.array([*bags.labels[list(chosen)].tolist(), *["the rest"] * len(rests)], dtype=object)
        both = Bags([*(parts[at] for at in chosen), *rests], labels=labels, **more)
        places = np.arange(len(rests))
        sides = read_sides(quantifier, X, both, level, **options)
        found.append(differences_of(sides, np.stack([places + len(rests), places], axis=1)))
    return Differences.joined(found)


def _notes(sides: Sides, pairs: IntArray) -> Any:
    """(m,) remarks about the two bags of every comparison."""
    states = [""] * len(sides.bags) if sides.drift is None else sides.drift.state.tolist()
    notes_of_bags = sides.interval.notes
    of_bags = [""] * len(sides.bags) if notes_of_bags is None else notes_of_bags.tolist()
    labels = sides.bags.labels.tolist()
    notes = np.empty(len(pairs), dtype=object)
    for at, pair in enumerate(pairs.tolist()):
        far = [f"{labels[i]}: {FAR_NOTE}" for i in pair if states[i] == "refused"]
        notes[at] = "; ".join([*(f"{labels[i]}: {of_bags[i]}" for i in pair if of_bags[i]), *far])
    return notes


def check_pairs(pairs: ArrayLike | str, b: int) -> IntArray:
    """Positions (m, 2) of the bags to compare, of b bags; `InvalidSetting` if there are none."""
    if b < 2:
        raise InvalidBags("There is one bag only, so there is nothing to compare it with.")
    if isinstance(pairs, str):
        if pairs not in PAIRS:
            raise InvalidSetting(f"pairs must be {' or '.join(map(repr, PAIRS))}, or positions (m, 2); got {pairs!r}.")
        return np.stack([np.arange(b - 1), np.arange(1, b)], axis=1)
    chosen = np.asarray(pairs)
    if chosen.ndim != 2 or chosen.shape[1:] != (2,) or not len(chosen) or chosen.dtype.kind not in "iu":
        raise InvalidSetting(f"pairs must be whole numbers of shape (m, 2); got shape {chosen.shape}.")
    if chosen.min() < 0 or chosen.max() >= b:
        raise InvalidSetting(f"pairs must be positions from 0 to {b - 1}; got {chosen.min()} to {chosen.max()}.")
    return chosen.astype(np.intp)


def check_disjoint(bags: Bags, pairs: IntArray | None = None) -> None:
    """Raise `InvalidBags` if bags that are compared share instances; `pairs` None: if any do."""
    if len(np.unique(bags.flat)) == len(bags.flat):
        return
    parts = [np.unique(part) for part in bags.members]
    shared: list[int] = []
    if pairs is None:
        values, counts = np.unique(np.concatenate(parts), return_counts=True)
        shared, which = values[counts > 1].tolist(), "Some bags"
    for first, second in [] if pairs is None else pairs.tolist():
        shared = np.intersect1d(parts[first], parts[second], assume_unique=True).tolist()
        which = f"Bags {' and '.join(map(repr, bags.labels[[first, second]].tolist()))}"
        if shared:
            break
    if shared:
        raise InvalidBags(
            f"{which} share instances (row {shared[0]}), so they are not independent. Compare disjoint bags, such as a "
            "group with the rest: pairs='rest'."
        )
