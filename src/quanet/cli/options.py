"""Options that several commands share, so that they are spelt, explained and checked alike."""

from pathlib import Path
from typing import Annotated

import typer

COLUMNS, OUTPUT, HOW = "Columns", "Output", "How"
LARGEST_SEED = 2**32 - 1  # that all libraries take


def _check_date_format(form: str | None) -> str | None:
    from quanet.answers.groups import check_date_format
    from quanet.errors import InvalidSetting

    try:
        return None if form is None else check_date_format(form)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error)) from None


def _check_encoding(encoding: str) -> str:
    from quanet.data.rows import check_encoding
    from quanet.errors import InvalidSetting

    try:
        return check_encoding(encoding)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error)) from None


ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Folder that `quanet fit` has written.", show_default=False)
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="CSV, TSV, JSON lines or Parquet, also .gz; several, a pattern in quotes, or - for standard input.",
        show_default=False,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of texts; guessed if only one can be it.", rich_help_panel=COLUMNS),
]
Label = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of labels; guessed if only one can be it.", rich_help_panel=COLUMNS),
]
NormalizeLabels = Annotated[
    bool,
    typer.Option(
        "--normalize-labels",
        help="Take labels that differ in case, spaces, hyphens or Unicode form for the same.",
        rich_help_panel=COLUMNS,
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN[:PERIOD]",
        help="Group by a column, or by the day, week, month, quarter or year of a date; may be given again.",
        rich_help_panel=COLUMNS,
    ),
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        callback=_check_date_format,
        help="How dates are written if not as 2024-05-31, such as %d/%m/%Y.",
        rich_help_panel=COLUMNS,
    ),
]
Encoding = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        callback=_check_encoding,
        help="Of the files: utf-8, utf-16, latin-1, cp1252, ...",
        rich_help_panel=COLUMNS,
    ),
]
Level = Annotated[float, typer.Option(help="How sure intervals are, between 0 and 1.", rich_help_panel=HOW)]
Seed = Annotated[
    int, typer.Option(min=0, max=LARGEST_SEED, help="The same seed gives the same result.", rich_help_panel=HOW)
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace what is there.", rich_help_panel=OUTPUT)]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report: .html, .md or .json.", rich_help_panel=OUTPUT),
]


def check_new(path: Path | None, *, force: bool) -> None:
    """Raise a `QuanetError` if a file is there that must not be replaced, or if it has no folder; before any work."""
    from quanet.errors import InvalidSetting

    if path is None:
        return
    if path.is_dir():
        raise InvalidSetting(f"{path} is a folder. Give the name of a file.")
    if path.exists() and not force:
        raise InvalidSetting(f"{path} is there already. Give another name, or --force to replace it.")
    if not path.parent.is_dir():
        raise InvalidSetting(f"there is no folder {path.parent} to write {path.name} into.")


def check_level(level: float) -> float:
    """A level of confidence; anything else is a wrong call."""
    if not 0 < level < 1:
        raise typer.BadParameter(f"{level} is no share between 0 and 1, such as 0.95.", param_hint="--level")
    return level
