"""Load a model folder, and read what the model needs from a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.cli.class_options import check_names, name_classes
from quanet.cli.console import note, progress
from quanet.cli.options import split_names

if TYPE_CHECKING:
    from quanet.base import Quantifier
    from quanet.data.instances import InputColumns
    from quanet.data.periods import Key
    from quanet.data.streams import TableSource
    from quanet.state.grouped_inputs import GroupedInputs


def load_model(folder: Path, names: Sequence[str] | None = None) -> tuple["Quantifier", dict[str, Any]]:
    """The quantifier in a model folder, and the facts saved with it.

    Its classes have the names given with --names, or else those saved by `quanet fit --names`. They are also in the
    facts as "class_names" (`ClassNames`): ``shown`` turns labels of a file into these names, ``find`` checks --class.
    "digest" identifies the model.
    """
    from quanet.base import Quantifier
    from quanet.errors import InvalidModel
    from quanet.persist.load import facts_of, load, model_digest

    given = check_names(names)
    facts = facts_of(folder)
    loaded = load(folder)
    hashes = getattr(loaded, "training_hashes_", None)
    loaded = getattr(loaded, "quantifier_", loaded)  # the one that a search has selected
    if hashes is not None:
        loaded.training_hashes_ = hashes
    if not isinstance(loaded, Quantifier):
        raise InvalidModel(f"{folder} contains a {type(loaded).__name__}, which does not estimate shares.")
    facts["digest"] = model_digest(folder)
    facts["class_names"] = name_classes(loaded.classes_, given, facts.get("names"))
    return facts["class_names"].rename(loaded), facts


def find_inputs(
    source: "TableSource",
    facts: dict[str, Any],
    text: str | None,
    features: list[str] | None = None,
    *,
    exclude: Sequence[str] = (),
) -> "InputColumns":
    """The columns given, or those the model was trained on, or the only text column that is not excluded."""
    from quanet.workflows.model_inputs import choose_inputs

    inputs, found = choose_inputs(source, facts, text, split_names(features), exclude=exclude)
    if found:
        note(found)
    return inputs


def read_grouped(
    quantifier: "Quantifier",
    source: "TableSource",
    inputs: "InputColumns",
    keys: "Sequence[Key]",
    date_format: str | None,
    *,
    missing: str = "no group",
    weight: str | None = None,
    label: str | None = None,
    named: bool = False,
) -> "GroupedInputs":
    """The rows of a file as the model reads them, by group, with a note on how many there are.

    Parameters
    ----------
    quantifier, source, inputs, keys, date_format : as in `read_source`.
    missing : what the note calls rows without a group. Groups are counted unless they are labels ("no label").
    weight, label : columns of weights, and of labels to count, if wanted.
    named : whether the note begins with the name of the file.
    """
    from quanet.workflows.reading import read_source

    source.check([*inputs.columns, *(key.column for key in keys), *([weight] if weight else [])])
    with progress(f"Reading {source.name}", source.size) as update:
        source.follow = update
        reading = read_source(quantifier, source, inputs, keys=keys, form=date_format, weight=weight, label=label)
    note_rows(reading, source.rows, f"{source.name}: " if named else "", missing=missing)
    return reading


def note_rows(reading: "GroupedInputs", rows: int, name: str = "", *, missing: str = "no group") -> None:
    """Print how many of the rows are used, and why others are not."""
    reasons = {"no group": missing}
    skipped = ", ".join(f"{number:,} skipped ({reasons.get(why, why)})" for why, number in reading.skipped.items())
    groups = f" in {len(reading.groups):,} groups" if reading.groups[0] and missing != "no label" else ""
    note(f"{name}{reading.total:,} of {rows:,} rows{groups}{': ' + skipped if skipped else ''}")
    if reading.without_weight:
        note(f"{reading.without_weight:,} rows have weight 0 in column {reading.weight!r} and do not count.")


def describe_model(folder: Path, facts: dict[str, Any], quantifier: "Quantifier") -> dict[str, Any]:
    """Facts about a model that an answer repeats."""
    known = {"folder": str(folder), "method": type(quantifier).__name__, "saved": facts.get("saved", "")}
    if facts.get("data"):
        known["learnt from"] = facts["data"]
    if facts.get("results"):
        known["held-out errors"] = "; ".join(f"{name}: {value:.4f}" for name, value in facts["results"].items())
    return known
