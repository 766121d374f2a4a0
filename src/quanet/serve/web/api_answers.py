"""Rows of the store as the API shows them."""

from collections.abc import Sequence
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import Depends, Request

from quanet.serve.store.answers import AnswerRow
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import JobRow
from quanet.serve.store.projects import ProjectRow
from quanet.serve.store.uploads import BatchRow, FileRow
from quanet.serve.web.api_models import AnswerLinks, BatchAnswer, FileAnswer, JobAnswer, ProjectAnswer
from quanet.serve.web.service_settings import ServiceSettings

FORMS = ("json", "csv", "parquet", "html", "md")


def _store(request: Request) -> ServiceStore:
    return request.app.state.store


def _settings(request: Request) -> ServiceSettings:
    return request.app.state.settings


Stored = Annotated[ServiceStore, Depends(_store)]
Settings = Annotated[ServiceSettings, Depends(_settings)]


def next_of(rows: Sequence[Any], limit: int) -> Any:
    """The value of `before` for the next page; None if this is the last one."""
    return rows[-1].id if len(rows) == limit else None


def job_answer(row: JobRow) -> JobAnswer:
    """A job, without what is only for workers."""
    return JobAnswer.model_validate(row, from_attributes=True)


def file_answer(row: FileRow) -> FileAnswer:
    """A file, without where it is stored."""
    return FileAnswer.model_validate(row, from_attributes=True)


def project_answer(row: ProjectRow) -> ProjectAnswer:
    """A project."""
    return ProjectAnswer(
        id=row.id,
        name=row.name,
        created=row.created,
        settings=dict(row.settings),
        model=row.model,
        version=row.version,
        url=f"/projects/{row.id}",
    )


def batch_answer(row: BatchRow, answer: AnswerRow | None = None, refined: AnswerRow | None = None) -> BatchAnswer:
    """A batch, and its answers if they are given."""
    return BatchAnswer(
        id=row.id,
        project=row.project,
        name=row.name,
        created=row.created,
        status=cast("Any", row.status),
        error=row.error,
        rows=row.rows,
        totals=None if row.totals is None else dict(row.totals),
        model=row.model,
        url=f"/projects/{row.project}/batches/{row.id}",
        answer=links_of(answer),
        refined=links_of(refined),
    )


def links_of(row: AnswerRow | None) -> AnswerLinks | None:
    """An answer with the addresses of its forms."""
    if row is None:
        return None
    place, _, query = address_of(row).partition("?")
    return AnswerLinks(
        id=row.id,
        kind=row.kind,
        about=row.about,
        sentence=row.sentence,
        command=row.command,
        data={name: value for name, value in row.data.items() if name not in {"state", "monitor"}},
        forms={form: f"{place}.{form}{f'?{query}' if query else ''}" for form in FORMS if form in row.forms},
        created=row.created,
    )


def address_of(row: AnswerRow) -> str:
    """The address of an answer; with a suffix such as .json before the query, of one of its forms."""
    home = f"/projects/{row.project}"
    subject = row.about.partition(":")[2]
    if row.kind == "difference":
        groups = [(name, value) for name in ("before", "after") for value in row.request.get(name, [])]
        return f"{home}/difference?{urlencode(groups)}"
    return {
        "batch": f"{home}/batches/{subject}",
        "refined": f"{home}/batches/{subject}/refined",
        "check": f"{home}/files/{subject}/check",
    }.get(row.kind, f"{home}/{row.kind}")
