"""API: label rows of a batch, several people at once."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from quanet.serve.web.access import Visitor, require
from quanet.serve.web.api_answers import Stored, job_answer
from quanet.serve.web.api_models import JobAnswer, LabelAnswer, LabelItemAnswer, LabelProgressAnswer
from quanet.serve.web.api_requests import LabelRequest, Number, PlanRequest, ProjectId
from quanet.serve.web.error_answers import ERRORS
from quanet.serve.web.intake import ask_plan
from quanet.serve.web.labelling import LabelState, exported_labels, next_to_label, put_label, take_back_label

router = APIRouter(responses=ERRORS, tags=["labels"])
Reader = Annotated[Visitor, Depends(require("read"))]
Labeller = Annotated[Visitor, Depends(require("label"))]


@router.post("/api/projects/{project_id}/batches/{number}/plan", status_code=202)
def post_plan(
    visitor: Labeller, store: Stored, project_id: ProjectId, number: Number, asked: PlanRequest | None = None
) -> JobAnswer:
    """Choose the rows whose labels narrow the interval most."""
    return job_answer(ask_plan(store, visitor, project_id, number, (asked or PlanRequest()).number))


@router.get("/api/projects/{project_id}/batches/{number}/label")
def get_label(visitor: Labeller, store: Stored, project_id: ProjectId, number: Number) -> LabelAnswer:
    """The next row to label. For five minutes nobody else gets it. Programs may name themselves in X-Visitor."""
    return _shown(next_to_label(store, visitor, project_id, number))


@router.post("/api/projects/{project_id}/batches/{number}/label")
def post_label(
    visitor: Labeller, store: Stored, project_id: ProjectId, number: Number, given: LabelRequest
) -> LabelAnswer:
    """Label or skip a row, and get the next one."""
    put_label(store, visitor, project_id, number, given.item, None if given.skip else given.label)
    return _shown(next_to_label(store, visitor, project_id, number))


@router.post("/api/projects/{project_id}/batches/{number}/label/undo")
def post_undo(visitor: Labeller, store: Stored, project_id: ProjectId, number: Number) -> LabelAnswer:
    """Take back your last label, and get its row again."""
    take_back_label(store, visitor, project_id, number)
    return _shown(next_to_label(store, visitor, project_id, number))


@router.get("/api/projects/{project_id}/batches/{number}/labels.csv", response_class=Response)
@router.get("/projects/{project_id}/batches/{number}/labels.csv", include_in_schema=False)
def get_labels(_: Reader, store: Stored, project_id: ProjectId, number: Number) -> Response:
    """The sheet with the labels given so far, for `quanet refine`."""
    headers = {"content-disposition": f'attachment; filename="labels-{number}.csv"'}
    return Response(exported_labels(store, project_id, number), media_type="text/csv; charset=utf-8", headers=headers)


def _shown(state: LabelState) -> LabelAnswer:
    item = None if state.item is None else LabelItemAnswer.model_validate(state.item, from_attributes=True)
    done = LabelProgressAnswer.model_validate(state.progress, from_attributes=True)
    return LabelAnswer(plan=state.plan.id, item=item, classes=state.classes, progress=done)
