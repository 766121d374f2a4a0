"""The other set networks: what every instance shows is pooled over the bag, and the prevalences are read from that."""

import os
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import nn

from quanet.arrays import FloatArray, IntArray
from quanet.bags import check_rows
from quanet.base import Quantifier
from quanet.classifiers import is_given
from quanet.errors import InvalidData, InvalidSetting
from quanet.methods.about import About
from quanet.nn.batches import Pool, row_batches
from quanet.nn.device import one_thread, resolve_device, seeded
from quanet.nn.kept import network_as_arrays, restore_network
from quanet.nn.loop import Batch, train
from quanet.nn.losses import LOSSES
from quanet.nn.networks import GaussianLikelihoods, Histograms, SetNetwork
from quanet.nn.recipes import Recipe
from quanet.nn.rows import RowMaker
from quanet.nn.training import check_checkpoint, checkpoint_of, classifier_to_fit, follow
from quanet.simplex import count

AT_A_TIME = 2**21  # numbers in the widest layer at once when estimating: 16 megabytes
NOT_OF_TRAINING = ("classifier", "cv", "device", "checkpoint", "progress")  # settings that rows say, or nothing
FEWEST = 4  # instances of a class, so that both pools have some
RECIPE = Recipe(bags=50, sizes=(20, 500), batches=50, stop_sizes=(250, 500), stop_batches=10, lr=3e-3, groups=None)


class SetQuantifier(Quantifier):
    """Base of the set networks: rows as for `QuaNet`, bags of held-out rows, one network for all classes.

    A subclass writes `_show`. Nothing is corrected and nothing guarded: the network's softmax is the estimate.
    """

    network_: SetNetwork

    _reads_posteriors: ClassVar[bool] = True

    def __init__(
        self,
        classifier: Any = None,
        *,
        loss: Literal["ae", "rae", "mse", "kld"] = "kld",
        cv: Any = 20,
        max_epochs: int = 40,
        patience: int = 8,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> None:
        self.classifier = classifier
        self.loss = loss
        self.cv = cv
        self.max_epochs = max_epochs
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.progress = progress

    @abstractmethod
    def _show(self) -> tuple[nn.Module, int, int]:
        """What an instance shows, as a module; and its widths before and after."""

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the classifier to instances X and labels y (n,), then the network to bags of held-out rows."""
        self._check_settings()
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
        # Intervals are calibrated on rows that the network was not trained on, with the classes in their own order.
        back = np.concatenate([order.argsort(), np.arange(pool.k, pool.rows.shape[1])])
        self._keep_held(stop_pool.rows[:, back], order[stop_pool.codes], self.rows_.lead, stop_pool.groups)
        return self

    def _needs_folds(self) -> bool:
        return not is_given(self.classifier)

    def represent(self, X: Any) -> FloatArray:
        """Posteriors and embedding of every instance: (n, k + e)."""
        check_is_fitted(self, "network_")
        return self.rows_.transform(X)

    @torch.no_grad()
    def _aggregate(self, rows: ArrayLike) -> FloatArray:
        """The estimate for every bag, a bounded number of instances at a time: (..., n, k + e) -> (..., k)."""
        check_is_fitted(self, "network_")
        values = check_rows(rows, width=self.rows_.width)
        stack = torch.as_tensor(values.reshape(-1, *values.shape[-2:]))
        instances = max(1, AT_A_TIME // (len(self.classes_) * self.network_.widest))
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
        pooling = getattr(self, "pooling", "mean")
        return SetNetwork(self.rows_.width - len(self.classes_), *self._show(), pooling=pooling)

    def _check_settings(self) -> None:
        if self.loss not in LOSSES:
            raise InvalidSetting(f"loss is one of {', '.join(LOSSES)}; got {self.loss!r}.")
        for name in ("max_epochs", "patience", "features", "bins", "gaussians"):
            value = getattr(self, name, 2)
            if value < (2 if name == "bins" else 1):
                raise InvalidSetting(f"{name} is at least {2 if name == 'bins' else 1}; got {value}.")

    def _pool(self, rows: FloatArray, codes: IntArray, groups: IntArray | None) -> tuple[Pool, IntArray]:
        """The rows to draw bags from, with the classes in the order in which they first occur; and that order.

        So the names of classes, which sort them, decide nothing: neither what is drawn nor what is learnt.
        """
        k = len(self.classes_)
        sizes = count(codes if groups is None else np.unique(groups * k + codes) % k, k)
        if sizes.min() < FEWEST:
            name = self.classes_.tolist()[int(sizes.argmin())]
            raise InvalidData(
                f"class {name!r} has {sizes.min()} different held-out instances; {type(self).__name__} draws bags from "
                f"two disjoint parts and needs at least {FEWEST} of every class. Add some, or take EMQ."
            )
        order = np.unique(codes, return_index=True)[1].argsort()
        return Pool(np.hstack([rows[:, order], rows[:, k:]]), order.argsort()[codes], k, groups), order

    def _train(self, train_pool: Pool, stop_pool: Pool, device: torch.device, rng: np.random.Generator) -> None:
        self.network_ = self._new_network().to(device)
        bags = max(5, 2 * RECIPE.bags // train_pool.k)  # a step costs the same, however many classes read the rows

        def stream(pool: Pool, batches: int, sizes: tuple[int, int]) -> Iterator[Batch]:
            return row_batches(pool, device, batches=batches, bags=bags, sizes=sizes, rng=rng)

        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_OF_TRAINING}
        epochs = train(
            self.network_,
            lambda: stream(train_pool, RECIPE.batches, RECIPE.sizes),
            list(stream(stop_pool, RECIPE.stop_batches, RECIPE.stop_sizes)),
            LOSSES[self.loss],
            lr=RECIPE.lr,
            max_epochs=self.max_epochs,
            patience=self.patience,
            checkpoint=checkpoint_of(self, (self.network_, settings, device), (train_pool, stop_pool), rng),
        )
        self.history_ = follow(epochs, type(self).__name__, self.max_epochs, visible=self.progress)


class HistNetQ(SetQuantifier):
    r"""Histogram network: prevalences from histograms of learnt features (Pérez-Mon, Moreo, del Coz, González, 2024).

    Two layers turn a row into features between 0 and 1. A bag is described by the histogram of each feature,

    .. math:: h_{fb} = \frac1n \sum_i \max(0, 1 - |(B - 1) z_{if} - b|), \quad b = 0, \dots, B - 1,

    from which dense layers read the prevalences. "Quantification using permutation-invariant networks based on
    histograms", arXiv:2403.15123. There bins have hard edges with learnt centres and widths; here a value is shared by
    the two nearest centres, which are fixed: features can move, so centres need not. Rows and training are those of
    `QuaNet`, without its base estimate and its guard; one network serves all classes.

    Parameters
    ----------
    classifier, cv, max_epochs, patience, device, random_state, checkpoint, progress : as for `QuaNet`.
    features, bins : number of histograms, and of bins in each.
    loss : on prevalences, "ae", "rae", "mse" or "kld".

    Attributes
    ----------
    history_ : training and validation loss of every epoch.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(distance=4.0).draw([0.5, 0.5], 400, rng=0)
    >>> HistNetQ(max_epochs=1, random_state=0).fit(X, y).predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("Pérez-Mon et al. (2024)", "any", "posteriors", "O(n k features)")

    def __init__(
        self,
        classifier: Any = None,
        *,
        features: int = 16,
        bins: int = 8,
        loss: Literal["ae", "rae", "mse", "kld"] = "kld",
        cv: Any = 20,
        max_epochs: int = 40,
        patience: int = 8,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            classifier, loss=loss, cv=cv, max_epochs=max_epochs, patience=patience, device=device,
            random_state=random_state, checkpoint=checkpoint, progress=progress,
        )  # fmt: skip
        self.features = features
        self.bins = bins

    def _show(self) -> tuple[nn.Module, int, int]:
        return Histograms(self.bins), self.features, self.features * self.bins


class GMNet(SetQuantifier):
    """Gaussian mixture network: prevalences from likelihoods in a latent space (Pérez-Mon, del Coz, González, 2025).

    Two layers place a row in a latent space, the unit cube, where several Gaussians with full covariances are learnt. A
    bag is described by the mean likelihood of its instances under each of them, from which dense layers read the
    prevalences. "Quantification via Gaussian latent space representations", arXiv:2501.13638. Here likelihoods are
    relative to each Gaussian's peak, which a weight of the next layer makes up for, and there is one latent space. Rows
    and training are those of `QuaNet`, without its base estimate and its guard; one network serves all classes.

    Parameters
    ----------
    classifier, cv, max_epochs, patience, device, random_state, checkpoint, progress : as for `QuaNet`.
    features : dimensions of the latent space.
    gaussians : their number.
    loss : on prevalences, "ae", "rae", "mse" or "kld".

    Attributes
    ----------
    history_ : training and validation loss of every epoch.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(distance=4.0).draw([0.5, 0.5], 400, rng=0)
    >>> GMNet(max_epochs=1, random_state=0).fit(X, y).predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("Pérez-Mon, del Coz and González (2025)", "any", "posteriors", "O(n k gaussians)")

    def __init__(
        self,
        classifier: Any = None,
        *,
        features: int = 4,
        gaussians: int = 32,
        loss: Literal["ae", "rae", "mse", "kld"] = "kld",
        cv: Any = 20,
        max_epochs: int = 40,
        patience: int = 8,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            classifier, loss=loss, cv=cv, max_epochs=max_epochs, patience=patience, device=device,
            random_state=random_state, checkpoint=checkpoint, progress=progress,
        )  # fmt: skip
        self.features = features
        self.gaussians = gaussians

    def _show(self) -> tuple[nn.Module, int, int]:
        return GaussianLikelihoods(self.features, self.gaussians), self.features, self.gaussians


class DeepSets(SetQuantifier):
    """Deep sets: prevalences from pooled features (Zaheer, Kottur, Ravanbakhsh, Póczos, Salakhutdinov, Smola, 2017).

    Two layers turn a row into features; a bag is described by their mean or their maximum, from which dense layers read
    the prevalences. "Deep sets", NeurIPS 2017. Rows and training are those of `QuaNet`, without its base estimate and
    its guard; one network serves all classes.

    Parameters
    ----------
    classifier, cv, max_epochs, patience, device, random_state, checkpoint, progress : as for `QuaNet`.
    pooling : "mean", which forgets the bag's size, or "max", which does not.
    features : number of pooled features.
    loss : on prevalences, "ae", "rae", "mse" or "kld".

    Attributes
    ----------
    history_ : training and validation loss of every epoch.

    Examples
    --------
    >>> from quanet import Gaussians
    >>> X, y = Gaussians(distance=4.0).draw([0.5, 0.5], 400, rng=0)
    >>> DeepSets(max_epochs=1, random_state=0).fit(X, y).predict(X).round(1)
    array([0.5, 0.5])
    """

    about: ClassVar[About] = About("Zaheer et al. (2017)", "any", "posteriors", "O(n k features)")

    def __init__(
        self,
        classifier: Any = None,
        *,
        pooling: Literal["mean", "max"] = "mean",
        features: int = 64,
        loss: Literal["ae", "rae", "mse", "kld"] = "kld",
        cv: Any = 20,
        max_epochs: int = 40,
        patience: int = 8,
        device: str = "auto",
        random_state: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            classifier, loss=loss, cv=cv, max_epochs=max_epochs, patience=patience, device=device,
            random_state=random_state, checkpoint=checkpoint, progress=progress,
        )  # fmt: skip
        self.pooling = pooling
        self.features = features

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.pooling not in ("mean", "max"):
            raise InvalidSetting(f"pooling is mean or max; got {self.pooling!r}.")

    def _show(self) -> tuple[nn.Module, int, int]:
        return nn.ReLU(), self.features, self.features
