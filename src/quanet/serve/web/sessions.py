"""Sessions of browsers: a signed cookie, and the token that forms repeat (CSRF)."""

import secrets
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from itsdangerous import BadData, URLSafeTimedSerializer

from quanet.serve.web.error_answers import Refused

COOKIE = "quanet_session"
HEADER, FIELD = "x-csrf-token", "csrf"
WEEK = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Session:
    """A browser: a random name, and the id of the token that it signed in with (0 without)."""

    name: str
    token: int = 0


def new_session(token: int = 0) -> Session:
    """A session with a new name, so that signing in never continues an old one."""
    return Session(secrets.token_hex(8), token)


def read_session(request: Request) -> Session | None:
    """The session in the cookie of a request; None if it has none, or a wrong or old one."""
    cookie = request.cookies.get(COOKIE)
    if not cookie:
        return None
    try:
        found = _signer(request, "session").loads(cookie, max_age=WEEK)
        return Session(str(found["name"]), int(found["token"]))
    except (BadData, KeyError, TypeError, ValueError):
        return None


def remember_session(request: Request, session: Session | None) -> None:
    """Set the cookie with the answer to this request; None deletes it."""
    https = request.app.state.settings.https
    value = "" if session is None else _signer(request, "session").dumps({"name": session.name, "token": session.token})
    age = 0 if session is None else WEEK
    request.state.cookie = (
        f"{COOKIE}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{'; Secure' if https else ''}"
    )
    request.state.session = session


def csrf_token(request: Request) -> str:
    """What forms repeat in the field `csrf`, and scripts in the header X-CSRF-Token."""
    session = getattr(request.state, "session", None) or read_session(request)
    return str(_signer(request, "csrf").dumps(session.name if session else ""))


def check_csrf(request: Request, given: str | None) -> None:
    """Refuse a request that does not repeat its token."""
    session = getattr(request.state, "session", None) or read_session(request)
    try:
        known = _signer(request, "csrf").loads(given or "", max_age=WEEK)
    except BadData:
        known = None
    if known is None or not secrets.compare_digest(str(known), session.name if session else ""):
        raise Refused(403, "This form has expired or comes from another site. Load the page again.", FIELD)


def check_origin(request: Request) -> bool:
    """Whether a browser sent the request. Refuses one that a page of another site sent."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    settings = request.app.state.settings
    own = {f"http://{request.headers.get('host')}", f"https://{request.headers.get('host')}", settings.public_url}
    if (origin is not None and origin not in own) or (site is not None and site not in {"same-origin", "none"}):
        raise Refused(403, "A page of another site sent this request.")
    return origin is not None or site is not None


def _signer(request: Request, purpose: str) -> Any:
    return URLSafeTimedSerializer(request.app.state.secret_key, salt=f"quanet-{purpose}")
