"""QuaNet: a network that learns to estimate prevalences from bags of held-out rows and corrects a base estimate."""

import os
from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.bags import Bags
from quanet.base import Quantifier
from quanet.classifiers.cross_fitting import is_given
from quanet.errors import InvalidSetting
from quanet.held_out import HeldOut
from quanet.methods.about import About
from quanet.nn.batches import BagPool, base_estimate, normalised, pooled_inputs, sorted_inputs, training_batches
from quanet.nn.device import device_of_estimates, on_device, one_thread, resolve_device, seeded
from quanet.nn.guard import compare, loses_on_parts
from quanet.nn.loop import Batch, train
from quanet.nn.losses import divergence_from_logs, squared_error
from quanet.nn.network_state import network_as_arrays, restore_network
from quanet.nn.networks import PaperNetwork, ResidualNetwork
from quanet.nn.recipes import GROUPS, PAPER_PARTS, RECIPES, RUNS
from quanet.nn.row_maker import NetworkQuantifier, RowMaker
from quanet.nn.statistics import Statistics
from quanet.nn.training import check_checkpoint, checkpoint_of, classifier_to_fit, follow
from quanet.parameters import Constraints, one_of

AT_A_TIME = {"cpu": 2**22, "cuda": 2**24}  # numbers of rows that pass through the network together


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
    Pools for training, early stopping and the last test share no instance, and neighbours in the data stay in one pool.

    The last pool decides whether the network is used: it is cut into 6 to 10 parts of neighbours with at least 10
    instances of every class each. In AE, RAE and KLD alike, the network's gain over the base must be significant over
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

    network_: nn.Module

    reads_posteriors: ClassVar[bool] = True

    def __init__(
        self,
        classifier: Any = None,
        *,
        network: Literal["residual", "paper"] = "residual",
        cv: Any = 20,
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
        shares, runs = ((0.6, 0.2, 0.2), RUNS) if self.network == "residual" else PAPER_PARTS
        train_pool, stop_pool, guard_pool = BagPool(rows, codes[held], k, groups).parts(shares, rng=rng, runs=runs)
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
        check_is_fitted(self, "network_")
        return self.rows_.transform(X)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """Base estimate and the network's correction, for every bag: (..., n, k + e) -> (..., k)."""
        check_is_fitted(self, "network_")
        values = check_rows(rows, width=self.rows_.width if self.corrects_ else None)
        estimate = self._estimate if self.corrects_ else self._base
        stack = values.reshape(-1, *values.shape[-2:])
        together = max(1, AT_A_TIME["cpu"] // stack[0].size)
        parts = [estimate(stack[start : start + together]) for start in range(0, len(stack), together)]
        return np.concatenate(parts).reshape(*values.shape[:-2], -1)

    def aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Prevalences (b, k) of bags of rows (n, d), a bounded number of bags at a time."""
        if self.network != "paper":
            return super().aggregate_bags(rows, bags)
        bags.check_pool(len(rows))
        table = torch.as_tensor(rows, device=device_of_estimates(self.device))
        estimates = np.empty((len(bags), 2))
        for positions, matrix in bags.unweighted(rows).by_size():
            together = max(1, AT_A_TIME[table.device.type] // (matrix.shape[1] * table.shape[1]))
            for start in range(0, len(positions), together):
                chunk = slice(start, start + together)
                estimates[positions[chunk]] = self._estimate_in_order(table, matrix[chunk])
        return self._shrunk(estimates)

    @property
    def _closed_form(self) -> str | None:
        return None if self.corrects_ else "likelihood"

    def relearn(self, inputs: FloatArray, codes: IntArray) -> Quantifier:
        """A copy whose base estimate is calibrated on other held-out inputs; itself if the network is used."""
        relearned = copy(self)
        relearned.statistics_ = Statistics.fit(inputs[:, : len(self.classes_)], codes)
        return self if self.corrects_ else relearned

    __quanet_state__ = network_as_arrays

    @classmethod
    def __quanet_restore__(cls, state: dict[str, Any]) -> Self:
        """The quantifier that was saved."""
        restored = cls()
        return restore_network(restored, state, lambda: restored._new_network().double())

    def _new_network(self) -> nn.Module:
        width = self.rows_.width - len(self.classes_)
        return PaperNetwork(1 + width) if self.network == "paper" else ResidualNetwork(2 + width, 8)

    def _train(self, train_pool: BagPool, stop_pool: BagPool, device: torch.device, rng: np.random.Generator) -> None:
        recipe = RECIPES[self.network]
        self.network_ = self._new_network().to(device)

        def stream(pool: BagPool, batches: int, sizes: tuple[int, int]) -> Iterator[Batch]:
            return training_batches(
                pool,
                self.statistics_,
                device,
                batches=batches,
                bags=recipe.bags,
                sizes=sizes,
                groups=recipe.groups,
                rng=rng,
            )

        settings = (recipe, self.random_state, self.max_epochs, self.patience)
        epochs = train(
            self.network_,
            lambda: stream(train_pool, recipe.batches, recipe.sizes),
            list(stream(stop_pool, recipe.stop_batches, recipe.stop_sizes)),
            squared_error if self.network == "paper" else divergence_from_logs,
            lr=recipe.lr,
            max_epochs=self.max_epochs,
            patience=self.patience,
            checkpoint=checkpoint_of(self, (self.network_, settings, device), (train_pool, stop_pool), rng),
        )
        self.history_ = follow(epochs, "QuaNet", self.max_epochs, visible=self.progress)

    def _base(self, rows: FloatArray) -> FloatArray:
        return base_estimate(np.ascontiguousarray(rows[..., : len(self.classes_)]), self.statistics_)

    def _estimate(self, rows: FloatArray) -> FloatArray:
        if self.network == "paper":
            table = torch.as_tensor(rows.reshape(-1, rows.shape[-1]), device=device_of_estimates(self.device))
            return self._estimate_in_order(table, np.arange(len(table)).reshape(rows.shape[:-1]))
        with torch.no_grad():
            found = self.network_(*map(torch.as_tensor, pooled_inputs(rows, self.statistics_, GROUPS))).exp()
        return normalised(found)

    @torch.no_grad()
    def _estimate_in_order(self, table: Tensor, indices: IntArray) -> FloatArray:
        """Estimates (b, 2) of the paper's network, for bags of rows of a table (m, 2 + e) with these numbers (b, n)."""
        inputs = sorted_inputs(table, torch.as_tensor(indices, device=table.device), self.statistics_)
        return normalised(on_device(self.network_, table.device)(*inputs))
