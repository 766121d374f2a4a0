r"""Closed-form intervals: the delta method for counting, observed information for maximum likelihood.

An interval of counts, or of two classes, is not centred on the estimate. It contains every true prevalence p for which
the estimate is not too far from p, measured by the variance of the error at p (Wilson 1927). So it can contain 0 and 1,
unlike :math:`\hat p \pm z \hat\sigma`.

Counted bags: mean scores, adjusted by held-out rates and, for two classes, combined with maximum likelihood.

Detection limits: the smallest share of a class that can be told from 0, computed from what `fit` has held out.

Maximum likelihood ends at exactly 0 when a bag has slightly fewer instances that look like the class than chance gives.
So 0 is a usual estimate of a class whose share is small, and does not mean that the class is absent. The limit states
how large a share must be, so that the interval excludes 0 in four bags of five.

Typical bags are made of held-out instances: of every class, those at evenly spaced ranks of its posterior. Bisection
finds the share t at which the lower end of the interval of such a bag leaves 0. About half of the bags at this share
have an interval without 0. One bag in five has an estimate that is too small by more than .84 standard deviations:

.. math:: t + \frac{z_{.8}}{z_{level}} (u_t - t), \qquad u_t \text{ the upper end at } t.

`benchmarks/detection_limits.py` compares the limits with how often intervals exclude 0.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.stats import norm

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.drift.scale import without_drift
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.held_out import HeldOut
from quanet.methods.counting import ACC, CC, PACC, PCC, adjust, is_singular, soft_rates
from quanet.methods.likelihood import EMQ
from quanet.methods.solvers import maximum_likelihood
from quanet.simplex import smooth, to_counts
from quanet.uncertainty.control_variates import ControlledCount
from quanet.uncertainty.relearning import Ends, IntervalRequest, as_full_fit

FORMULAS: dict[type, str] = {CC: "labels", ACC: "labels", PCC: "posteriors", PACC: "posteriors", EMQ: "likelihood"}
BISECTIONS = 40  # an end is exact to 1e-12
MAX_PER_CLASS = 2_000  # held-out instances per class from which covariances are computed
BATCH = 2**20  # numbers in memory at a time
LIMIT_POWER = 0.8  # probability that an interval excludes 0 at the limit
LIMIT_POWER_CONFORMAL = (
    0.9  # instead, for methods whose intervals are conformal: these exclude 0 less often than formulas
)
LIMIT_ROWS = 2_000  # of a typical bag, and of a class of the pool that they are drawn from
LIMIT_FEWEST = 10  # held-out instances of every class; with fewer, the limits are unknown
LIMIT_CLASSES = 30  # the work grows with the cube of their number
LIMIT_STEPS = 9  # bisections of the logarithm of a share between 1 / `LIMIT_ROWS` and 1: exact to 2 %


@dataclass(frozen=True, slots=True, eq=False)
class CountedBags:
    """Counts of b bags.

    Attributes
    ----------
    scores : (m, k) of the held-out instances: posteriors, or one-hot rows of predicted labels.
    rates : (k, k) their means by class.
    counted : (b, k) mean scores of the bags.
    control : errors of the adjusted count combined with maximum likelihood; None if that is not possible.
    adjusted, likely : (b,) adjusted count and maximum likelihood of the second class, if `control` is not None.
    """

    scores: FloatArray
    rates: FloatArray
    counted: FloatArray
    control: ControlledCount | None
    adjusted: FloatArray
    likely: FloatArray

    def centre(self, sizes: IntArray) -> FloatArray:
        """Adjusted prevalences (b, k) of bags of these sizes (b,), not cut off at 0 and 1."""
        if self.control is None:
            return self.counted @ np.linalg.pinv(self.rates).T
        second = self.control.combine(self.adjusted, self.likely, sizes)
        return np.stack([1 - second, second], axis=1)


def count_bags(request: IntervalRequest, held_out: HeldOut, *, predicted: bool) -> CountedBags:
    """Count the requested bags: predicted labels or posteriors."""
    k, bags = held_out.k, request.bags
    scores, pool = held_out.inputs[:, :k], request.inputs[:, :k]
    if predicted:
        scores, pool = np.eye(k)[scores.argmax(axis=1)], np.eye(k)[pool.argmax(axis=1)]
    counted, likely, adjusted = np.empty((len(bags), k)), np.empty(len(bags)), np.empty(len(bags))
    for positions, stack in bags.gather(pool):
        counted[positions] = stack.mean(axis=1)
    likelihoods, rates = request.likelihoods(), soft_rates(scores, held_out.codes)
    control = ControlledCount.fit(scores, likelihoods(held_out.inputs), held_out) if k == 2 else None
    if control is not None:
        for positions, stack in bags.gather(likelihoods(request.inputs)):
            likely[positions] = maximum_likelihood(stack, np.full(k, 1 / k))[0][:, 1]
        false_positive, true_positive = rates[1]
        adjusted = (counted[:, 1] - false_positive) / (true_positive - false_positive)
    return CountedBags(scores, rates, counted, control, adjusted, likely)


def closed_form_of(quantifier: Quantifier) -> str | None:
    """What the formula is based on: "labels", "posteriors" or "likelihood"; None if no formula exists."""
    return FORMULAS.get(type(quantifier), getattr(quantifier, "_closed_form", None))


def closed_form_intervals(request: IntervalRequest) -> Ends:
    """Closed-form intervals of the requested bags."""
    quantifier, held_out = request.quantifier, request.held_out
    assert held_out is not None
    form = closed_form_of(quantifier)
    if form is None:
        raise InvalidSetting(
            f"{type(quantifier).__name__} has no closed-form interval. Use method='conformal', which works for any "
            "quantifier."
        )
    if form == "likelihood":
        return _likelihood_intervals(request, held_out)
    found = count_bags(request, held_out, predicted=form == "labels")
    z, target_is_bag = request.z, request.target_is_bag
    if found.control is None:
        return counting_interval(found.counted, found.scores, held_out, request.sizes, z=z, target_is_bag=target_is_bag)
    lower, upper, variance = found.control.ends(
        found.adjusted, found.likely, request.sizes, z=z, target_is_bag=target_is_bag
    )
    covariance = variance[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return np.stack([1 - upper, lower], axis=1), np.stack([1 - lower, upper], axis=1), covariance


def counting_interval(
    counted: FloatArray, scores: FloatArray, held_out: HeldOut, sizes: Any, *, z: float, target_is_bag: bool
) -> Ends:
    r"""Intervals from the mean scores (b, k) of bags, with rates and covariances from held-out scores (m, k).

    Let M be the rates, :math:`S_c` the covariance of the scores within class c, and :math:`m_c` about the
    number of held-out instances of class c (`HeldOut.learning_sizes`). A bag's mean score minus :math:`M p` has the
    covariance

    .. math:: V(p) = \sum_c \Big(\frac{p_c}{n} + \frac{p_c^2}{m_c}\Big) S_c

    where the first term is the error of the bag and the second one the error of the rates. If p are the prevalences of
    the source, those of the bag vary too, by :math:`M (\mathrm{diag}(p) - p p^T) M^T / n`.
    """
    k = held_out.k
    m = held_out.learning_sizes
    rates = soft_rates(scores, held_out.codes)
    spread = np.stack([np.cov(scores[held_out.codes == c].T) for c in range(k)])
    n = np.asarray(sizes, dtype=float)
    # The inverse is not clipped: an estimate below 0 or above 1 is not the same as 0 or 1.
    inverse = np.linalg.pinv(rates)
    centre = smooth(np.clip(adjust(counted, rates), 0, 1), 1 / (2 * n))
    weights = centre / n[:, None] + centre**2 / m
    variance = np.einsum("bc,cij->bij", weights, spread)
    covariance = inverse @ variance @ inverse.T
    if not target_is_bag:
        covariance += multinomial_covariance(centre, n)
    if is_singular(rates):  # some mixture of classes looks like another one, so that no share can be excluded
        return np.zeros_like(centre), np.ones_like(centre), covariance
    lower, upper = _share_ends(
        counted @ inverse.T, centre, np.einsum("ia,cab,ib->ci", inverse, spread, inverse), m, n, z, target_is_bag
    )
    return lower, upper, covariance


def _share_ends(
    middle: FloatArray, centre: FloatArray, spread: FloatArray, m: Any, n: FloatArray, z: float, target_is_bag: bool
) -> tuple[FloatArray, FloatArray]:
    r"""Ends (b, k) of all shares t of a class with :math:`(middle - t)^2 \le z^2 V(t)`, a quadratic inequality in t.

    The other classes share the rest as at the `centre` (b, k); `spread` (c, i) is the variance of the adjusted count
    of class i over instances of class c.
    """
    k = centre.shape[1]
    # How the others share the rest, (b, i, c): 0 for the class i itself.
    others = centre[:, None, :] * (1 - np.eye(k)) / (1 - centre)[:, :, None]
    own, own_learned = np.diagonal(spread), np.diagonal(spread) / m
    rest, rest_learned = np.einsum("bic,ci->bi", others, spread), np.einsum("bic,ci->bi", others**2 / m, spread)
    each, between = 1 / n[:, None], 0.0 if target_is_bag else 1.0
    a = 1 - z**2 * (own_learned + rest_learned - between * each)
    b = -2 * middle - z**2 * ((own - rest + between) * each - 2 * rest_learned)
    c = middle**2 - z**2 * (rest * each + rest_learned)
    root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        lower, upper = (-b - root) / (2 * a), (-b + root) / (2 * a)
    unbounded = ~(a > 0)  # the rates are too similar or too uncertain to exclude any prevalence
    return np.where(unbounded, 0.0, lower), np.where(unbounded, 1.0, upper)


def _likelihood_intervals(request: IntervalRequest, held_out: HeldOut) -> Ends:
    """Intervals of maximum likelihood estimates: observed information plus the error of what was learned."""
    quantifier, bags, estimate = request.quantifier, request.bags, request.estimate
    k, sizes, target_is_bag = len(quantifier.classes_), request.sizes, request.target_is_bag
    likelihoods, centres = (
        likelihoods_of(quantifier, quantifier.rows(request.inputs)),
        smooth(estimate, 1 / (2 * sizes)),
    )
    of_held_out = likelihoods_of(quantifier, quantifier.rows(held_out.inputs))
    training = learning_covariance(of_held_out, held_out, centres)
    expected = None if k == 2 else expected_information(of_held_out, held_out, centres)
    lower, upper = np.empty((len(bags), k)), np.empty((len(bags), k))
    covariance = np.empty((len(bags), k, k))
    for positions, stack in bags.gather(likelihoods):
        centre, smoothed, learned = (part[positions] for part in (estimate, centres, training))
        n = sizes[positions]
        information = None if expected is None else expected[positions]
        own = observed_covariance(stack, smoothed, n, target_is_bag=True, expected=information) + learned
        covariance[positions] = own if target_is_bag else own + multinomial_covariance(smoothed, n)
        if k == 2:
            ends = secant_ends(stack, centre[:, 1], learned[:, 1, 1], n, z=request.z, target_is_bag=target_is_bag)
            lower[positions], upper[positions] = (np.stack([1 - end, end], axis=1) for end in ends)
        else:
            variance = np.maximum(np.diagonal(own, axis1=1, axis2=2), 0)
            between = 0.0 if target_is_bag else request.z**2 / n[:, None]
            # All t with (centre - t)^2 <= z^2 (variance + t (1 - t) / n): Wilson's interval, if the variance is 0.
            middle = centre + between / 2
            reach = np.sqrt(middle**2 - (1 + between) * (centre**2 - request.z**2 * variance))
            lower[positions], upper[positions] = (middle - reach) / (1 + between), (middle + reach) / (1 + between)
    if k == 2:
        lower[:, 0], upper[:, 0] = upper[:, 0], lower[:, 0].copy()
    return lower, upper, covariance


def multinomial_covariance(prevalences: FloatArray, sizes: Any) -> FloatArray:
    """Covariance (b, k, k) of the prevalences of bags of these sizes (b,) around those of their sources (b, k)."""
    within = prevalences[:, :, None] * (np.eye(prevalences.shape[1]) - prevalences[:, None, :])
    return np.asarray(within / np.asarray(sizes, dtype=float)[:, None, None])


def likelihoods_of(quantifier: Quantifier, rows: FloatArray) -> FloatArray:
    """Likelihoods (n, k) of rows, as the quantifier itself uses them."""
    ratios = rows / getattr(quantifier, "mean_posterior_", quantifier.prior_)
    return ratios / ratios.max(axis=1, keepdims=True)


def observed_covariance(
    likelihoods: FloatArray,
    prevalences: FloatArray,
    sizes: IntArray,
    *,
    target_is_bag: bool,
    expected: FloatArray | None = None,
) -> FloatArray:
    r"""Covariance of the maximum likelihood estimate: (b, m, k), (b, k), (b,) -> (b, k, k).

    .. math:: \frac1n (J^{-1} - D), \qquad J_{ab} = \frac1m \sum_i \frac{L_{ia} L_{ib}}{(\sum_c p_c L_{ic})^2}

    with :math:`D = \mathrm{diag}(p)` for the prevalences of the bag and :math:`D = p p^T` for those of its source. The
    effective size n is smaller than the number m of rows if the bag has weights. If no instance of a bag looks like a
    class, the observed information J about its prevalence is almost 0, although it is certain that there are few of
    them. So J is the mean of the observed and of the `expected` information (b, k, k), if it is given.
    """
    k = likelihoods.shape[-1]
    scaled = likelihoods / np.einsum("bnk,bk->bn", likelihoods, prevalences)[..., None]
    information = np.swapaxes(scaled, 1, 2) @ scaled / likelihoods.shape[-2]
    if expected is not None:
        information = (information + expected) / 2
    outer = prevalences[:, :, None] * prevalences[:, None, :]
    known = np.eye(k) * prevalences[:, None, :] if target_is_bag else outer
    covariance = (np.linalg.pinv(information, hermitian=True) - known) / sizes[:, None, None]
    values, vectors = np.linalg.eigh((covariance + np.swapaxes(covariance, 1, 2)) / 2)
    return (vectors * np.maximum(values, 0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def secant_ends(
    likelihoods: FloatArray,
    estimate: FloatArray,
    training: FloatArray,
    sizes: IntArray,
    *,
    z: float,
    target_is_bag: bool,
) -> tuple[FloatArray, FloatArray]:
    r"""Ends (b,) of all p from which maximum likelihood estimates (b,) are not too far, with likelihoods (b, m, 2).

    .. math:: (\hat p - p)^2 \le z^2 \Big(\frac1{n K(p)} - \frac{p (1 - p)}{n} + T\Big), \qquad
              K(p) = \frac1m \sum_i u_i(p)\, u_i(\hat p), \quad u_i(p) = \frac{r_i - 1}{1 - p + p r_i}

    K is the mean curvature of the log-likelihood between p and the estimate, which also estimates the Fisher
    information at p. The term p (1 - p) / n is omitted for the prevalence of the source. T is the variance that comes
    from what was learned from held-out instances, (b,). The effective sizes n (b,) are smaller than the number m of
    rows if the bags have weights.
    """
    evidence = sizes / likelihoods.shape[1]
    total = likelihoods.sum(axis=2)
    contrast = (likelihoods[..., 1] - likelihoods[..., 0]) / total
    at_estimate = 2 * contrast / (1 + (2 * estimate[:, None] - 1) * contrast * (1 - 1e-12))

    def excess(p: FloatArray) -> FloatArray:
        at_p = 2 * contrast / (1 + (2 * p[:, None] - 1) * contrast * (1 - 1e-12))
        curvature = np.maximum((at_p * at_estimate).sum(axis=1) * evidence, 1e-300)
        bag = np.maximum(1 / curvature - (p * (1 - p) / sizes if target_is_bag else 0.0), 0.0)
        return (p - estimate) ** 2 - z**2 * (bag + training)

    return _crossing(excess, estimate, 0.0), _crossing(excess, estimate, 1.0)


def _crossing(excess: Any, start: FloatArray, end: float) -> FloatArray:
    """Where `excess` becomes positive between a start (b,) and an end; the end if it does not."""
    inside, outside = start.copy(), np.full_like(start, end)
    whole = excess(outside) <= 0
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        beyond = excess(middle) > 0
        outside = np.where(beyond, middle, outside)
        inside = np.where(beyond, inside, middle)
    return np.where(whole, end, outside)


def learning_covariance(likelihoods: FloatArray, held_out: HeldOut, prevalences: FloatArray) -> FloatArray:
    r"""Covariance (b, k, k) of maximum likelihood estimates that comes from what was learned.

    Likelihoods L are learned from few instances. At prevalences p the mean score of a bag should be 1 for every class.
    Its variance over other held-out instances follows from the scores of the held-out instances:

    .. math:: A \Big(\sum_c \frac{p_c^2}{m_c} \mathrm{cov}_c(s)\Big) A^T, \qquad
              s_{ic} = \frac{L_{ic}}{\sum_a p_a L_{ia}}, \qquad A = J^{-1} - \frac{J^{-1} 1 1^T J^{-1}}{1^T J^{-1} 1}

    with `HeldOut.learning_sizes` :math:`m_c` of class c and the information J at p (a sandwich; White
    1982). Unlike relearned estimates, it is not cut off at 0 and 1, where all estimates would be equal and would seem
    certain. It is also correct if the family of the calibration does not contain the truth.

    Parameters
    ----------
    likelihoods : (m, k) of the held-out instances.
    held_out : these instances; their inputs begin with posteriors.
    prevalences : (b, k) above 0, near the estimates.
    """
    return score_covariance(likelihoods, held_out, prevalences, prevalences**2 / held_out.learning_sizes)


def score_covariance(
    likelihoods: FloatArray, held_out: HeldOut, prevalences: FloatArray, amounts: FloatArray
) -> FloatArray:
    r"""Covariance (b, k, k) of maximum likelihood estimates if class c contributes :math:`a_c` (b, k) of its scores.

    .. math:: A \Big(\sum_c a_c\, \mathrm{cov}_c(s)\Big) A^T

    The rest as in `learning_covariance`.
    """
    information, variance = _moments(likelihoods, held_out, prevalences, amounts)
    slope = constrained_inverse(information)
    return slope @ variance @ slope


def expected_information(likelihoods: FloatArray, held_out: HeldOut, prevalences: FloatArray) -> FloatArray:
    """The information J (b, k, k) at prevalences (b, k), as the held-out instances let expect it."""
    return _moments(likelihoods, held_out, prevalences, np.zeros(prevalences.shape))[0]


def _moments(
    likelihoods: FloatArray, held_out: HeldOut, prevalences: FloatArray, amounts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Information, and the sum of the covariances of the scores of each class with these amounts: (b, k, k) each."""
    b, k = prevalences.shape
    parts = [evenly_spaced(likelihoods[members]) for members in held_out.by_class()]
    batch = max(1, BATCH // (k * max(map(len, parts))))
    information, variance = np.zeros((2, b, k, k))
    for start in range(0, b, batch):
        some = slice(start, start + batch)
        p = prevalences[some]
        for c, part in enumerate(parts):
            scores = part / (p @ part.T)[:, :, None]  # (b, m, k)
            moments = np.swapaxes(scores, 1, 2) @ scores / len(part)
            means = scores.mean(axis=1)
            within = moments - means[:, :, None] * means[:, None, :]
            information[some] += p[:, c, None, None] * moments
            variance[some] += amounts[some, c, None, None] * within
    return information, variance


def evenly_spaced(rows: FloatArray, most: int = MAX_PER_CLASS) -> FloatArray:
    """At most so many of the rows, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).round().astype(np.intp)]


def constrained_inverse(information: FloatArray) -> FloatArray:
    """The inverse information under the constraint that prevalences sum to 1: (b, k, k)."""
    inverse = np.linalg.pinv(information, hermitian=True)
    towards = inverse.sum(axis=2)
    return inverse - towards[:, :, None] * towards[:, None, :] / towards.sum(axis=1)[:, None, None]


def detection_limits(quantifier: Quantifier, sizes: Sequence[int], level: float = 0.95) -> FloatArray:
    """Smallest shares (s, k) that can be told from 0 in bags of these sizes; NaN if unknown, 1 if no share can.

    `Quantifier.detection_limits` describes them. A method without a formula for its intervals gets the limits of
    maximum likelihood on its posteriors.
    """
    quantifier = cast("Quantifier", getattr(quantifier, "quantifier_", quantifier))  # of a search
    described, k = _with_formula(quantifier), len(quantifier.classes_)
    if described is None:
        return np.full((len(sizes), k), np.nan)
    if quantifier.shrinkage_ == 1:  # every interval is 0 to 1
        return np.ones((len(sizes), k))
    bags = _TypicalBags(described, np.tile(np.arange(k), len(sizes)), np.repeat(sizes, k), level)
    low, high = np.full(len(bags.classes), np.log(1 / LIMIT_ROWS)), np.zeros(len(bags.classes))
    for _ in range(LIMIT_STEPS):
        middle = (low + high) / 2
        seen = bags.ends(np.exp(middle))[0] > 0
        low, high = np.where(seen, low, middle), np.where(seen, middle, high)
    share = np.exp(high)
    conformal = described is not as_full_fit(quantifier)  # as `choose_kinds` does
    quantile = norm.ppf(LIMIT_POWER_CONFORMAL if conformal else LIMIT_POWER)
    unlucky = quantile / norm.ppf((1 + level) / 2) * (bags.ends(share)[1] - share)
    limits = np.where(high < 0, share + np.maximum(unlucky, 0), 1.0)
    return np.clip(limits, 1 / bags.sizes, 1).reshape(len(sizes), k)


class _TypicalBags:
    """Bags of held-out instances with a typical estimate, one for each class (b,) and size (b,)."""

    def __init__(self, quantifier: Quantifier, classes: IntArray, sizes: IntArray, level: float) -> None:
        assert quantifier.held_out_ is not None
        self.quantifier, self.classes, self.sizes, self.level = quantifier, classes, sizes, level
        self.held_out = quantifier.held_out_.doubles()
        parts = []
        for c, members in enumerate(self.held_out.by_class()):
            ranked = members[np.argsort(self.held_out.inputs[members, c], kind="stable")]
            parts.append(ranked[_evenly(len(ranked), min(len(ranked), LIMIT_ROWS))])
        self.inputs = self.held_out.inputs[np.concatenate(parts)]
        self.members = np.split(np.arange(len(self.inputs)), np.cumsum([len(part) for part in parts])[:-1])

    def ends(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends (b,) of the intervals of the classes, if each has this share (b,) in its bag."""
        bags = Bags(self._rows(shares))
        request = IntervalRequest(
            quantifier=self.quantifier,
            inputs=self.inputs,
            bags=bags,
            positions=np.arange(len(bags)),
            estimate=self.quantifier.aggregate_bags(self.quantifier.rows(self.inputs), bags),
            sizes=self.sizes,  # all bags have `LIMIT_ROWS` rows, and count as many as these
            held_out=self.held_out,
            level=self.level,
            target_is_bag=True,
            resamples=None,
            seed=0,
            held_out_from_fit=True,
        )
        lower, upper, _ = closed_form_intervals(request)
        at = np.arange(len(bags)), self.classes
        return lower[at], upper[at]

    def _rows(self, shares: FloatArray) -> IntArray:
        """Positions (b, `LIMIT_ROWS`) in the inputs; the other classes have their training proportions."""
        at = np.arange(len(self.classes)), self.classes
        truth = np.tile(self.held_out.counts.astype(float), (len(self.classes), 1))
        truth[at] = 0
        truth *= ((1 - shares) / truth.sum(axis=1))[:, None]
        truth[at] = shares
        bags = (zip(self.members, row, strict=True) for row in to_counts(truth, LIMIT_ROWS).tolist())
        return np.stack([np.concatenate([part[_evenly(len(part), n)] for part, n in bag]) for bag in bags])


def _with_formula(quantifier: Quantifier) -> Quantifier | None:
    """The quantifier as a full fit, or maximum likelihood on its posteriors; None without enough held-out ones."""
    held_out = quantifier.held_out_
    few = held_out is None or held_out.distinct.min() < LIMIT_FEWEST
    if few or not quantifier.reads_posteriors or len(quantifier.classes_) > LIMIT_CLASSES:
        return None
    described = as_full_fit(quantifier)
    if closed_form_of(described) is not None:
        return described
    assert described.held_out_ is not None
    held = described.held_out_.doubles()
    with warnings.catch_warnings(), without_drift():
        warnings.simplefilter("ignore", QuanetWarning)  # fit has already warned
        return EMQ("precomputed").fit(held.inputs[:, : held.k], quantifier.classes_[held.codes])


def _evenly(n: int, wanted: int) -> IntArray:
    """So many of n ranks, evenly spaced: the middles of as many equal parts.

    Examples
    --------
    >>> _evenly(10, 2), _evenly(2, 3)
    (array([2, 7]), array([0, 1, 1]))
    """
    return ((np.arange(wanted) + 0.5) * n / wanted).astype(np.intp)
