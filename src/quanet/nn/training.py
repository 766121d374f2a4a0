"""The training of networks: its settings and bags, the loop, checkpoints, the progress line, and saved networks."""

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.base import clone
from torch import Tensor, nn

from quanet.arrays import BoolArray, FloatArray, IntArray
from quanet.bags import Bags
from quanet.data.duplicates import split_groups
from quanet.errors import InvalidModel, InvalidSetting, QuanetWarning
from quanet.files import replacing
from quanet.progress import Pace, report
from quanet.protocols import UPP

FORWARD = 1 / 3  # of the time of a training step, for a batch without gradients
Batch = tuple[Tensor, ...]
Loss = Callable[[nn.Module, Batch], Tensor]
State = dict[str, Tensor]
T = TypeVar("T")
LONG = 600  # seconds of training at most, from which they are worth a warning


@dataclass(frozen=True, slots=True)
class BagPool:
    """Rows (m, k + e), posteriors first, and classes (m,) of the instances that bags are drawn from.

    `groups` (m,) are equal for copies of an instance; None where all are different.
    """

    rows: FloatArray
    codes: IntArray
    k: int
    groups: IntArray | None = None

    def draw(self, b: int, sizes: tuple[int, int], *, rng: np.random.Generator) -> Bags:
        """Bags of one random size in this range, uniform on its logarithm, at prevalences uniform on the simplex."""
        n = int(np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1] + 1))))
        return UPP(bag_size=n, repeats=b).draw_quietly(self.codes, rng=rng, classes=np.arange(self.k))

    def parts(self, shares: tuple[float, ...], *, rng: np.random.Generator) -> list["BagPool"]:
        """Disjoint pools with these shares of every class, drawn at random; copies of an instance are in the same."""
        bounds = np.cumsum(shares) / sum(shares)

        def parts_of(codes: IntArray) -> IntArray:
            member = np.empty(len(codes), dtype=np.intp)
            for c in range(self.k):
                positions = rng.permutation(np.flatnonzero(codes == c))
                # Half an instance off, so that rounding favours no part.
                member[positions] = np.searchsorted(bounds, (np.arange(len(positions)) + 0.5) / len(positions))
            return member

        member = split_groups(self.groups, self.codes, parts_of)
        return [self._take(member == part) for part in range(len(shares))]

    def _take(self, chosen: BoolArray) -> "BagPool":
        groups = None if self.groups is None else self.groups[chosen]
        return BagPool(self.rows[chosen], self.codes[chosen], self.k, groups)


def to_tensors(device: torch.device, *arrays: FloatArray) -> tuple[Tensor, ...]:
    """The arrays as 32-bit tensors on the device, for training."""
    return tuple(torch.as_tensor(array, dtype=torch.float32).to(device, non_blocking=True) for array in arrays)


@dataclass(frozen=True, slots=True)
class Epoch:
    """The losses of an epoch; `best` is whether its weights are the best so far."""

    number: int
    train_loss: float
    valid_loss: float
    best: bool


class Checkpoint:
    """One training's file in a folder that may hold several.

    Its name follows from what determines the training, so that another training, of other data or with other settings,
    neither finds nor overwrites it. Arrays and JSON only: nothing in it can run.

    Parameters
    ----------
    folder : made if need be.
    kind : what is trained, for the reader of the folder.
    facts : arrays, and anything else with a meaningful `repr`.
    rng : what batches are drawn by; its state is kept and restored.
    """

    def __init__(self, folder: str | os.PathLike[str], kind: str, *facts: Any, rng: np.random.Generator) -> None:
        self.path = Path(folder) / f"{kind}-{_digest(facts)}.npz"
        self.rng = rng
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSetting(f"checkpoint={str(folder)!r} cannot be used as a folder: {error.strerror}.") from error

    def write(self, network: nn.Module, optimizer: torch.optim.Optimizer, best: State, epochs: list[Epoch]) -> None:
        """Keep how far the training is. A full disk costs the checkpoint, not the training."""
        moments = {
            f"{number}/{name}": tensor
            for number, state in optimizer.state_dict()["state"].items()
            for name, tensor in state.items()
        }
        parts = {"network": network.state_dict(), "best": best, "moments": moments, "torch": _random_states(network)}
        arrays = {f"{part}/{name}": t.cpu().numpy() for part, tensors in parts.items() for name, t in tensors.items()}
        facts = {"epochs": [asdict(epoch) for epoch in epochs], "rng": self.rng.bit_generator.state}
        try:
            with replacing(self.path) as file:
                np.savez(file, facts=np.array(json.dumps(facts)), **arrays)
        except OSError as error:
            warnings.warn(f"{self.path} could not be written: {error.strerror}.", QuanetWarning, stacklevel=2)

    def read(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[State, list[dict[str, Any]]] | None:
        """Bring network, optimiser and random numbers to where they were; best weights and epochs so far, if any."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                arrays = {name: kept[name] for name in kept.files}
            facts = json.loads(str(arrays.pop("facts")))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            warnings.warn(f"{self.path} is damaged; training starts again.", QuanetWarning, stacklevel=2)
            return None
        parts: dict[str, State] = {}
        for name, array in arrays.items():
            part, rest = name.split("/", 1)
            parts.setdefault(part, {})[rest] = torch.as_tensor(array)
        network.load_state_dict(parts["network"])
        states: dict[int, State] = {}
        for name, tensor in parts.get("moments", {}).items():
            number, rest = name.split("/", 1)
            states.setdefault(int(number), {})[rest] = tensor
        optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
        _restore_random_states(network, parts["torch"])
        self.rng.bit_generator.state = facts["rng"]
        return parts["best"], facts["epochs"]


def _digest(facts: tuple[Any, ...]) -> str:
    digest = hashlib.sha256()
    for fact in facts:
        if isinstance(fact, np.ndarray):
            digest.update(f"{fact.dtype}{fact.shape}".encode())
            digest.update(np.ascontiguousarray(fact).tobytes())
        else:
            digest.update(repr(fact).encode())
    return digest.hexdigest()[:16]


def _device_of(network: nn.Module) -> torch.device:
    return next(network.parameters()).device


def _random_states(network: nn.Module) -> State:
    states = {"cpu": torch.default_generator.get_state()}
    device = _device_of(network)
    accelerator = {"cuda": torch.cuda, "mps": torch.mps}.get(device.type)
    if accelerator:
        states["device"] = accelerator.get_rng_state()
    return states


def _restore_random_states(network: nn.Module, states: State) -> None:
    torch.default_generator.set_state(states["cpu"])
    accelerator = {"cuda": torch.cuda, "mps": torch.mps}.get(_device_of(network).type)
    if accelerator:
        accelerator.set_rng_state(states["device"])


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


def network_as_arrays(estimator: object) -> dict[str, Any]:
    """The state of an estimator; its network, if it is fitted, as a dict of arrays."""
    state = dict(vars(estimator))
    if "network_" in state:
        state["network_"] = {name: tensor.cpu().numpy() for name, tensor in state["network_"].state_dict().items()}
    return state


def restore_network(estimator: T, state: dict[str, Any], build: Callable[[], nn.Module]) -> T:
    """Give a new estimator a saved state; `build` makes its network from the rest, to be filled with the weights."""
    attributes = dict(state)
    arrays = attributes.pop("network_", None)
    vars(estimator).update(attributes)
    if arrays is None:
        return estimator
    network = build()
    try:
        network.load_state_dict({layer: torch.as_tensor(array) for layer, array in arrays.items()})
    except RuntimeError as error:
        raise InvalidModel(
            f"the saved network of {type(estimator).__name__} has other layers than this version of quanet builds. "
            "Fit the model again with this version and save it."
        ) from error
    vars(estimator)["network_"] = network.eval()
    return estimator


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is trained: bags in a batch, their sizes, batches in an epoch, learning rate.

    `stop_batches` of bags of `stop_sizes` decide when to stop.
    """

    bags: int
    sizes: tuple[int, int]
    batches: int
    stop_sizes: tuple[int, int]
    stop_batches: int
    lr: float


def classifier_to_fit(quantifier: Any) -> Any:
    """The classifier of a quantifier, with the quantifier's checkpoint folder if it takes one and has none."""
    classifier = quantifier.classifier
    settings: dict[str, Any] = {} if isinstance(classifier, str) else getattr(classifier, "get_params", dict)()
    if quantifier.checkpoint is None or settings.get("checkpoint", "") is not None:
        return classifier
    return clone(classifier).set_params(checkpoint=quantifier.checkpoint)


def check_checkpoint(estimator: Any) -> None:
    """Raise `InvalidSetting` if an estimator has a checkpoint folder but no seed, by which a checkpoint is found."""
    if estimator.checkpoint is not None and not isinstance(estimator.random_state, (int, np.integer)):
        raise InvalidSetting(
            f"{type(estimator).__name__}: checkpoint needs a seed, by which the checkpoint is found; "
            f"random_state is {estimator.random_state!r}. Set random_state to a whole number."
        )


def checkpoint_of(
    quantifier: Any, facts: tuple[Any, ...], pools: tuple[BagPool, ...], rng: np.random.Generator
) -> Checkpoint | None:
    """Where a quantifier's training is kept: its checkpoint folder, if it has one."""
    if quantifier.checkpoint is None:
        return None
    arrays = [array for pool in pools for array in (pool.rows, pool.codes)]
    name = type(quantifier).__name__.lower()
    return Checkpoint(quantifier.checkpoint, name, *facts, *arrays, rng=rng)


def pace_of(part: str, steps: int, checks: int, epochs: int, patience: int, advice: str) -> Pace:
    """The pace of a training of so many steps and validation batches an epoch, which ends after `patience` bad ones."""
    each = steps + FORWARD * checks
    return Pace(part, each * epochs, least=each * min(patience + 1, epochs), long=LONG, advice=advice)


def follow(epochs: Generator[Epoch, None, None], title: str, most: int, *, visible: bool) -> list[Epoch]:
    """Let a training run, showing it if asked; the epochs it took. Ctrl-C ends it with the best weights so far."""
    history: list[Epoch] = []
    try:
        with closing(epochs), progress_line(title, most, visible=visible) as show:
            for epoch in epochs:
                history.append(epoch)
                show(epoch)
                report("network", len(history) / most)
    except KeyboardInterrupt:
        warnings.warn(
            f"training was interrupted after {len(history)} epochs; the best weights so far are kept.",
            QuanetWarning,
            stacklevel=5,
        )
    return history


@contextmanager
def progress_line(title: str, total: int, *, visible: bool) -> Iterator[Callable[[Epoch], None]]:
    """A line on standard error; the yielded function shows an epoch in it. Nothing is printed if it is not visible.

    Examples
    --------
    >>> with progress_line("training", 2, visible=False) as show:
    ...     show(Epoch(number=0, train_loss=0.3, valid_loss=0.2, best=True))
    """
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as bar:
        task = bar.add_task(title, total=total)
        best = float("inf")

        def show(epoch: Epoch) -> None:
            nonlocal best
            best = min(best, epoch.valid_loss)
            losses = f"loss {epoch.train_loss:.4f}, held out {epoch.valid_loss:.4f}, best {best:.4f}"
            bar.update(task, completed=epoch.number + 1, description=f"{title}: {losses}")

        yield show
