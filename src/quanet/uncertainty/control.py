r"""The delta method for counting two classes, with maximum likelihood on the same posteriors as a control variate.

A count, or a mean posterior, of a bag is off by chance, and by what has moved since its rates were learnt. The
likelihood reads more of the same posteriors, and where the two differ, part of that is seen. To first order both are
means over the bag, at a share p of

.. math:: a_i = \frac{s_i - fpr}{tpr - fpr} - p, \qquad v_i = \frac{u_i}{E[u^2]}, \qquad
          u_i = \frac{r_i - 1}{1 - p + p r_i}

with scores s and density ratios r. Their weighted mean, :math:`(1 - \beta) a + \beta v`, has the variance

.. math:: V(p) = \sum_c \Big(\frac{p_c}{n} + \frac{p_c^2}{m_c}\Big) \mathrm{var}_c\big((1 - \beta)\, a + \beta v\big)

over held-out instances of each class, worth :math:`m_c` independent ones: the first part is the bag's, the second that
of what was learnt. The weight :math:`\beta` makes it least.
"""

from dataclasses import dataclass

import numpy as np

from quanet.arrays import FloatArray, IntArray
from quanet.methods.counting import is_singular, soft_rates
from quanet.uncertainty.held import Held
from quanet.uncertainty.inversion import invert, towards_the_ends

SHARES = 41  # that variances are found at, more of them near 0 and 1


@dataclass(frozen=True, slots=True, eq=False)
class Controlled:
    """Covariances (g, 2, 2) of the two first-order errors at shares (g,): of a bag of one, and of what was learnt."""

    shares: FloatArray
    of_one: FloatArray
    learnt: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, likelihoods: FloatArray, held: Held) -> "Controlled | None":
        """From scores and likelihoods (m, 2) of held-out instances; None where scores tell nothing apart."""
        rates = soft_rates(scores, held.codes)
        if is_singular(rates):
            return None
        false_positive, true_positive = rates[1]
        counted = (scores[:, 1] - false_positive) / (true_positive - false_positive)
        contrast = (likelihoods[:, 1] - likelihoods[:, 0]) / likelihoods.sum(axis=1)
        members = held.by_class()
        sizes = held.worth(scores).tolist()
        shares = towards_the_ends(SHARES)
        of_one, learnt = np.zeros((SHARES, 2, 2)), np.zeros((SHARES, 2, 2))
        for g, p in enumerate(shares.tolist()):
            score = 2 * contrast / (1 + (2 * p - 1) * contrast * (1 - 1e-12))
            information = sum(q * (score[part] ** 2).mean() for q, part in zip((1 - p, p), members, strict=True))
            both = np.stack([counted, score / max(information, 1e-300)])
            for q, part, size in zip((1 - p, p), members, sizes, strict=True):
                within = np.cov(both[:, part])
                of_one[g] += q * within
                learnt[g] += q**2 / size * within
        return cls(shares, of_one, learnt)

    def ends(
        self, counted: FloatArray, likely: FloatArray, sizes: IntArray, *, z: float, own: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lower and upper ends (b,), and variances (b,), for adjusted counts and maximum likelihood (b,) of bags."""
        lower, upper, variance = (np.empty(len(counted)) for _ in range(3))
        for n in np.unique(sizes).tolist():
            mine = sizes == n
            (aa, av), (_, vv) = np.moveaxis(self.of_one / n + self.learnt, 0, -1)
            apart = aa - 2 * av + vv
            # Where the two are one, as they are for labels, neither adds to the other.
            weight = np.where(apart > 1e-9 * aa, np.clip((aa - av) / np.maximum(apart, 1e-300), 0, 1), 0.0)
            least = (1 - weight) ** 2 * aa + 2 * weight * (1 - weight) * av + weight**2 * vv
            if not own:
                least = least + self.shares * (1 - self.shares) / n
            first = np.clip(counted[mine], 0, 1)
            centre = counted[mine] + np.interp(first, self.shares, weight) * (likely[mine] - counted[mine])
            reach = z * np.sqrt(np.maximum(least, 0))
            lower[mine], upper[mine] = invert(np.clip(centre, 0, 1), self.shares, -reach, reach)
            variance[mine] = np.interp(centre, self.shares, least)
        return lower, upper, variance
