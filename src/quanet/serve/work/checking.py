"""The job "check": what a file for training contains, before anything is trained."""

from collections.abc import Sequence
from dataclasses import replace

from quanet.data.streams import TableSource
from quanet.files import json_ready
from quanet.report.check import summarize_check
from quanet.serve.store.answers import put_answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.uploads import file
from quanet.serve.work.job_context import Finish, JobContext
from quanet.serve.work.read_options import ReadOptions
from quanet.serve.work.render_answer import stored_forms
from quanet.workflows.check import check_table

EXAMPLES = 5  # rows
LONGEST = 300  # characters of a cell


def _columns_in(options: ReadOptions, columns: Sequence[str]) -> ReadOptions:
    """The options without columns that a file does not have: training files often have no dates."""
    by = tuple(str(key) for key, parsed in zip(options.by, options.keys, strict=True) if parsed.column in columns)
    text, label = (name if name in columns else None for name in (options.text, options.label))
    return replace(options, text=text, label=label, by=by)


def perform(context: JobContext) -> Finish:
    """Check a file, and keep example rows for the page where columns are corrected."""
    row, options = context.project()
    with context.store.read() as connection:
        upload = file(connection, row.id, int(context.job.payload["file"]))
    with context.named([upload]) as paths:
        source = TableSource(paths, **options.table_options)
        follow = context.follow(options)
        source.follow = lambda done: follow(source, done, source.rows)
        there = _columns_in(options, source.columns)
        found = check_table(source, text=there.text, label=there.label, keys=there.keys, form=options.date_format)
        context.check_rows(source.name, source.rows, options)
        command = there.check_command(upload.name)
        summary = summarize_check(found, settings=[("command", command)])
        forms = stored_forms(context.store.blobs, summary)
        first = source.peek().head(EXAMPLES)
        cells = [[None if cell is None else str(cell)[:LONGEST] for cell in cells] for cells in first.to_numpy()]
    data = json_ready(summary.data()) | {"examples": cells, "unclear": list(found.unclear), "file": upload.id}

    def store_result(connection: Connection) -> None:
        put_answer(
            connection,
            row.id,
            "check",
            f"file:{upload.id}",
            request={"file": upload.id},
            sentence=summary.answer,
            command=command,
            forms=forms,
            data=data,
        )

    return store_result
