"""Split an estimator into a JSON tree, numeric arrays and scikit-learn parts.

An estimator is its attributes, `vars`. A class with other contents, such as a network, has two methods:

``__quanet_state__(self) -> dict[str, Any]``
    What to remember: None, booleans, numbers, strings, NumPy arrays, other estimators, and lists, tuples, sets and
    dictionaries of them; a network as the dictionary of its tensors, each an array. It starts best from ``vars(self)``,
    for it is asked of estimators that are not fitted too: those that stand as a parameter of another one.
``__quanet_restore__(cls, state: dict[str, Any]) -> Self``
    A class method: a new object from an equal dictionary. It may come from anyone's file: check it, run nothing in it.

In the tree a JSON object has one entry that starts with "$" and names its kind; everything else is a plain value.
"""

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quanet.errors import InvalidSetting
from quanet.persist.trust import (
    RAW_DTYPE,
    full_name,
    has_hooks,
    import_skops,
    is_ours,
    is_record,
    locate,
    name_of,
    untrusted_in,
)

PLAIN = (type(None), bool, int, str)
MANY = 1000  # entries from which a list or dictionary, such as a vocabulary, goes to the arrays, as bytes of JSON
NATIVE = {
    "bool",
    "float16",
    "float32",
    "float64",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
}


class Writer:
    """Splits a value; collects its `arrays` and `parts` (skops archives)."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.parts: list[bytes] = []
        self._written: dict[int, Any] = {}  # the node of every object met, so that it is written once
        self._alive: list[Any] = []  # objects made on the way stay, or their addresses would be used again

    def write(self, value: Any, path: str = "") -> Any:
        """The JSON tree of a value; `path` is where it stands, for the names of arrays and for errors."""
        if type(value) in PLAIN:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if type(value) in (list, tuple, set, frozenset, dict):
            return self._container(value, path)
        if isinstance(value, np.generic):
            return {"$scalar": self._array(np.asarray(value), path)}
        if isinstance(value, np.dtype):
            return {"$dtype": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"$numpy": value.__name__}
        return self._object(value, path)

    def _container(self, value: Any, path: str) -> Any:
        if type(value) is dict:
            entries = [[self.write(key, path), self.write(entry, f"{path}.{key}")] for key, entry in value.items()]
            flat = [one for entry in value.items() for one in entry]
        else:
            flat = list(value)
            entries = [self.write(entry, f"{path}.{at}") for at, entry in enumerate(flat)]
        node = entries if type(value) is list else {f"${type(value).__name__}": entries}
        if len(entries) < MANY or not all(type(one) in PLAIN for one in flat):
            return node
        packed = np.frombuffer(json.dumps(node).encode(), dtype=np.uint8)
        return {"$packed": self._store(packed, path)}

    def _object(self, value: Any, path: str) -> Any:
        if id(value) not in self._written:
            self._alive.append(value)
            self._written[id(value)] = None
            if type(value) is np.ndarray:
                node = self._array(value, path)
            elif is_ours(value):
                node = {"$object": name_of(type(value)), "id": len(self._alive), "state": self._state(value, path)}
            else:
                node = {"$part": self._part(value, path)}
            self._written[id(value)] = {"$same": node["id"]} if "id" in node else node
            return node
        if self._written[id(value)] is None:
            raise InvalidSetting(f"{path} contains itself. Break the cycle to save it.")
        return self._written[id(value)]

    def _state(self, value: Any, path: str) -> dict[str, Any]:
        if has_hooks(type(value)):
            state = value.__quanet_state__()
        elif is_record(type(value)):
            state = {field.name: getattr(value, field.name) for field in fields(value)}
        else:
            state = vars(value)
        if not all(isinstance(name, str) for name in state):
            raise InvalidSetting(f"the state of {path or _kind(value)} has keys that are not strings: {list(state)}.")
        return {name: self.write(entry, f"{path}.{name}" if path else name) for name, entry in state.items()}

    def _array(self, value: NDArray[Any], path: str) -> dict[str, Any]:
        dtype = value.dtype
        if dtype.kind in "UOT":
            values = [self.write(entry, path) for entry in value.ravel().tolist()]
            return {"$labels": values, "dtype": "T" if dtype.kind == "T" else dtype.str, "shape": list(value.shape)}
        if dtype.name in NATIVE and dtype.isnative:
            # The order in memory stays: a product of matrices may round otherwise in the other one.
            turned = value.flags.f_contiguous and not value.flags.c_contiguous
            name = self._store(np.asarray(value.T if turned else value, order="C"), path)
            return {"$array": name, "turned": True} if turned else {"$array": name}
        if not RAW_DTYPE.fullmatch(dtype.str):
            raise InvalidSetting(
                f"{path} is an array of {dtype}, which cannot be saved. Convert it to numbers or strings."
            )
        raw = np.frombuffer(value.tobytes(), dtype=np.uint8)
        return {"$raw": self._store(raw, path), "dtype": dtype.str, "shape": list(value.shape)}

    def _store(self, array: NDArray[Any], path: str) -> str:
        name = path or "value"
        while name in self.arrays:
            name += "'"
        self.arrays[name] = array
        return name

    def _part(self, value: Any, path: str) -> str:
        way_out = "Give its class __quanet_state__ and __quanet_restore__ (see quanet.persist.writer)."
        try:
            data = import_skops().dumps(value)
        except Exception as error:
            raise InvalidSetting(f"{path} is {_kind(value)}, which cannot be saved: {error} {way_out}") from error
        for name in untrusted_in(data):
            if locate(name) is None:
                raise InvalidSetting(
                    f"{path} contains {name}, which no module has under that name, so it could not be loaded again. "
                    f"Define it at the top level of a module. {way_out}"
                )
        self.parts.append(data)
        return f"part-{len(self.parts) - 1}.skops"


def _kind(value: Any) -> str:
    return f"a {full_name(type(value))}"
