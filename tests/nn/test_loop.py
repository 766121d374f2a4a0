from contextlib import closing

import pytest
import torch
from torch import nn

from quanet.nn.loop import Epoch, fit_epoch, mean_loss, train

ONE = torch.ones(1)


class Number(nn.Module):
    """One weight, so that every state of a training is a number; `read` scripts what the held-out data say."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.weight * x


def climb(network, batch):
    """A loss that always wants a larger weight; of validation batches it is the distance to where they want it."""
    if network.training:
        return -network(batch[0]).sum()
    return (network.weight - batch[0]).abs().sum()


def training(network, *, optimum, steps=3, **settings):
    settings = {"lr": 1.0, "weight_decay": 0.0} | settings
    return train(network, lambda: [(ONE,)] * steps, [(ONE * optimum,)], climb, **settings)


def test_the_best_weights_come_back_when_epochs_run_out():
    network = Number()
    epochs = list(training(network, optimum=6.0, max_epochs=5))
    # Adam's steps are of length one here: 3, 6, 9, ... after each epoch.
    assert [epoch.best for epoch in epochs] == [True, True, False, False, False]
    assert network.weight.item() == pytest.approx(6, abs=1e-3)
    assert not network.training


def test_patience_counts_epochs_without_a_better_loss():
    network = Number()
    epochs = list(training(network, optimum=6.0, max_epochs=50, patience=4))
    assert [epoch.number for epoch in epochs] == [0, 1, 2, 3, 4, 5]
    assert network.weight.item() == pytest.approx(6, abs=1e-3)


def test_a_better_loss_renews_patience():
    epochs = list(training(Number(), optimum=30.0, max_epochs=50, patience=1))
    assert len(epochs) == 11  # ten that improve, and the one that does not


def test_the_best_weights_come_back_after_a_break():
    network = Number()
    with closing(training(network, optimum=3.0, max_epochs=50)) as epochs:
        for epoch in epochs:
            if epoch.number == 2:
                break
    assert network.weight.item() == pytest.approx(3, abs=1e-3)
    assert not network.training


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_the_best_weights_come_back_after_an_exception_in_a_step(error):
    network, calls = Number(), []

    def loss(network, batch):
        calls.append(batch)
        if len(calls) > 10:  # in the third epoch, of three steps and one validation each
            raise error
        return climb(network, batch)

    epochs = train(network, lambda: [(ONE,)] * 3, [(ONE * 3,)], loss, lr=1.0, weight_decay=0.0)
    with pytest.raises(error):
        list(epochs)
    assert network.weight.item() == pytest.approx(3, abs=1e-3)
    assert not network.training


def test_one_epoch_trains():
    network = Number()
    (epoch,) = training(network, optimum=100.0, max_epochs=1)
    assert epoch == Epoch(number=0, train_loss=pytest.approx(-1, abs=1e-3), valid_loss=pytest.approx(97), best=True)
    assert network.weight.item() == pytest.approx(3, abs=1e-3)


def test_batches_are_drawn_anew_every_epoch():
    drawn = []

    def batches():
        drawn.append(len(drawn))
        return [(ONE,)]

    list(train(Number(), batches, [(ONE,)], climb, max_epochs=4))
    assert drawn == [0, 1, 2, 3]


def test_the_mean_loss_leaves_no_gradient_and_no_dropout():
    network = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 1))
    x = torch.ones(8, 4)
    losses = {mean_loss(network, [(x,), (x,)], lambda network, batch: network(batch[0]).mean()) for _ in range(5)}
    assert len(losses) == 1
    assert network[1].weight.grad is None


def test_the_training_loss_is_the_mean_of_the_steps():
    network = Number()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    network.weight.data += 2
    assert fit_epoch(network, [(ONE,), (3 * ONE,)], climb, optimizer) == pytest.approx(-4)
