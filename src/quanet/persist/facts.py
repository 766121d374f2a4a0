"""The facts about a saved model, read without loading it: nothing is built or run."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from quanet.drift.scale import NO_SCALE, drift_sentence
from quanet.errors import InvalidModel
from quanet.persist.load import Reader, read_folder, untrusted_types
from quanet.persist.trust import ARRAYS, Trust, known

# Where searches and monitors keep the quantifier that knows the classes; other estimators know them themselves.
INNER = {"GridSearchQ": "quantifier_", "AutoQuantifier": "quantifier_", "Monitor": "quantifier"}


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
