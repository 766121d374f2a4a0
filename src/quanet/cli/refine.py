"""`quanet refine`: shares refined with labels of some rows."""

from typing import Annotated

import typer

from quanet.cli.console import command_settings, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.label import check_files
from quanet.cli.model_folder import load_model, read_files
from quanet.cli.options import (
    COLUMNS,
    HOW,
    AnswerFormat,
    By,
    ComparisonTarget,
    DateFormat,
    Delimiter,
    Encoding,
    Files,
    Force,
    Level,
    ModelFolder,
    Names,
    NormalizeLabels,
    Output,
    Report,
    Seed,
    ShowClass,
    Target,
    Text,
    Weight,
    check_class,
    check_level,
    check_outputs,
    choose_format,
    parse_keys,
)


def refine(
    model: ModelFolder,
    files: Files,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Sheet of `quanet label plan` with labels filled in. [dim]default: the label column of FILES[/]",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of labels; default: as in training.", rich_help_panel=COLUMNS),
    ] = None,
    by: By = None,
    text: Text = None,
    normalize_labels: NormalizeLabels = False,
    weight: Weight = None,
    at_random: Annotated[
        bool,
        typer.Option(
            "--random",
            help="The labelled rows are a random part of the rows, or of the plan if rows of it were skipped.",
            rich_help_panel=HOW,
        ),
    ] = False,
    date_format: DateFormat = None,
    encoding: Encoding = "auto",
    delimiter: Delimiter = "auto",
    level: Level = 0.95,
    seed: Seed = 0,
    target: ComparisonTarget = Target.source,
    show: ShowClass = None,
    names: Names = None,
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Refine shares with labels of some rows: correct whatever has changed since training, with intervals.

    The labels are those of a plan (`quanet label plan`), or of a random part of the rows. Labels of rows that somebody
    has picked are not accepted. A group with at least 10 labels is corrected by its own, the others by all labels.
    Refined shares are of exactly these rows; differences between groups are of their sources, unless --target bag.

    [bold]Examples[/]

    quanet refine model new.csv --labels to-label.csv --by date:month --report refined.html

    quanet refine model partly-labelled.csv --label sentiment --random
    """
    from quanet.corpus.group_files import open_files
    from quanet.corpus.model_inputs import describe_model
    from quanet.data.streams import TableSource
    from quanet.errors import InvalidSetting
    from quanet.report.refine import summarize_refinement
    from quanet.workflows.label_sheet import read_labels
    from quanet.workflows.refine import refine_shares

    check_level(level)
    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    keys = parse_keys(by or [])
    with warnings_as_lines():
        quantifier, facts = load_model(model, names)
        show = check_class(show, facts["class_names"])
        column = label or facts.get("label") or "label"
        if labels is None and not at_random:
            raise InvalidSetting(
                "Labels of rows that somebody has picked would mislead. Choose the rows with quanet label plan and "
                "pass the sheet with --labels; or add --random if the labelled rows were drawn at random."
            )
        data = open_files(
            quantifier,
            facts,
            files,
            keys,
            text=text,
            weight=weight,
            date_format=date_format,
            encoding=encoding,
            delimiter=delimiter,
        )
        source, reader = data.tables("quanet refine"), data.reader
        check_files(source)
        reading = read_files(data)
        sheet = None if labels is None else TableSource([labels], encoding=encoding)
        given = read_labels(
            sheet, source, reader, column, facts["class_names"], at_random=at_random, normalize=normalize_labels
        )
        with progress("Refining") as update:
            refined = refine_shares(
                reader,
                reading,
                given,
                keys=keys,
                level=level,
                seed=seed,
                source=source.name,
                labels_source=source.name if sheet is None else sheet.name,
                target=target.value,
                model=describe_model(model, facts, quantifier),
                progress=lambda what: update(None, f"Refining: {what}"),
            )
    summary = summarize_refinement(refined, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)
