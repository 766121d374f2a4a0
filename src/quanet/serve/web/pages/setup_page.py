"""Setting a project up: the labelled file, its columns as detected and corrected, training."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from quanet.errors import QuanetError
from quanet.serve.store.answers import answer
from quanet.serve.store.connection import Connection
from quanet.serve.store.jobs import JobRow, enqueue, list_jobs
from quanet.serve.store.projects import project
from quanet.serve.store.uploads import FileRow, list_files
from quanet.serve.web.error_answers import Refused
from quanet.serve.web.intake import change_project, start_training, store_training
from quanet.serve.web.pages.page_access import Fields, Manager, Reader, Uploader, go, router, store_of
from quanet.serve.web.pages.project_pages import Received
from quanet.serve.web.pages.rendering import BUSY, show_project
from quanet.serve.web.pages.setup_columns import (
    DATE_FORMATS,
    DELIMITERS,
    ENCODINGS,
    METHODS,
    PERIODS,
    ROLES,
    as_chosen,
    chosen_settings,
    column_roles,
    field_of,
    without_options,
)


@router.get("/projects/{project_id}/setup")
def setup(request: Request, _: Reader, project_id: str) -> Response:
    """The labelled file as detected, or what is being done with it."""
    return show_setup(request, project_id)


def show_setup(
    request: Request,
    project_id: str,
    *,
    error: str = "",
    wrongs: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    """The setup, with what is wrong, and with the choices of a form that was refused."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        file = _training_file(connection, project_id)
        checking, training = (_last_job(connection, project_id, kind) for kind in ("check", "train"))
        found = answer(connection, project_id, "check", f"file:{file.id}") if file else None
        wrongs = dict(wrongs or {})
        for job in (checking, training):
            if job and job.state == "failed" and not wrongs:
                wrongs[field_of(job.error)] = job.error
        busy = [job for job in (checking, training) if job and job.state in BUSY]
        values = _check_values(found.data if found else {}, known.settings, given or {})
        return show_project(
            request,
            known,
            "setup.html",
            "Model",
            heading="Setup",
            file=file,
            checking=checking,
            training=training,
            reload=bool(busy),
            error=error,
            wrongs=wrongs,
            status=status,
            **values,
        )


def _check_values(check: Mapping[str, Any], settings: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    names = [one["name"] for one in check.get("columns") or []][:12]
    method = given.get("method", settings.get("method") or "")
    return {
        "check": check,
        "columns": as_chosen(column_roles(check, settings), given),
        "unclear": [without_options(one) for one in check.get("unclear") or []],
        "roles": ROLES,
        "methods": METHODS if method in dict(METHODS) else (*METHODS, (method, method)),
        "method": method,
        "periods": PERIODS,
        "date_formats": DATE_FORMATS,
        "encodings": ENCODINGS,
        "delimiters": DELIMITERS,
        "classes": list((check.get("classes") or {}).items()),
        "findings": [
            one for one in check.get("findings") or [] if one.get("sentence") not in (check.get("unclear") or [])
        ],
        "example_names": names,
        "examples": [row[: len(names)] for row in check.get("examples") or []],
    }


def _training_file(connection: Connection, project_id: str) -> FileRow | None:
    return next(iter(list_files(connection, project_id, "training", limit=1)), None)


def _last_job(connection: Connection, project_id: str, kind: str) -> JobRow | None:
    return next((job for job in list_jobs(connection, project_id, limit=50) if job.kind == kind), None)


@router.post("/projects/{project_id}/training")
def upload_training(request: Request, visitor: Uploader, project_id: str, upload: Received) -> Response:
    """Another labelled file."""
    store_training(store_of(request), visitor, project_id, upload)
    return go(f"/projects/{project_id}/setup")


@router.post("/projects/{project_id}/setup")
def correct(request: Request, visitor: Manager, project_id: str, fields: Fields) -> Response:
    """Save corrected columns, then train or check again."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        file = _training_file(connection, project_id)
        found = answer(connection, project_id, "check", f"file:{file.id}") if file else None
    if file is None or found is None:
        return go(f"/projects/{project_id}/setup")
    try:
        changes = chosen_settings(as_chosen(column_roles(found.data, known.settings), fields), fields, known.settings)
        change_project(store, visitor, project_id, changes)
        if fields.get("do") == "check":
            with store.write() as connection:
                enqueue(connection, "check", project_id, {"file": file.id}, key=f"check:{file.id}")
        else:
            start_training(store, visitor, project_id)
    except ValueError as error:
        sentence, field = error.args
        return show_setup(request, project_id, wrongs={field: sentence}, given=fields, status=422)
    except Refused as error:
        return show_setup(
            request, project_id, wrongs={error.field or "": str(error)}, given=fields, status=error.status_code
        )
    except QuanetError as error:
        return show_setup(request, project_id, wrongs={field_of(str(error)): str(error)}, given=fields, status=422)
    return go(f"/projects/{project_id}/setup")
