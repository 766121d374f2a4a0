"""Answers in every form, at the address of their page with a suffix, and through the API."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, Response

from quanet.serve.store.answers import AnswerRow, answer, list_answers
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.projects import project
from quanet.serve.web.access import Visitor, require
from quanet.serve.web.api_answers import Stored, job_answer, links_of, next_of
from quanet.serve.web.api_models import AnswerLinks, DifferenceList, JobAnswer
from quanet.serve.web.api_requests import Before, Column, DifferenceRequest, Limit, Number, ProjectId
from quanet.serve.web.error_answers import ERRORS, Refused
from quanet.serve.web.intake import NO_MODEL, ask_difference, difference_about

router = APIRouter(responses=ERRORS, tags=["answers"])
Reader = Annotated[Visitor, Depends(require("read"))]
Manager = Annotated[Visitor, Depends(require("manage"))]
Form = Literal["json", "csv", "parquet", "html", "md"]
Group = Annotated[list[Column], Query(min_length=1, max_length=5)]
CONTENT_TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
}
# A report has its own style. It runs no script and has no origin, so it can reach nothing of the service.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
WAIT = "This answer does not exist yet."


def answer_form(request: Request, store: ServiceStore, row: AnswerRow | None, form: str) -> Response:
    """A form of an answer. A visitor who has it already gets 304."""
    blob = row.forms.get(form) if row is not None else None
    if blob is None:
        raise Refused(404, WAIT if row is None else f"This answer has no form {form!r}.")
    tag = f'"{blob.partition(".")[0][:32]}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if form == "html":
        headers["content-security-policy"] = REPORT_POLICY
    if form in {"csv", "parquet"}:
        headers["content-disposition"] = f'attachment; filename="{row.kind}.{form}"' if row else ""
    path = store.blobs.path(blob)
    if not path.is_file():
        raise Refused(404, WAIT)
    return FileResponse(path, media_type=CONTENT_TYPES[form], headers=headers)


def _find(store: ServiceStore, project_id: str, kind: str, about: str) -> AnswerRow | None:
    with store.read() as connection:
        known = project(connection, project_id)
        if kind == "training":
            if not known.model:
                raise Refused(404, NO_MODEL)
            about = f"model:{known.model}"
        return answer(connection, project_id, kind, about)


@router.get("/projects/{project_id}/batches/{number:int}.{form}", response_class=FileResponse)
def get_batch_form(
    request: Request, _: Reader, store: Stored, project_id: ProjectId, number: Number, form: Form
) -> Response:
    """The shares of a batch, as `quanet predict` gives them."""
    return answer_form(request, store, _find(store, project_id, "batch", f"batch:{number}"), form)


@router.get("/projects/{project_id}/batches/{number:int}/refined.{form}", response_class=FileResponse)
def get_refined_form(
    request: Request, _: Reader, store: Stored, project_id: ProjectId, number: Number, form: Form
) -> Response:
    """The shares of a batch with its labels, as `quanet refine` gives them."""
    return answer_form(request, store, _find(store, project_id, "refined", f"batch:{number}"), form)


@router.get("/projects/{project_id}/files/{number:int}/check.{form}", response_class=FileResponse)
def get_check_form(
    request: Request, _: Reader, store: Stored, project_id: ProjectId, number: Number, form: Form
) -> Response:
    """What was found in a labelled file, as `quanet check` gives it."""
    return answer_form(request, store, _find(store, project_id, "check", f"file:{number}"), form)


@router.get("/projects/{project_id}/overview.{form}", response_class=FileResponse)
def get_overview_form(request: Request, _: Reader, store: Stored, project_id: ProjectId, form: Form) -> Response:
    """The shares of all batches, by group."""
    return answer_form(request, store, _find(store, project_id, "overview", "project"), form)


@router.get("/projects/{project_id}/monitor.{form}", response_class=FileResponse)
def get_monitor_form(request: Request, _: Reader, store: Stored, project_id: ProjectId, form: Form) -> Response:
    """Shares over time and their changes, as `quanet monitor` gives them."""
    return answer_form(request, store, _find(store, project_id, "monitor", "project"), form)


@router.get("/projects/{project_id}/training.{form}", response_class=FileResponse)
def get_training_form(request: Request, _: Reader, store: Stored, project_id: ProjectId, form: Form) -> Response:
    """How the model was trained, and its errors."""
    return answer_form(request, store, _find(store, project_id, "training", ""), form)


@router.get("/projects/{project_id}/difference.{form}", response_class=FileResponse)
def get_difference_form(
    request: Request, _: Reader, store: Stored, project_id: ProjectId, form: Form, before: Group, after: Group
) -> Response:
    """The difference between two groups or periods, as `quanet diff` gives it."""
    about = difference_about(before, after)
    return answer_form(request, store, _find(store, project_id, "difference", about), form)


@router.get("/api/projects/{project_id}/overview")
def get_overview(_: Reader, store: Stored, project_id: ProjectId) -> AnswerLinks:
    """The shares of all batches: sentence, command line, groups, and where each form is."""
    return _links(_find(store, project_id, "overview", "project"))


@router.get("/api/projects/{project_id}/monitor")
def get_monitor(_: Reader, store: Stored, project_id: ProjectId) -> AnswerLinks:
    """Shares over time, and their changes."""
    return _links(_find(store, project_id, "monitor", "project"))


@router.get("/api/projects/{project_id}/differences")
def get_differences(
    _: Reader, store: Stored, project_id: ProjectId, before: Before = None, limit: Limit = 50
) -> DifferenceList:
    """Differences between groups or periods that were asked for, newest first."""
    with store.read() as connection:
        project(connection, project_id)
        found = list_answers(connection, project_id, "difference", before, limit)
    return DifferenceList(differences=[_links(row) for row in found], next=next_of(found, limit))


@router.post("/api/projects/{project_id}/differences", status_code=202)
def post_difference(visitor: Manager, store: Stored, project_id: ProjectId, asked: DifferenceRequest) -> JobAnswer:
    """Compare two groups or periods."""
    return job_answer(ask_difference(store, visitor, project_id, asked.before, asked.after))


def _links(row: AnswerRow | None) -> AnswerLinks:
    links = links_of(row)
    if links is None:
        raise Refused(404, WAIT)
    return links
