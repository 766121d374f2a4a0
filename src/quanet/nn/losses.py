"""Mean errors of a network on a batch of bags, to be minimised; the truth is the last tensor of the batch.

Those in `LOSSES` are for set networks, whose batches are (rows, truth) and who give log prevalences.
"""

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


def squared_error(network: nn.Module, batch: Batch) -> Tensor:
    """Mean squared error of a network that gives prevalences, as in QuaNet's paper."""
    return nn.functional.mse_loss(network(*batch[:-1]), batch[-1])


def divergence_from_logs(network: nn.Module, batch: Batch) -> Tensor:
    """Mean Kullback-Leibler divergence of a network that gives log prevalences, from a truth that is smoothed."""
    truth = batch[-1]
    return (truth * (truth.log() - network(*batch[:-1]))).sum(dim=-1).mean()
