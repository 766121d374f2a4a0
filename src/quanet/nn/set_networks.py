"""The set networks: what every instance shows is pooled over the bag, and the prevalences are read from that."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from quanet.methods.about import About
from quanet.nn.networks import GaussianLikelihoods, Histograms
from quanet.nn.set_quantifier import SetQuantifier
from quanet.parameters import Constraints, one_of, whole


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
