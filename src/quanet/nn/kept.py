"""Networks as arrays: how an estimator with a `network_` is kept in a folder, and brought back."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

T = TypeVar("T")


def network_as_arrays(estimator: object) -> dict[str, Any]:
    """Everything an estimator holds, its network, if it is fitted, as a dict of arrays."""
    state = dict(vars(estimator))
    if "network_" in state:
        state["network_"] = {name: tensor.cpu().numpy() for name, tensor in state["network_"].state_dict().items()}
    return state


def restore_network(estimator: T, state: dict[str, Any], build: Callable[[], nn.Module]) -> T:
    """Give a new estimator what was kept; `build` makes its network, to be filled, from all the rest."""
    kept = dict(state)
    arrays = kept.pop("network_", None)
    vars(estimator).update(kept)
    if arrays is not None:
        network = build()
        tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
        network.load_state_dict(tensors)
        vars(estimator)["network_"] = network.eval()
    return estimator
