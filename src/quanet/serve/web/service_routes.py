"""Signing in and out, health, readiness, metrics, the description of the API, and the demo project."""

import os
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, RedirectResponse, Response

from quanet import __version__
from quanet.serve.store.audit_log import list_audit, record
from quanet.serve.store.projects import count_projects
from quanet.serve.store.tokens import find_token, note_use
from quanet.serve.web.access import Visitor, refuse_guessing, require
from quanet.serve.web.api_answers import Stored, next_of
from quanet.serve.web.api_models import AuditAnswer, AuditList
from quanet.serve.web.api_requests import Before, Limit
from quanet.serve.web.error_answers import ERRORS
from quanet.serve.web.sessions import check_origin, new_session, remember_session

router = APIRouter(responses=ERRORS, tags=["service"])
Reader = Annotated[Visitor, Depends(require("read"))]
Manager = Annotated[Visitor, Depends(require("manage"))]


@router.get("/health")
def get_health() -> dict[str, str]:
    """Whether the process runs."""
    return {"status": "ok", "version": __version__}


@router.get("/ready")
def get_ready(store: Stored) -> Response:
    """Whether the database and the data folder can be used; 503 otherwise."""
    try:
        with store.read() as connection:
            count_projects(connection)
        writable = os.access(store.blobs.incoming(), os.W_OK)
    except Exception:  # noqa: BLE001 - whatever it is, the service is not ready
        writable = False
    return JSONResponse({"status": "ready" if writable else "not ready"}, 200 if writable else 503)


@router.get("/metrics", response_class=Response)
def get_metrics(request: Request, _: Reader) -> Response:
    """Metrics in the text format of Prometheus."""
    return Response(request.app.state.meters.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/api/openapi.json", include_in_schema=False)
def get_description(request: Request, _: Reader) -> dict[str, Any]:
    """The description of the API (OpenAPI)."""
    return request.app.openapi()


@router.get("/api/audit")
def get_audit(_: Manager, store: Stored, before: Before = None, limit: Limit = 50) -> AuditList:
    """Who changed what, newest first."""
    with store.read() as connection:
        rows = list_audit(connection, None, before, limit)
    entries = [AuditAnswer.model_validate(row, from_attributes=True) for row in rows]
    return AuditList(entries=entries, next=next_of(rows, limit))


@router.post("/sign-in", include_in_schema=False)
async def post_sign_in(request: Request) -> Response:
    """Sign in with a token; the browser gets a cookie."""
    check_origin(request)
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=10)
    signed_in = await run_in_threadpool(_sign_in, request, fields.get("token", [""])[0].strip())
    return RedirectResponse(_inside(fields.get("next", ["/"])[0]) if signed_in else "/sign-in?failed=1", 303)


@router.post("/sign-out", include_in_schema=False)
def post_sign_out(request: Request) -> Response:
    """Sign out."""
    check_origin(request)
    remember_session(request, None)
    return RedirectResponse("/sign-in" if request.app.state.settings.sign_in else "/", 303)


def _sign_in(request: Request, secret: str) -> bool:
    store = request.app.state.store
    with store.read() as connection:
        token = find_token(connection, secret)
    if token is None:
        refuse_guessing(request)
        return False
    note_use(store, token)
    with store.write() as connection:
        record(connection, token.name, "sign in")
    remember_session(request, new_session(token.id))
    return True


def _inside(address: str) -> str:
    """An address of the service itself, never of another site."""
    return (
        address if address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable() else "/"
    )
