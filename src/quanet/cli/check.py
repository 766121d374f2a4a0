"""`quanet check`: check a table before `quanet fit`."""

from quanet.cli.console import command_settings, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.options import (
    AnswerFormat,
    Files,
    Force,
    Output,
    Report,
    check_outputs,
    choose_format,
)
from quanet.data.settings import CheckedColumns


def check(
    files: Files,
    columns: CheckedColumns,
    form: AnswerFormat = None,
    output: Output = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Check a table before `fit`: copies, label variants, class sizes, dates, languages, empty cells.

    Each finding states how many rows it concerns, the first of them, and what to do. The exit code is 0 unless the
    table cannot be read.

    [bold]Examples[/]

    quanet check reviews.csv

    quanet check survey.xlsx#March --text answer --label topic --by date:month --report check.html
    """
    from quanet.data.streams import TableSource
    from quanet.report.check import summarize_check
    from quanet.workflows.check import check_table

    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    with warnings_as_lines():
        source = TableSource(files, **columns.table_options)
        with progress(f"Checking {source.name}", source.size) as update:
            source.follow = update
            found = check_table(
                source, text=columns.text, label=columns.label, keys=columns.keys, form=columns.date_format
            )
    summary = summarize_check(found, settings=command_settings())
    write_report(summary, report)
    write_answer(summary, form, output)
