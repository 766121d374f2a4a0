"""A saved model as commands need it: the quantifier, the columns it reads, and what is known of it."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quanet.cli.console import note

if TYPE_CHECKING:
    from quanet.answers.reading import Inputs
    from quanet.base import Quantifier
    from quanet.data.streams import Source


def open_model(folder: Path) -> tuple["Quantifier", dict[str, Any]]:
    """The quantifier in a folder, and the facts saved with it."""
    from quanet.base import Quantifier
    from quanet.errors import InvalidModel
    from quanet.persist.folder import facts_of, load

    facts = facts_of(folder)
    loaded = load(folder)
    hashes = getattr(loaded, "training_hashes_", None)
    loaded = getattr(loaded, "quantifier_", loaded)  # what a search has chosen
    if hashes is not None:
        loaded.training_hashes_ = hashes
    if not isinstance(loaded, Quantifier):
        raise InvalidModel(f"{folder} holds {type(loaded).__name__}, which estimates no shares.")
    return loaded, facts


def inputs_for(
    source: "Source",
    facts: dict[str, Any],
    text: str | None,
    features: list[str] | None = None,
    *,
    besides: Sequence[str] = (),
) -> "Inputs":
    """The columns that the model has learnt from, or those that are given; a guess is none of those `besides`."""
    from quanet.answers.reading import Inputs
    from quanet.data.columns import UnclearColumn, check_columns, find_text

    given = [name.strip() for one in features or [] for name in one.split(",") if name.strip()]
    names = given or facts.get("features") or []
    if names and text is None:
        check_columns(names, source.columns, source.name)
        return Inputs(features=tuple(names))
    known = facts.get("text")
    if text is None and known in source.columns:
        return Inputs(known)
    try:
        taken = find_text(source, text, besides=[*besides, facts.get("label", "")])
    except UnclearColumn:
        if known:
            check_columns([known], source.columns, source.name)  # whose error is the better one
        raise
    if taken.guessed:
        note(f"{source.name}: text {taken.name!r} (guessed{f', as there is no {known!r}' if known else ''})")
    return Inputs(taken.name)


def about_model(folder: Path, facts: dict[str, Any], quantifier: "Quantifier") -> dict[str, Any]:
    """What a report says of a model."""
    known = {"folder": str(folder), "method": type(quantifier).__name__, "saved": facts.get("saved", "")}
    if facts.get("data"):
        known["learnt from"] = facts["data"]
    if facts.get("results"):
        known["held-out errors"] = "; ".join(f"{name}: {value:.4f}" for name, value in facts["results"].items())
    return known


def settings() -> list[tuple[str, str]]:
    """What gives the same answer again."""
    return [("command", command_line())]


def command_line() -> str:
    """The call as it can be given to a shell again."""
    return shlex.join(["quanet", *sys.argv[1:]])
