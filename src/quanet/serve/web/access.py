"""Who may do what: visitors, their roles, and the rule that every address has."""

from dataclasses import dataclass
from math import ceil
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from quanet.serve.store.tokens import find_token, list_tokens, note_use
from quanet.serve.web.error_answers import Refused
from quanet.serve.web.file_titles import clean_title
from quanet.serve.web.sessions import (
    FIELD,
    HEADER,
    check_csrf,
    check_origin,
    new_session,
    read_session,
    remember_session,
)

ROLES = ("read", "label", "manage")  # each may do what those before it may
PUBLIC = {"/health", "/ready", "/sign-in", "/sign-out"}  # what nobody needs a token for
SAFE = {"GET", "HEAD", "OPTIONS"}
LOCAL = "local"  # the name of visitors where nobody signs in


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who sends a request.

    Attributes
    ----------
    name : of the token; for the audit log.
    role : read, label or manage.
    key : tells people apart who use the same token: the name and the browser.
    """

    name: str
    role: str
    key: str


class Require:
    """The rule of an address: the role that a visitor needs; see `require`."""

    def __init__(self, role: str, *, upload: bool = False) -> None:
        self.role, self.upload = role, upload

    async def __call__(self, request: Request) -> Visitor:
        """The visitor, whose role is sufficient."""
        visitor, browser = await run_in_threadpool(_identify, request)
        _limit(request, visitor.key)
        if ROLES.index(visitor.role) < ROLES.index(self.role):
            raise Refused(403, f"This needs a token with the role {self.role!r}; yours has {visitor.role!r}.")
        if browser and request.method not in SAFE:
            await self._check_token_of_form(request)
        request.state.visitor = visitor
        return visitor

    async def _check_token_of_form(self, request: Request) -> None:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        given: Any = request.headers.get(HEADER)
        if given is None and self.upload and kind == "multipart/form-data":
            request.state.csrf_pending = True  # the field stands before the file, see `receive_upload`
            return
        if given is None and kind == "application/x-www-form-urlencoded":
            given = (await request.form()).get(FIELD)
        check_csrf(request, given if isinstance(given, str) else None)


_RULES = {(role, upload): Require(role, upload=upload) for role in ROLES for upload in (False, True)}


def require(role: str, *, upload: bool = False) -> Require:
    """A dependency that gives the `Visitor` and refuses those whose role is not sufficient.

    `upload` is for addresses that accept a file in a form, where the field against forged requests is read later.
    """
    return _RULES[role, upload]


def rule_of(route: APIRoute) -> str | None:
    """The role that an address requires; None if it has no rule."""

    def search(dependant: Dependant) -> str | None:
        if isinstance(dependant.call, Require):
            return dependant.call.role
        return next((role for inner in dependant.dependencies if (role := search(inner))), None)

    return search(route.dependant)


def check_rules(router: APIRouter) -> None:
    """Every address has a rule, or is public."""
    for route in router.routes:
        if not isinstance(route, APIRoute) or (rule_of(route) is None and route.path not in PUBLIC):
            raise AssertionError(f"{route} has no rule. Add Depends(require(role)).")


def _identify(request: Request) -> tuple[Visitor, bool]:
    """The visitor, and whether the request comes from a browser, which may have been sent there by another site."""
    state = request.app.state
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        with state.store.read() as connection:
            token = find_token(connection, secret.strip()) if secret.strip().isascii() else None
        if token is None:
            refuse_guessing(request)
            raise Refused(401, "The token is not known. Create one: quanet token create NAME.", headers=CHALLENGE)
        note_use(state.store, token)
        return Visitor(token.name, token.role, _key(request, token.name)), False
    browser = (request.method not in SAFE or request.url.path.startswith("/api/")) and check_origin(request)
    session = read_session(request)
    if not state.settings.sign_in:
        if session is None and not request.url.path.startswith("/api/"):
            remember_session(request, session := new_session())
        name = f"{LOCAL}:{session.name}" if session else LOCAL
        return Visitor(LOCAL, "manage", _key(request, name)), browser or session is not None
    if session is not None and session.token:
        with state.store.read() as connection:
            found = next((one for one in list_tokens(connection) if one.id == session.token), None)
        if found is not None:
            return Visitor(found.name, found.role, f"{found.name}:{session.name}"), True
    if request.method == "GET" and not request.url.path.startswith("/api/") and _is_page(request):
        raise Refused(303, "Sign in first.", headers={"location": "/sign-in"})
    raise Refused(401, "Sign in first, or send a token: Authorization: Bearer TOKEN.", headers=CHALLENGE)


CHALLENGE = {"www-authenticate": "Bearer"}


def _is_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _key(request: Request, name: str) -> str:
    """What tells visitors apart: programs that share a token may name themselves."""
    own = clean_title(request.headers.get("x-visitor", ""), 40)
    if own:
        return f"{name}:{own}"
    return name if name != LOCAL else f"{name}:{request.client.host if request.client else ''}"


def _limit(request: Request, key: str) -> None:
    refuse_too_many(request.app.state.requests.wait(key))


def refuse_guessing(request: Request) -> None:
    """Count a wrong token, and refuse an address that sent too many."""
    refuse_too_many(request.app.state.guesses.wait(request.client.host if request.client else ""))


def refuse_too_many(wait: float) -> None:
    """Refuse a request that comes too soon."""
    if wait:
        seconds = max(1, ceil(wait))
        raise Refused(429, f"Too many requests. Try again in {seconds} s.", headers={"retry-after": str(seconds)})
