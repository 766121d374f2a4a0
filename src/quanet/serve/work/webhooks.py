"""The job "webhook": announces an alarm to the address of the project, until it is accepted."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from quanet import __version__
from quanet.serve.store.alarms import alarm, mark_delivered
from quanet.serve.store.connection import Connection
from quanet.serve.work.job_context import Finish, JobContext, JobRefused, NotYet
from quanet.serve.work.webhook_secrets import SIGNATURE, sign, webhook_secret

SECONDS = 10.0  # that an address may take to answer
PAUSES = (10, 60, 300, 1800, 7200, 21600, 86400)  # seconds before each further attempt
MOST_BYTES = 10_000  # of the answer that are read


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Other addresses than that of the project get no alarm."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def perform(context: JobContext) -> Finish:
    """Send an alarm that was not delivered. An address that does not accept it is tried again, with growing pauses."""
    row, options = context.project()
    with context.store.read() as connection:
        found = alarm(connection, int(context.job.payload["alarm"]))
    if found.delivered is not None or not options.webhook:
        return lambda _: None
    body = json.dumps(
        {
            "alarm": found.id,
            "project": {"id": row.id, "name": row.name},
            "date": found.date,
            "sentence": found.sentence,
            "data": dict(found.data),
            "created": found.created,
        },
        ensure_ascii=False,
    ).encode()
    secret = webhook_secret(context.store, row.id)
    problem = send(options.webhook, body, {SIGNATURE: sign(secret, body), "X-Quanet-Alarm": f"{row.id}-{found.id}"})
    if problem:
        attempt = context.job.attempts - context.job.lost - 1
        if attempt >= len(PAUSES):
            raise JobRefused(f"The webhook did not accept alarm {found.id}: {problem} It was given up.")
        raise NotYet(PAUSES[attempt], f"The webhook did not accept alarm {found.id}: {problem}")

    def store_result(connection: Connection) -> None:
        mark_delivered(connection, found.id)

    return store_result


def send(address: str, body: bytes, headers: dict[str, str]) -> str:
    """Post JSON to an address. Returns what went wrong, or "" if it was accepted (a status of 200 to 299)."""
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise JobRefused(f"{address!r} is not an address such as https://example.org/alarms.")
    about = {"Content-Type": "application/json", "User-Agent": f"quanet/{__version__}"}
    request = urllib.request.Request(address, body, about | headers, method="POST")
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            answer.read(MOST_BYTES)
            return ""
    except urllib.error.HTTPError as error:
        return f"it answered {error.code}."
    except (OSError, HTTPException, ValueError) as error:
        return f"it cannot be reached ({getattr(error, 'reason', error)})."
