"""The options --names and --class: how classes are shown, and which one comes first."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from quanet.cli.options import split_names

if TYPE_CHECKING:
    from quanet.data.class_names import ClassNames


def check_class(label: str | None, names: "ClassNames") -> str | None:
    """The class given with --class, by its name or its label, as answers show it; else a usage error."""
    from quanet.errors import InvalidSetting

    try:
        return names.find(label)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--class") from None


def check_names(texts: Sequence[str] | None) -> dict[str, str]:
    """Names of classes given with --names, by label; anything else is a usage error."""
    from quanet.data.class_names import parse_names
    from quanet.errors import InvalidSetting

    try:
        return parse_names(split_names(texts))
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--names") from None


def name_classes(classes: Any, given: Mapping[str, str], saved: Mapping[str, str] | None = None) -> "ClassNames":
    """Names of these classes, see `ClassNames.of`; an unknown label is a usage error."""
    from quanet.data.class_names import ClassNames
    from quanet.errors import InvalidSetting

    try:
        return ClassNames.of(classes, given, saved)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--names") from None
