"""Options of commands: derived from settings classes, or shared by several commands: files, engines, the output.

`command` makes a command of a function: a parameter that is a settings class becomes an option for each of its fields.

--names and --class say how classes are shown, and which one comes first; --engine and --workers, which processes read
the files.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from quanet.cli.console import console
from quanet.data.settings import COLUMNS, METHOD, READING, Naming, Settings, flag_of, settings_classes
from quanet.errors import InvalidSetting

if TYPE_CHECKING:
    from quanet.corpus.reading import EngineChoice
    from quanet.data.columns import ClassNames
    from quanet.data.periods import Key

OUTPUT = "Output"


class OutputFormat(StrEnum):
    """How an answer is written (see `quanet.report.render.FORMATS`)."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    xlsx = "xlsx"
    md = "md"
    html = "html"
    latex = "latex"


ENDINGS = {
    ".txt": OutputFormat.table,
    ".csv": OutputFormat.csv,
    ".json": OutputFormat.json,
    ".parquet": OutputFormat.parquet,
    ".xlsx": OutputFormat.xlsx,
    ".md": OutputFormat.md,
    ".html": OutputFormat.html,
    ".tex": OutputFormat.latex,
}


ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model folder written by `quanet fit`.", show_default=False)
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="CSV, TSV, JSON, Parquet or Excel files, SQLite or DuckDB databases; FILE#NAME for a sheet or table, "
        "'FILE#select ...' for a query; an address such as s3://bucket/new.csv; a quoted pattern; or - for standard "
        "input.",
        show_default=False,
    ),
]
NormalizeLabels = Annotated[
    bool,
    typer.Option(
        "--normalize-labels",
        help="Merge labels that differ only in case, spaces, hyphens or Unicode form.",
        rich_help_panel=COLUMNS,
    ),
]


class Target(StrEnum):
    """What a difference is about (see `quanet.difference`)."""

    source = "source"
    bag = "bag"


ComparisonTarget = Annotated[
    Target,
    typer.Option(
        help="source: do the sources of the data differ by more than chance? bag: do exactly these rows differ?",
        rich_help_panel=METHOD,
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.", rich_help_panel=OUTPUT)]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report: .html, .md or .json.", rich_help_panel=OUTPUT),
]
SaveState = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Save what was read as a state (.arrow), so that it need not be read again.",
        rich_help_panel=OUTPUT,
    ),
]
AnswerFormat = Annotated[
    OutputFormat | None,
    typer.Option(
        "--format",
        help="Output format. [dim]default: by the ending of --output; else a table on a terminal, JSON in a pipe[/]",
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to a file instead of standard output.", rich_help_panel=OUTPUT
    ),
]


def choose_format(form: OutputFormat | None, output: Path | None) -> OutputFormat:
    """The format given, or the one of the file's ending; without a file, a table on a terminal, JSON in a pipe."""
    if form is None and output is None:
        form = OutputFormat.table if console.is_terminal else OutputFormat.json
    elif form is None and output is not None:
        form = ENDINGS.get(output.suffix.lower())
    if form is None:
        raise typer.BadParameter(
            f"{output} does not end in any of {', '.join(ENDINGS)}. Choose the format with --format.",
            param_hint="--output",
        )
    if form in {OutputFormat.parquet, OutputFormat.xlsx} and output is None and console.is_terminal:
        raise typer.BadParameter(f"{form.value} is binary. Write it to a file with --output.", param_hint="--format")
    if form is OutputFormat.xlsx:
        from quanet.data.workbooks import check_excel

        check_excel()
    if form is OutputFormat.html:
        from quanet.report.render import check_page

        check_page()
    return form


def check_outputs(*paths: Path | None, report: Path | None = None, plot: Path | None = None, force: bool) -> None:
    """Check before any work that all files can be written, and that reports and plots can be made."""
    for path in (*paths, plot, report):
        if path is not None:
            _check_new(path, force=force)
    if plot is not None:
        from quanet.report.charts import check_suffix

        check_suffix(plot)
    if report is not None:
        from quanet.report.render import check_report

        check_report(report)


def _check_new(path: Path, *, force: bool) -> None:
    from quanet.files import check_writable

    if path.is_dir():
        raise InvalidSetting(f"{path} is a folder. Give the name of a file.")
    if path.exists() and not force:
        raise InvalidSetting(f"{path} already exists. Choose another name, or overwrite it with --force.")
    if not path.parent.is_dir():
        raise InvalidSetting(f"Folder {path.parent} does not exist, so {path.name} cannot be written. Create it first.")
    check_writable(path)
    if path.suffix.lower() == ".xlsx":
        from quanet.data.workbooks import check_excel

        check_excel()


def check_state_file(path: Path | None, option: str = "--save-state") -> None:
    """Check that a file for a state ends in .arrow; else a usage error."""
    if path is not None and path.suffix.lower() != ".arrow":
        raise typer.BadParameter(f"{path} does not end in .arrow.", param_hint=option)


def parse_one_key(text: str, option: str) -> "Key":
    """A column to group by, as given with an option; anything else is a usage error."""
    from quanet.data.periods import parse_key

    try:
        return parse_key(text)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def check_class(naming: Naming, names: "ClassNames") -> str | None:
    """The class given with --class, by its name or its label, as answers show it; else a usage error."""
    try:
        return names.find(naming.show)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--class") from None


def name_classes(classes: Any, given: Mapping[str, str], saved: Mapping[str, str] | None = None) -> "ClassNames":
    """Names of these classes, see `ClassNames.of`; an unknown label is a usage error."""
    from quanet.data.columns import ClassNames

    try:
        return ClassNames.of(classes, given, saved)
    except InvalidSetting as error:
        raise typer.BadParameter(str(error), param_hint="--names") from None


class EngineName(StrEnum):
    """Engines (see `quanet.corpus`)."""

    local = "local"
    ray = "ray"
    spark = "spark"


Engine = Annotated[
    EngineName,
    typer.Option(
        help="Where files are read: local processes, the Ray cluster at RAY_ADDRESS, or the Spark cluster at MASTER or "
        "SPARK_REMOTE. The result is the same.",
        rich_help_panel=READING,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of processes, each on one core; default: one per core, for files that are not small.",
        rich_help_panel=READING,
    ),
]


def choose_engine(model: Path, engine: EngineName, workers: int | None) -> "EngineChoice":
    """The engine given with --engine and --workers. An engine that is not installed raises an error now."""
    from quanet.corpus.reading import EngineChoice

    return EngineChoice(model, engine.value, workers).check()


def command(verb: Callable[..., None]) -> Callable[..., None]:
    """A function for typer: fields of settings classes are options; the verb gets settings objects.

    A value that is not allowed is a usage error that names its option.
    """
    hints = get_type_hints(verb, include_extras=True)
    kinds = settings_classes(verb)
    parameters = []
    for name, parameter in inspect.signature(verb).parameters.items():
        options = map(_option, fields(kinds[name])) if name in kinds else [parameter.replace(annotation=hints[name])]
        parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]

    @wraps(verb)
    def run(**given: Any) -> None:
        settings = {name: settings_of(kind, given) for name, kind in kinds.items()}
        verb(**given, **settings)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__
    return run


def settings_of(kind: type[Settings], given: dict[str, Any]) -> Settings:
    """The settings with the values that were given, which are taken out; an invalid one is a usage error."""
    own = {one.name: one for one in fields(kind)}
    values = {name: given.pop(name) for name in own}
    values |= {name: not value for name, value in values.items() if _is_off(own[name])}
    values |= {name: tuple(value or ()) for name, value in values.items() if _is_several(own[name])}
    try:
        return kind(**values)
    except InvalidSetting as error:
        flag = flag_of(own[error.setting]) if error.setting in own else None
        raise typer.BadParameter(str(error), param_hint=flag) from None


def _option(one: Field[Any]) -> inspect.Parameter:
    """A field of a settings class as a parameter for typer."""
    facts, flag = one.metadata, flag_of(one)
    kind, default, names = one.type, one.default, [flag] if facts["flag"] or isinstance(one.default, bool) else []
    if _is_off(one):
        default = False
    if _is_several(one):
        kind, default = list[str] | None, None
    low, high = facts["bounds"]
    option = typer.Option(
        *names,
        metavar=facts["metavar"],
        help=facts["help"],
        rich_help_panel=facts["panel"],
        min=low,
        max=high,
        show_default=facts["show_default"],
    )
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _is_off(one: Field[Any]) -> bool:
    """Whether the option switches something off that is on."""
    return flag_of(one).startswith("--no-")


def _is_several(one: Field[Any]) -> bool:
    return isinstance(one.default, tuple)
