import subprocess
import sys
import textwrap
from contextlib import closing
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from quanet import DeepSets, Gaussians, LSTMClassifier, QuaNet, load, save
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.nn.training import Checkpoint, Epoch, Recipe, fit_epoch, mean_loss, train

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


QUICK = {"max_epochs": 4, "patience": 2, "random_state": 3, "device": "cpu"}
ONCE = QUICK | {"max_epochs": 1}  # where it matters that there is a training, not how long it is
WORDS = {
    "hidden": 8,
    "dense": 16,
    "lr": 0.01,
    "max_steps": 120,
    "validate_every": 30,
    "random_state": 0,
    "device": "cpu",
}


SMALL = Recipe(bags=5, sizes=(20, 50), batches=3, stop_sizes=(50, 50), stop_batches=2, lr=1e-3)


@pytest.fixture(autouse=True)
def small_epochs(monkeypatch):
    monkeypatch.setattr("quanet.nn.paper.RECIPE", SMALL)
    monkeypatch.setattr("quanet.nn.set_networks.RECIPE", SMALL)


@pytest.fixture(scope="module")
def rows():
    return Gaussians().draw([0.5, 0.5], 300, rng=0)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    return [" ".join(rng.choice(["good" if c else "bad", "film", "one", "a"], 6)) for c in y], y


class Killed(Exception):
    pass


def killed_after(monkeypatch, epochs):
    """Let a training write so many checkpoints, and no more."""
    write = Checkpoint.write
    written = []

    def write_or_die(self, *arguments):
        write(self, *arguments)
        written.append(self.path)
        if len(written) == epochs:
            raise Killed

    monkeypatch.setattr(Checkpoint, "write", write_or_die)


def same_network(one, other):
    ours, theirs = one.network_.state_dict(), other.network_.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@cache
def trained():
    """The network of a training that nothing disturbed; called in tests, where epochs are small."""
    return QuaNet.paper(**QUICK).fit(*Gaussians().draw([0.5, 0.5], 300, rng=0))


@pytest.mark.parametrize("after", [1, 3])
def test_a_killed_training_goes_on_to_the_same_network(rows, tmp_path, monkeypatch, after):
    X, y = rows
    whole = trained()
    with monkeypatch.context() as patch:
        killed_after(patch, after)
        with pytest.raises(Killed):
            QuaNet.paper(**QUICK, checkpoint=tmp_path).fit(X, y)
    resumed = QuaNet.paper(**QUICK, checkpoint=tmp_path).fit(X, y)
    assert resumed.history_ == whole.history_
    assert same_network(resumed, whole)
    assert np.array_equal(resumed.predict(X), whole.predict(X))


def test_a_process_that_is_killed_leaves_a_checkpoint_that_goes_on(rows, tmp_path):
    X, y = rows
    program = f"""
        import os, signal
        from quanet import DeepSets, Gaussians, QuaNet
        from quanet.nn import paper, training
        from quanet.nn.training import Checkpoint
        paper.RECIPE = training.{SMALL!r}
        write = Checkpoint.write
        def write_and_die(self, *arguments):
            write(self, *arguments)
            if len(arguments[-1]) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        Checkpoint.write = write_and_die
        QuaNet.paper(**{QUICK!r}, checkpoint={str(tmp_path)!r}).fit(*Gaussians().draw([0.5, 0.5], 300, rng=0))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    resumed = QuaNet.paper(**QUICK, checkpoint=tmp_path).fit(X, y)
    assert same_network(resumed, trained())


def test_a_finished_training_is_not_done_again(rows, tmp_path, monkeypatch):
    X, y = rows
    first = QuaNet.paper(**ONCE, checkpoint=tmp_path).fit(X, y)
    monkeypatch.setattr("quanet.nn.training.fit_epoch", lambda *_: pytest.fail("trained again"))
    assert same_network(QuaNet.paper(**ONCE, checkpoint=tmp_path).fit(X, y), first)


def test_other_data_and_other_settings_do_not_find_it(rows, tmp_path):
    X, y = rows
    QuaNet.paper(**ONCE, checkpoint=tmp_path).fit(X, y)
    assert len(list(tmp_path.iterdir())) == 1
    QuaNet.paper(**ONCE | {"random_state": 4}, checkpoint=tmp_path).fit(X, y)
    QuaNet.paper(**ONCE, checkpoint=tmp_path).fit(X + 0.1 * X**2, y)
    DeepSets(max_epochs=1, random_state=3, device="cpu", checkpoint=tmp_path).fit(X, y)
    assert len(list(tmp_path.iterdir())) == 4
    assert {path.name.partition("-")[0] for path in tmp_path.iterdir()} == {"deepsets", "paperquanet"}


def test_the_lstm_goes_on_to_the_same_network(texts, tmp_path, monkeypatch):
    whole = LSTMClassifier(**WORDS).fit(*texts)
    with monkeypatch.context() as patch:
        killed_after(patch, 2)
        with pytest.raises(Killed):
            LSTMClassifier(**WORDS, checkpoint=tmp_path).fit(*texts)
    resumed = LSTMClassifier(**WORDS, checkpoint=tmp_path).fit(*texts)
    assert resumed.history_ == whole.history_
    assert same_network(resumed, whole)


def test_a_network_hands_its_folder_to_a_classifier_that_takes_one(texts, tmp_path):
    short = WORDS | {"max_steps": 30}
    quantifier = QuaNet.paper(LSTMClassifier(**short), **ONCE, checkpoint=tmp_path).fit(*texts)
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["lstm", "paperquanet"]
    assert quantifier.classifier.checkpoint is None  # the setting itself stays as it was given
    own = tmp_path / "own"
    QuaNet.paper(LSTMClassifier(**short, checkpoint=own), **ONCE, checkpoint=tmp_path).fit(*texts)
    assert [path.name.split("-")[0] for path in own.iterdir()] == ["lstm"]


def test_a_damaged_checkpoint_is_said_and_done_anew(rows, tmp_path):
    X, y = rows
    QuaNet.paper(**QUICK, checkpoint=tmp_path).fit(X, y)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.warns(QuanetWarning, match="is damaged; training starts again"):
        again = QuaNet.paper(**QUICK, checkpoint=tmp_path).fit(X, y)
    assert same_network(again, trained())


def test_a_full_disk_costs_the_checkpoint_not_the_training(rows, tmp_path, monkeypatch):
    X, y = rows

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quanet.nn.training.np.savez", full)
    with pytest.warns(QuanetWarning, match="could not be written: No space left on device"):
        found = QuaNet.paper(**QUICK, checkpoint=tmp_path).fit(X, y)
    assert same_network(found, trained())
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_needs_a_seed_and_a_folder(rows, texts, tmp_path):
    with pytest.raises(InvalidSetting, match="checkpoint needs a seed"):
        QuaNet.paper(checkpoint=tmp_path).fit(*rows)
    with pytest.raises(InvalidSetting, match="checkpoint needs a seed"):
        LSTMClassifier(checkpoint=tmp_path).fit(*texts)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidSetting, match="cannot be used as a folder"):
        QuaNet.paper(**QUICK, checkpoint=file / "folder").fit(*rows)


def test_a_model_with_a_checkpoint_can_be_kept(rows, tmp_path):
    X, y = rows
    quantifier = QuaNet.paper(**ONCE, checkpoint=str(tmp_path / "training")).fit(X, y)
    save(quantifier, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(X), quantifier.predict(X))
