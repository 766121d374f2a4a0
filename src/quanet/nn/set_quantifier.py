"""What the set networks share: rows, bags to train on, losses, and estimates in bounded memory."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from quanet.arrays import FloatArray, IntArray, check_rows
from quanet.errors import InvalidData
from quanet.held_out import HeldOut
from quanet.nn.bag_pools import BagPool, to_tensors
from quanet.nn.device import one_thread, resolve_device, seeded
from quanet.nn.loop import Batch, Loss, train
from quanet.nn.network_state import network_as_arrays, restore_network
from quanet.nn.networks import SetNetwork
from quanet.nn.row_maker import NetworkQuantifier, RowMaker
from quanet.nn.training import Recipe, check_checkpoint, checkpoint_of, classifier_to_fit, follow, pace_of
from quanet.parameters import Constraints, at_least, one_of, whole
from quanet.simplex import count

AT_A_TIME = 2**21  # numbers in the widest layer at once when estimating: 16 megabytes
# Settings that do not change the training on given rows.
NOT_OF_TRAINING = ("classifier", "cv", "device", "checkpoint", "progress")
FEWEST = 4  # instances of a class, so that both pools have some
RECIPE = Recipe(bags=50, sizes=(20, 500), batches=50, stop_sizes=(250, 500), stop_batches=10, lr=3e-3)


def _both(network: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """True prevalences and estimates (b, k), smoothed by half an instance."""
    rows, truth = batch
    eps = 1 / (2 * rows.shape[1])
    scale = 1 + eps * truth.shape[1]
    return (truth + eps) / scale, (network(rows).exp() + eps) / scale


def absolute_loss(network: nn.Module, batch: Batch) -> Tensor:
    """Mean absolute error of prevalences."""
    rows, truth = batch
    return nn.functional.l1_loss(network(rows).exp(), truth)


def relative_loss(network: nn.Module, batch: Batch) -> Tensor:
    """Mean absolute error of prevalences relative to the true ones, smoothed."""
    truth, estimate = _both(network, batch)
    return ((estimate - truth).abs() / truth).mean()


def squared_loss(network: nn.Module, batch: Batch) -> Tensor:
    """Mean squared error of prevalences."""
    rows, truth = batch
    return nn.functional.mse_loss(network(rows).exp(), truth)


def divergence_loss(network: nn.Module, batch: Batch) -> Tensor:
    """Mean Kullback-Leibler divergence of the estimates from the truth, both smoothed."""
    truth, estimate = _both(network, batch)
    return (truth * (truth / estimate).log()).sum(dim=-1).mean()


LOSSES: dict[str, Loss] = {"ae": absolute_loss, "rae": relative_loss, "mse": squared_loss, "kld": divergence_loss}


@dataclass(eq=False, repr=False)  # so that a network adds its parameters to these without repeating them
class SetQuantifier(NetworkQuantifier):
    """Base of the set networks: rows ``[posteriors | embedding]``, bags of held-out rows, a network that reads them.

    A subclass is a dataclass and writes `_show`.

    Parameters
    ----------
    classifier : as for `AggregativeQuantifier`; one with `transform` gives embeddings too, and "precomputed" means
        that X is ``[posteriors | embedding]``, (n, k + e).
    loss : on prevalences, "ae", "rae", "mse" or "kld".
    cv : folds for the rows, if the classifier's embedding knows no labels; or a held-out share, with the classifier
        fitted to the rest alone, so that all rows have one embedding. If the embedding is learned from labels, 40 % are
        held out in any case. For precomputed rows it states how they were made: a share means by one classifier, as
        the reader below needs; posteriors of several folds would show it their own labels.
    max_epochs, patience : of training.
    device : "auto", "cpu", "cuda", "mps".
    random_state : seed; None for a different result each time.
    checkpoint : folder that keeps every epoch; a fit that was killed resumes there, with the same result. It serves
        an `LSTMClassifier` as well. Needs a `random_state`.
    progress : whether a line on standard error shows the progress of training.

    Notes
    -----
    Rows to train on come from held-out training instances. If they are of one classifier, a linear reader may first
    improve the posteriors by what the embedding adds, where that is clear from out-of-fold ones.
    """

    reads_posteriors: ClassVar[bool] = True
    allowed_values: ClassVar[Constraints] = {
        "loss": one_of(*LOSSES),
        "max_epochs": whole(1),
        "patience": at_least(1),
    }

    classifier: Any = None
    _: KW_ONLY
    loss: Literal["ae", "rae", "mse", "kld"] = "kld"
    cv: Any = 5
    max_epochs: int = 40
    patience: int = 20
    device: str = "auto"
    random_state: int | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool = False

    network_: SetNetwork = field(init=False)

    @abstractmethod
    def _show(self) -> tuple[nn.Module, int, int]:
        """What an instance shows, as a module; and its widths before and after."""

    def _fit(self, X: Any, y: ArrayLike) -> None:
        """Fit the classifier to instances X and labels y (n,), then the network to bags of held-out rows."""
        check_checkpoint(self)
        device = resolve_device(self.device)
        X, y = self._learnable(X, y)
        codes = self._learn_labels(X, y)
        self.rows_ = RowMaker(classifier_to_fit(self), cv=self.cv, refine=True)
        rows, held, groups = self.rows_.fit(X, codes, self.classes_)
        rng = np.random.default_rng(self.random_state)
        pool, order = self._pool(rows, codes[held], groups)
        train_pool, stop_pool = pool.parts((0.75, 0.25), rng=rng)
        with seeded(device, int(rng.integers(2**63))), one_thread():
            self._train(train_pool, stop_pool, device, rng)
        # Estimates are made in double precision, so that a bag's neighbours change nothing, not even by rounding.
        self.network_ = self.network_.cpu().double()
        to_sorted = order.argsort()
        self.network_.reorder(to_sorted)
        # Intervals are calibrated on rows that the network was not trained on.
        kept = np.hstack([stop_pool.rows[:, to_sorted], stop_pool.rows[:, pool.k :]])
        held_out = HeldOut(kept, order[stop_pool.codes], pool.k, stop_pool.groups, self.rows_.fold_gap)
        self._keep_held_out(held_out)

    def _read(self, X: Any) -> FloatArray:
        """Posteriors and embedding of every instance: (n, k + e)."""
        check_is_fitted(self, "network_")
        return self.rows_.transform(X)

    @torch.no_grad()
    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The estimate for every bag, a bounded number of instances at a time: (..., n, k + e) -> (..., k)."""
        check_is_fitted(self, "network_")
        values = check_rows(rows, width=self.rows_.width)
        stack = torch.as_tensor(values.reshape(-1, *values.shape[-2:]))
        instances = max(1, AT_A_TIME // self.network_.widest)
        together = max(1, instances // stack.shape[1])
        starts = range(0, len(stack), together)
        found = [self.network_(stack[start : start + together], instances) for start in starts]
        estimate: FloatArray = torch.cat(found).exp().numpy()
        return (estimate / estimate.sum(axis=-1, keepdims=True)).reshape(*values.shape[:-2], -1)

    def __quanet_state__(self) -> dict[str, Any]:
        """What is kept of the quantifier; its network as arrays."""
        return network_as_arrays(self)

    @classmethod
    def __quanet_restore__(cls, state: dict[str, Any]) -> Self:
        """The quantifier that was kept."""
        restored = cls()
        return restore_network(restored, state, lambda: restored._new_network().double())

    def _new_network(self) -> SetNetwork:
        k = len(self.classes_)
        return SetNetwork(k, self.rows_.width - k, *self._show(), pooling=getattr(self, "pooling", "mean"))

    def _pool(self, rows: FloatArray, codes: IntArray, groups: IntArray | None) -> tuple[BagPool, IntArray]:
        """The rows to draw bags from, with the classes in the order in which they first occur; and that order.

        So the names of classes do not matter, neither for what is drawn nor for what is learned.
        """
        k = len(self.classes_)
        sizes = count(codes if groups is None else np.unique(groups * k + codes) % k, k)
        if sizes.min() < FEWEST:
            name = self.classes_.tolist()[int(sizes.argmin())]
            raise InvalidData(
                f"class {name!r} has {sizes.min()} different held-out instances; {type(self).__name__} draws bags from "
                f"two disjoint parts and needs at least {FEWEST} of every class. Add some, or use EMQ."
            )
        order = np.unique(codes, return_index=True)[1].argsort()
        return BagPool(np.hstack([rows[:, order], rows[:, k:]]), order.argsort()[codes], k, groups), order

    def _train(self, train_pool: BagPool, stop_pool: BagPool, device: torch.device, rng: np.random.Generator) -> None:
        self.network_ = self._new_network().to(device)

        def stream(pool: BagPool, batches: int, sizes: tuple[int, int]) -> Iterator[Batch]:
            return row_batches(pool, device, batches=batches, bags=RECIPE.bags, sizes=sizes, rng=rng)

        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_OF_TRAINING}
        epochs = train(
            self.network_,
            lambda: stream(train_pool, RECIPE.batches, RECIPE.sizes),
            list(stream(stop_pool, RECIPE.stop_batches, RECIPE.stop_sizes)),
            LOSSES[self.loss],
            lr=RECIPE.lr,
            max_epochs=self.max_epochs,
            patience=self.patience,
            decay=True,
            checkpoint=checkpoint_of(self, (self.network_, settings, device), (train_pool, stop_pool), rng),
            pace=pace_of(
                "network",
                RECIPE.batches,
                RECIPE.stop_batches,
                self.max_epochs,
                self.patience,
                "It is faster with a smaller max_epochs.",
            ),
        )
        self.history_ = follow(epochs, type(self).__name__, self.max_epochs, visible=self.progress)


def row_batches(
    pool: BagPool, device: torch.device, *, batches: int, bags: int, sizes: tuple[int, int], rng: np.random.Generator
) -> Iterator[tuple[Tensor, ...]]:
    """Batches of bags of one random size each, as whole rows (b, n, k + e), and their true prevalences (b, k)."""
    table = to_tensors(device, pool.rows)[0]  # sent once; only row numbers travel
    for _ in range(batches):
        drawn = pool.draw(bags, sizes, rng=rng)
        yield table[torch.as_tensor(drawn.indices, device=device)], *to_tensors(device, drawn.prevalences)
