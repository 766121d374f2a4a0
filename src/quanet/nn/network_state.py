"""Save and restore networks: an estimator with a `network_` is stored as arrays."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

from quanet.errors import InvalidModel

T = TypeVar("T")


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
