"""Errors of a network on bags given as whole rows, to be minimised: (network, (rows, truth)) -> mean error."""

from torch import Tensor, nn

from quanet.nn.loop import Batch, Loss


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
