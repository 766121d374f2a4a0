r"""Control variates: the difference between an estimate and maximum likelihood corrects part of the estimate's error.

Both estimates use the same posteriors of the same bag. Maximum likelihood uses all information in the posteriors; their
mean, for example, does not. The difference between the two is therefore correlated with the error of the estimate. An
interval that ignores this is too wide and in the wrong place. The combined estimate is

.. math:: \hat p - \beta\, (\hat p - \hat p_{ML}),

a control variate (Davison and Hinkley 1997, section 9.3). There are two ways to find its weight and its error:

- `ControlVariates`, for any method that reads posteriors: by simulation, in bags of held-out rows with errors e and
  differences d, :math:`\beta = \sum e \cdot d / \sum d \cdot d`. Conformal and bootstrap intervals use it.
- `ControlledCount`, for counting two classes: by formula, the delta method. Closed-form intervals use it.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.held_out import HeldOut
from quanet.methods.counting import is_singular, soft_rates
from quanet.simplex import draw_bags, invert, share_grid, to_counts
from quanet.uncertainty.relearning import Likelihoods

BAGS = 1000  # simulated bags that the weight is estimated from
SIZE = 200  # instances in each of them
GRID_POINTS = 41  # true prevalences at which variances are computed, denser near 0 and 1


class ControlVariates(Quantifier):
    """A quantifier whose rows are made of posteriors, combined with maximum likelihood.

    Parameters
    ----------
    quantifier : the quantifier.

    Attributes
    ----------
    weight_ : of maximum likelihood, from 0 to 1.
    """

    reads_posteriors: ClassVar[bool] = True

    def __init__(self, quantifier: Quantifier) -> None:
        self.quantifier = quantifier

    @classmethod
    def from_fitted(cls, fitted: Quantifier, held_out: HeldOut) -> Self:
        """Combine a fitted quantifier with maximum likelihood; its held-out instances give the weight."""
        # A copy, because cached results must not keep the quantifier alive.
        combined = cls(copy(fitted))
        combined.classes_, combined.prior_ = fitted.classes_, fitted.prior_
        combined.held_out_ = fitted.held_out_ if fitted.held_out_ is None else replace(fitted.held_out_, fold_gap=None)
        combined.likelihoods_ = Likelihoods(held_out, fitted.prior_)
        rng = np.random.default_rng(0)
        counts, place = to_counts(rng.dirichlet(np.ones(held_out.k), size=BAGS), SIZE), held_out.class_order.argsort()
        stack = combined.rows(held_out.inputs)[draw_bags(place[held_out.codes], counts, rng)]
        estimates, likely = combined._both(stack)
        errors, differences = estimates - counts[:, place] / SIZE, estimates - likely
        weight = (errors * differences).sum() / max(float((differences**2).sum()), 1e-12)
        combined.weight_ = float(np.clip(weight, 0, 1))
        return combined

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """The combined estimates: (..., n, d + k) -> (..., k)."""
        estimates, likely = self._both(np.asarray(rows, dtype=float))
        return estimates + self.weight_ * (likely - estimates)

    def combine(self, estimates: FloatArray, inputs: FloatArray, bags: Bags, sizes: IntArray) -> FloatArray:
        """The combined estimates (b, k) of bags of inputs (n, d), from the known estimates of the quantifier.

        `sizes` (b,) are those of the bags without weights that they are compared with.
        """
        likely = np.empty_like(estimates)
        for positions, stack in bags.gather(self.likelihoods_(inputs)):
            likely[positions] = self.likelihoods_.prevalences(stack, sizes[positions])
        return estimates + self.weight_ * (likely - estimates)

    def _both(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = len(self.classes_)
        # Compiled loops need contiguous arrays.
        estimates = self.quantifier.aggregate(np.ascontiguousarray(rows[..., :-k]))
        return estimates, self.likelihoods_.prevalences(np.ascontiguousarray(rows[..., -k:]))

    def _read(self, X: Any) -> FloatArray:
        return self.quantifier.read(X).values

    def rows(self, inputs: ArrayLike) -> FloatArray:
        """Rows of the quantifier, followed by likelihoods: (n, d + k)."""
        inputs = np.asarray(inputs)
        return np.hstack([self.quantifier.rows(inputs), self.likelihoods_(inputs)])

    def relearn(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        """A copy whose quantifier and likelihoods have learned from other held-out inputs."""
        relearned = copy(self)
        relearned.quantifier = self.quantifier.relearn(inputs, codes)
        relearned.likelihoods_ = Likelihoods(HeldOut(inputs, codes, len(self.classes_)), self.prior_)
        return relearned


@dataclass(frozen=True, slots=True, eq=False)
class ControlledCount:
    r"""Errors of an adjusted count of two classes, combined with maximum likelihood, by the delta method.

    To first order, the errors of the count and of maximum likelihood at the true prevalence p are means over the bag of

    .. math:: a_i = \frac{s_i - fpr}{tpr - fpr} - p, \qquad v_i = \frac{u_i}{E[u^2]}, \qquad
              u_i = \frac{r_i - 1}{1 - p + p r_i}

    with scores s and density ratios r. Their weighted mean, :math:`(1 - \beta) a + \beta v`, has the variance

    .. math:: V(p) = \sum_c \Big(\frac{p_c}{n} + \frac{p_c^2}{m_c}\Big)
              \mathrm{var}_c\big((1 - \beta)\, a + \beta v\big)

    over held-out instances of each class, with `HeldOut.learning_sizes` :math:`m_c`. The first term is the error of the
    bag, the second one the error of what was learned. The weight :math:`\beta` minimises the variance, on average over
    all p: with a weight for every p, an interval would compare an estimate with the variance of another one. At 0 and 1
    the density ratio of a single instance may be arbitrarily large, so that v there is that of the nearest other p.

    Attributes
    ----------
    shares : (g,) true prevalences of the second class.
    per_instance : (g, 2, 2) covariance of the two errors in a bag of one instance; a bag of n has 1 / n of it.
    learned : (g, 2, 2) covariance of the two errors that comes from the held-out instances.
    """

    shares: FloatArray
    per_instance: FloatArray
    learned: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, likelihoods: FloatArray, held_out: HeldOut) -> "ControlledCount | None":
        """Estimate from scores and likelihoods (m, 2) of held-out instances; None if scores do not separate them."""
        rates = soft_rates(scores, held_out.codes)
        if is_singular(rates):
            return None
        false_positive, true_positive = rates[1]
        counted = (scores[:, 1] - false_positive) / (true_positive - false_positive)
        contrast = (likelihoods[:, 1] - likelihoods[:, 0]) / likelihoods.sum(axis=1)
        members = held_out.by_class()
        sizes = held_out.learning_sizes.tolist()
        shares = share_grid(GRID_POINTS)
        per_instance, learned = np.zeros((GRID_POINTS, 2, 2)), np.zeros((GRID_POINTS, 2, 2))
        for g, (p, inner) in enumerate(zip(shares.tolist(), np.clip(shares, *shares[[1, -2]]).tolist(), strict=True)):
            score = 2 * contrast / (1 + (2 * inner - 1) * contrast * (1 - 1e-12))
            square = [(score[part] ** 2).mean() for part in members]
            information = (1 - inner) * square[0] + inner * square[1]
            both = np.stack([counted, score / max(information, 1e-300)])
            for q, part, size in zip((1 - p, p), members, sizes, strict=True):
                within = np.cov(both[:, part])
                per_instance[g] += q * within
                learned[g] += q**2 / size * within
        return cls(shares, per_instance, learned)

    def weights(self, n: int) -> FloatArray:
        """Weight of maximum likelihood at every prevalence (g,) in bags of n instances."""
        (aa, av), (_, vv) = np.moveaxis(self._both(n), 0, -1)
        difference = aa - 2 * av + vv
        # If both estimates are identical, as for predicted labels, the second one adds nothing.
        return np.where(difference > 1e-9 * aa, np.clip((aa - av) / np.maximum(difference, 1e-300), 0, 1), 0.0)

    def _both(self, n: int) -> FloatArray:
        """Covariance (g, 2, 2) of the two errors in bags of n instances."""
        return self.per_instance / n + self.learned

    def mean_weights(self, sizes: IntArray) -> FloatArray:
        """Weight of maximum likelihood (b,) in bags of these sizes (b,), the mean over all prevalences.

        It does not depend on the estimates, so that what was learned cancels in differences between bags.
        """
        by_size = {n: float(self.weights(n).mean()) for n in np.unique(sizes).tolist()}
        return np.array([by_size[n] for n in sizes.tolist()])

    def ends(
        self, counted: FloatArray, likely: FloatArray, sizes: IntArray, *, z: float, target_is_bag: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends (b,), and variances (b,), from adjusted counts and maximum likelihood (b,) of bags."""
        lower, upper, variance = (np.empty(len(counted)) for _ in range(3))
        weights = self.mean_weights(sizes)
        centre = np.clip(counted + weights * (likely - counted), 0, 1)
        for n in np.unique(sizes).tolist():
            of_size = sizes == n
            both = np.array([1 - weights[of_size][0], weights[of_size][0]])
            found = both @ self._both(n) @ both
            if not target_is_bag:
                found = found + self.shares * (1 - self.shares) / n
            reach = z * np.sqrt(np.maximum(found, 0))
            lower[of_size], upper[of_size] = invert(centre[of_size], self.shares, -reach, reach)
            variance[of_size] = np.interp(centre[of_size], self.shares, found)
        return lower, upper, variance

    def combine(self, counted: FloatArray, likely: FloatArray, sizes: IntArray) -> FloatArray:
        """Estimates (b,) combined with `mean_weights`, from adjusted counts and maximum likelihood (b,)."""
        return counted + self.mean_weights(sizes) * (likely - counted)
