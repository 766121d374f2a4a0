"""The quantification network of Esuli, Moreo and Sebastiani (2018), as published: `QuaNet.paper`."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.bags import Bags
from quanet.errors import InvalidSetting
from quanet.held_out import HeldOut
from quanet.methods.counting import classify_and_count, hard_rates, mean_posterior, soft_rates
from quanet.nn.device import on_device, one_thread, resolve_device, seeded
from quanet.nn.networks import PaperNetwork
from quanet.nn.row_maker import HELD_OUT, NetworkQuantifier, RowMaker
from quanet.nn.training import (
    BagPool,
    Batch,
    Epoch,
    Recipe,
    check_checkpoint,
    checkpoint_of,
    classifier_to_fit,
    follow,
    network_as_arrays,
    pace_of,
    restore_network,
    to_tensors,
    train,
)
from quanet.parameters import Constraints, at_least, whole

RECIPE = Recipe(bags=100, sizes=(500, 500), batches=100, stop_sizes=(500, 500), stop_batches=30, lr=1e-4)
POOLS = (0.75 - 1e-9, 0.25)  # for training and early stopping; an instance on the border stops
AT_A_TIME = {"cpu": 2**22, "cuda": 2**24}  # numbers of rows that pass through the network together
MOST_SHARED = 2**17  # rows that are multiplied once for all bags on a CPU
NARROW = 16  # numbers in memory for each row of such a bag
ADVICE = "It is faster on a GPU, with a smaller max_epochs, or with QuaNet() instead of QuaNet.paper()."


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of a bag that the network reads, by the rates of held-out rows.

    Attributes
    ----------
    hard, soft : (2, 2) rates, as in ACC and PACC.
    """

    hard: FloatArray
    soft: FloatArray

    @classmethod
    def fit(cls, posteriors: FloatArray, codes: IntArray) -> "Statistics":
        """Learn the rates from posteriors (m, 2) of instances that their classifier has not seen."""
        return cls(hard_rates(posteriors, codes), soft_rates(posteriors, codes))

    def of_bags(self, posteriors: FloatArray) -> FloatArray:
        """CC, ACC, PCC, PACC, unclipped, and tpr_b, fpr_b, tpr_s, fpr_s, of the second class: (b, n, 2) -> (b, 8)."""
        hard, soft = classify_and_count(posteriors)[..., 1], mean_posterior(posteriors)[..., 1]
        (fpr_b, tpr_b), (fpr_s, tpr_s) = self.hard[1], self.soft[1]
        values = (
            hard,
            _unclipped(hard, tpr_b, fpr_b),
            soft,
            _unclipped(soft, tpr_s, fpr_s),
            tpr_b,
            fpr_b,
            tpr_s,
            fpr_s,
        )
        return np.stack(np.broadcast_arrays(*values), axis=-1)


def _unclipped(counted: FloatArray, tpr: float, fpr: float) -> FloatArray:
    return counted if abs(tpr - fpr) < 1e-6 else (counted - fpr) / (tpr - fpr)


class PaperQuaNet(NetworkQuantifier):
    r"""Quantification network (QuaNet): a recurrent network reads a bag's sorted rows and its counts [1]_.

    A bidirectional LSTM of 64 reads the rows ``[posterior | embedding]`` of a bag, sorted by posterior; its two final
    states and eight statistics, the estimates of CC, ACC, PCC and PACC and their rates, pass through dense layers of
    1,024 and 512 (ReLU, dropout 0.5) to a softmax over the two classes.

    Parameters
    ----------
    classifier : as for `AggregativeQuantifier`; one with `transform` gives embeddings too, and "precomputed" means
        that X is ``[posteriors | embedding]``, (n, 2 + e).
    max_epochs, patience : of training; an epoch is 100 batches of 100 bags.
    device : "auto", "cpu", "cuda", "mps".
    random_state : seed; None for a different result each time.
    checkpoint : folder that keeps every epoch; a fit that was killed resumes there, with the same result. It serves
        an `LSTMClassifier` as well. Needs a `random_state`.
    progress : whether a line on standard error shows the progress of training.

    Attributes
    ----------
    history_ : training and validation loss of every epoch.

    Notes
    -----
    Mean squared error, Adam with learning rate and weight decay 1e-4, 100 bags of 500 at uniform prevalence a step,
    validation on 3,000 such bags every 100 steps, patience 20, at most 20,000 steps; the classifier is fitted to 60 %
    of the data, and rows and rates come from the other 40 %.

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

    References
    ----------
    .. [1] A. Esuli, A. Moreo and F. Sebastiani, "A recurrent neural network for sentiment quantification", CIKM 2018.
    """

    allowed_values: ClassVar[Constraints] = {"max_epochs": whole(1), "patience": at_least(1)}

    reads_posteriors: ClassVar[bool] = True
    calibration_share: ClassVar[float] = 0.5  # still enough for levels up to 99 %

    statistics_: Statistics
    network_: nn.Module
    history_: list[Epoch]

    def __init__(
        self,
        classifier: Any = None,
        *,
        max_epochs: int = 200,
        patience: int = 20,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> None:
        self.classifier = classifier
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.progress = progress

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit the classifier to instances X and labels y (n,), then the network to bags of held-out rows."""
        check_checkpoint(self)
        device = resolve_device(self.device)
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        k = len(self.classes_)
        if k != 2:
            raise InvalidSetting(f"the paper's network is for two classes, but y has {k}. Use QuaNet().")
        self.rows_ = RowMaker(classifier_to_fit(self), cv=HELD_OUT, refine=False)
        rows, held, groups = self.rows_.fit(X, codes, self.classes_)
        self.statistics_ = Statistics.fit(rows[:, :k], codes[held])
        rng = np.random.default_rng(self.random_state)
        train_pool, stop_pool = BagPool(rows, codes[held], k, groups).parts(POOLS, rng=rng)
        with seeded(device, int(rng.integers(2**63))), one_thread():
            self._train(train_pool, stop_pool, device, rng)
        # Estimates are made in double precision, so that a bag's neighbours change nothing, not even by rounding.
        self.network_ = self.network_.cpu().double()
        # Bags that the network was trained on would flatter it.
        self._keep_held_out(HeldOut(stop_pool.rows, stop_pool.codes, k, stop_pool.groups, self.rows_.fold_gap))

    def _train(self, train_pool: BagPool, stop_pool: BagPool, device: torch.device, rng: np.random.Generator) -> None:
        network = self.network_ = self._new_network().to(device)

        def stream(pool: BagPool, batches: int, sizes: tuple[int, int]) -> Iterator[Batch]:
            return sorted_batches(
                pool, self.statistics_, device, batches=batches, bags=RECIPE.bags, sizes=sizes, rng=rng
            )

        settings = (RECIPE, self.random_state, self.max_epochs, self.patience)
        epochs = train(
            network,
            lambda: stream(train_pool, RECIPE.batches, RECIPE.sizes),
            list(stream(stop_pool, RECIPE.stop_batches, RECIPE.stop_sizes)),
            squared_error,
            lr=RECIPE.lr,
            max_epochs=self.max_epochs,
            patience=self.patience,
            checkpoint=checkpoint_of(self, (network, settings, device), (train_pool, stop_pool), rng),
            pace=pace_of("network", RECIPE.batches, RECIPE.stop_batches, self.max_epochs, self.patience, ADVICE),
        )
        self.history_ = follow(epochs, "QuaNet", self.max_epochs, visible=self.progress)

    def _new_network(self) -> PaperNetwork:
        return PaperNetwork(self.rows_.width - 1)

    def _read(self, X: Any) -> FloatArray:
        """Posteriors and embedding of every instance: (n, 2 + e)."""
        check_is_fitted(self, "network_")
        return self.rows_.transform(X)

    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The network's estimate for every bag: (..., n, 2 + e) -> (..., 2)."""
        check_is_fitted(self, "network_")
        values = check_rows(rows, width=self.rows_.width)
        n, width = values.shape[-2:]
        table = torch.as_tensor(values.reshape(-1, width), device=device_of_estimates(self.device))
        order = np.arange(len(table)).reshape(-1, n)
        together = max(1, AT_A_TIME["cpu"] // (n * width))
        parts = [
            self._estimate_in_order(table, order[start : start + together]) for start in range(0, len(order), together)
        ]
        return np.concatenate(parts).reshape(*values.shape[:-2], 2)

    def aggregate_bags(self, rows: FloatArray, bags: Bags) -> FloatArray:
        """Prevalences (b, 2) of bags of rows (n, 2 + e), a bounded number of bags at a time."""
        bags.check_pool(len(rows))
        table = torch.as_tensor(check_rows(rows), device=device_of_estimates(self.device))
        estimates = np.empty((len(bags), 2))
        shared = table.device.type == "cpu" and len(table) <= MOST_SHARED and len(bags.flat) >= 2 * len(table)
        for positions, matrix in bags.unweighted(rows).by_size():
            width = NARROW if shared else table.shape[1]
            together = max(1, AT_A_TIME[table.device.type] // (matrix.shape[1] * width))
            for start in range(0, len(positions), together):
                chunk = slice(start, start + together)
                estimates[positions[chunk]] = self._estimate_in_order(table, matrix[chunk], shared=shared)
        return self._shrunk(estimates)

    @torch.no_grad()
    def _estimate_in_order(self, table: Tensor, indices: IntArray, *, shared: bool = False) -> FloatArray:
        """Estimates (b, 2) for bags of rows of a table (m, 2 + e) with these numbers (b, n).

        If bags share rows, each row is multiplied once: two to three times faster on a CPU, the same to 1e-12.
        """
        order, statistics = sorted_inputs(table, torch.as_tensor(indices, device=table.device), self.statistics_)
        network: Any = on_device(self.network_, table.device)
        with one_thread():  # steps from row to row are small
            if shared:
                found = network.of_shared_rows(table[:, 1:], order, statistics)
            else:
                found = network(table[:, 1:][order], statistics)
        estimate: FloatArray = found.cpu().numpy()
        return estimate / estimate.sum(axis=-1, keepdims=True)  # they sum to one, as exactly as floats can

    def __quanet_state__(self) -> dict[str, Any]:
        """What is saved: the network as a dict of arrays."""
        return network_as_arrays(self)

    @classmethod
    def __quanet_restore__(cls, state: dict[str, Any]) -> Self:
        """The quantifier that was saved."""
        restored = cls()
        return restore_network(restored, state, lambda: restored._new_network().double())


def device_of_estimates(device: str) -> torch.device:
    """Where estimates are made: on CUDA if it is available and may be used, else on the CPU."""
    # The LSTM reads row after row: many bags take the time of one, and a GPU is some twenty times faster.
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


def sorted_inputs(table: Tensor, indices: Tensor, statistics: Statistics) -> tuple[Tensor, Tensor]:
    """What the network reads of bags of rows of a table (m, 2 + e), given by their numbers (b, n).

    Numbers in the order of their posteriors (b, n) and statistics (b, 8). Only posteriors leave the device.
    """
    posteriors = table[:, :2][indices]
    order = indices.gather(1, posteriors[..., 1].argsort(dim=1, stable=True))
    numbers = statistics.of_bags(posteriors.cpu().numpy())
    return order, torch.as_tensor(numbers, device=table.device)


def sorted_batches(
    pool: BagPool,
    statistics: Statistics,
    device: torch.device,
    *,
    batches: int,
    bags: int,
    sizes: tuple[int, int],
    rng: np.random.Generator,
) -> Iterator[Batch]:
    """Batches of bags of one size each: sorted rows (b, n, 1 + e), statistics (b, 8), true prevalences (b, 2)."""
    # Whole rows are gathered on the device, from a table that is sent there once; only row numbers travel.
    table = to_tensors(device, pool.rows[:, 1:])[0]
    for _ in range(batches):
        drawn = pool.draw(bags, sizes, rng=rng)
        posteriors = pool.rows[:, :2].take(drawn.indices, axis=0)
        order = np.take_along_axis(drawn.indices, np.argsort(posteriors[..., 1], axis=1), axis=1)
        rows = table[torch.as_tensor(order, device=device)]
        yield rows, *to_tensors(device, statistics.of_bags(posteriors), drawn.prevalences)


def squared_error(network: nn.Module, batch: Batch) -> Tensor:
    """Mean squared error of the prevalences."""
    return nn.functional.mse_loss(network(*batch[:-1]), batch[-1])
