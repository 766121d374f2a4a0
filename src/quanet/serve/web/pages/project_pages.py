"""The list of projects, and the overview of one."""

from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from quanet.serve.store.alarms import list_alarms
from quanet.serve.store.answers import answer
from quanet.serve.store.jobs import JobRow, list_jobs
from quanet.serve.store.projects import list_projects, project
from quanet.serve.store.uploads import list_batches
from quanet.serve.web.intake import add_project, store_batch, store_training
from quanet.serve.web.pages.group_lines import group_values
from quanet.serve.web.pages.page_access import Manager, Reader, Uploader, go, router, store_of
from quanet.serve.web.pages.rendering import BUSY, fragment_of, show, show_project
from quanet.serve.web.receiving import Upload, receive_upload
from quanet.serve.work.demo_project import start_demo

PROJECTS = 24  # on a page
RECENT = 8  # batches on the overview
Received = Annotated[Upload, Depends(receive_upload)]


@router.get("/")
def home(request: Request, _: Reader, before: str | None = None) -> Response:
    """All projects."""
    return show_home(request, before=before)


def show_home(request: Request, *, before: str | None = None, error: str = "", status: int = 200) -> Response:
    """The list of projects, with what is wrong with a file."""
    with store_of(request).read() as connection:
        found = list_projects(connection, before=before, limit=PROJECTS + 1)
        shown = [(one, answer(connection, one.id, "overview", "project")) for one in found[:PROJECTS]]
    cards = [{"row": one, "sentence": known.sentence if known else ""} for one, known in shown]
    more = len(found) > PROJECTS
    return show(request, "projects.html", status=status, projects=cards, more=more, before=before, error=error)


@router.post("/projects")
def create(request: Request, visitor: Uploader, upload: Received) -> Response:
    """A project from a labelled file, which is checked next."""
    state = request.app.state
    name = upload.fields.get("name") or upload.name.partition(".")[0].replace("_", " ").replace("-", " ").strip()
    made = add_project(state.store, state.settings, visitor, name or upload.name, {})
    store_training(state.store, visitor, made.id, upload)
    return go(f"/projects/{made.id}/setup")


@router.post("/demo")
def demo(request: Request, visitor: Manager) -> Response:
    """The project with film reviews."""
    made, _ = start_demo(store_of(request), visitor.name)
    return go(f"/projects/{made.id}")


@router.get("/projects/{project_id}")
def overview(
    request: Request,
    _: Reader,
    project_id: str,
    page: Annotated[int, Query(ge=1, le=1000)] = 1,
    compare: Annotated[int | None, Query(ge=0, le=10_000)] = None,
) -> Response:
    """What the batches of a project come to."""
    return show_overview(request, project_id, page=page, compare=compare)


def show_overview(
    request: Request,
    project_id: str,
    *,
    page: int = 1,
    compare: int | None = None,
    error: str = "",
    status: int = 200,
) -> Response:
    """The overview, with what is wrong with a file."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        jobs = running_jobs(connection, project_id)
        batches = list_batches(connection, project_id, limit=RECENT + 1)
        if not known.model and not batches and not any(job.kind == "demo" for job in jobs):
            return go(f"/projects/{project_id}/setup")
        found = answer(connection, project_id, "overview", "project")
        alarms = list_alarms(connection, project_id, limit=1)
        values = group_values(found.data if found else {}, known.settings.get("show"), page=page, compare=compare)
        return show_project(
            request,
            known,
            "overview.html",
            "Overview",
            answer=found,
            content=fragment_of(store, found),
            alarm=alarms[0] if alarms else None,
            jobs=jobs,
            batches=batches[:RECENT],
            more=len(batches) > RECENT,
            address=f"/projects/{project_id}",
            comparable=True,
            reload=bool(jobs),
            error=error,
            status=status,
            **values,
        )


def running_jobs(connection: Any, project_id: str, most: int = 3) -> list[JobRow]:
    """What is being computed for a project, or waits; the one that runs first."""
    found = [job for state in reversed(BUSY) for job in list_jobs(connection, project_id, state=state, limit=most)]
    return [job for job in found if job.kind != "webhook"][:most]


@router.post("/projects/{project_id}/batches")
def add_batch(request: Request, visitor: Uploader, project_id: str, upload: Received) -> Response:
    """New data."""
    state = request.app.state
    row, _ = store_batch(state.store, state.settings, visitor, project_id, upload)
    return go(f"/projects/{project_id}/batches/{row.id}")
