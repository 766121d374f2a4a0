"""API: projects, their training file, training, and their model."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from quanet.serve.store.answers import answer
from quanet.serve.store.jobs import list_jobs
from quanet.serve.store.projects import list_projects, project
from quanet.serve.store.uploads import count_batches, list_files
from quanet.serve.web.access import Visitor, require
from quanet.serve.web.api_answers import Settings, Stored, file_answer, job_answer, links_of, next_of, project_answer
from quanet.serve.web.api_models import (
    DemoAnswer,
    FileList,
    JobAnswer,
    ModelAnswer,
    ProjectAnswer,
    ProjectDetail,
    ProjectList,
    TrainingReceipt,
)
from quanet.serve.web.api_requests import Before, Limit, NewProject, ProjectChange, ProjectId, TrainRequest
from quanet.serve.web.error_answers import ERRORS, Refused
from quanet.serve.web.intake import (
    NO_MODEL,
    add_demo,
    add_project,
    change_project,
    remove_project,
    start_training,
    store_training,
)
from quanet.serve.web.model_zip import zipped
from quanet.serve.web.receiving import UPLOAD_BODY, Upload, receive_upload

router = APIRouter(responses=ERRORS, tags=["projects"])
Reader = Annotated[Visitor, Depends(require("read"))]
Manager = Annotated[Visitor, Depends(require("manage"))]
Uploader = Annotated[Visitor, Depends(require("manage", upload=True))]


@router.get("/api/projects")
@router.get("/projects.json", include_in_schema=False)
def get_projects(
    _: Reader,
    store: Stored,
    before: Annotated[str | None, Query(pattern="^[a-z2-7]{10}$", description="Those created before this one.")] = None,
    limit: Limit = 50,
) -> ProjectList:
    """Projects, newest first."""
    with store.read() as connection:
        rows = list_projects(connection, before, limit)
    return ProjectList(projects=[project_answer(row) for row in rows], next=next_of(rows, limit))


@router.post("/api/projects", status_code=201)
def post_project(visitor: Manager, store: Stored, settings: Settings, asked: NewProject) -> ProjectAnswer:
    """Create a project."""
    given = asked.settings.model_dump(exclude_unset=True)
    return project_answer(add_project(store, settings, visitor, asked.name, given))


@router.post("/api/demo", status_code=202)
def post_demo(visitor: Manager, store: Stored, settings: Settings) -> DemoAnswer:
    """Create a project with film reviews: it is trained, and a year of new reviews is read."""
    made, job = add_demo(store, settings, visitor)
    return DemoAnswer(project=project_answer(made), job=job_answer(job))


@router.get("/api/projects/{project_id}")
@router.get("/projects/{project_id}.json", include_in_schema=False)
def get_project(_: Reader, store: Stored, project_id: ProjectId) -> ProjectDetail:
    """One project, with its jobs that wait or run."""
    with store.read() as connection:
        shown = project_answer(project(connection, project_id))
        active = [row for state in ("queued", "running") for row in list_jobs(connection, project_id, state)]
        numbers = count_batches(connection, project_id)
    return ProjectDetail(**shown.model_dump(), batches=numbers, jobs=[job_answer(row) for row in active])


@router.patch("/api/projects/{project_id}")
def patch_project(visitor: Manager, store: Stored, project_id: ProjectId, change: ProjectChange) -> ProjectAnswer:
    """Change the name or some settings; what is left out stays. Batches that were read before keep their answers."""
    given = change.settings.model_dump(exclude_unset=True) if change.settings else {}
    return project_answer(change_project(store, visitor, project_id, given, name=change.name, version=change.version))


@router.delete("/api/projects/{project_id}", status_code=204)
def delete_one_project(visitor: Manager, store: Stored, project_id: ProjectId) -> None:
    """Delete a project with its files, models, batches, labels and answers."""
    remove_project(store, visitor, project_id)


@router.post("/api/projects/{project_id}/training", status_code=202, openapi_extra=UPLOAD_BODY)
def post_training(
    visitor: Uploader, store: Stored, project_id: ProjectId, upload: Annotated[Upload, Depends(receive_upload)]
) -> TrainingReceipt:
    """Upload a labelled file. It is checked; then train."""
    added, job = store_training(store, visitor, project_id, upload)
    return TrainingReceipt(file=file_answer(added), job=job_answer(job))


@router.get("/api/projects/{project_id}/training")
def get_training(_: Reader, store: Stored, project_id: ProjectId, before: Before = None, limit: Limit = 50) -> FileList:
    """Labelled files, newest first."""
    with store.read() as connection:
        project(connection, project_id)
        rows = list_files(connection, project_id, "training", before, limit)
    return FileList(files=[file_answer(row) for row in rows], next=next_of(rows, limit))


@router.post("/api/projects/{project_id}/train", status_code=202)
def post_train(visitor: Manager, store: Stored, project_id: ProjectId, asked: TrainRequest | None = None) -> JobAnswer:
    """Train a model on a labelled file, by default the last one, with changed settings if given."""
    asked = asked or TrainRequest()
    given = asked.settings.model_dump(exclude_unset=True)
    if given:
        change_project(store, visitor, project_id, given)
    return job_answer(start_training(store, visitor, project_id, asked.file))


@router.get("/api/projects/{project_id}/model")
@router.get("/projects/{project_id}/model.json", include_in_schema=False)
def get_model(_: Reader, store: Stored, project_id: ProjectId) -> ModelAnswer:
    """The model card: errors against a plain count, coverage of its intervals, settings."""
    with store.read() as connection:
        known = project(connection, project_id)
        if not known.model:
            raise Refused(404, NO_MODEL)
        card = links_of(answer(connection, project_id, "training", f"model:{known.model}"))
    return ModelAnswer(model=known.model, card=card, download=f"/api/projects/{project_id}/model.zip")


@router.get("/api/projects/{project_id}/model.zip", response_class=StreamingResponse)
def get_model_zip(_: Reader, store: Stored, project_id: ProjectId) -> StreamingResponse:
    """The model folder, for `quanet predict` and `quanet.load`."""
    with store.read() as connection:
        known = project(connection, project_id)
    if not known.model:
        raise Refused(404, NO_MODEL)
    folder = store.models.path(known.model)
    headers = {
        "content-disposition": f'attachment; filename="model-{known.model[:8]}.zip"',
        "etag": f'"{known.model}"',
        "cache-control": "private, no-cache",
    }
    return StreamingResponse(zipped(folder, "model"), media_type="application/zip", headers=headers)
