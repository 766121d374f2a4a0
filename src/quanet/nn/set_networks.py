"""The set networks: what every instance shows is pooled over the bag, and the prevalences are read from that."""

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
from quanet.methods.about import About
from quanet.nn.device import one_thread, resolve_device, seeded
from quanet.nn.networks import GaussianLikelihoods, Histograms, SetNetwork
from quanet.nn.row_maker import NetworkQuantifier, RowMaker
from quanet.nn.training import (
    BagPool,
    Batch,
    Loss,
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


@dataclass(eq=False, repr=False, kw_only=True)
class HistNetQ(SetQuantifier):
    r"""Histogram network: prevalences from histograms of learned features [1]_.

    Two layers turn a row into features between 0 and 1. A bag is described by the histogram h of each feature; from h
    and the mean posterior, a linear map A and dense layers g read the prevalences:

    .. math:: \log \hat p = \log \text{softplus}(A\, [h, \bar \pi]) + g(h) + \text{const}

    .. math:: h_{fb} = \frac1n \sum_i \max(0, 1 - |(B - 1) z_{if} - b|), \quad b = 0, \dots, B - 1

    Parameters
    ----------
    classifier : see `SetQuantifier`.
    loss : on prevalences, "ae", "rae", "mse" or "kld".
    cv, max_epochs, patience, device, random_state, checkpoint, progress : see `SetQuantifier`.
    features, bins : number of histograms, and of bins in each.

    Attributes
    ----------
    history_ : training and validation loss of every epoch, as in all set networks.

    Notes
    -----
    The paper's bins have hard edges with learned centres and widths. Here a value is shared by the two nearest centres,
    which are fixed: features can move, so centres need not. The paper learns the features from the instances, by a
    convolutional network; here they are learned from rows of posteriors and embedding.

    The network reads all posteriors of a row together, so that it learns which classes are confused with which. Its
    estimate starts at the mean posterior (`quanet.nn.networks.SetNetwork`). An epoch is 50 batches of 50 bags with 20
    to 500 instances, at prevalences uniform on the simplex, from three quarters of the held-out rows. The learning
    rate falls from .003 to 0 over `max_epochs`, along a cosine. The last quarter of the rows decides which epoch is
    best, and ends training after `patience` epochs without a better one. A fit takes about a minute on one core, for
    any amount of data. With less than some hundred held-out instances of every class, or where only prevalences
    change, EMQ is as good or better, and needs no training.

    References
    ----------
    .. [1] O. Pérez-Mon, A. Moreo, J. J. del Coz and P. González, "Quantification using permutation-invariant networks
           based on histograms", arXiv:2403.15123, 2024.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(distance=4.0).draw([0.5, 0.5], 400, rng=0)
    >>> HistNetQ(max_epochs=1, random_state=0).fit(X, y).predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("networks", "Pérez-Mon et al. (2024)", "any", "posteriors", "O(n k features)")
    allowed_values: ClassVar[Constraints] = {"features": whole(1), "bins": whole(2)}

    features: int = 16
    bins: int = 8

    def _show(self) -> tuple[nn.Module, int, int]:
        return Histograms(self.bins), self.features, self.features * self.bins


@dataclass(eq=False, repr=False, kw_only=True)
class GMNet(SetQuantifier):
    r"""Gaussian mixture network: prevalences from likelihoods in a latent space [1]_.

    Two layers place a row in a latent space, the unit cube, where several Gaussians with full covariances are learned.
    A bag is described by the mean likelihood of its instances z under each of them,

    .. math:: h_j = \frac1n \sum_i \exp\left(-\tfrac12 \| L_j (z_i - \mu_j) \|^2\right)

    from which the prevalences are read as in `HistNetQ`.

    Parameters
    ----------
    classifier : see `SetQuantifier`.
    loss : on prevalences, "ae", "rae", "mse" or "kld".
    cv, max_epochs, patience, device, random_state, checkpoint, progress : see `SetQuantifier`.
    features : dimensions of the latent space.
    gaussians : their number.

    Attributes
    ----------
    history_ : training and validation loss of every epoch.

    Notes
    -----
    Likelihoods are relative to each Gaussian's peak, which a weight of the next layer makes up for, with one latent
    space. For rows and training see `HistNetQ`.

    References
    ----------
    .. [1] O. Pérez-Mon, J. J. del Coz and P. González, "Quantification via Gaussian latent space representations",
           arXiv:2501.13638, 2025.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(distance=4.0).draw([0.5, 0.5], 400, rng=0)
    >>> GMNet(max_epochs=1, random_state=0).fit(X, y).predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About(
        "networks", "Pérez-Mon, del Coz and González (2025)", "any", "posteriors", "O(n k gaussians)"
    )
    allowed_values: ClassVar[Constraints] = {"features": whole(1), "gaussians": whole(1)}

    features: int = 4
    gaussians: int = 32

    def _show(self) -> tuple[nn.Module, int, int]:
        return GaussianLikelihoods(self.features, self.gaussians), self.features, self.gaussians


@dataclass(eq=False, repr=False, kw_only=True)
class DeepSets(SetQuantifier):
    r"""Deep sets: prevalences from pooled features [1]_.

    Two layers turn a row x into features; a bag is described by their mean or their maximum,

    .. math:: h = \frac1n \sum_i \phi(x_i)

    from which the prevalences are read as in `HistNetQ`. For rows and training see `HistNetQ`.

    Parameters
    ----------
    classifier : see `SetQuantifier`.
    loss : on prevalences, "ae", "rae", "mse" or "kld".
    cv, max_epochs, patience, device, random_state, checkpoint, progress : see `SetQuantifier`.
    pooling : "mean", which forgets the bag's size, or "max", which does not.
    features : number of pooled features.

    Attributes
    ----------
    history_ : training and validation loss of every epoch.

    References
    ----------
    .. [1] M. Zaheer, S. Kottur, S. Ravanbakhsh, B. Póczos, R. Salakhutdinov and A. Smola, "Deep sets", NIPS 2017.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(distance=4.0).draw([0.5, 0.5], 400, rng=0)
    >>> DeepSets(max_epochs=1, random_state=0).fit(X, y).predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("networks", "Zaheer et al. (2017)", "any", "posteriors", "O(n k features)")
    allowed_values: ClassVar[Constraints] = {"pooling": one_of("mean", "max"), "features": whole(1)}

    pooling: Literal["mean", "max"] = "mean"
    features: int = 64

    def _show(self) -> tuple[nn.Module, int, int]:
        return nn.ReLU(), self.features, self.features
