import pytest
from fastapi.testclient import TestClient

from quanet.serve.web.app import create_app
from tests.serve.fast_store import open_store
from tests.serve.web.pages.made_pages import fill

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}{% raw %}"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    opened = open_store(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def made(store):
    return fill(store, HOSTILE, file_name=f"{HOSTILE}.csv")


@pytest.fixture(scope="module")
def client(store):
    headers = {"accept": "text/html"}
    with TestClient(create_app(store), base_url="http://localhost", headers=headers) as opened:
        yield opened


@pytest.fixture
def form(client):
    """Send the form of a page, with its token."""

    def send(page, action, fields=None, files=None):
        csrf = client.get(page).text.split('name="csrf" value="')[1].split('"')[0]
        headers = {"origin": "http://localhost"}
        data = {"csrf": csrf} | (fields or {})
        return client.post(action, data=data, files=files, headers=headers, follow_redirects=False)

    return send
