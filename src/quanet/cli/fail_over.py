"""The options --fail-over and --fail-bound: an exit code for scripts when a share is over a bound."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer
from rich.markup import escape

from quanet.cli.console import note, one_line, problems
from quanet.data.settings import METHOD
from quanet.wording import level_text, percent, with_share

EXIT_CODE = 3
NAMED = 3  # groups named in the message


class Bound(StrEnum):
    """Which end of an interval must not be over the bound."""

    UPPER = "upper"
    LOWER = "lower"
    ESTIMATE = "estimate"


FailOver = Annotated[
    float | None,
    typer.Option(
        "--fail-over",
        metavar="SHARE",
        min=0,
        max=1,
        help="Exit with code 3 if the share of the class shown may be over this bound, such as 0.05; see --fail-bound.",
        rich_help_panel=METHOD,
    ),
]
FailBound = Annotated[
    Bound,
    typer.Option(
        "--fail-bound",
        help="What is compared with --fail-over: the upper end of the interval (exit 0 means: the share is shown to be "
        "within the bound), the lower end (exit 3 means: it is shown to be over), or the estimate.",
        rich_help_panel=METHOD,
    ),
]
MEANING = {
    Bound.UPPER: "may be over",
    Bound.LOWER: "is over",
    Bound.ESTIMATE: "is estimated over",
}


def check_bound(
    label: str, shares: Iterable[tuple[str, float, float, float]], bound: float | None, which: Bound
) -> None:
    """Exit with code 3, after a line that names what is over the bound; call it when the answer is written.

    Parameters
    ----------
    label : the class.
    shares : name, estimate, lower and upper end of each interval, such as those of all groups.
    bound : the value of --fail-over; None does nothing.
    which : the value of --fail-bound.
    """
    if bound is None:
        return
    place = [Bound.ESTIMATE, Bound.LOWER, Bound.UPPER].index(which)
    ends = [(name, float(interval[place])) for name, *interval in shares]
    over = sorted([one for one in ends if one[1] > bound], key=lambda one: -one[1])
    asked = level_text(bound)
    end = "estimate" if which is Bound.ESTIMATE else f"{which.value} end"
    if not over:
        note(f"{label}: not over {asked} ({end} of every interval is within the bound).")
        return
    shown = ", ".join(with_share(name, percent(value)) for name, value in over[:NAMED])
    more = f" and {len(over) - NAMED:,} more" if len(over) > NAMED else ""
    message = f"Failed: {label} {MEANING[which]} {asked} ({end}: {shown}{more})."
    problems.print(escape(one_line(message)), highlight=False, soft_wrap=True)
    raise typer.Exit(EXIT_CODE)
