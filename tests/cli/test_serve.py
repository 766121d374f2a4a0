"""quanet serve, worker and token."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request

import pytest

from quanet.cli import serve_options
from quanet.cli.worker import _follow_parent
from quanet.serve import supervisor
from quanet.serve.store.connection import FILE, ServiceStore
from quanet.serve.store.tokens import find_token
from quanet.serve.supervisor import Workers, worker_command
from quanet.serve.web.service_settings import ServiceSettings

from .test_main import call


@pytest.fixture
def data(tmp_path):
    return str(tmp_path / "data")


def errors(capsys):
    return capsys.readouterr().err.replace("\n", " ")


def test_the_check_says_that_the_service_can_start(monkeypatch, capsys, data):
    assert call(monkeypatch, "serve", "--check", "--data", data, "--port", "0") == 0
    assert "The service can start: http://127.0.0.1:0" in errors(capsys)


def test_another_address_needs_a_token_or_insecure(monkeypatch, capsys, data):
    words = ("serve", "--check", "--data", data, "--port", "0", "--host", "0.0.0.0")
    assert call(monkeypatch, *words) == 1
    assert "there is no token. Create one with `quanet token create NAME" in errors(capsys)
    assert call(monkeypatch, *words, "--insecure") == 0
    assert call(monkeypatch, "token", "create", "ann", "--role", "label", "--data", data) == 0
    secret = capsys.readouterr().out.strip()
    assert call(monkeypatch, *words) == 0
    store = ServiceStore.open(data)
    with store.read() as connection:
        assert find_token(connection, secret).role == "label"
    store.close()


def test_a_proxy_needs_a_token_too(monkeypatch, capsys, data):
    words = ("serve", "--check", "--data", data, "--port", "0", "--public-url")
    assert call(monkeypatch, *words, "https://quanet.example.org") == 1
    assert "https://quanet.example.org can be reached" in errors(capsys)
    assert call(monkeypatch, *words, "quanet.example.org") == 1
    assert "is not an address such as" in errors(capsys)


def test_a_port_in_use_is_one_line(monkeypatch, capsys, data):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        assert call(monkeypatch, "serve", "--data", data, "--port", port) == 1
    assert f"127.0.0.1:{port} cannot be used: Address already in use. Choose another --port." in errors(capsys)


def test_an_address_of_another_machine_is_one_line(monkeypatch, capsys, data):
    assert call(monkeypatch, "serve", "--insecure", "--data", data, "--host", "203.0.113.1") == 1
    assert "Choose another --host." in errors(capsys)


def test_a_folder_that_is_a_file_is_one_line(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    for command in (("serve", "--check"), ("worker", "--once"), ("token", "list")):
        assert call(monkeypatch, *command, "--data", str(tmp_path / "file")) == 1
        assert "cannot be written" in errors(capsys)


def test_a_database_of_a_newer_version_is_one_line(monkeypatch, capsys, data):
    ServiceStore.open(data).close()
    with sqlite3.connect(f"{data}/{FILE}") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'from-the-future'")
    assert call(monkeypatch, "serve", "--data", data, "--port", "0") == 1
    assert "newer" in errors(capsys)


def test_tokens_are_created_listed_and_deleted(monkeypatch, capsys, data):
    assert call(monkeypatch, "token", "create", "ann", "--data", data) == 0
    printed = capsys.readouterr()
    assert re.fullmatch(r"quanet_[\w-]{43}\n", printed.out)
    assert "cannot be shown again" in printed.err
    assert call(monkeypatch, "token", "create", "ann", "--data", data) == 1
    assert "already exists" in errors(capsys)
    assert call(monkeypatch, "token", "list", "--data", data) == 0
    assert re.search(r"ann +manage .* never", capsys.readouterr().out)
    assert call(monkeypatch, "token", "delete", "ann", "--data", data) == 0
    assert call(monkeypatch, "token", "delete", "ann", "--data", data) == 1


def test_the_data_folder_is_of_the_user_by_default(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert serve_options.data_folder(None) == tmp_path / "quanet"


def test_a_missing_package_names_the_extra(monkeypatch, capsys, data):
    monkeypatch.setitem(sys.modules, "quanet.serve.work.worker", None)
    assert call(monkeypatch, "worker", "--data", data) == 1
    assert "pip install 'quanet[serve]'" in errors(capsys)


def test_a_worker_does_what_waits_and_exits(monkeypatch, data):
    assert call(monkeypatch, "worker", "--once", "--child", str(os.getppid()), "--data", data) == 0


def test_a_worker_ends_with_its_server(monkeypatch):
    import threading

    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr("quanet.cli.worker.PATIENCE", 0.0)
    stop, done = threading.Event(), threading.Event()
    _follow_parent(-1, stop, done)
    assert stop.is_set()
    assert ended == [1]
    done.set()
    _follow_parent(-1, stop, done)
    assert ended == [1]


@pytest.mark.no_cover
def test_a_worker_whose_server_died_before_it_started_ends(data):
    command = [sys.executable, "-m", "quanet", "worker", "--data", data, "--child", "999999999"]
    assert subprocess.run(command, timeout=60, check=False, capture_output=True).returncode == 0


def test_a_worker_that_dies_is_started_again(monkeypatch, tmp_path):
    monkeypatch.setattr(supervisor, "QUICK_DEATH", 0.0)
    kept = Workers({"quick": [sys.executable, "-S", "-c", "import time; time.sleep(60)"]})
    kept.start()
    try:
        first = kept.processes["quick"]
        first.kill()
        until = time.monotonic() + 20
        while kept.processes["quick"] is first and time.monotonic() < until:
            time.sleep(0.05)
        assert kept.processes["quick"].pid != first.pid
    finally:
        kept.stop()
    assert kept.processes["quick"].returncode == -signal.SIGTERM


def test_a_worker_that_dies_at_once_waits_longer_each_time(monkeypatch):
    kept = Workers({"quick": [sys.executable, "-S", "-c", "raise SystemExit(1)"]})
    kept._start("quick")
    process = kept.processes["quick"]
    process.wait()
    assert [kept._pause_after("quick", process) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    process.returncode = 0  # it ended after a training
    assert kept._pause_after("quick", process) == 0


def test_workers_get_the_limits_of_the_service(tmp_path):
    command = worker_command(tmp_path, "long", ServiceSettings(rows=10, seconds=2.5))
    assert command[1:] == [
        *("-m", "quanet", "worker", "--data", str(tmp_path), "--lane", "long", "--child", str(os.getpid())),
        *("--max-rows", "10", "--max-seconds", "2.5"),
    ]


@pytest.mark.no_cover
def test_the_service_starts_answers_and_stops(data):
    """In a process of its own, without workers; SIGTERM ends it with 0."""
    command = [sys.executable, "-m", "quanet", "serve", "--data", data, "--port", "0", "--no-workers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{address}/health") as answer:
            assert answer.status == 200
        process.terminate()
        assert process.wait(30) == 0
        logs = process.stderr.read()
    assert '"level": "info"' in logs
    assert "Traceback" not in logs


def test_the_service_serves_in_this_process(data, monkeypatch):
    """Until it is told to stop, which here happens as soon as it is ready."""
    store = ServiceStore.open(data)
    found = []

    def stop(address):
        found.append(address)
        os.kill(os.getpid(), signal.SIGTERM)

    supervisor.serve_requests(store, ServiceSettings(port=0), workers=False, ready=stop)
    assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d+", found[0])
