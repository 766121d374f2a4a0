"""A model and what it reads: load its folder, send its files to workers, and find the columns of a table for it."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from quanet.base import Quantifier
from quanet.data.columns import ClassNames, UnclearColumn, check_columns, find_text
from quanet.data.instances import InputColumns
from quanet.errors import Detected, InvalidModel
from quanet.persist.load import facts_of, load, model_digest
from quanet.persist.save import save

_loaded: dict[str, Quantifier] = {}  # the model of this process, by its digest


def load_model(folder: Path, names: Mapping[str, str] | None = None) -> tuple[Quantifier, dict[str, Any]]:
    """The quantifier in a model folder, and the facts saved with it.

    Its classes have the names given (`parse_names`), or else those saved by `quanet fit --names`. They are also in the
    facts as "class_names" (`ClassNames`): ``shown`` turns labels of a file into these names, ``find`` checks a class.
    "digest" identifies the model.
    """
    facts = facts_of(folder)
    loaded = quantifier_in(folder)
    facts["digest"] = model_digest(folder)
    facts["class_names"] = ClassNames.of(loaded.classes_, names or {}, facts.get("names"))
    return facts["class_names"].rename(loaded), facts


def quantifier_in(folder: str | Path) -> Quantifier:
    """The quantifier in a model folder; of a search, the one that it has selected."""
    loaded = load(folder)
    hashes = getattr(loaded, "training_hashes_", None)
    if not isinstance(loaded, Quantifier):
        raise InvalidModel(f"{folder} contains a {type(loaded).__name__}, which does not estimate shares.")
    loaded = loaded.chosen()
    if hashes is not None:
        loaded.training_hashes_ = hashes
    return loaded


def describe_model(folder: Path | str, facts: dict[str, Any], quantifier: Quantifier) -> dict[str, Any]:
    """Facts about a model that an answer repeats."""
    known = {"folder": str(folder), "method": type(quantifier).__name__, "saved": facts.get("saved", "")}
    if facts.get("data"):
        known["learnt from"] = facts["data"]
    if facts.get("results"):
        known["held-out errors"] = "; ".join(f"{name}: {value:.4f}" for name, value in facts["results"].items())
    return known


def find_inputs(
    source: Any, facts: dict[str, Any], text: str | None, features: Sequence[str] = (), *, exclude: Sequence[str] = ()
) -> InputColumns:
    """The columns of `choose_inputs`; what was detected is reported as a warning (`Detected`)."""
    inputs, found = choose_inputs(source, facts, text, features, exclude=exclude)
    if found:
        warnings.warn(Detected(found), stacklevel=2)
    return inputs


def choose_inputs(
    source: Any, facts: dict[str, Any], text: str | None, features: Sequence[str] = (), *, exclude: Sequence[str] = ()
) -> tuple[InputColumns, str]:
    """The columns given, or those the model was trained on, or the only text column that is not excluded.

    Returns them with a note on what was detected, "" if nothing was.

    Parameters
    ----------
    source : a table: `columns`, `peek()` and `name` of `TableSource`.
    facts : saved with the model.
    text, features : the text column, or numeric columns, if given.
    exclude : columns that have another meaning.
    """
    names = list(features) or facts.get("features") or []
    if names and text is None:
        check_columns(names, source.columns, source.name)
        return InputColumns(features=tuple(names)), ""
    trained_on = facts.get("text")
    if text is None and trained_on in source.columns:
        return InputColumns(trained_on), ""
    try:
        column = find_text(source, text, besides=[*exclude, facts.get("label", "")])
    except UnclearColumn:
        if trained_on:
            check_columns([trained_on], source.columns, source.name)  # its message is more helpful
        raise
    why = f", since {trained_on!r} is missing" if trained_on else ""
    found = f"{source.name}: text column {column.name!r} (detected{why})" if column.guessed else ""
    return InputColumns(column.name), found


@dataclass(frozen=True, slots=True, eq=False)
class ModelFiles:
    """A model that travels: the files of its folder as bytes, loaded once in every process.

    Attributes
    ----------
    digest : of the model.
    folder : where they are, if every worker can read them there.
    contents : by name, if they travel.
    """

    digest: str
    folder: str = ""
    contents: dict[str, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, model: Any, *, travel: bool = True) -> "ModelFiles":
        """The files of a model folder, or of a fitted quantifier.

        Parameters
        ----------
        model : folder, or quantifier.
        travel : whether workers are on other machines.
        """
        if not isinstance(model, str | Path):
            with TemporaryDirectory(prefix="quanet-") as folder:
                save(model, Path(folder, "model"))
                return cls.of(Path(folder, "model"))
        place = Path(model)
        digest = model_digest(place)
        contents = (
            {file.name: file.read_bytes() for file in sorted(place.iterdir()) if file.is_file()} if travel else {}
        )
        return cls(digest, str(place), contents)

    def keep(self, quantifier: Quantifier) -> None:
        """Use a model that this process has loaded already."""
        _loaded.clear()
        _loaded[self.digest] = quantifier

    def quantifier(self) -> Quantifier:
        """The model, which this process loads once."""
        if self.digest not in _loaded:
            self.keep(self._load())
        return _loaded[self.digest]

    def _load(self) -> Quantifier:
        if not self.contents:
            return quantifier_in(self.folder)
        with TemporaryDirectory(prefix="quanet-") as folder:
            for name, content in self.contents.items():
                Path(folder, name).write_bytes(content)
            return quantifier_in(folder)
