r"""An estimate beside maximum likelihood on the same posteriors, weighted so that together they err least.

Both read the same bag, so that how far they are apart says something of their errors: the likelihood uses all that
posteriors tell of the shares; their mean, say, does not. What an estimate is off by is then partly known, and an
interval that takes it for chance is too wide and in the wrong place. An interval given that difference is one of

.. math:: \hat p - \beta\, (\hat p - \hat p_{ML}), \qquad \beta = \frac{\sum e \cdot d}{\sum d \cdot d}

with errors e and differences d in bags of held-out rows: a control variate (Davison and Hinkley 1997, section 9.3).
"""

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray
from quanet.base import Quantifier
from quanet.simplex import to_counts
from quanet.uncertainty.conformal import draw_bags
from quanet.uncertainty.held import Held, Likelihoods, kept_of

BAGS = 1000  # that the weight is learnt from
SIZE = 200  # of these bags


class Steadied(Quantifier):
    """A fitted quantifier whose rows are made of posteriors, and maximum likelihood with a weight.

    Parameters
    ----------
    quantifier : fitted.

    Attributes
    ----------
    weight_ : of the likelihood, from 0 to 1.
    """

    _reads_posteriors: ClassVar[bool] = True

    def __init__(self, quantifier: Quantifier) -> None:
        self.quantifier = quantifier

    @classmethod
    def of(cls, fitted: Quantifier, held: Held) -> Self:
        """Learn the weight from what a fitted quantifier has kept."""
        # A copy: what is remembered for a quantifier must not keep it alive.
        steadied = cls(copy(fitted))
        steadied.classes_, steadied.prior_ = fitted.classes_, fitted.prior_
        steadied.held_rows_, steadied.held_codes_ = fitted.held_rows_, fitted.held_codes_
        steadied.held_groups_ = getattr(fitted, "held_groups_", None)
        steadied.likelihoods_ = Likelihoods(held, fitted.prior_)
        rng = np.random.default_rng(0)
        counts = to_counts(rng.dirichlet(np.ones(held.k), size=BAGS), SIZE)
        stack = steadied._rows(held.inputs)[draw_bags(held, counts, rng)]
        own, likely = steadied._both(stack)
        errors, apart = own - counts / SIZE, own - likely
        steadied.weight_ = float(np.clip((errors * apart).sum() / max(float((apart**2).sum()), 1e-12), 0, 1))
        return steadied

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the quantifier, and learn the weight."""
        fitted = self.quantifier.fit(X, y)
        return self.of(fitted, kept_of(fitted))

    def represent(self, X: Any) -> FloatArray:
        """Rows of the quantifier, and likelihoods beside them: (n, d + k)."""
        return self._rows(self._inputs(X))

    def aggregate(self, rows: ArrayLike) -> FloatArray:
        """Both estimates, weighted: (..., n, d + k) -> (..., k)."""
        own, likely = self._both(np.asarray(rows, dtype=float))
        return own + self.weight_ * (likely - own)

    def _both(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = len(self.classes_)
        # Contiguous, as compiled loops want them.
        own = self.quantifier.aggregate(np.ascontiguousarray(rows[..., :-k]))
        return own, self.likelihoods_.prevalences(np.ascontiguousarray(rows[..., -k:]))

    def _inputs(self, X: Any) -> FloatArray:
        return self.quantifier._inputs(X)  # noqa: SLF001

    def _rows(self, inputs: FloatArray) -> FloatArray:
        return np.hstack([self.quantifier._rows(inputs), self.likelihoods_(inputs)])  # noqa: SLF001

    def _relearnt(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        relearnt = copy(self)
        relearnt.quantifier = self.quantifier._relearnt(inputs, codes)  # noqa: SLF001
        relearnt.likelihoods_ = Likelihoods(Held(inputs, codes, len(self.classes_)), self.prior_)
        return relearnt
