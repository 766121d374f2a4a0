"""QuaNet: a network, trained once on simulated tasks, that reads shares from sorted scores. It needs no PyTorch."""

import os
import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.base import Quantifier
from quanet.errors import QuanetWarning, missing_torch
from quanet.held_out import ADVICE, MIN_HELD_OUT, HeldOut, knowledge
from quanet.methods.about import About
from quanet.methods.likelihood import Calibrated
from quanet.methods.solvers import maximum_likelihood
from quanet.nn.share_reader import KnownRows, ShareCurves, powers, read_each, read_two
from quanet.simplex import smooth


class QuaNet(Calibrated):
    r"""Quantification network: recurrent, over sorted scores [1]_, trained once on millions of simulated tasks.

    .. math:: P(p \mid x) \propto \exp\big(g_p(x) + t(x) \log L_p(x)\big)

    The network sorts the scores of held-out training instances together with those of the bag, as the paper sorts the
    bag. It corrects the likelihood L of every share p, which `EMQ` maximises, by logits g of its own and by its trust t
    in the likelihood. It was trained on simulated classification problems, so it knows what few labelled instances can
    tell: with 100 to 1,000 of them its errors are clearly smaller than those of maximum likelihood, which takes a
    calibration learned from few instances as exact. With many it agrees with maximum likelihood. Nothing is trained on
    your data but the classifier, and PyTorch is not needed. As published, with a network trained on each dataset:
    `QuaNet.paper`.

    Parameters
    ----------
    classifier, cv : see `AggregativeQuantifier`.

    Attributes
    ----------
    calibration_ : the fitted `quanet.calibrate` map of the posteriors.

    Notes
    -----
    The answer is a distribution over the shares of the bag's instances: `predict` returns its mean, intervals are its
    quantiles, and `share_curves` returns all of it. A priori, all shares are about equally likely, so estimates are not
    shrunk towards the training prevalences. `quanet.nn.simulator` describes the simulated tasks.

    With more than two classes, the network reads each class against the others, whose scores are weighted by the
    prevalences that maximum likelihood finds in the bag; the expected shares are divided by their sum.

    References
    ----------
    .. [1] A. Esuli, A. Moreo and F. Sebastiani, "A recurrent neural network for sentiment quantification", CIKM 2018.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 200, rng=0)
    >>> new, _ = Gaussians().draw([0.8, 0.2], 300, rng=1)
    >>> QuaNet().fit(X, y).predict(new).round(1)
    array([0.8, 0.2])
    """

    about: ClassVar[About] = About("networks", "Esuli, Moreo and Sebastiani (2018)", "any", "posteriors", "O(n log n)")

    _exact: ClassVar[bool] = False
    _closed_form: ClassVar[str] = "likelihood"
    _ridge: ClassVar[float] = 0.001  # as `calibrated_ratios`, with which the network was trained, has one

    known_: KnownRows

    def __init__(self, classifier: Any = None, *, cv: Any = None) -> None:
        super().__init__(classifier, cv=cv, calibration="bcts")

    @classmethod
    def paper(
        cls,
        classifier: Any = None,
        *,
        max_epochs: int = 200,
        patience: int = 20,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> Quantifier:
        """The network of the paper, for two classes, with its training: a `PaperQuaNet`, which needs PyTorch.

        Its docstring, in `quanet.nn.paper`, describes the parameters and how it departs from the authors' code.
        """
        try:
            from quanet.nn.paper import PaperQuaNet
        except ModuleNotFoundError as error:
            raise missing_torch(error, "QuaNet.paper") from None
        return PaperQuaNet(
            classifier,
            max_epochs=max_epochs,
            patience=patience,
            device=device,
            random_state=random_state,
            checkpoint=checkpoint,
            progress=progress,
        )

    def _fit_aggregation(self, posteriors: FloatArray, codes: IntArray) -> None:
        super()._fit_aggregation(posteriors, codes)
        self.known_ = KnownRows.of(self._calibrated(posteriors) / self.prior_, codes)

    def _keep_held_out(self, held_out: HeldOut) -> None:
        """Keep the held-out instances. Estimates are never shrunk: the network knows how little they tell."""
        self.held_out_ = held_out.compact()
        self.shrinkage_ = 0.0
        self.known_ = replace(self.known_, growth=held_out.growth).counting_as(held_out.effective_sizes)
        distinct = held_out.each_once()
        posteriors = distinct.inputs[:, : held_out.k]
        enough = len(posteriors) >= MIN_HELD_OUT and distinct.counts.min() > 1
        if enough and knowledge(posteriors, distinct.codes) == 0:
            sentence = "The classifier hardly separates the classes, so the intervals are wide."
            warnings.warn(f"{sentence} {ADVICE}", QuanetWarning, stacklevel=6)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The network's estimate for every bag: (..., n, k) -> (..., k)."""
        posteriors = check_rows(rows, width=len(self.classes_))
        stack = posteriors.reshape(-1, *posteriors.shape[-2:])
        return expected(self.share_curves(stack)).reshape(*posteriors.shape[:-2], -1)

    def aggregate_quickly(self, rows: ArrayLike) -> FloatArray:
        """Maximum likelihood, which the network corrects and which is off a little more under drift."""
        return maximum_likelihood(check_rows(rows, width=len(self.classes_)), self.prior_)[0]

    def share_curves(self, rows: FloatArray, sizes: FloatArray | IntArray | None = None) -> list[ShareCurves]:
        """Distributions over the share of every class, k times of b bags of rows (b, n, k).

        Parameters
        ----------
        rows : calibrated posteriors, as `represent` returns them.
        sizes : (b,) numbers of independent instances that the bags are worth; None for n.

        Examples
        --------
        >>> from quanet import Gaussians
        >>> X, y = Gaussians().draw([0.5, 0.5], 200, rng=0)
        >>> quantifier = QuaNet().fit(X, y)
        >>> _, second = quantifier.share_curves(quantifier.represent(X)[None])
        >>> second.quantile(0.025).round(1), second.quantile(0.975).round(1)
        (array([0.4]), array([0.6]))
        """
        likelihoods, (n, k) = rows / self.prior_, rows.shape[-2:]
        if k == 2:
            last = read_two(self.known_, likelihoods, sizes)
            both = [last.of_the_rest(), last]
            curves = [both[place] for place in self.known_.order.argsort()]
        else:
            likely = smooth(maximum_likelihood(rows, self.prior_)[0], 1 / (2 * n))
            curves = read_each(self.known_, likelihoods, likely, sizes)
        sharper = powers(likelihoods, smooth(expected(curves), 1 / n), self.known_.sizes)
        return [curve.sharpened(power) for curve, power in zip(curves, sharper.T, strict=True)]


def expected(curves: list[ShareCurves]) -> FloatArray:
    """Estimates (b, k) from the distributions of every class: expected shares, divided by their sum."""
    means = np.stack([curve.mean for curve in curves], axis=1)
    return means / means.sum(axis=1, keepdims=True)
