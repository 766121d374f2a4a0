"""The list of batches, and one of them with its answer, with and without labels."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from quanet.errors import QuanetError
from quanet.serve.store.answers import answer
from quanet.serve.store.label_queue import plans, progress
from quanet.serve.store.projects import project
from quanet.serve.store.uploads import BatchRow, batch, list_batches
from quanet.serve.web.intake import ask_plan, remove_batch
from quanet.serve.web.pages.group_lines import group_values
from quanet.serve.web.pages.page_access import (
    PER_PAGE,
    Fields,
    Id,
    Labeller,
    Manager,
    OlderThan,
    Reader,
    go,
    router,
    store_of,
)
from quanet.serve.web.pages.project_pages import running_jobs
from quanet.serve.web.pages.rendering import fragment_of, show_project

LABELS, MOST_LABELS = 40, 2000


@router.get("/projects/{project_id}/batches")
def batches(request: Request, _: Reader, project_id: str, before: OlderThan = None) -> Response:
    """Batches, the newest first."""
    with store_of(request).read() as connection:
        known = project(connection, project_id)
        found = list_batches(connection, project_id, before=before, limit=PER_PAGE + 1)
        busy = any(one.status in {"queued", "running"} for one in found)
        values = {"batches": found[:PER_PAGE], "more": len(found) > PER_PAGE, "before": before, "reload": busy}
        return show_project(request, known, "batches.html", "Batches", **values)


@router.get("/projects/{project_id}/batches/{batch_id:int}")
def batch_page(
    request: Request, _: Reader, project_id: str, batch_id: Id, page: Annotated[int, Query(ge=1, le=1000)] = 1
) -> Response:
    """A batch."""
    return show_batch(request, project_id, batch_id, page=page)


def show_batch(
    request: Request, project_id: str, batch_id: int, *, page: int = 1, error: str = "", status: int = 200
) -> Response:
    """A batch, with what is wrong with a form."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        row = batch(connection, project_id, batch_id)
        found = answer(connection, project_id, "batch", f"batch:{batch_id}")
        refined = answer(connection, project_id, "refined", f"batch:{batch_id}")
        plan = next(iter(plans(connection, batch_id)), None)
        values = group_values(found.data if found else {}, known.settings.get("show"), page=page)
        jobs = [job for job in running_jobs(connection, project_id, 10) if job.payload.get("batch") == batch_id]
        return show_project(
            request,
            known,
            "batch.html",
            "Batches",
            heading=row.name,
            batch=row,
            answer=found,
            refined=refined,
            plan=plan,
            progress=progress(connection, plan.id) if plan else None,
            job=jobs[0] if jobs else None,
            content=fragment_of(store, found, charts=len(values["groups"]) > 1),
            number=suggested_labels(row),
            address=f"/projects/{project_id}/batches/{batch_id}",
            comparable=False,
            reload=bool(jobs),
            error=error,
            status=status,
            **values,
        )


def suggested_labels(row: BatchRow) -> int:
    """How many labels a page suggests: as many as a batch needs that is not trusted, else some."""
    needed = int((row.totals or {}).get("labels") or 0)
    return min(max(needed, LABELS), MOST_LABELS, max(row.rows, 2))


@router.post("/projects/{project_id}/batches/{batch_id:int}/plan")
def plan_labels(request: Request, visitor: Labeller, project_id: str, batch_id: Id, fields: Fields) -> Response:
    """Choose rows to label."""
    number = fields.get("number", "")
    if not (number.isascii() and number.isdigit() and 2 <= int(number[:9]) <= MOST_LABELS):
        sentence = f"How many labels? Give a number from 2 to {MOST_LABELS:,}."
        return show_batch(request, project_id, batch_id, error=sentence, status=422)
    try:
        job = ask_plan(store_of(request), visitor, project_id, batch_id, int(number))
    except QuanetError as error:
        return show_batch(request, project_id, batch_id, error=str(error), status=getattr(error, "status_code", 422))
    return go(f"/projects/{project_id}/batches/{batch_id}/label?job={job.id}")


@router.post("/projects/{project_id}/batches/{batch_id:int}/delete")
def delete(request: Request, visitor: Manager, project_id: str, batch_id: Id) -> Response:
    """Delete a batch."""
    remove_batch(store_of(request), visitor, project_id, batch_id)
    return go(f"/projects/{project_id}/batches")
