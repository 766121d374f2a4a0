r"""How uncertain what was learnt from held-out rows makes an estimate by maximum likelihood.

Likelihoods L are learnt from few instances. At prevalences p the mean score of a bag should be 1 for every class; how
far it is off, because other instances would have given other likelihoods, shows in the scores of held-out instances:

.. math:: A \Big(\sum_c \frac{p_c^2}{m_c} \mathrm{cov}_c(s)\Big) A^T, \qquad s_{ic} = \frac{L_{ic}}{\sum_a p_a L_{ia}},
          \qquad A = J^{-1} - \frac{J^{-1} 1 1^T J^{-1}}{1^T J^{-1} 1}

with :math:`m_c` independent held-out instances of class c and the information J at p (a sandwich; White 1982). Unlike
estimates that are learnt again, this is not cut off at 0 and 1, where all estimates would be the same and nothing would
seem uncertain; and it holds where the calibration's family does not contain the truth.
"""

import numpy as np

from quanet.arrays import FloatArray
from quanet.uncertainty.held import Held

MOST = 2_000  # held-out instances of a class that covariances are found from
AT_A_TIME = 2**20  # numbers held together


def learning_covariance(likelihoods: FloatArray, held: Held, prevalences: FloatArray) -> FloatArray:
    """Covariance (b, k, k) of estimates that comes from what was learnt.

    Parameters
    ----------
    likelihoods : (m, k) of the held-out instances.
    held : these instances; their inputs begin with posteriors.
    prevalences : (b, k) above 0, near the estimates.
    """
    b, k = prevalences.shape
    parts = [_spaced(likelihoods[members]) for members in held.by_class()]
    sizes = held.worth(held.inputs[:, :k]).tolist()
    together = max(1, AT_A_TIME // (k * max(map(len, parts))))
    found = np.empty((b, k, k))
    for start in range(0, b, together):
        some = prevalences[start : start + together]
        information, variance = np.zeros((2, len(some), k, k))
        for c, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            scores = part / (some @ part.T)[:, :, None]  # (b, m, k)
            moments = np.swapaxes(scores, 1, 2) @ scores / len(part)
            means = scores.mean(axis=1)
            within = moments - means[:, :, None] * means[:, None, :]
            information += some[:, c, None, None] * moments
            variance += some[:, c, None, None] ** 2 / max(1.0, size - 1) * within
        slope = _inverse(information)
        found[start : start + together] = slope @ variance @ slope
    return found


def _spaced(rows: FloatArray) -> FloatArray:
    """At most `MOST` of the rows, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST)).round().astype(np.intp)]


def _inverse(information: FloatArray) -> FloatArray:
    """How prevalences that keep their sum move with the score: (b, k, k)."""
    inverse = np.linalg.pinv(information, hermitian=True)
    towards = inverse.sum(axis=2)
    return inverse - towards[:, :, None] * towards[:, None, :] / towards.sum(axis=1)[:, None, None]
