"""What a model folder may hold: its files, their checksums, and the types it may name.

These are quanet's own, known parts of scikit-learn, and those that the caller vouches for.
"""

import hashlib
import json
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from itertools import chain
from typing import Any, cast
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from quanet.base import Quantifier
from quanet.errors import InvalidModel, InvalidSetting, missing_torch
from quanet.held_out import HeldOut

FORMAT = 1
CONFIG, ARRAYS, CARD = "config.json", "arrays.safetensors", "README.md"
FILE = re.compile(r"arrays\.safetensors|part-\d+\.skops")
RAW_DTYPE = re.compile(r"[<>|][biufcSmM]\d+(\[\w+\])?")
REMOVED = {"TextClassifier": ("contents_",)}  # attributes that older versions saved and that are not used any more

# Classes that are not public but may be inside a saved quantifier. Public ones are known without an entry here.
PARTS = {
    "Calibration": "quanet.classifiers.calibration",
    "HeldOut": "quanet.held_out",
    "DriftScale": "quanet.drift.scale",
    "NumberDescriber": "quanet.drift.descriptions",
    "PosteriorDescriber": "quanet.drift.descriptions",
    "Profile": "quanet.drift.profile",
    "TextDescriber": "quanet.drift.descriptions",
    "PrecomputedPosteriors": "quanet.classifiers.cross_fitting",
    "KnownRows": "quanet.nn.share_reader",
    "Matcher": "quanet.methods.matching",
    "Epoch": "quanet.nn.training",
    "PaperQuaNet": "quanet.nn.paper",
    "RowMaker": "quanet.nn.row_maker",
    "Statistics": "quanet.nn.paper",
    "Terms": "quanet.classifiers.terms",
    "Tokens": "quanet.classifiers.meaning",
    # Taken apart like our own: a network may stand in the first two, and skops writes a vocabulary word by word.
    "FrozenEstimator": "sklearn.frozen",
    "Pipeline": "sklearn.pipeline",
    "CountVectorizer": "sklearn.feature_extraction.text",
    "TfidfTransformer": "sklearn.feature_extraction.text",
    "TfidfVectorizer": "sklearn.feature_extraction.text",
}

# Parts of fitted classifiers that skops does not trust by default. They are listed one by one, not by package: packages
# have functions, too, and some of numpy's and scipy's run any code they are given.
SKLEARN = frozenset(
    {
        *(
            f"sklearn.calibration.{name}"
            for name in ("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling")
        ),
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        *(
            f"sklearn.gaussian_process.kernels.{name}"
            for name in (
                *("CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern"),
                *("PairwiseKernel", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
            )
        ),
        *(
            f"sklearn.model_selection._split.{name}"
            for name in (
                *("GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneOut", "PredefinedSplit", "RepeatedKFold"),
                *("RepeatedStratifiedKFold", "ShuffleSplit", "StratifiedGroupKFold", "StratifiedKFold"),
                *("StratifiedShuffleSplit", "TimeSeriesSplit"),
            )
        ),
        "sklearn.multiclass._ConstantPredictor",
        *(f"sklearn.neural_network._stochastic_optimizers.{name}" for name in ("AdamOptimizer", "SGDOptimizer")),
        "sklearn.tree._tree.Tree",
        # Data alone, which skops writes as NumPy's arrays; neighbours of texts keep their terms so.
        "scipy.sparse._csr.csr_matrix",
    }
)


# Imported at run time to avoid an import cycle: the public names include modules that import this one.
QUANET: Any = import_module("quanet")


@cache
def known(name: str) -> type | None:
    """The class of that short name, if a folder may name it without being trusted; no other one is imported."""
    module = PARTS.get(name) or QUANET.MODULE_OF.get(name)
    if module is None:
        return None
    try:
        found = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise missing_torch(error, name) from None
    if name in PARTS:
        return cast("type", found)
    return found if isinstance(found, type) and (issubclass(found, BaseEstimator) or is_dataclass(found)) else None


def name_of(kind: type) -> str:
    """What a folder calls a class: the short name of a known one, the full name of any other."""
    return kind.__name__ if known(kind.__name__) is kind else full_name(kind)


def full_name(kind: type) -> str:
    """Module and name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def is_ours(value: object) -> bool:
    """Whether an object is taken apart by quanet, not by skops."""
    kind = type(value)
    return known(kind.__name__) is kind or isinstance(value, Quantifier) or has_hooks(kind)


def has_hooks(kind: type) -> bool:
    """Whether a class defines what to save; only half of the pair is an error."""
    pair = [hasattr(kind, name) for name in ("__quanet_state__", "__quanet_restore__")]
    if any(pair) and not all(pair):
        raise InvalidSetting(
            f"{full_name(kind)} needs both __quanet_state__ and __quanet_restore__, but has only one of them."
        )
    return all(pair)


class Trust:
    """The types that a caller vouches for, by name or as the classes themselves."""

    def __init__(self, given: Iterable[str | type]) -> None:
        if isinstance(given, str | type):
            raise InvalidSetting(f"trusted must be a list of types or of their names; got {given!r}.")
        given = list(given)
        self._types = {full_name(one): one for one in given if isinstance(one, type)}
        self.names = {one for one in given if isinstance(one, str)} | set(self._types)

    def class_of(self, name: str) -> type:
        """The class of that name, if it is known or trusted."""
        if (kind := known(name)) is not None:
            return kind
        if name in self._types:
            return self._types[name]
        if name not in self.names:
            raise InvalidModel(f"the class {name!r} is not trusted.")
        # The caller named it, so its module may be imported; the folder alone never causes an import.
        module = name.rpartition(".")[0]
        try:
            import_module(module)
        except ImportError as error:
            raise InvalidModel(f"{name} is trusted, but {module} cannot be imported: {error}.") from error
        found = locate(name)
        if not isinstance(found, type):
            raise InvalidModel(f"{name} is trusted, but is not a class. Pass the class itself.")
        return found

    def load_part(self, data: bytes) -> Any:
        """The scikit-learn object in a skops archive, its types checked before it is built and its trees after."""
        data = updated_part(data)
        foreign = _foreign_types(data)
        unknown = sorted(name for name in foreign - self.names if not _is_known(name))
        if unknown:
            raise InvalidModel(f"the types {', '.join(unknown)} are not trusted.")
        part = import_skops().loads(data, trusted=sorted(foreign))
        check_trees(part)
        return part


def untrusted_in(data: bytes) -> list[str]:
    """The types in a skops archive that neither skops nor quanet knows."""
    return sorted(name for name in _foreign_types(updated_part(data)) if not _is_known(name))


def _is_known(name: str) -> bool:
    kind = known(name.rpartition(".")[2])
    return name in SKLEARN or (kind is not None and full_name(kind) == name)


def _foreign_types(data: bytes) -> set[str]:
    return set(import_skops().get_untrusted_types(data=data))


def import_skops() -> Any:
    """The module `skops.io`, when it is needed: it imports all of scikit-learn, with an adapter that imports torch."""
    adapter = "sklearn.externals.array_api_compat.torch"
    if "torch" not in sys.modules:
        sys.modules.setdefault(adapter, cast("Any", None))  # not to be found for as long as skops is imported
    try:
        import skops.io
    finally:
        if sys.modules.get(adapter, sys) is None:
            del sys.modules[adapter]
    return skops.io


def locate(name: str) -> Any:
    """What an imported module has under a full name, or None; nothing is imported."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:cut]))
        if found is not None:
            for part in parts[cut:]:
                found = getattr(found, part, None)
            return found
    return None


def is_record(kind: type) -> bool:
    """A data class is its fields; an estimator that is one has more, once it is fitted."""
    return is_dataclass(kind) and not issubclass(kind, BaseEstimator)


def named_classes(node: Any) -> list[str]:
    """The classes that a tree names, the outermost one first: a missing package is reported for the model itself."""
    if isinstance(node, list):
        return list(dict.fromkeys(chain.from_iterable(map(named_classes, node))))
    if not isinstance(node, dict):
        return []
    own = [str(node["$object"])] if "$object" in node else []
    return list(dict.fromkeys(chain(own, *map(named_classes, node.values()))))


def untrusted_classes(model: Any, files: Mapping[str, bytes]) -> list[str]:
    """Full names of the types in a model that quanet does not know."""
    found = {name for name in named_classes(model) if known(name) is None}
    for name, content in files.items():
        if name != ARRAYS:
            try:
                found.update(untrusted_in(content))
            except Exception as error:
                raise InvalidModel(f"{name} is not a readable skops archive: {error!r}. Save it again.") from error
    return sorted(found)


@cache
def library_versions() -> dict[str, str]:
    """The versions that a model folder states."""
    libraries = ("numpy", "scipy", "scikit-learn", "skops", "safetensors")
    return {"python": platform.python_version()} | {name: version(name) for name in libraries}


def digest(content: bytes) -> str:
    """The checksum of a file."""
    return hashlib.sha256(content).hexdigest()


def canonical_json(config: dict[str, Any]) -> bytes:
    """The configuration as the bytes that its checksum is of."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def updated_kind(name: str, state: Mapping[str, Any]) -> str:
    """The present name of the class of an object with this state.

    Up to version 0.2, `QuaNet` had two networks, and each model was trained with its own.
    """
    if name != "QuaNet" or "network" not in state:
        return name
    if state["network"] != "paper":
        raise InvalidModel(
            "it is a QuaNet of version 0.2 or older, whose network is no longer in quanet. Fit it again."
        )
    return "PaperQuaNet"


def updated_part(data: bytes) -> bytes:
    """A skops archive with the present modules of quanet's classes, which may have been in others when it was saved."""
    with ZipFile(BytesIO(data)) as saved:
        schema = saved.read("schema.json")
        if b'"quanet.' not in schema:
            return data
        present = json.dumps(json.loads(schema, object_hook=_in_present_module))
        updated = BytesIO()
        with ZipFile(updated, "w") as archive:
            for entry in saved.infolist():
                archive.writestr(entry, present if entry.filename == "schema.json" else saved.read(entry))
    return updated.getvalue()


def _in_present_module(node: dict[str, Any]) -> dict[str, Any]:
    ours = str(node.get("__module__", "")).startswith("quanet.")
    kind = known(str(node.get("__class__"))) if ours else None
    return node if kind is None else node | {"__module__": kind.__module__}


def updated_state(kind: str, state: dict[str, Any]) -> dict[str, Any]:
    """The state of an object of a class, with attributes under their present names."""
    if kind == "PaperQuaNet":
        for name in ("network", "cv", "corrects_", "p_value_"):
            state.pop(name, None)
    if kind == "Statistics":
        state = {"hard": state["hard"], "soft": state["soft"]}
    if kind == "HeldOut":
        state.setdefault("growth", 0.0)
    if kind == "RowMaker" and "lead" in state:
        state["fold_gap"] = state.pop("lead")
    if isinstance(state.get("held_out_"), int):  # a number, in searches over methods
        state["n_held_out_"] = state.pop("held_out_")
    fold_gap, groups = state.pop("lead_", None), state.pop("held_groups_", None)
    if "held_rows_" in state:
        inputs, codes = state.pop("held_rows_"), state.pop("held_codes_")
        state["held_out_"] = HeldOut(inputs, codes, len(state["classes_"]), groups, fold_gap)
    return state


def check_trees(part: Any) -> None:
    """Refuse an object with decision trees whose nodes point outside of the tree or of the instances' features."""
    for value in _contents(part):
        attributes = getattr(value, "__dict__", {})
        width = attributes.get("n_features_in_", 0)
        if "tree_" in attributes:
            _check_tree(value.tree_, width)
        elif "_predictors" in attributes:  # histogram gradient boosting, one list of trees an iteration
            for predictor in (tree for trees in value._predictors for tree in trees):  # noqa: SLF001
                _check_predictor(predictor, width)
        elif isinstance(estimators := attributes.get("estimators_"), np.ndarray):  # gradient boosting
            for member in estimators.ravel():
                _check_tree(member.tree_, width)


def _check_tree(tree: Any, width: int) -> None:
    nodes = tree.__getstate__()["nodes"]
    inner = nodes["left_child"] != -1
    _check_nodes(nodes["left_child"], nodes["right_child"], nodes["feature"], inner, width)


def _check_predictor(predictor: Any, width: int) -> None:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], inner, width)
    by_category = inner & (nodes["is_categorical"] == 1)
    if (nodes["bitset_idx"][by_category] >= len(predictor.raw_left_cat_bitsets)).any():
        raise InvalidModel("a decision tree refers to categories that do not exist.")


def _check_nodes(
    left: NDArray[Any], right: NDArray[Any], feature: NDArray[Any], inner: NDArray[np.bool_], width: int
) -> None:
    at = np.arange(len(left))[inner]
    for child in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        # A child stands after its parent, so every path ends.
        if not ((child > at) & (child < len(left))).all():
            raise InvalidModel("a decision tree has branches without a node.")
    if not ((feature[inner] >= 0) & (feature[inner] < width)).all():
        raise InvalidModel("a decision tree refers to features that do not exist.")


def _contents(part: Any) -> Iterator[Any]:
    """An object and all that its attributes, lists, tuples, dictionaries and object arrays hold."""
    seen: set[int] = set()
    waiting = [part]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, np.ndarray):
            waiting.extend(value.ravel() if value.dtype.kind == "O" else ())
        else:
            waiting.extend(getattr(value, "__dict__", {}).values())
