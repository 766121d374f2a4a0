"""What `save` writes: a folder with a model and its card. Nothing is pickled.

==================  ==================================================================================================
config.json         versions, checksums, and the estimator as a tree of plain values
arrays.safetensors  its numeric arrays
part-N.skops        its scikit-learn parts
README.md           the model card
==================  ==================================================================================================

In the tree a JSON object has one entry that starts with "$" and names its kind; everything else is a plain value. An
estimator is its attributes, `vars`. A class with other contents, such as a network, has two methods:

``__quanet_state__(self) -> dict[str, Any]``
    What to remember: None, booleans, numbers, strings, NumPy arrays, other estimators, and lists, tuples, sets and
    dictionaries of them; a network as the dictionary of its tensors, each an array. It starts best from ``vars(self)``,
    for it is asked of estimators that are not fitted too: those that stand as a parameter of another one.
``__quanet_restore__(cls, state: dict[str, Any]) -> Self``
    A class method: a new object from an equal dictionary. It may come from anyone's file: check it, run nothing in it.
"""

import json
import math
import os
import shutil
import textwrap
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from quanet.errors import InvalidModel, InvalidSetting
from quanet.files import check_writable
from quanet.persist.load import read_config
from quanet.persist.trust import (
    ARRAYS,
    CARD,
    CONFIG,
    FILE,
    FORMAT,
    QUANET,
    RAW_DTYPE,
    canonical_json,
    digest,
    full_name,
    has_hooks,
    import_skops,
    is_ours,
    is_record,
    library_versions,
    locate,
    name_of,
    untrusted_classes,
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
MAX_VALUE_LENGTH = 200  # characters of a parameter's value in the card


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
        way_out = "Give its class __quanet_state__ and __quanet_restore__ (see quanet.persist.save)."
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


def save(
    quantifier: Any,
    folder: str | os.PathLike[str],
    *,
    data: str = "",
    results: Mapping[str, float] | None = None,
    notes: str = "",
    facts: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Save a fitted quantifier, or any fitted estimator, with its model card.

    The folder appears when everything is written. A folder with a model is replaced only with `overwrite`, as a whole,
    and stays as it was if anything fails; a folder with anything else is refused.

    Parameters
    ----------
    quantifier : fitted.
    folder : path; parent folders are created.
    data : a description of the training data, for the model card.
    results : held-out errors for the model card, by their names, such as ``{"AE": results.error("ae").mean()}``.
    notes : more for the model card, in Markdown.
    facts : what `facts_of` returns, such as the columns it was fitted to: names, numbers, lists and mappings.
    overwrite : replace a model that is already in the folder. Otherwise the folder must be empty or not exist.

    Examples
    --------
    >>> import tempfile
    >>> from quanet import PACC, load, save
    >>> posteriors, labels = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], ["no", "no", "yes", "yes"]
    >>> quantifier = PACC("precomputed").fit(posteriors, labels)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     save(quantifier, f"{home}/pacc", data="Four posteriors.", results={"AE": 0.01})
    ...     again = load(f"{home}/pacc")
    >>> again.predict([[0.4, 0.6], [0.7, 0.3]])
    array([0.5, 0.5])
    """
    if not isinstance(quantifier, BaseEstimator):
        raise InvalidSetting(f"save needs a fitted quantifier; got {quantifier!r}, which is not an estimator.")
    check_is_fitted(quantifier)
    target = free_place(folder, overwrite=overwrite)
    writer = Writer()
    model = writer.write(quantifier)
    about = {
        "quanet_format": FORMAT,
        "quanet": QUANET.__version__,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": library_versions(),
        "data": data,
        "results": _checked_results(results or {}),
        "notes": notes,
        "facts": _checked_facts(facts or {}),
    }
    files = {f"part-{number}.skops": content for number, content in enumerate(writer.parts)}
    if writer.arrays:
        files[ARRAYS] = safetensors.numpy.save(writer.arrays)
    config = about | {"files": {name: digest(content) for name, content in files.items()}, "model": model}
    config["sha256"] = digest(canonical_json(config))
    card = model_card(quantifier, about, untrusted_classes(model, files))
    with replacing_folder(target) as new:
        for name, content in files.items():
            write_new(new / name, content)
        write_new(new / CARD, card.encode(errors="replace"))
        write_new(new / CONFIG, json.dumps(config, indent=1).encode())


def free_place(folder: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """The path that `save` writes to: new, empty or, with `overwrite`, a model without other files."""
    target = Path(folder).resolve()  # through a link, to the folder that is replaced
    check_writable(target)
    if not target.exists():
        return target
    if not target.is_dir():
        raise InvalidSetting(f"{folder} is a file, but a model is a folder. Choose a different name.")
    found = {path.name for path in target.iterdir()}
    if not found:
        return target
    try:
        read_config(target)
    except InvalidModel as error:
        raise InvalidSetting(f"{folder} is not empty and is not a quanet model. Choose a different name.") from error
    foreign = sorted(name for name in found - {CONFIG, CARD} if not FILE.fullmatch(name))
    if foreign:
        raise InvalidSetting(
            f"{folder} also contains {', '.join(foreign)}, which would be lost. Move it, or save elsewhere."
        )
    if not overwrite:
        raise InvalidSetting(f"{folder} already contains a model. Choose a different name, or pass overwrite=True.")
    return target


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """A new folder next to `target`: it replaces `target` at the end, or is removed if anything fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new, old = (target.with_name(f".{target.name}.{uuid.uuid4().hex}.{kind}") for kind in ("new", "old"))
    try:
        new.mkdir()
        yield new
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException:  # Ctrl-C too
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if target.exists():  # otherwise the old one is the only copy
            shutil.rmtree(old, ignore_errors=True)


def write_new(path: Path, content: bytes) -> None:
    """Write a new file, and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the folder takes its place


def _checked_results(results: Mapping[str, float]) -> dict[str, float]:
    found = {str(name): float(value) for name, value in results.items()}
    for name, value in found.items():
        if not math.isfinite(value):
            raise InvalidSetting(f"results has {name} = {value}, but errors must be finite numbers. Leave it out.")
    return found


def _checked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(dict(facts), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise InvalidSetting(f"facts must be names, numbers, lists and mappings: {error}.") from error


def model_card(estimator: Any, about: Mapping[str, Any], trusted: list[str]) -> str:
    """The card of an estimator.

    Parameters
    ----------
    estimator : fitted.
    about : the entries of `config.json` besides the model: "quanet", "saved", "versions", "data", "results", "notes".
    trusted : names of types that must be passed to `load` as trusted.
    """
    sections = {
        "Load": _load(trusted),
        "Data": about["data"],
        "Classes": _classes(estimator),
        "Drift": _drift(estimator),
        "Held-out errors": _table(("error", "value"), about["results"]),
        "Settings": _settings(estimator),
        "Notes": about["notes"],
        "Versions": _table(("library", "version"), {"quanet": about["quanet"], **about["versions"]}),
    }
    title = type(estimator).__name__
    opening = f"# {title}\n\n{_summary(estimator)} Saved by quanet {about['quanet']} on {about['saved'][:10]}.\n"
    return opening + "".join(f"\n## {name}\n\n{body.strip()}\n" for name, body in sections.items() if body.strip())


def _summary(estimator: Any) -> str:
    lines = (type(estimator).__doc__ or "A fitted estimator.").strip().splitlines()
    return " ".join(lines[0].split())


def _load(trusted: list[str]) -> str:
    argument = f", trusted={trusted!r}" if trusted else ""
    warning = "\nThese types are not quanet's: trust them only if you know their code.\n" if trusted else ""
    return f'```python\nimport quanet\n\nquantifier = quanet.load("this/folder"{argument})\n```\n{warning}'


def _classes(estimator: Any) -> str:
    if not hasattr(estimator, "classes_"):
        return ""
    names = [repr(label) for label in np.asarray(estimator.classes_).tolist()]
    prior = getattr(estimator, "prior_", None)
    shares = ["" if prior is None else f"{share:.4f}" for share in (names if prior is None else prior)]
    instances = getattr(estimator, "n_instances_", None)
    known = "" if instances is None else f"\nLearnt from {instances:,} instances.\n"
    return _table(("class", "training prevalence"), dict(zip(names, shares, strict=True))) + known


def _drift(estimator: Any) -> str:
    scale = getattr(estimator, "drift_", None)
    return "" if scale is None else scale.sentence


def _settings(estimator: Any) -> str:
    settings = {f"`{name}`": _short(value) for name, value in estimator.get_params(deep=False).items()}
    if hasattr(estimator, "classifier_"):
        settings["fitted classifier"] = _short(estimator.classifier_)
    return _table(("parameter", "value"), settings)


def _short(value: Any) -> str:
    text = textwrap.shorten(repr(value), MAX_VALUE_LENGTH, placeholder=" ...")
    return f"`{text}`" if "`" not in text else text


def _table(head: tuple[str, str], rows: Mapping[str, Any]) -> str:
    if not rows:
        return ""
    lines = [head, ("---", "---"), *((name, _number(value)) for name, value in rows.items())]
    return "".join(f"| {_cell(left)} | {_cell(right)} |\n" for left, right in lines)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
