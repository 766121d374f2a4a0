"""A saved model as a command needs it: the quantifier, what its instances are, and what is known of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quanet.base import Quantifier
from quanet.diagnostics.findings import Finding
from quanet.errors import InvalidModel
from quanet.persist.folder import load


@dataclass(frozen=True, slots=True, eq=False)
class OpenModel:
    """A loaded model.

    Attributes
    ----------
    quantifier : fitted.
    text, label : columns that it has learnt from; None where it does not say.
    numbers : columns of numbers that it has learnt from; None for texts.
    facts : for the reader.
    """

    quantifier: Quantifier
    text: str | None = None
    label: str | None = None
    numbers: tuple[str, ...] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def words(self, X: Any) -> list[Finding]:
        """What the words of texts say of how well the model knows them."""
        return []


def open_model(folder: Path) -> OpenModel:
    """Load a quantifier."""
    loaded = load(folder)
    if not isinstance(loaded, Quantifier):
        raise InvalidModel(f"{folder} holds a {type(loaded).__name__}, which is no quantifier. Give a model's folder.")
    return OpenModel(loaded, facts={"folder": str(folder), "method": type(loaded).__name__})
