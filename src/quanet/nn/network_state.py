"""Save and restore networks: an estimator with a `network_` is stored as arrays."""

from typing import TYPE_CHECKING, Any, TypeVar

from quanet.arrays import FloatArray
from quanet.errors import InvalidModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

T = TypeVar("T")


def network_as_arrays(estimator: object) -> dict[str, Any]:
    """The state of an estimator; its network, if it is fitted, as a dict of arrays."""
    state = dict(vars(estimator))
    if "network_" in state:
        state["network_"] = {name: tensor.cpu().numpy() for name, tensor in state["network_"].state_dict().items()}
    return state


def restore_network(estimator: T, state: dict[str, Any], build: "Callable[[], nn.Module]") -> T:
    """Give a new estimator a saved state; `build` makes its network from the rest, to be filled with the weights."""
    attributes = dict(state)
    arrays = attributes.pop("network_", None)
    vars(estimator).update(attributes)
    if arrays is not None:
        vars(estimator)["network_"] = with_weights(build(), arrays, type(estimator).__name__)
    return estimator


def with_weights(network: "nn.Module", arrays: dict[str, FloatArray], name: str) -> "nn.Module":
    """A new network, filled with the saved weights of an estimator of that name."""
    import torch

    try:
        network.load_state_dict({layer: torch.as_tensor(array) for layer, array in arrays.items()})
    except RuntimeError as error:
        raise InvalidModel(
            f"the saved network of {name} has other layers than this version of quanet builds. "
            "Fit the model again with this version and save it."
        ) from error
    return network.eval()
