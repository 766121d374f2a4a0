"""`quanet refine`: shares refined with labels of some rows."""

from typing import Annotated

import typer

from quanet.cli.console import command_settings, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.label import check_files
from quanet.cli.model_folder import load_model, read_files
from quanet.cli.options import (
    AnswerFormat,
    ComparisonTarget,
    Files,
    Force,
    ModelFolder,
    NormalizeLabels,
    Output,
    Report,
    Target,
    check_class,
    check_outputs,
    choose_format,
)
from quanet.data.settings import COLUMNS, METHOD, Level, Naming, Reading, Seed


def refine(
    model: ModelFolder,
    files: Files,
    reading: Reading,
    level: Level,
    seed: Seed,
    naming: Naming,
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
    normalize_labels: NormalizeLabels = False,
    at_random: Annotated[
        bool,
        typer.Option(
            "--random",
            help="The labelled rows are a random part of the rows, or of the plan if rows of it were skipped.",
            rich_help_panel=METHOD,
        ),
    ] = False,
    target: ComparisonTarget = Target.source,
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

    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    with warnings_as_lines():
        quantifier, facts = load_model(model, naming)
        show = check_class(naming, facts["class_names"])
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
            reading,
        )
        source, reader = data.tables("quanet refine"), data.reader
        check_files(source)
        instances = read_files(data)
        sheet = None if labels is None else TableSource([labels], encoding=reading.encoding)
        given = read_labels(
            sheet, source, reader, column, facts["class_names"], at_random=at_random, normalize=normalize_labels
        )
        with progress("Refining") as update:
            refined = refine_shares(
                reader,
                instances,
                given,
                keys=reading.keys,
                level=level.level,
                seed=seed.seed,
                source=source.name,
                labels_source=source.name if sheet is None else sheet.name,
                target=target.value,
                model=describe_model(model, facts, quantifier),
                progress=lambda what: update(None, f"Refining: {what}"),
            )
    summary = summarize_refinement(refined, settings=command_settings(), focus=show)
    write_report(summary, report)
    write_answer(summary, form, output)
