"""Alarms are sent to the address of the project: signed, again if they are not accepted, and once."""

import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from quanet.serve.store import jobs
from quanet.serve.store.alarms import add_alarm, alarm
from quanet.serve.store.projects import change_settings
from quanet.serve.store.schema import jobs as table
from quanet.serve.work.webhook_secrets import webhook_secret


class Receiver(HTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.received, self.answers = [], []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/alarms"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((dict(self.headers), body))
        status = self.server.answers.pop(0) if self.server.answers else 204
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def alarmed(service, address):
    with service.store.write() as connection:
        change_settings(connection, service.project, {"webhook": address})
        found, _ = add_alarm(connection, service.project, "k", "2024-04-01", "positive fell", {"points": -30.0})
        job = jobs.enqueue(connection, "webhook", service.project, {"alarm": found.id}, key="webhook:1")
    return found, job


def now(service):
    """As if the pause before the next attempt were over."""
    with service.store.write() as connection:
        connection.execute(table.update().values(not_before=0.0))


def test_it_is_signed_and_sent_once(fresh, receiver):
    found, _ = alarmed(fresh, receiver.address)
    fresh.work()
    fresh.ask("webhook", {"alarm": found.id})
    fresh.work()
    ((headers, body),) = receiver.received
    secret = webhook_secret(fresh.store, fresh.project)
    assert headers["X-Quanet-Signature"] == "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()
    assert headers["X-Quanet-Alarm"] == f"{fresh.project}-{found.id}"
    assert json.loads(body)["sentence"] == "positive fell"
    with fresh.store.read() as connection:
        assert alarm(connection, found.id).delivered


@pytest.mark.parametrize("status", [500, 302])
def test_it_is_sent_again_later_if_it_is_not_accepted(fresh, receiver, status):
    receiver.answers = [status]
    found, job = alarmed(fresh, receiver.address)
    fresh.work()
    waiting = fresh.job(job.id)
    assert waiting.state == "queued"
    assert waiting.not_before > waiting.created + 5
    assert f"it answered {status}" in waiting.error
    now(fresh)
    fresh.work()
    assert [headers["X-Quanet-Alarm"] for headers, _ in receiver.received] == [f"{fresh.project}-{found.id}"] * 2
    assert fresh.job(job.id).state == "done"


def test_after_many_attempts_it_is_given_up(fresh, receiver):
    receiver.server_close()  # nobody listens
    _, job = alarmed(fresh, receiver.address)
    for _ in range(8):
        fresh.work()
        now(fresh)
    assert fresh.job(job.id).state == "failed"
    assert "cannot be reached" in fresh.job(job.id).error


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://example.org/x", "gopher://x", "no address"])
def test_only_web_addresses_are_used(fresh, address):
    _, job = alarmed(fresh, address)
    fresh.work()
    assert fresh.job(job.id).state == "failed"
    assert "is not an address" in fresh.job(job.id).error
