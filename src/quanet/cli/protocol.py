"""Options of `evaluate` and `compare`: how bags are drawn, and the metric."""

from typing import TYPE_CHECKING, Annotated

import typer

from quanet.data.settings import METHOD

if TYPE_CHECKING:
    from quanet.workflows.drawing import Drawing

ProtocolName = Annotated[
    str,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="Protocol: app, upp, npp, dirichlet[:ALPHA], or by:COLUMN[:PERIOD] for the file's own groups.",
        rich_help_panel=METHOD,
    ),
]
BagSize = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=10_000_000,
        help="Instances per bag; default 500, fewer if the file is small.",
        rich_help_panel=METHOD,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1_000_000,
        help="Bags per prevalence (app), or in total (others); default: 2,100 bags in total.",
        rich_help_panel=METHOD,
    ),
]


def parse_protocol(protocol: str, bag_size: int | None, repeats: int | None) -> "Drawing":
    """Protocol and sizes as given on the command line; anything else is a usage error."""
    from quanet.errors import InvalidSetting
    from quanet.workflows.drawing import Drawing

    try:
        return Drawing.parse(protocol, bag_size=bag_size, repeats=repeats)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--protocol") from None


def check_metric(metric: str) -> str:
    """The short name of a metric; anything else is a usage error."""
    from quanet.errors import InvalidSetting
    from quanet.metrics import find_metric

    try:
        find_metric(metric.lower())
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--metric") from None
    return metric.lower()
