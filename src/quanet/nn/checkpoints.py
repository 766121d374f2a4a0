"""Trainings on disk: all that a killed one needs to go on as if nothing had happened."""

import hashlib
import json
import os
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor, nn

from quanet.errors import InvalidSetting, QuanetWarning
from quanet.files import replacing

if TYPE_CHECKING:
    from quanet.nn.loop import Epoch

State = dict[str, Tensor]


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

    def write(self, network: nn.Module, optimizer: torch.optim.Optimizer, best: State, epochs: "list[Epoch]") -> None:
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

    def read(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> "tuple[State, list[dict[str, Any]]] | None":
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
