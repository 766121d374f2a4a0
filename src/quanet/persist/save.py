"""What `save` writes: a folder with a model and its card. Nothing is pickled.

==================  ==================================================================================================
config.json         versions, checksums, and the estimator as a tree of plain values (see `quanet.persist.writer`)
arrays.safetensors  its numeric arrays
part-N.skops        its scikit-learn parts
README.md           the model card
==================  ==================================================================================================
"""

import json
import math
import os
import shutil
import textwrap
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from quanet.errors import InvalidModel, InvalidSetting
from quanet.files import check_writable
from quanet.persist.trust import (
    ARRAYS,
    CARD,
    CONFIG,
    FILE,
    FORMAT,
    QUANET,
    canonical_json,
    digest,
    library_versions,
    untrusted_classes,
)
from quanet.persist.writer import Writer

MAX_VALUE_LENGTH = 200  # characters of a parameter's value in the card


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
    from quanet.persist.load import read_config

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
