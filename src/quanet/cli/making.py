"""Which quantifier a call asks for: a method, its settings, a classifier; and what each must not be."""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import typer

from quanet.cli.console import note
from quanet.errors import brief
from quanet.files import parse_toml

if TYPE_CHECKING:
    from quanet.base import Quantifier


def make_quantifier(
    method: str | None, settings: Sequence[str], classifier: str | None, *, seed: int, device: str | None
) -> "Quantifier":
    """The quantifier, unfitted; a wrong name or value is a wrong call."""
    import quanet
    from quanet.base import Quantifier
    from quanet.errors import InvalidPart
    from quanet.experiments.estimators import make, prepare

    if method is None:
        method = "QuaNet" if find_spec("torch") else "EMQ"
        if method == "EMQ":
            note("Method: EMQ, since torch is not installed. For QuaNet: pip install 'quanet[nn]'.")
    part: dict[str, Any] = {"kind": _spelt(method, quanet.__all__, "--method")}
    if classifier is not None:
        part["classifier"] = {"kind": _spelt(classifier, quanet.__all__, "--classifier")}
    part |= dict(_setting(one) for one in settings)
    try:
        made = prepare(make(part), seed=seed, device=device, shared=False)
    except InvalidPart as error:
        raise typer.BadParameter(str(error), param_hint=_blamed(error.word, method, classifier)) from error
    chosen = getattr(made, "classifier", None)
    if classifier is not None and (isinstance(chosen, Quantifier) or not hasattr(chosen, "predict")):
        raise typer.BadParameter(f"{brief(classifier)} is not a classifier.", param_hint="--classifier")
    if not isinstance(made, Quantifier):
        raise typer.BadParameter(
            f"{brief(method)} is not a method that estimates shares; `quanet methods` lists those.",
            param_hint="--method",
        )
    return made


def _spelt(name: str, known: Sequence[str], option: str) -> str:
    """A name as it is written in the code, however it was typed: emq is EMQ."""
    if ":" in name:  # of another package's class
        return name
    first, dot, rest = name.partition(".")
    lowered = {one.lower(): one for one in known}
    if first.lower() not in lowered:
        near = get_close_matches(first.lower(), lowered, n=1)
        hint = f" Did you mean {lowered[near[0]]}?" if near else ""
        raise typer.BadParameter(f"there is no {brief(first)}.{hint} `quanet methods` lists all.", param_hint=option)
    return lowered[first.lower()] + dot + rest


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise typer.BadParameter(f"{brief(text)} is not key=value, such as max_epochs=20.", param_hint="--set")
    try:
        return name.strip(), parse_toml(f"value = {value}")["value"]
    except ValueError:
        return name.strip(), value.strip()  # a word without quotes


def _blamed(word: str, method: str, classifier: str | None) -> str:
    if word.lower() == method.lower():
        return "--method"
    return "--classifier" if classifier and word.lower() == classifier.lower() else "--set"
