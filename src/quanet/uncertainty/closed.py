r"""Intervals by formula: the delta method for counting, observed information for maximum likelihood.

Both are inverted rather than centred on the estimate: for two classes an interval holds every share p that the estimate
is not too far from *if p is true*, with the error's variance as it is at p (Wilson 1927). So a share of 0 or 1 is held
when it should be, which :math:`\hat p \pm z \hat\sigma` fails to do.
"""

from typing import Any

import numpy as np
from scipy.stats import norm

from quanet.arrays import FloatArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.errors import InvalidSetting
from quanet.methods.counting import ACC, CC, PACC, PCC, adjust, soft_rates
from quanet.methods.em import EMQ, maximum_likelihood
from quanet.simplex import smooth
from quanet.uncertainty.control import Controlled
from quanet.uncertainty.held import Held, Likelihoods, training_covariance
from quanet.uncertainty.learning import learning_covariance

FORMS: dict[type, str] = {CC: "labels", ACC: "labels", PCC: "posteriors", PACC: "posteriors", EMQ: "likelihood"}
STEPS = 40  # of bisection: an end is exact to 1e-12
Ends = tuple[FloatArray, FloatArray, FloatArray]  # lower and upper (b, k), covariance (b, k, k)


def closed_form_of(quantifier: Quantifier) -> str | None:
    """What the estimate is made of: "labels", "posteriors", "likelihood", or None where there is no formula."""
    return FORMS.get(type(quantifier), getattr(quantifier, "_closed_form", None))


def closed_form(
    quantifier: Quantifier,
    held: Held,
    likelihoods: Likelihoods,
    inputs: FloatArray,
    bags: Bags,
    *,
    level: float,
    own: bool,
) -> Ends:
    """Intervals of bags of inputs (n, d), by the formula of the quantifier's kind."""
    form = closed_form_of(quantifier)
    z = float(norm.ppf((1 + level) / 2))
    if form is None:
        raise InvalidSetting(
            f"there is no closed form for {type(quantifier).__name__}; method='conformal' works for any quantifier."
        )
    if form == "likelihood":
        return _likelihood(quantifier, held, inputs, bags, z=z, own=own)
    k = held.k
    scores, pool = held.inputs[:, :k], inputs[:, :k]
    if form == "labels":
        scores, pool = np.eye(k)[scores.argmax(axis=1)], np.eye(k)[pool.argmax(axis=1)]
    counted = np.empty((len(bags), k))
    for positions, stack in bags.gather(pool):
        counted[positions] = stack.mean(axis=1)
    control = Controlled.fit(scores, likelihoods(held.inputs), held) if k == 2 else None
    if control is None:
        return counting_interval(counted, scores, held, bags.sizes, z=z, own=own)
    likely = np.empty(len(bags))
    for positions, stack in bags.gather(likelihoods(inputs)):
        likely[positions] = maximum_likelihood(stack, np.full(k, 1 / k))[0][:, 1]
    false_positive, true_positive = soft_rates(scores, held.codes)[1]
    adjusted = (counted[:, 1] - false_positive) / (true_positive - false_positive)
    lower, upper, variance = control.ends(adjusted, likely, bags.sizes, z=z, own=own)
    covariance = variance[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return np.stack([1 - upper, lower], axis=1), np.stack([1 - lower, upper], axis=1), covariance


def counting_interval(counted: FloatArray, scores: FloatArray, held: Held, sizes: Any, *, z: float, own: bool) -> Ends:
    r"""Intervals from mean scores, (b, k), whose rates and spread are learnt from held-out scores (m, k).

    With rates M and covariances :math:`S_c` of the scores within classes, held-out ones worth :math:`m_c` independent
    instances each, a bag's mean score less :math:`M p` has the covariance

    .. math:: V(p) = \sum_c \Big(\frac{p_c}{n} + \frac{p_c^2}{m_c}\Big) S_c

    the first part the bag's, the second the rates'. Where p is the share of the bag's source, its own shares vary too,
    by :math:`M (\mathrm{diag}(p) - p p^T) M^T / n`.
    """
    k = held.k
    m = held.worth(scores)
    rates = soft_rates(scores, held.codes)
    spread = np.stack([np.cov(scores[held.codes == c].T) for c in range(k)])
    n = np.asarray(sizes, dtype=float)
    # Unclipped, so that what lies beyond an end is not taken for the end.
    inverse = np.linalg.pinv(rates)
    centre = smooth(np.clip(adjust(counted, rates), 0, 1), 1 / (2 * n))
    weights = centre / n[:, None] + centre**2 / m
    variance = np.einsum("bc,cij->bij", weights, spread)
    covariance = inverse @ variance @ inverse.T
    if not own:
        between = np.einsum("bi,ij->bij", centre, np.eye(k)) - np.einsum("bi,bj->bij", centre, centre)
        covariance += between / n[:, None, None]
    if k == 2:
        lower, upper = _two_classes(counted[:, 1], rates[1], spread[:, 1, 1], m, n, z, own)
        return np.stack([1 - upper, lower], axis=1), np.stack([1 - lower, upper], axis=1), covariance
    middle = counted @ inverse.T
    reach = z * np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0))
    return middle - reach, middle + reach, covariance


def _two_classes(
    counted: FloatArray, rates: FloatArray, spread: FloatArray, m: Any, n: FloatArray, z: float, own: bool
) -> tuple[FloatArray, FloatArray]:
    """Ends (b,) of all p with (counted - fpr - p (tpr - fpr))^2 <= z^2 V(p), a quadratic inequality in p."""
    false_positive, true_positive = rates
    slope, (s0, s1) = true_positive - false_positive, spread
    rest = counted - false_positive
    between = 0.0 if own else slope**2
    a = slope**2 - z**2 * (s0 / m[0] + s1 / m[1] - between / n)
    b = -2 * slope * rest - z**2 * ((s1 - s0 + between) / n - 2 * s0 / m[0])
    c = rest**2 - z**2 * (s0 / n + s0 / m[0])
    root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        lower, upper = (-b - root) / (2 * a), (-b + root) / (2 * a)
    blind = ~(a > 0)  # the rates are too close, or too uncertain, to rule any share out
    return np.where(blind, 0.0, lower), np.where(blind, 1.0, upper)


def _likelihood(quantifier: Quantifier, held: Held, inputs: FloatArray, bags: Bags, *, z: float, own: bool) -> Ends:
    k = len(quantifier.classes_)
    rows = quantifier._rows(inputs)  # noqa: SLF001
    estimate = quantifier._aggregate_bags(rows, bags)  # noqa: SLF001
    likelihoods = _likelihoods_of(quantifier, rows)
    training = _training(quantifier, held, inputs, bags, estimate)
    lower, upper = np.empty((len(bags), k)), np.empty((len(bags), k))
    covariance = np.empty((len(bags), k, k))
    for positions, stack in bags.gather(likelihoods):
        found = estimate[positions]
        n = stack.shape[1]
        covariance[positions] = observed_covariance(stack, smooth(found, 1 / (2 * n)), own=own) + training[positions]
        if k == 2:
            ends = secant_ends(stack, found[:, 1], training[positions, 1, 1], z=z, own=own)
            lower[positions], upper[positions] = (np.stack([1 - end, end], axis=1) for end in ends)
        else:
            reach = z * np.sqrt(np.maximum(np.diagonal(covariance[positions], axis1=1, axis2=2), 0))
            lower[positions], upper[positions] = found - reach, found + reach
    if k == 2:
        lower[:, 0], upper[:, 0] = upper[:, 0], lower[:, 0].copy()
    return lower, upper, covariance


def _training(quantifier: Quantifier, held: Held, inputs: FloatArray, bags: Bags, estimate: FloatArray) -> FloatArray:
    """Covariance (b, k, k) of estimates (b, k) that comes from what was learnt from held-out rows."""
    if estimate.shape[1] == 2:  # the two ways agree there
        return training_covariance(quantifier, inputs, bags)
    likelihoods = _likelihoods_of(quantifier, quantifier._rows(held.inputs))  # noqa: SLF001
    return learning_covariance(likelihoods, held, smooth(estimate, 1 / (2 * bags.sizes)))


def _likelihoods_of(quantifier: Quantifier, rows: FloatArray) -> FloatArray:
    """Likelihoods (n, k) of rows, as the quantifier's own maximum likelihood takes them."""
    statistics = getattr(quantifier, "statistics_", None)
    if statistics is None:
        ratios = rows / getattr(quantifier, "mean_posterior_", quantifier.prior_)
    else:
        ratios = statistics.calibration(rows[:, : len(statistics.prior)]) / statistics.prior
    return ratios / ratios.max(axis=1, keepdims=True)


def observed_covariance(likelihoods: FloatArray, prevalences: FloatArray, *, own: bool) -> FloatArray:
    r"""Covariance of the maximum likelihood estimate: (b, n, k), (b, k) -> (b, k, k).

    .. math:: \frac1n (J^{-1} - D), \qquad J_{ab} = \frac1n \sum_i \frac{L_{ia} L_{ib}}{(\sum_c p_c L_{ic})^2}

    with :math:`D = \mathrm{diag}(p)` for the bag's own shares and :math:`D = p p^T` for its source's.
    """
    k, n = likelihoods.shape[-1], likelihoods.shape[-2]
    scaled = likelihoods / np.einsum("bnk,bk->bn", likelihoods, prevalences)[..., None]
    information = np.swapaxes(scaled, 1, 2) @ scaled / n
    taken = np.eye(k) * prevalences[:, None, :] if own else prevalences[:, :, None] * prevalences[:, None, :]
    found = (np.linalg.pinv(information, hermitian=True) - taken) / n
    values, vectors = np.linalg.eigh((found + np.swapaxes(found, 1, 2)) / 2)
    return (vectors * np.maximum(values, 0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def secant_ends(
    likelihoods: FloatArray, estimate: FloatArray, training: FloatArray, *, z: float, own: bool
) -> tuple[FloatArray, FloatArray]:
    r"""Ends (b,) of all p that maximum likelihood estimates (b,) are not too far from: (b, n, 2).

    .. math:: (\hat p - p)^2 \le z^2 \Big(\frac1{n K(p)} - \frac{p (1 - p)}{n} + T\Big), \qquad
              K(p) = \frac1n \sum_i u_i(p)\, u_i(\hat p), \quad u_i(p) = \frac{r_i - 1}{1 - p + p r_i}

    K is the log-likelihood's mean curvature between p and the estimate, which is also the Fisher information at p as
    the bag shows it; the term p (1 - p) / n is left out for the source's share. T is the variance that comes from what
    was learnt from held-out rows, (b,).
    """
    n = likelihoods.shape[1]
    total = likelihoods.sum(axis=2)
    contrast = (likelihoods[..., 1] - likelihoods[..., 0]) / total
    at_estimate = 2 * contrast / (1 + (2 * estimate[:, None] - 1) * contrast * (1 - 1e-12))

    def excess(p: FloatArray) -> FloatArray:
        there = 2 * contrast / (1 + (2 * p[:, None] - 1) * contrast * (1 - 1e-12))
        curvature = np.maximum((there * at_estimate).sum(axis=1), 1e-300)
        bag = np.maximum(1 / curvature - (p * (1 - p) / n if own else 0.0), 0.0)
        return (p - estimate) ** 2 - z**2 * (bag + training)

    return _crossing(excess, estimate, 0.0), _crossing(excess, estimate, 1.0)


def _crossing(excess: Any, start: FloatArray, end: float) -> FloatArray:
    """Where `excess` turns positive between a start (b,) and an end, or the end where it does not."""
    inside, outside = start.copy(), np.full_like(start, end)
    whole = excess(outside) <= 0
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        beyond = excess(middle) > 0
        outside = np.where(beyond, middle, outside)
        inside = np.where(beyond, inside, middle)
    return np.where(whole, end, outside)
