"""API: batches of new data, and jobs."""

import re
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Response

from quanet.serve.store.answers import answer
from quanet.serve.store.jobs import job, list_jobs
from quanet.serve.store.projects import project
from quanet.serve.store.uploads import batch, list_batches
from quanet.serve.web.access import Visitor, require
from quanet.serve.web.api_answers import Settings, Stored, batch_answer, job_answer, next_of
from quanet.serve.web.api_models import BatchAnswer, BatchList, BatchReceipt, JobAnswer, JobList
from quanet.serve.web.api_requests import Before, Limit, Number, ProjectId
from quanet.serve.web.error_answers import ERRORS, Refused
from quanet.serve.web.intake import remove_batch, store_batch
from quanet.serve.web.receiving import UPLOAD_BODY, Upload, receive_upload

router = APIRouter(responses=ERRORS, tags=["batches"])
Reader = Annotated[Visitor, Depends(require("read"))]
Manager = Annotated[Visitor, Depends(require("manage"))]
Uploader = Annotated[Visitor, Depends(require("manage", upload=True))]
KEY = re.compile(r"[\x21-\x7e]{1,150}")


@router.post(
    "/api/projects/{project_id}/batches",
    status_code=202,
    responses={200: {"model": BatchReceipt, "description": "It had been accepted before."}},
    openapi_extra=UPLOAD_BODY,
)
def post_batch(
    visitor: Uploader,
    store: Stored,
    settings: Settings,
    response: Response,
    project_id: ProjectId,
    upload: Annotated[Upload, Depends(receive_upload)],
    idempotency_key: Annotated[
        str | None, Header(description="A request that is repeated with the same key is accepted once.")
    ] = None,
) -> BatchReceipt:
    """Upload new data: CSV, TSV, JSON lines, JSON or Parquet, also compressed, or .xlsx.

    The same content in the same project is one batch: 200 and `repeated` instead of 202.
    """
    row, new = store_batch(store, settings, visitor, project_id, upload, _key(idempotency_key))
    if not new:
        response.status_code = 200
    response.headers["location"] = f"/api/projects/{project_id}/batches/{row.id}"
    return BatchReceipt(**batch_answer(row).model_dump(), repeated=not new)


def _key(given: str | None) -> str | None:
    if given is None:
        return None
    if not KEY.fullmatch(given):
        raise Refused(422, "The Idempotency-Key must have 1 to 150 visible ASCII characters.", "Idempotency-Key")
    return f"key:{given}"


@router.get("/api/projects/{project_id}/batches")
@router.get("/projects/{project_id}/batches.json", include_in_schema=False)
def get_batches(
    _: Reader,
    store: Stored,
    project_id: ProjectId,
    before: Before = None,
    limit: Limit = 50,
    status: Literal["queued", "running", "done", "failed"] | None = None,
) -> BatchList:
    """Batches, newest first."""
    with store.read() as connection:
        project(connection, project_id)
        rows = list_batches(connection, project_id, before, limit, status)
    return BatchList(batches=[batch_answer(row) for row in rows], next=next_of(rows, limit))


@router.get("/api/projects/{project_id}/batches/{number}")
def get_batch(_: Reader, store: Stored, project_id: ProjectId, number: Number) -> BatchAnswer:
    """One batch with its answers: the sentence, the command line, and where each form is."""
    with store.read() as connection:
        row = batch(connection, project_id, number)
        about = f"batch:{number}"
        found = answer(connection, project_id, "batch", about), answer(connection, project_id, "refined", about)
    return batch_answer(row, *found)


@router.delete("/api/projects/{project_id}/batches/{number}", status_code=204)
def delete_one_batch(visitor: Manager, store: Stored, project_id: ProjectId, number: Number) -> None:
    """Delete a batch with its file, labels and answers. Shares over time are computed again from the others."""
    remove_batch(store, visitor, project_id, number)


@router.get("/api/jobs/{number}")
@router.get("/jobs/{number}.json", include_in_schema=False)
def get_job(_: Reader, store: Stored, number: Number) -> JobAnswer:
    """One job, with its progress."""
    with store.read() as connection:
        return job_answer(job(connection, number))


@router.get("/api/projects/{project_id}/jobs")
def get_jobs(_: Reader, store: Stored, project_id: ProjectId, before: Before = None, limit: Limit = 50) -> JobList:
    """Jobs of a project, newest first."""
    with store.read() as connection:
        project(connection, project_id)
        rows = list_jobs(connection, project_id, before=before, limit=limit)
    return JobList(jobs=[job_answer(row) for row in rows], next=next_of(rows, limit))
