"""Around every request: its id, the Host check, limits of the body, headers of the answer, the access log, metrics."""

import asyncio
import json
import re
import secrets
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quanet.serve.web.error_answers import INTERNAL, Refused
from quanet.serve.web.service_logs import ACCESS, LOG
from quanet.serve.web.service_metrics import Meters
from quanet.serve.web.service_settings import ServiceSettings

BODY_BYTES = 2**20  # of requests that are not uploads
IDLE_SECONDS = 60.0  # between two parts of a body
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send forms with "Origin: null"
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
# Requests at once: more would only wait for each other, so they are told to come back. Uploads may take long, hence
# two limits.
READS_AT_ONCE, CHANGES_AT_ONCE = 6, 8
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")


class Envelope:
    """ASGI middleware around the whole service."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, meters: Meters) -> None:
        self.app, self.settings, self.meters = app, settings, meters
        self.limits = {True: READS_AT_ONCE, False: CHANGES_AT_ONCE}
        self.at_once = {True: 0, False: 0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it if too many are answered already."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        reads = scope["method"] in {"GET", "HEAD", "OPTIONS"}
        busy = self.at_once[reads] >= self.limits[reads] and not _is_light(scope)
        self.at_once[reads] += 1
        try:
            await _Exchange(self, scope, receive, send, busy=busy).run()
        finally:
            self.at_once[reads] -= 1


class _Exchange:
    """One request and its answer."""

    def __init__(self, envelope: Envelope, scope: Scope, receive: Receive, send: Send, *, busy: bool) -> None:
        self.envelope, self.scope, self.receive_raw, self.send_raw, self.busy = envelope, scope, receive, send, busy
        self.state = scope.setdefault("state", {})
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = self.headers.get("x-request-id", "")
        self.id = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        self.state["request_id"] = self.id
        self.status, self.body_read, self.body_ended = 0, 0, False

    async def run(self) -> None:
        started = time.perf_counter()
        try:
            hosts = self.envelope.settings.hosts
            if hosts is not None and _without_port(self.headers.get("host", "")) not in hosts:
                await self._answer(400, "The Host header names another address. See --public-url of quanet serve.")
            elif self.busy:
                await self._answer(429, "The service is busy. Try again in 1 s.", (b"retry-after", b"1"))
            else:
                await self.envelope.app(self.scope, self.receive, self.send)
        except Exception as error:  # noqa: BLE001 - the service keeps running, and the log has the traceback
            LOG.exception("request failed", extra={"facts": {"request": self.id}})
            if not self.status:
                status, sentence = (error.status_code, str(error)) if isinstance(error, Refused) else (500, INTERNAL)
                await self._answer(status, sentence)
        finally:
            self._record(time.perf_counter() - started)

    async def receive(self) -> Message:
        """A part of the body, counted."""
        if self.body_ended:
            return await self.receive_raw()  # waits until the visitor leaves
        try:
            message = await asyncio.wait_for(self.receive_raw(), IDLE_SECONDS)
        except TimeoutError:
            raise Refused(408, "The request was not received completely. Send it again.") from None
        self.body_ended = message["type"] != "http.request" or not message.get("more_body", False)
        self.body_read += len(message.get("body", b""))
        if self.body_read > self.state.get("body_limit", BODY_BYTES):
            raise Refused(413, "The request is too large.")
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer, with the headers that all answers have."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"] = list(message.get("headers", []))
            known = {name.lower() for name, _ in headers}
            caching = {"cache-control": "max-age=3600"} if _is_static(self.scope) else {}
            for name, value in {**HEADERS, **caching, "x-request-id": self.id}.items():
                if name.encode() not in known:
                    headers.append((name.encode(), value.encode()))
            if self.state.get("cookie"):
                headers.append((b"set-cookie", self.state["cookie"].encode("latin-1")))
        await self.send_raw(message)

    async def _answer(self, status: int, sentence: str, *further: tuple[bytes, bytes]) -> None:
        body = json.dumps({"error": sentence, "field": None}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += further
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def _record(self, seconds: float) -> None:
        route: Any = self.scope.get("route")
        template = getattr(route, "path_format", None) or ("/static" if _is_static(self.scope) else "other")
        method = self.scope["method"] if self.scope["method"] in METHODS else "OTHER"
        self.envelope.meters.requests.labels(method, template, str(self.status)).inc()
        self.envelope.meters.seconds.labels(template).observe(seconds)
        if template in QUIET:
            return
        visitor = self.state.get("visitor")
        facts = {
            "request": self.id,
            "method": method,
            "path": self.scope["path"][:200],  # without the query, which may contain names
            "status": self.status,
            "milliseconds": round(seconds * 1000, 1),
            "visitor": visitor.name if visitor else "",
            "client": self.scope["client"][0] if self.scope.get("client") else "",
        }
        ACCESS.info("request", extra={"facts": facts})


METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}
QUIET = {"/health", "/ready", "/metrics", "/static"}  # not in the access log


def _is_static(scope: Scope) -> bool:
    return str(scope["path"]).startswith("/static/")


def _is_light(scope: Scope) -> bool:
    return _is_static(scope) or scope["path"] in QUIET


def _without_port(host: str) -> str:
    return re.sub(r":\d*$", "", host).lower()
