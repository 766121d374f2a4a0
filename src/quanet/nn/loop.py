"""Training: one plain loop, as a generator of facts."""

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quanet.nn.checkpoints import Checkpoint
from quanet.progress import Pace

Batch = tuple[Tensor, ...]
Loss = Callable[[nn.Module, Batch], Tensor]
FORWARD = 1 / 3  # of the time of a training step, for a batch without gradients


@dataclass(frozen=True, slots=True)
class Epoch:
    """The losses of an epoch; `best` is whether its weights are the best so far."""

    number: int
    train_loss: float
    valid_loss: float
    best: bool


def train(
    network: nn.Module,
    batches: Callable[[], Iterable[Batch]],
    valid: Sequence[Batch],
    loss: Loss,
    *,
    lr: float = 1e-4,
    weight_decay: float = 1e-4,
    max_epochs: int = 200,
    patience: int = 20,
    decay: bool = False,
    checkpoint: Checkpoint | None = None,
    pace: Pace | None = None,
) -> Generator[Epoch, None, None]:
    """Train in place, yielding one `Epoch` each; leaves the best weights in `network`, however the loop ends.

    Parameters
    ----------
    network : with parameters on their device.
    batches : called once an epoch, for the batches of that epoch.
    valid : batches of held-out training data, the same every time.
    loss : mean loss of a network on a batch.
    lr, weight_decay : of Adam.
    max_epochs : epochs at most.
    patience : epochs without a better validation loss after which training ends.
    decay : whether the learning rate falls to zero over `max_epochs`, along half a cosine (Loshchilov and Hutter 2017).
    checkpoint : where every epoch is kept. If it contains epochs, they are yielded again and training resumes from
        there, with the same result.
    pace : told of every step.
    """
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, weight_decay=weight_decay)
    best_state = deepcopy(network.state_dict())
    epochs: list[Epoch] = []
    if checkpoint and (kept := checkpoint.read(network, optimizer)):
        best_state, epochs = kept[0], [Epoch(**facts) for facts in kept[1]]
    best_loss, stale = math.inf, 0
    try:
        for number in range(max_epochs):
            if number == len(epochs):
                # Set from the number alone, so that a training that was interrupted resumes at the same rate.
                for group in optimizer.param_groups if decay else ():
                    group["lr"] = lr * (1 + math.cos(math.pi * number / max_epochs)) / 2
                train_loss = fit_epoch(network, batches(), loss, optimizer, pace)
                valid_loss = mean_loss(network, valid, loss)
                if pace is not None:
                    pace.step(FORWARD * len(valid))
                epochs.append(Epoch(number, train_loss, valid_loss, valid_loss < best_loss))
                if epochs[-1].best:
                    best_state = deepcopy(network.state_dict())
                if checkpoint:
                    checkpoint.write(network, optimizer, best_state, epochs)
            best_loss, stale = (epochs[number].valid_loss, 0) if epochs[number].best else (best_loss, stale + 1)
            yield epochs[number]
            if stale >= patience:
                return
    finally:
        network.load_state_dict(best_state)
        network.eval()


def fit_epoch(
    network: nn.Module,
    batches: Iterable[Batch],
    loss: Loss,
    optimizer: torch.optim.Optimizer,
    pace: Pace | None = None,
) -> float:
    """One pass of gradient steps; the mean training loss."""
    network.train()
    losses = []
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        value = loss(network, batch)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(value.detach())
        if pace is not None:
            pace.step()
    return float(torch.stack(losses).mean())


@torch.no_grad()
def mean_loss(network: nn.Module, batches: Iterable[Batch], loss: Loss) -> float:
    """Mean loss over batches, without dropout and without gradients."""
    network.eval()
    return float(torch.stack([loss(network, batch) for batch in batches]).mean())
