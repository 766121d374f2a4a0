"""What an estimator remembers, taken apart into a JSON tree, numeric arrays and scikit-learn parts, and put together.

An estimator is its attributes, `vars`. A class that holds what these cannot say, such as a network, has two methods:

``__quanet_state__(self) -> dict[str, Any]``
    What to remember: None, booleans, numbers, strings, NumPy arrays, other estimators, and lists, tuples, sets and
    dictionaries of them; a network as the dictionary of its tensors, each an array. It starts best from ``vars(self)``,
    for it is asked of estimators that are not fitted too: those that stand as a parameter of another one.
``__quanet_restore__(cls, state: dict[str, Any]) -> Self``
    A class method: a new object from an equal dictionary. It may come from anyone's file: check it, run nothing in it.

In the tree a JSON object has one entry that starts with "$" and says what it is; everything else stands for itself.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from quanet.errors import InvalidModel, InvalidSetting, QuanetError
from quanet.persist.trust import Trust, full_name, has_hooks, is_ours, locate, name_of, untrusted_in

PLAIN = (type(None), bool, int, str)
CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
    "$dict": dict,
}
MANY = 1000  # entries from which a list or dictionary, such as a vocabulary, goes to the arrays, as bytes of JSON
NATIVE = {
    "bool",
    "float16",
    "float32",
    "float64",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
}
RAW_DTYPE = re.compile(r"[<>|][biufcSmM]\d+(\[\w+\])?")
LABEL_DTYPE = re.compile(r"[<>]U\d+|\|O|T")


class Writer:
    """Takes a value apart; `arrays` and `parts` (skops archives) fill up on the way."""

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
            raise InvalidSetting(f"{path} holds itself, by way of others. Break the circle to save it.")
        return self._written[id(value)]

    def _state(self, value: Any, path: str) -> dict[str, Any]:
        if has_hooks(type(value)):
            state = value.__quanet_state__()
        elif _is_record(type(value)):
            state = {field.name: getattr(value, field.name) for field in fields(value)}
        else:
            state = vars(value)
        if not all(isinstance(name, str) for name in state):
            raise InvalidSetting(f"the state of {path or _kind(value)} has keys that are no strings: {list(state)}.")
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
        import skops.io

        way_out = "Give its class __quanet_state__ and __quanet_restore__ (see quanet.persist.state)."
        try:
            data = skops.io.dumps(value)
        except Exception as error:
            raise InvalidSetting(f"{path} is {_kind(value)}, which cannot be saved: {error} {way_out}") from error
        for name in untrusted_in(data):
            if locate(name) is None:
                raise InvalidSetting(
                    f"{path} holds {name}, which no module has under that name, so that it could not be loaded again. "
                    f"Define it at the top level of a module. {way_out}"
                )
        self.parts.append(data)
        return f"part-{len(self.parts) - 1}.skops"


class Reader:
    """Puts a value together again from its tree, its arrays and its skops archives."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], parts: Mapping[str, bytes], trust: Trust) -> None:
        self._arrays = arrays
        self._parts = parts
        self._trust = trust
        self._objects: dict[int, Any] = {}
        self._loaded: dict[str, Any] = {}  # arrays and parts, so that what was shared is shared again

    def read(self, node: Any) -> Any:
        """The value of a tree."""
        if isinstance(node, list):
            return [self.read(entry) for entry in node]
        if not isinstance(node, dict):
            return node
        kind = next(iter(node))
        if kind in CONTAINERS:
            return CONTAINERS[kind](self.read(node[kind]))
        if kind not in READERS:
            raise InvalidModel(f"{kind!r} is no kind of value.")
        return READERS[kind](self, node[kind], node)

    def _same(self, number: int, _: dict[str, Any]) -> Any:
        return self._objects[number]

    def _object(self, name: str, node: dict[str, Any]) -> Any:
        kind = self._trust.class_of(name)
        state = {key: self.read(entry) for key, entry in node["state"].items()}
        self._objects[node["id"]] = restored = _restore(kind, state)
        return restored

    def _part(self, name: str, _: dict[str, Any]) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._trust.load_part(self._parts[name])
        return self._loaded[name]

    def _array(self, name: str, node: dict[str, Any]) -> NDArray[Any]:
        if name not in self._loaded:
            # A copy that can be written to, as the array could that was saved.
            array = np.array(self._arrays[name])
            self._loaded[name] = array.T if node.get("turned") else array
        return self._loaded[name]

    def _raw(self, name: str, node: dict[str, Any]) -> NDArray[Any]:
        dtype = _checked(RAW_DTYPE, node["dtype"])
        return np.frombuffer(self._arrays[name].tobytes(), dtype=np.dtype(dtype)).reshape(node["shape"]).copy()

    def _labels(self, values: list[Any], node: dict[str, Any]) -> NDArray[Any]:
        dtype: Any = _checked(LABEL_DTYPE, node["dtype"])
        flat = np.empty(len(values), dtype=np.dtypes.StringDType() if dtype == "T" else dtype)
        for at, value in enumerate(values):
            flat[at] = self.read(value)
        return flat.reshape(node["shape"])

    def _packed(self, name: str, _: dict[str, Any]) -> Any:
        return self.read(json.loads(self._arrays[name].tobytes()))

    def _scalar(self, array: dict[str, Any], _: dict[str, Any]) -> Any:
        return self.read(array)[()]

    def _float(self, text: str, _: dict[str, Any]) -> float:
        return float(text)

    def _dtype(self, text: str, _: dict[str, Any]) -> Any:
        return np.dtype(_checked(re.compile(r"[<>|][biufcSUOmM]\d*(\[\w+\])?"), text))

    def _numpy(self, name: str, _: dict[str, Any]) -> Any:
        found = getattr(np, name, None)
        if not (isinstance(found, type) and issubclass(found, np.generic)):
            raise InvalidModel(f"{name!r} is no type of number.")
        return found


READERS: dict[str, Callable[[Reader, Any, dict[str, Any]], Any]] = {
    f"${name}": getattr(Reader, f"_{name}")
    for name in ("same", "object", "part", "array", "raw", "labels", "packed", "scalar", "float", "dtype", "numpy")
}


def _restore(kind: type[Any], state: dict[str, Any]) -> Any:
    if has_hooks(kind):
        try:
            return kind.__quanet_restore__(state)
        except QuanetError:
            raise
        except Exception as error:
            raise InvalidModel(f"{full_name(kind)} cannot be restored: {error!r}.") from error
    if _is_record(kind):
        return kind(**state)
    if any(name.startswith("__") for name in state):
        raise InvalidModel(f"{full_name(kind)} has attributes that only Python sets.")
    # Not by the constructor: attributes that were set after it would have to be told from its parameters.
    restored: Any = object.__new__(kind)
    vars(restored).update(state)
    return restored


def _is_record(kind: type) -> bool:
    """A data class is its fields; an estimator that is one has more, once it is fitted."""
    return is_dataclass(kind) and not issubclass(kind, BaseEstimator)


def named_classes(node: Any) -> set[str]:
    """The classes that a tree names."""
    if isinstance(node, list):
        return set().union(*map(named_classes, node))
    if not isinstance(node, dict):
        return set()
    own = {str(node["$object"])} if "$object" in node else set()
    return own.union(*map(named_classes, node.values()))


def _checked(pattern: re.Pattern[str], dtype: Any) -> str:
    if not (isinstance(dtype, str) and pattern.fullmatch(dtype)):
        raise InvalidModel(f"{dtype!r} is no type of array.")
    return dtype


def _kind(value: Any) -> str:
    return f"a {full_name(type(value))}"
