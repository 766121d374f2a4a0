import shutil
import socket
import threading
import time

import pytest
import uvicorn
from starlette.testclient import TestClient

from quanet.serve.store.tokens import create_token
from quanet.serve.web.app import create_app
from quanet.serve.web.service_settings import ServiceSettings
from tests.serve.fast_store import open_store

from .made_service import fill

HOME = "http://127.0.0.1:8000"
ABROAD = "http://quanet.example.org"


@pytest.fixture(scope="session")
def filled_data(tmp_path_factory):
    """A data folder with a project that has everything, and what is in it; copied for every test that changes it."""
    folder = tmp_path_factory.mktemp("filled")
    store = open_store(folder / "data")
    made = fill(store, folder)
    secrets = {}
    with store.write() as connection:
        for role in ("read", "label", "manage"):
            secrets[role] = create_token(connection, role, role)
    store.close()
    return folder / "data", made, secrets


@pytest.fixture
def made(filled_data):
    return filled_data[1]


@pytest.fixture
def secrets(filled_data):
    return filled_data[2]


@pytest.fixture
def store(filled_data, tmp_path):
    shutil.copytree(filled_data[0], tmp_path / "data")
    store = open_store(tmp_path / "data")
    yield store
    store.close()


@pytest.fixture
def client(store):
    """A program on this machine, where nobody signs in."""
    with TestClient(create_app(store, ServiceSettings()), base_url=HOME) as client:
        yield client


@pytest.fixture
def abroad(store):
    """A program elsewhere, which needs a token."""
    settings = ServiceSettings(host="0.0.0.0", public_url=ABROAD)
    with TestClient(create_app(store, settings), base_url=ABROAD, follow_redirects=False) as client:
        yield client


@pytest.fixture
def served(store):
    """A service behind a real connection: its address, and the application."""
    sockets = [socket.socket()]
    sockets[0].bind(("127.0.0.1", 0))
    port = sockets[0].getsockname()[1]
    app = create_app(store, ServiceSettings(port=port))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run, args=(sockets,))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}", app
    server.should_exit = True
    thread.join()
    sockets[0].close()
