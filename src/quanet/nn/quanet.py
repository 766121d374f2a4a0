"""QuaNet: a network that learns to estimate prevalences from bags of held-out rows and corrects a base estimate."""

import os
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import is_given
from quanet.errors import InvalidSetting
from quanet.held_out import HeldOut
from quanet.methods.about import About
from quanet.nn.bag_pools import BagPool, base_estimate, base_from_calibrated
from quanet.nn.guard import compare, loses_on_parts
from quanet.nn.network_state import network_as_arrays, with_weights
from quanet.nn.recipes import AT_A_TIME, POOLS, RECIPES
from quanet.nn.row_maker import NetworkQuantifier, RowMaker
from quanet.nn.statistics import Statistics
from quanet.parameters import Constraints, one_of

if TYPE_CHECKING:
    import torch
    from torch import nn


class QuaNet(NetworkQuantifier):
    r"""Quantification network: a recurrent network that corrects a base estimate for a bag, after [1]_.

    .. math:: \log \hat p_c = \log \hat p_c^{base} + g_c(x_{(1)}, \ldots, x_{(n)}) + \text{const}

    The base is calibrated maximum likelihood, as `EMQ`. The rows x are ``[posteriors | embedding]`` of the bag's
    instances, sorted by posterior and pooled into quantile groups, so that the cost of the network g does not depend on
    the bag's size. It corrects only where that is clearly better than the base. As published: `QuaNet.paper`.

    Parameters
    ----------
    classifier : as for `AggregativeQuantifier`; one with `transform` gives embeddings too, and "precomputed" means
        that X is ``[posteriors | embedding]``, (n, k + e).
    network : "residual", as above, or "paper".
    cv : folds for the rows, if the classifier's embedding knows no labels; or a held-out share, with the classifier
        fitted to the rest alone, so that all rows have one embedding. If the embedding is learned from labels, 40 % are
        held out in any case. For precomputed rows it states how they were made: a share means by one classifier, as
        the reader above needs; posteriors of several folds would show it their own labels.
    max_epochs, patience : of training; an epoch is 50 batches of 50 bags ("paper": 100 of 100).
    device : "auto", "cpu", "cuda", "mps".
    random_state : seed; None for a different result each time.
    checkpoint : folder that keeps every epoch; a fit that was killed resumes there, with the same result. It serves
        an `LSTMClassifier` as well. Needs a `random_state`.
    progress : whether a line on standard error shows the progress of training.

    Attributes
    ----------
    corrects_ : whether the network is used.
    p_value_ : of the network's gain on the last pool, 1 if there are too few instances; NaN for the paper's network.
    history_ : training and validation loss of every epoch.

    Notes
    -----
    Rows to train on come from held-out training instances. If they are of one classifier, a linear reader may first
    improve the posteriors by what the embedding adds, where that is clear from out-of-fold ones. The correction starts
    at zero and is trained by divergence (KLD) on bags of 20 to 1,000 instances at prevalences uniform on the simplex.
    Pools for training, early stopping and the last test share no instance and no copy of one.

    The last pool decides whether the network is used: it is cut into 6 to 10 parts with at least 10 instances of every
    class each. In AE, RAE and KLD alike, the network's gain over the base must be significant over
    the parts (t-test, p < .005), remove at least 5 % of the base's error, and be a loss in no part; nor may it lose on
    clusters of the training data that the classifier has not seen (`quanet.drift`). Otherwise, and with fewer than
    about 300 held-out instances of a class, `predict` gives the base.

    References
    ----------
    .. [1] A. Esuli, A. Moreo and F. Sebastiani, "A recurrent neural network for sentiment quantification", CIKM 2018.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians().draw([0.5, 0.5], 400, rng=0)
    >>> quantifier = QuaNet(max_epochs=1, random_state=0).fit(X, y)
    >>> quantifier.predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("networks", "Esuli, Moreo and Sebastiani (2018)", "any", "posteriors", "O(n log n)")
    allowed_values: ClassVar[Constraints] = {"network": one_of(*RECIPES)}

    reads_posteriors: ClassVar[bool] = True

    _weights: dict[str, FloatArray]  # saved ones of a network that is not used

    def __init__(
        self,
        classifier: Any = None,
        *,
        network: Literal["residual", "paper"] = "residual",
        cv: Any = 5,
        max_epochs: int = 40,
        patience: int = 8,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> None:
        self.classifier = classifier
        self.network = network
        self.cv = cv
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.progress = progress

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
    ) -> "QuaNet":
        """The network of the paper, for two classes, with its training.

        A bidirectional LSTM of 64 reads the sorted rows; its two final states and the eight statistics pass through
        dense layers of 1,024 and 512 (ReLU, dropout 0.5) to a softmax. Mean squared error, Adam with learning rate and
        weight decay 1e-4, 100 bags of 500 at uniform prevalence a step, validation on 3,000 such bags every 100 steps,
        patience 20, at most 20,000 steps; the classifier is fitted to 60 % of the data, and rows and rates come from
        the other 40 %.

        It departs from the authors' code, which

        - keeps the weights with the least error on test bags; here early stopping sees a quarter of the 40 % only;
        - takes the LSTM's output at the last position, whose backward half has seen one row: here both final states;
        - enters every statistic v as [v, 1 - v]: here the eight of the paper;
        - draws bags from a grid of 21 prevalences, 84 a step: here 100 a step at prevalences uniform in (0, 1);
        - feeds the embeddings as they are: here they are standardised, without which training ends early, at a worse
          network (AE .019 instead of .018, RAE .18 instead of .15 on held-out IMDB training data);
        - divides the learning rate by ten after half of 10,000 steps, and stretches the softmax by 1.2 in evaluation:
          neither is in the paper, and neither is done here.

        ACC and PACC enter unclipped, as there and as in the paper's equations.
        """
        return cls(
            classifier,
            network="paper",
            cv=0.4,
            max_epochs=max_epochs,
            patience=patience,
            device=device,
            random_state=random_state,
            checkpoint=checkpoint,
            progress=progress,
        )

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit the classifier to instances X and labels y (n,), then the network to bags of held-out rows."""
        from quanet.nn.device import one_thread, resolve_device, seeded
        from quanet.nn.training import check_checkpoint, classifier_to_fit

        check_checkpoint(self)
        device = resolve_device(self.device)
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        k = len(self.classes_)
        if self.network == "paper" and k != 2:
            raise InvalidSetting(f"the paper's network is for two classes, but y has {k}. Use QuaNet().")
        self.rows_ = RowMaker(classifier_to_fit(self), cv=self.cv, refine=self.network == "residual")
        rows, held, groups = self.rows_.fit(X, codes, self.classes_)
        self.statistics_ = Statistics.fit(rows[:, :k], codes[held])
        rng = np.random.default_rng(self.random_state)
        train_pool, stop_pool, guard_pool = BagPool(rows, codes[held], k, groups).parts(POOLS[self.network], rng=rng)
        with seeded(device, int(rng.integers(2**63))), one_thread():
            self._train(train_pool, stop_pool, device, rng)
        # Estimates are made in double precision, so that a bag's neighbours change nothing, not even by rounding.
        self.network_ = self.network_.cpu().double()
        self.corrects_, self.p_value_ = True, float("nan")
        if self.network == "residual":
            verdict = compare(self._base, self._estimate, guard_pool, rng=rng)
            self.corrects_, self.p_value_ = verdict.passes, verdict.p_value
        codes = codes[held]
        if self.corrects_:  # bags that the network was trained on would flatter it
            parts = stop_pool, guard_pool
            rows, codes = np.concatenate([p.rows for p in parts]), np.concatenate([p.codes for p in parts])
            groups = None if groups is None else np.concatenate([p.groups for p in parts if p.groups is not None])
        self._keep_held_out(HeldOut(rows, codes, len(self.classes_), groups, self.rows_.fold_gap))

    def review_parts(self, parts: list[tuple[FloatArray, IntArray]]) -> None:
        """Use the base estimate alone if the network loses on parts of the training data that were left out."""
        # Nothing can be left out of a classifier that is already fitted.
        if self.corrects_ and self.network == "residual" and not is_given(self.classifier):
            self.corrects_ = not loses_on_parts(self._base, self._estimate, parts, len(self.classes_))

    def _read(self, X: Any) -> FloatArray:
        """Posteriors and embedding of every instance: (n, k + e)."""
        check_is_fitted(self, "corrects_")
        return self.rows_.transform(X)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Base estimate and the network's correction, for every bag: (..., n, k + e) -> (..., k)."""
        check_is_fitted(self, "corrects_")
        values = check_rows(rows, width=self.rows_.width if self.corrects_ else None)
        estimate = self._estimate if self.corrects_ else self._base
        stack = values.reshape(-1, *values.shape[-2:])
        together = max(1, AT_A_TIME["cpu"] // stack[0].size)
        parts = [estimate(stack[start : start + together]) for start in range(0, len(stack), together)]
        return np.concatenate(parts).reshape(*values.shape[:-2], -1)

    def aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Prevalences (b, k) of bags of rows (n, d), a bounded number of bags at a time."""
        if self.network != "paper":
            shared = len(bags.flat) > len(rows) and bags.weights is None  # weights are rounded along whole rows
            if shared and not self.corrects_:
                return self._base_of_bags(rows, bags)
            return super().aggregate_bags(rows, bags)
        from quanet.nn.correction import estimate_bags

        bags.check_pool(len(rows))
        return self._shrunk(estimate_bags(self, check_rows(rows), bags))

    @property
    def pools_rows(self) -> bool:
        """Whether only means of rows with similar posteriors are read, so that states may keep such means."""
        return self.network == "residual"

    @property
    def _closed_form(self) -> str | None:
        return None if self.corrects_ else "likelihood"

    def relearn(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        """A copy whose base estimate is calibrated on other held-out inputs; itself if the network is used."""
        relearned = copy(self)
        relearned.statistics_ = Statistics.fit(inputs[:, : len(self.classes_)], codes)
        return self if self.corrects_ else relearned

    @cached_property
    def network_(self) -> "nn.Module":
        """The network; one that was loaded and is not used is built when it is first asked for."""
        check_is_fitted(self, "corrects_")
        return self._built(self._weights)

    def __quanet_state__(self) -> dict[str, Any]:
        """What is saved: the network as a dict of arrays."""
        state = network_as_arrays(self)
        weights = state.pop("_weights", None)
        return state if weights is None else {**state, "network_": weights}

    @classmethod
    def __quanet_restore__(cls, state: dict[str, Any]) -> Self:
        """The quantifier that was saved."""
        restored = cls()
        attributes = dict(state)
        weights = attributes.pop("network_", None)
        restored.__dict__.update(attributes)
        if weights is not None and attributes["corrects_"]:
            restored.network_ = restored._built(weights)
        elif weights is not None:
            restored._weights = weights
        return restored

    def _built(self, weights: dict[str, FloatArray]) -> "nn.Module":
        from quanet.nn.correction import new_network

        return with_weights(new_network(self).double(), weights, type(self).__name__)

    def _train(self, train_pool: BagPool, stop_pool: BagPool, device: "torch.device", rng: np.random.Generator) -> None:
        from quanet.nn.correction import train_network

        train_network(self, train_pool, stop_pool, device, rng)

    def _base(self, rows: FloatArray) -> FloatArray:
        return base_estimate(np.ascontiguousarray(rows[..., : len(self.classes_)]), self.statistics_)

    def _base_of_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Base estimates of bags that share rows: each row is calibrated once, and its embedding is not gathered."""
        estimates = np.empty((len(bags), len(self.classes_)))
        calibrated = self.statistics_.calibration(np.ascontiguousarray(check_rows(rows)[:, : len(self.classes_)]))
        for positions, stack in bags.gather(calibrated):
            estimates[positions] = base_from_calibrated(stack, self.statistics_)
        return self._shrunk(estimates)

    def _estimate(self, rows: FloatArray) -> FloatArray:
        from quanet.nn.correction import estimate

        return estimate(self, rows)
