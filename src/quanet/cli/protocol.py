"""How bags are drawn, as options that `evaluate` and `compare` share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from quanet.cli.options import HOW

if TYPE_CHECKING:
    from quanet.answers.drawing import Drawing
    from quanet.answers.shares import Key

ProtocolName = Annotated[
    str,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="How bags are drawn: app, upp, npp, dirichlet[:ALPHA], or by:COLUMN[:PERIOD] for the file's own groups.",
        rich_help_panel=HOW,
    ),
]
BagSize = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=10_000_000,
        help="Instances in a bag; by default 500, fewer if the file is small.",
        rich_help_panel=HOW,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1_000_000,
        help="Bags of every prevalence (app), or of all; by default 2,100 in all.",
        rich_help_panel=HOW,
    ),
]


def keys_of(texts: Sequence[str]) -> "list[Key]":
    """Columns to group by, as they are written; anything else is a wrong call."""
    from quanet.answers.groups import parse_key
    from quanet.errors import InvalidSetting

    try:
        return [parse_key(text) for text in texts]
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--by") from None


def drawing_of(protocol: str, bag_size: int | None, repeats: int | None) -> "Drawing":
    """What is asked for; anything else is a wrong call."""
    from quanet.answers.drawing import Drawing
    from quanet.errors import InvalidSetting

    try:
        return Drawing.parse(protocol, bag_size=bag_size, repeats=repeats)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--protocol") from None


def check_metric(metric: str) -> str:
    """The short name of a metric; anything else is a wrong call."""
    from quanet.errors import InvalidSetting
    from quanet.metrics import find_metric

    try:
        find_metric(metric.lower())
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--metric") from None
    return metric.lower()
