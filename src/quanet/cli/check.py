"""`quanet check`: check a table before `quanet fit`."""

from quanet.cli.console import command_settings, progress, warnings_as_lines, write_answer, write_report
from quanet.cli.options import (
    AnswerFormat,
    By,
    DateFormat,
    Delimiter,
    Encoding,
    Files,
    Force,
    Label,
    Output,
    Report,
    Text,
    check_outputs,
    choose_format,
    parse_keys,
)


def check(
    files: Files,
    text: Text = None,
    label: Label = None,
    by: By = None,
    date_format: DateFormat = None,
    encoding: Encoding = "auto",
    delimiter: Delimiter = "auto",
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

    keys = parse_keys(by or [])
    form = choose_format(form, output)
    check_outputs(output, report=report, force=force)
    with warnings_as_lines():
        source = TableSource(files, encoding=encoding, delimiter=delimiter)
        with progress(f"Checking {source.name}", source.size) as update:
            source.follow = update
            found = check_table(source, text=text, label=label, keys=keys, form=date_format)
    summary = summarize_check(found, settings=command_settings())
    write_report(summary, report)
    write_answer(summary, form, output)
