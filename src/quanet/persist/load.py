"""Load a model folder, also of an older version, or read the facts about it, after checking that it is whole.

No code of the folder runs.
"""

import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from quanet.drift.scale import NO_SCALE, drift_sentence
from quanet.errors import InvalidModel, QuanetError, QuanetWarning
from quanet.persist.trust import (
    ARRAYS,
    CONFIG,
    FILE,
    FORMAT,
    QUANET,
    RAW_DTYPE,
    REMOVED,
    Trust,
    canonical_json,
    digest,
    full_name,
    has_hooks,
    is_record,
    known,
    library_versions,
    untrusted_classes,
    updated_kind,
    updated_state,
)

CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
    "$dict": dict,
}
LABEL_DTYPE = re.compile(r"[<>]U\d+|\|O|T")
# Where searches and monitors keep the quantifier that knows the classes; other estimators know them themselves.
INNER = {"GridSearchQ": "quantifier_", "AutoQuantifier": "quantifier_", "Monitor": "quantifier"}


def load(folder: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> Any:
    """Load a model written by `save`, after checking that it is complete and contains known types only.

    Parameters
    ----------
    folder : path of the model.
    trusted : types that are neither quanet's nor scikit-learn's but may be loaded, as classes or by their full names.
        Their code runs, so name those whose code you know.

    Returns
    -------
    Any
        the estimator, fitted, of the class that was saved.

    Examples
    --------
    >>> import tempfile
    >>> from quanet import CC, save
    >>> with tempfile.TemporaryDirectory() as home:
    ...     save(CC("precomputed").fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]), f"{home}/cc")
    ...     quantifier = load(f"{home}/cc")
    >>> quantifier.predict([[0.4, 0.6], [0.7, 0.3], [0.8, 0.2], [0.6, 0.4]])
    array([0.75, 0.25])
    """
    config, files = read_folder(Path(folder))
    trust = Trust(trusted)
    unknown = set(untrusted_classes(config["model"], files)) - trust.names
    if unknown:
        raise InvalidModel(
            f"{folder} contains types that quanet does not know: {', '.join(sorted(unknown))}. If you know their code "
            f"and trust it, load with trusted={sorted(unknown)}."
        )
    try:
        arrays = safetensors.numpy.load(files[ARRAYS]) if ARRAYS in files else {}
        loaded = Reader(arrays, files, trust).read(config["model"])
    except QuanetError as error:
        raise InvalidModel(f"{folder} cannot be loaded: {error}") from error
    except Exception as error:
        raise InvalidModel(f"{folder} is damaged and cannot be loaded: {error!r}. Save the model again.") from error
    if not isinstance(loaded, BaseEstimator):
        raise InvalidModel(f"{folder} contains {type(loaded).__name__}, which is not an estimator.")
    return loaded


def facts_of(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The facts saved with a model, and "quanet", "saved", "versions", "data", "results", "notes".

    Only the folder's configuration is read, and its checksum is verified.
    """
    config = _checked_config(Path(folder))
    about = {name: config.get(name, "") for name in ("quanet", "saved", "versions", "data", "results", "notes")}
    return about | dict(config.get("facts", {}))


def model_digest(folder: str | os.PathLike[str]) -> str:
    """A digest of a saved model: equal for equal models, whenever they were saved."""
    config = _checked_config(Path(folder))
    return digest(canonical_json({"model": config["model"], "files": config["files"]}))


def untrusted_types(folder: str | os.PathLike[str]) -> list[str]:
    """Full names of the types that must be passed to `load` as trusted."""
    config, files = read_folder(Path(folder))
    return untrusted_classes(config["model"], files)


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The checked configuration of a model folder, and the bytes of its files."""
    config = _checked_config(folder)
    _check_versions(folder, config)
    config["model"] = _without_removed(config["model"])
    return config, {name: _read_file(folder, name, checksum) for name, checksum in config["files"].items()}


def _without_removed(node: Any) -> Any:
    """A tree without the attributes that older versions saved and that are not used any more."""
    if isinstance(node, list):
        return [_without_removed(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    removed, state = REMOVED.get(str(node.get("$object")), ()), node.get("state")
    if removed and isinstance(state, dict):
        node = node | {"state": {key: entry for key, entry in state.items() if key not in removed}}
    return {key: _without_removed(entry) for key, entry in node.items()}


def _checked_config(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    _check_format(folder, config)
    stated = config.pop("sha256", None)
    try:
        intact = stated == digest(canonical_json(config))
    except ValueError:  # NaN, which save does not write
        intact = False
    shape = {"files": dict, "model": dict, "versions": dict}
    if not intact or any(not isinstance(config.get(key), kind) for key, kind in shape.items()):
        raise InvalidModel(f"{folder / CONFIG} has been edited or damaged since it was saved. Save the model again.")
    return config


def _check_format(folder: Path, config: dict[str, Any]) -> None:
    found = config["quanet_format"]
    if type(found) is not int or found < 1:
        raise InvalidModel(f"{folder} has the unknown format {found!r}. Save the model again.")
    if found > FORMAT:
        raise InvalidModel(
            f"{folder} is in format {found}, written by quanet {config.get('quanet')}; quanet {QUANET.__version__} "
            f"reads formats up to {FORMAT}. Upgrade quanet."
        )


def _check_versions(folder: Path, config: dict[str, Any]) -> None:
    saved, here = str(config["versions"].get("scikit-learn")), library_versions()["scikit-learn"]
    if saved.split(".")[:2] != here.split(".")[:2]:
        warnings.warn(
            f"{folder} was saved with scikit-learn {saved}; this is {here}, whose estimates may differ. "
            "Install that version, or fit and save again.",
            QuanetWarning,
            stacklevel=4,
        )


def _read_file(folder: Path, name: str, checksum: str) -> bytes:
    if not FILE.fullmatch(name):
        raise InvalidModel(f"{folder / CONFIG} lists the file {name!r}, which does not belong to a model.")
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise InvalidModel(f"{folder} lacks {name}: {error.strerror}. Copy the whole folder.") from error
    if digest(content) != checksum:
        raise InvalidModel(f"{folder / name} has been changed or cut off since it was saved. Copy or save it again.")
    return content


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a model folder, not yet checked to be whole."""
    if not folder.is_dir():
        raise InvalidModel(f"the folder {folder} does not exist. Pass one written by quanet fit or quanet.save.")
    path = folder / CONFIG
    if not path.is_file():
        raise InvalidModel(f"{folder} is not a quanet model: it has no {CONFIG}.")
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{path} is not valid JSON and may be truncated: {error}. Save the model again.") from error
    if not (isinstance(config, dict) and "quanet_format" in config):
        raise InvalidModel(f"{folder} is not a quanet model: its {CONFIG} was written by a different program.")
    return config


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
            raise InvalidModel(f"{kind!r} is not a kind of value.")
        return READERS[kind](self, node[kind], node)

    def _same(self, number: int, _: dict[str, Any]) -> Any:
        return self._objects[number]

    def _object(self, name: str, node: dict[str, Any]) -> Any:
        kind = self._trust.class_of(updated_kind(name, node["state"]))
        state = {key: self.read(entry) for key, entry in node["state"].items()}
        self._objects[node["id"]] = restored = _restore(kind, updated_state(kind.__name__, state))
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
            raise InvalidModel(f"{name!r} is not a type of number.")
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
    if is_record(kind):
        return kind(**state)
    if any(name.startswith("__") for name in state):
        raise InvalidModel(f"{full_name(kind)} has attributes that only Python may set.")
    # Not by the constructor: attributes that were set after it are not its parameters.
    restored: Any = object.__new__(kind)
    vars(restored).update(state)
    return restored


def _checked(pattern: re.Pattern[str], dtype: Any) -> str:
    if not (isinstance(dtype, str) and pattern.fullmatch(dtype)):
        raise InvalidModel(f"{dtype!r} is not a type of array.")
    return dtype


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """The facts about a saved model.

    Attributes
    ----------
    folder : where it lies.
    method : its class.
    settings : its parameters, as they would be written.
    classes, prior : labels, and training prevalences; empty where the model has none.
    instances : number of labelled instances it was fitted to.
    drift : how its drift scale was learned, or what is unknown; empty if it is not a quantifier.
    config : what else was saved with it: "data", "results", "notes", "saved", "quanet", "versions", and more.
    files : name -> bytes.
    untrusted : types that must be passed to `load` as trusted.
    """

    folder: Path
    method: str
    settings: dict[str, str]
    classes: list[Any]
    prior: list[float]
    instances: int | None
    drift: str
    config: dict[str, Any]
    files: dict[str, int]
    untrusted: list[str]


def model_facts(folder: str | Path) -> Facts:
    """Facts of a folder that `save` has written, once it is checked to be whole.

    Examples
    --------
    >>> import tempfile
    >>> from quanet import PACC, save
    >>> quantifier = PACC("precomputed").fit([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]], ["no", "no", "yes"])
    >>> with tempfile.TemporaryDirectory() as home:
    ...     save(quantifier, f"{home}/pacc")
    ...     facts = model_facts(f"{home}/pacc")
    >>> facts.method, facts.classes, facts.settings
    ('PACC', ['no', 'yes'], {'classifier': "'precomputed'", 'cv': '5'})
    """
    place = Path(folder)
    config, files = read_folder(place)
    tree = config.pop("model")
    try:
        arrays = safetensors.numpy.load(files[ARRAYS]) if ARRAYS in files else {}
        method, state = _object(tree)
        nested = [state, *_states_inside(method, state)]
        fitted: dict[str, Any] = next((one for one in nested if "classes_" in one), {})
        # Arrays, labels and plain values only: what would build an object is not read.
        reader = Reader(arrays, {}, Trust(()))
        classes = reader.read(fitted["classes_"]).tolist() if _is_data(fitted.get("classes_")) else []
        prior = reader.read(fitted["prior_"]).tolist() if _is_data(fitted.get("prior_")) else []
        instances = fitted.get("n_instances_")
        scale = next((one["drift_"] for one in nested if one.get("drift_") is not None), None)
        drift = _drift(scale, reader) if prior else ""
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidModel(f"{folder} is damaged and cannot be read: {error!r}. Save the model again.") from error
    return Facts(
        folder=place,
        method=method,
        settings=_settings(method, state),
        classes=classes,
        prior=prior,
        instances=instances if isinstance(instances, int) else None,
        drift=drift,
        config={key: value for key, value in config.items() if key not in ("files", "sha256")},
        files={path.name: path.stat().st_size for path in sorted(place.iterdir()) if path.is_file()},
        untrusted=untrusted_types(place),
    )


def _object(node: Any) -> tuple[str, dict[str, Any]]:
    return str(node["$object"]), dict(node["state"])


def _states_inside(method: str, state: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of the quantifier inside a search or a monitor, and of the one inside that."""
    node = state.get(INNER.get(method, ""))
    if not isinstance(node, dict) or "state" not in node:
        return []
    inner, its_state = _object(node)
    return [its_state, *_states_inside(inner, its_state)]


def _drift(node: Any, reader: Reader) -> str:
    """How the drift scale was learned; models of older versions have none."""
    if node is None:
        return drift_sentence("", np.empty(0), unknown=NO_SCALE)
    state = node["state"]
    return drift_sentence(state["kind"], reader.read(state["variances"]), state["unknown"], state["no_parts"])


def _is_data(node: Any) -> bool:
    return isinstance(node, dict) and bool(node.keys() & {"$array", "$labels", "$raw"})


def _settings(method: str, state: dict[str, Any]) -> dict[str, str]:
    """Parameters by name; of an unknown class, all attributes without an underscore at either end."""
    kind = known(method)
    if kind is not None:
        names = [name for name in inspect.signature(kind).parameters if name in state]
    else:
        names = [name for name in state if not name.startswith("_") and not name.endswith("_")]
    return {name: _written(state[name]) for name in names}


def _written(node: Any) -> str:
    """A value of the tree as Python would write it, objects as the names of their classes."""
    if isinstance(node, list):
        return f"[{', '.join(map(_written, node))}]"
    if not isinstance(node, dict):
        return repr(node)
    name, content = next(iter(node.items()))
    if name == "$object":
        inner = _settings(content, node.get("state", {}))
        return f"{content.rpartition('.')[2]}({', '.join(f'{key}={value}' for key, value in inner.items())})"
    if name == "$tuple":
        return f"({', '.join(map(_written, content))}{',' if len(content) == 1 else ''})"
    if name == "$dict":
        return f"{{{', '.join(f'{_written(key)}: {_written(value)}' for key, value in content)}}}"
    return {"$part": "a scikit-learn estimator", "$float": str(content)}.get(name, "...")
