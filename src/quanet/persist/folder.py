"""Save a fitted quantifier as a folder and load it again: nothing is pickled, and loading runs no code of the folder.

==================  ==================================================================================================
config.json         versions, checksums, and the estimator as a tree of plain values (see `quanet.persist.state`)
arrays.safetensors  its numeric arrays
part-N.skops        its scikit-learn parts
README.md           the model card
==================  ==================================================================================================
"""

import hashlib
import json
import math
import os
import platform
import warnings
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import safetensors.numpy
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from quanet.errors import InvalidModel, InvalidSetting, QuanetError, QuanetWarning
from quanet.persist.card import model_card
from quanet.persist.place import ARRAYS, CARD, CONFIG, FILE, free_place, read_config, replacing_folder, write_new
from quanet.persist.state import Reader, Writer, named_classes
from quanet.persist.trust import QUANET, Trust, known, untrusted_in

FORMAT = 1


def save(
    quantifier: Any,
    folder: str | os.PathLike[str],
    *,
    data: str = "",
    results: Mapping[str, float] | None = None,
    notes: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Save a fitted quantifier, or any fitted estimator, with its model card.

    The folder appears when all is written. One that holds a model already is replaced as a whole, and stays as it was
    if anything goes wrong; one that holds anything else is refused.

    Parameters
    ----------
    quantifier : fitted.
    folder : where; folders above it are made.
    data : what it has learnt from, for the model card.
    results : held-out errors for the model card, by their names, such as ``{"AE": results.error("ae").mean()}``.
    notes : more for the model card, in Markdown.
    facts : what `facts_of` gives back, such as the columns it has learnt from: names, numbers, lists and mappings.

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
        raise InvalidSetting(f"save takes a fitted quantifier; got {quantifier!r}, which is no estimator.")
    check_is_fitted(quantifier)
    target = free_place(folder)
    writer = Writer()
    model = writer.write(quantifier)
    about = {
        "quanet_format": FORMAT,
        "quanet": QUANET.__version__,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "data": data,
        "results": _checked_results(results or {}),
        "notes": notes,
        "facts": _checked_facts(facts or {}),
    }
    files = {f"part-{number}.skops": content for number, content in enumerate(writer.parts)}
    if writer.arrays:
        files[ARRAYS] = safetensors.numpy.save(writer.arrays)
    config = about | {"files": {name: _digest(content) for name, content in files.items()}, "model": model}
    config["sha256"] = _digest(_canonical(config))
    card = model_card(quantifier, about, _untrusted(model, files))
    with replacing_folder(target) as new:
        for name, content in files.items():
            write_new(new / name, content)
        write_new(new / CARD, card.encode(errors="replace"))
        write_new(new / CONFIG, json.dumps(config, indent=1).encode())


def load(folder: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> Any:
    """Load what `save` has written, after checking that it is whole and holds known types only.

    Parameters
    ----------
    folder : the model's.
    trusted : types that are neither quanet's nor scikit-learn's but may be loaded, as classes or by their full names.
        Their code runs, so name those whose code you know.
    """
    config, files = read_folder(Path(folder))
    trust = Trust(trusted)
    unknown = set(_untrusted(config["model"], files)) - trust.names
    if unknown:
        raise InvalidModel(
            f"{folder} holds types that quanet does not know: {', '.join(sorted(unknown))}. If you know their code and "
            f"trust it, load with trusted={sorted(unknown)}."
        )
    try:
        arrays = safetensors.numpy.load(files[ARRAYS]) if ARRAYS in files else {}
        loaded = Reader(arrays, files, trust).read(config["model"])
    except QuanetError as error:
        raise InvalidModel(f"{folder} cannot be loaded: {error}") from error
    except Exception as error:
        raise InvalidModel(f"{folder} cannot be loaded, it is damaged: {error!r}. Save it again.") from error
    if not isinstance(loaded, BaseEstimator):
        raise InvalidModel(f"{folder} holds {type(loaded).__name__}, which is no estimator.")
    return loaded


def facts_of(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What was saved with a model: facts, and "quanet", "saved", "versions", "data", "results", "notes".

    Nothing is loaded but the folder's configuration, and it is checked to be as it was saved.
    """
    config = _checked_config(Path(folder))
    about = {name: config.get(name, "") for name in ("quanet", "saved", "versions", "data", "results", "notes")}
    return about | dict(config.get("facts", {}))


def untrusted_types(folder: str | os.PathLike[str]) -> list[str]:
    """Full names of the types that `load` would have to be told to trust."""
    config, files = read_folder(Path(folder))
    return _untrusted(config["model"], files)


def _untrusted(model: Any, files: Mapping[str, bytes]) -> list[str]:
    found = {name for name in named_classes(model) if known(name) is None}
    for name, content in files.items():
        if name != ARRAYS:
            try:
                found.update(untrusted_in(content))
            except Exception as error:
                raise InvalidModel(f"{name} is no skops archive that can be read: {error!r}. Save it again.") from error
    return sorted(found)


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The checked configuration of a model folder, and the bytes of its files."""
    config = _checked_config(folder)
    _check_versions(folder, config)
    return config, {name: _read_file(folder, name, digest) for name, digest in config["files"].items()}


def _checked_config(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    _check_format(folder, config)
    stated = config.pop("sha256", None)
    try:
        intact = stated == _digest(_canonical(config))
    except ValueError:  # NaN, which save does not write
        intact = False
    shape = {"files": dict, "model": dict, "versions": dict}
    if not intact or any(not isinstance(config.get(key), kind) for key, kind in shape.items()):
        raise InvalidModel(f"{folder / CONFIG} has been edited or damaged since it was saved. Save the model again.")
    return config


def _check_format(folder: Path, config: dict[str, Any]) -> None:
    found = config["quanet_format"]
    if type(found) is not int or found < 1:
        raise InvalidModel(f"{folder} states the format {found!r}, which there is not. Save the model again.")
    if found > FORMAT:
        raise InvalidModel(
            f"{folder} is in format {found}, written by quanet {config.get('quanet')}; quanet {QUANET.__version__} "
            f"reads formats up to {FORMAT}. Upgrade quanet."
        )


def _check_versions(folder: Path, config: dict[str, Any]) -> None:
    saved, here = str(config["versions"].get("scikit-learn")), _versions()["scikit-learn"]
    if saved.split(".")[:2] != here.split(".")[:2]:
        warnings.warn(
            f"{folder} was saved with scikit-learn {saved}; this is {here}, which may give other estimates. "
            "Install that version, or fit and save again.",
            QuanetWarning,
            stacklevel=4,
        )


def _read_file(folder: Path, name: str, digest: str) -> bytes:
    if not FILE.fullmatch(name):
        raise InvalidModel(f"{folder / CONFIG} names the file {name!r}, which is none of a model's.")
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise InvalidModel(f"{folder} lacks {name}: {error.strerror}. Copy the whole folder.") from error
    if _digest(content) != digest:
        raise InvalidModel(f"{folder / name} has been changed or cut off since it was saved. Copy or save it again.")
    return content


def _checked_results(results: Mapping[str, float]) -> dict[str, float]:
    found = {str(name): float(value) for name, value in results.items()}
    for name, value in found.items():
        if not math.isfinite(value):
            raise InvalidSetting(f"results has {name} = {value}; errors are finite numbers. Leave it out.")
    return found


def _checked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(dict(facts), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise InvalidSetting(f"facts are names, numbers, lists and mappings of them: {error}.") from error


def _versions() -> dict[str, str]:
    libraries = ("numpy", "scipy", "scikit-learn", "skops", "safetensors")
    return {"python": platform.python_version()} | {name: version(name) for name in libraries}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(config: dict[str, Any]) -> bytes:
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
