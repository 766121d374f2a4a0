"""`quanet label plan`: choose the rows worth labelling."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quanet.cli.console import command_settings, progress, warnings_as_lines, write_answer, write_table
from quanet.cli.model_folder import load_model, read_grouped
from quanet.cli.options import OUTPUT, AnswerFormat, Files, Force, ModelFolder, check_outputs, choose_format, command
from quanet.data.settings import COLUMNS, METHOD, Level, Naming, Reading, Seed, split_names

if TYPE_CHECKING:
    from quanet.data.streams import TableSource

app = typer.Typer(name="label", no_args_is_help=True, help="Choose rows to label, for `quanet refine`.")
POINTS = 10.0  # width if neither a width nor a number is given


class Design(StrEnum):
    """How rows are drawn."""

    stratified = "stratified"
    random = "random"


@app.callback()
def label() -> None:
    """Choose rows to label, for `quanet refine`."""


def plan(
    model: ModelFolder,
    files: Files,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The sheet to fill in: .csv or .xlsx.", rich_help_panel=OUTPUT
        ),
    ],
    reading: Reading,
    level: Level,
    seed: Seed,
    naming: Naming,
    width: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Wanted width of the widest interval, from end to end. [dim]default: 10[/]",
            rich_help_panel=METHOD,
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(min=10, metavar="N", help="Number of labels, instead of a width.", rich_help_panel=METHOD),
    ] = None,
    show_columns: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="COLUMN", help="Other columns to show in the sheet. Repeatable.", rich_help_panel=COLUMNS
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Name of the column to fill in; default: as in training.", rich_help_panel=COLUMNS
        ),
    ] = None,
    design: Annotated[
        Design,
        typer.Option(help="stratified: more labels where the model is uncertain; or random.", rich_help_panel=METHOD),
    ] = Design.stratified,
    form: AnswerFormat = None,
    force: Force = False,
) -> None:
    """Choose the rows of FILES that are worth labelling, and say what interval to expect.

    Fill in the label column of the sheet in a spreadsheet, from the first row on. Then run `quanet refine`. With --by,
    every group gets enough labels for the width. With --weight, rows with much of the weight are chosen more often.

    [bold]Examples[/]

    quanet label plan model new.csv --width 3 -o to-label.csv

    quanet label plan model new.csv --number 30 --by date:month --id review_id -o to-label.csv
    """
    from quanet.corpus.model_inputs import find_inputs
    from quanet.data.streams import TableSource
    from quanet.report.label import summarize_plan
    from quanet.workflows.label import plan_source

    share = _check_width(width, number)
    check_sheet(output)
    check_outputs(output, force=force)
    with warnings_as_lines():
        quantifier, facts = load_model(model, naming)
        source = TableSource(files, **reading.table_options)
        check_files(source)
        shown = split_names(show_columns)
        others = [*(key.column for key in reading.keys), *([reading.weight] if reading.weight else [])]
        source.check([*shown, *others])
        inputs = find_inputs(source, facts, reading.text, reading.features, exclude=others)
        instances = read_grouped(quantifier, source, inputs, reading)
        with progress("Planning"):
            planned = plan_source(
                quantifier,
                instances,
                source,
                inputs,
                label=label or facts.get("label") or "label",
                width=share,
                number=number,
                keys=reading.keys,
                shown=shown,
                level=level.level,
                design=design.value,
                seed=seed.seed,
            )
    write_table(planned.sheet, output, "To label")
    summary = summarize_plan(planned, sheet=str(output), model=str(model), settings=command_settings())
    write_answer(summary, choose_format(form, None), None)


app.command()(command(plan))


def _check_width(width: float | None, number: int | None) -> float | None:
    """The wanted width as a share; None if a number of labels is given."""
    if width is not None and number is not None:
        raise typer.BadParameter("Give either --width or --number.", param_hint="--width")
    if width is not None and not 0 < width < 100:
        raise typer.BadParameter(f"{width:g} is not between 0 and 100 points, such as 5.", param_hint="--width")
    return None if number is not None else (POINTS if width is None else width) / 100


def check_sheet(path: Path) -> None:
    """Check that a sheet can be written in the format of its ending; else a usage error."""
    if path.suffix.lower() not in {".csv", ".xlsx"}:
        raise typer.BadParameter(f"{path} does not end in .csv or .xlsx.", param_hint="--output")


def check_files(source: "TableSource") -> None:
    """Raise if the files cannot be read twice."""
    from quanet.data.file_names import STDIN
    from quanet.errors import InvalidSetting

    if STDIN in source.files:
        raise InvalidSetting("Labels belong to rows of a file. Save standard input to a file first.")
