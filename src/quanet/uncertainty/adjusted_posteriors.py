r"""Posteriors adjusted to prevalences: what each instance probably is, given how many of each class there are.

With class-conditional likelihoods L, the posteriors of a bag with prevalences r are
:math:`r_c L_{ic} / \sum_a r_a L_{ia}` (Saerens, Latinne and Decaestecker 2002). Their mean is r if r is the maximum
likelihood estimate (EMQ). For every other estimate p, r is chosen so that their mean is p: the smallest change, in
Kullback-Leibler divergence, of the posteriors at equal prevalences. It is found by Newton's method on the convex dual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quanet.errors import InvalidSetting
from quanet.uncertainty.closed_form import closed_form_of, likelihoods_of
from quanet.uncertainty.relearning import Likelihoods, as_full_fit, cached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quanet.arrays import FloatArray, IntArray
    from quanet.base import Quantifier

CHUNK = 200_000  # instances adjusted at a time
STEPS, LONGEST, TOLERANCE = 100, 3.0, 1e-9
LEAST = 1e-12  # prevalence, since a logarithm is taken


class AdjustedPosteriors:
    """Posteriors of instances, adjusted so that their mean in every bag of a pool is the bag's estimate.

    Parameters
    ----------
    quantifier : fitted; it must read posteriors.
    inputs : (n, d) what it has read. Rows may stand for several instances each, with the sum of their weights.
    codes : (n,) the bag of every row.
    estimate : (b, k) prevalences of the bags.
    weights : (n,) weights of the mean; None for equal ones.

    Examples
    --------
    >>> from quanet import EMQ, Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 500, rng=0)
    >>> quantifier = EMQ().fit(X, y)
    >>> new, _ = Gaussians().draw([0.9, 0.1], 300, rng=1)
    >>> estimate = quantifier.predict(new)
    >>> inputs, codes = quantifier.read(new).values, np.zeros(300, dtype=int)
    >>> adjusted = AdjustedPosteriors(quantifier, inputs, codes, estimate[None])
    >>> bool(np.allclose(adjusted.of(inputs, codes).mean(axis=0), estimate, atol=1e-8))
    True
    """

    def __init__(
        self,
        quantifier: Quantifier,
        inputs: FloatArray,
        codes: IntArray,
        estimate: FloatArray,
        weights: FloatArray | None = None,
    ) -> None:
        if not quantifier.reads_posteriors:
            raise InvalidSetting(
                f"{type(quantifier).__name__} does not use posteriors, so it says nothing about single instances. "
                "Fit EMQ, PACC or QuaNet."
            )
        self.quantifier, self.inputs, self.codes = quantifier, inputs, np.asarray(codes, dtype=np.intp)
        self.weights = np.ones(len(inputs)) if weights is None else weights
        self.logs = self._solve(np.maximum(estimate, LEAST))

    def of(self, inputs: FloatArray, codes: IntArray) -> FloatArray:
        """Adjusted posteriors (m, k) of instances (m, d) of these bags (m,); they need not be those of the pool."""
        return self._at(inputs, codes, self.logs)

    def _at(self, inputs: FloatArray, codes: IntArray, logs: FloatArray) -> FloatArray:
        joint = np.log(np.maximum(self._likelihoods(inputs.astype(float)), LEAST)) + logs[codes]
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        return joint / joint.sum(axis=1, keepdims=True)

    def _likelihoods(self, inputs: FloatArray) -> FloatArray:
        """Likelihoods (m, k), as the quantifier uses them if it is one of maximum likelihood; else calibrated ones."""
        if closed_form_of(self.quantifier) == "likelihood":
            return likelihoods_of(self.quantifier, self.quantifier.rows(inputs))
        return cached(self.quantifier, "item likelihoods", lambda: _calibrated(self.quantifier))(inputs)

    def _solve(self, estimate: FloatArray) -> FloatArray:
        """Logarithms of the prevalences (b, k) at which the mean posteriors are the estimate."""
        b, k = estimate.shape
        totals = np.maximum(np.bincount(self.codes, weights=self.weights, minlength=b), LEAST)
        logs = np.log(estimate)
        for _ in range(STEPS):
            means, products = np.zeros((b, k)), np.zeros((b, k, k))
            for part in self._parts():
                posteriors = self._at(self.inputs[part], self.codes[part], logs)
                weighted = posteriors * self.weights[part, None]
                for c in range(k):
                    means[:, c] += np.bincount(self.codes[part], weights=weighted[:, c], minlength=b)
                    for d in range(c, k):
                        both = np.bincount(self.codes[part], weights=weighted[:, c] * posteriors[:, d], minlength=b)
                        products[:, c, d] += both
                        products[:, d, c] = products[:, c, d]
            means, products = means / totals[:, None], products / totals[:, None, None]
            missing = estimate - means
            if np.abs(missing).max() < TOLERANCE:
                break
            slope = np.eye(k) * means[:, None, :] - products
            step = np.einsum("bcd,bd->bc", np.linalg.pinv(slope, rcond=1e-9, hermitian=True), missing)
            logs = logs + np.clip(step, -LONGEST, LONGEST)
        return logs

    def _parts(self) -> Iterator[slice]:
        return (slice(start, start + CHUNK) for start in range(0, len(self.inputs), CHUNK))


def _calibrated(quantifier: Quantifier) -> Likelihoods:
    held_out = as_full_fit(quantifier).held_out_
    return Likelihoods(None if held_out is None else held_out.doubles(), quantifier.prior_)
