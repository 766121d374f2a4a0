"""What routes of pages share: visitors by role, the store, fields of forms, and where to go next."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse

from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import JobRow
from quanet.serve.web.access import Visitor, require
from quanet.serve.web.api_models import MAX_ID

Reader = Annotated[Visitor, Depends(require("read"))]
Labeller = Annotated[Visitor, Depends(require("label"))]
Manager = Annotated[Visitor, Depends(require("manage"))]
Uploader = Annotated[Visitor, Depends(require("manage", upload=True))]
Id = Annotated[int, Path(ge=1, le=MAX_ID)]
OlderThan = Annotated[int | None, Query(ge=1, le=MAX_ID)]
PER_PAGE = 50
router = APIRouter(include_in_schema=False)  # of all pages: each module adds its own


async def fields_of(request: Request) -> dict[str, str]:
    """The fields of a form; of several with one name, the last."""
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


Fields = Annotated[dict[str, str], Depends(fields_of)]


def store_of(request: Request) -> ServiceStore:
    """The store of the service."""
    found: ServiceStore = request.app.state.store
    return found


def go(address: str) -> RedirectResponse:
    """Show another page, after a form."""
    return RedirectResponse(address, 303)


def result_address(job: JobRow) -> str:
    """The page that shows what a job has computed."""
    home = f"/projects/{job.project}" if job.project else "/"
    payload = job.payload
    if job.kind == "check":
        return f"{home}/setup"
    if job.kind == "train":
        return f"{home}/model"
    if job.kind == "plan":
        return f"{home}/batches/{payload['batch']}/label"
    if job.kind in {"predict", "refine"}:
        return f"{home}/batches/{payload['batch']}"
    if job.kind in {"monitor", "webhook"}:
        return f"{home}/monitor"
    if job.kind == "difference":
        return difference_address(job.project or "", payload["before"], payload["after"], job.id)
    return home


def difference_address(project_id: str, before: list[str], after: list[str], job_id: int | None = None) -> str:
    """The page of a difference between two groups."""
    values = [("before", one) for one in before] + [("after", one) for one in after]
    return f"/projects/{project_id}/difference?{urlencode([*values, *([('job', job_id)] if job_id else [])])}"
