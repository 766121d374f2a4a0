import pytest
from fastapi.testclient import TestClient

from quanet.serve.store.tokens import create_token
from quanet.serve.web.app import create_app
from quanet.serve.web.service_settings import ServiceSettings
from tests.serve.web.pages.made_pages import fill

HOME = "https://quanet.example.org"


@pytest.fixture(scope="module")
def project(store):
    return fill(store, "Roles")


@pytest.fixture
def visitor(store):
    """A browser that has signed in with a role."""

    def signed_in(role):
        with store.write() as connection:
            secret = create_token(connection, f"{role} {id(connection)}", role)
        app = create_app(store, ServiceSettings(public_url=HOME))
        client = TestClient(app, base_url=HOME, headers={"accept": "text/html", "origin": HOME})
        answer = client.post("/sign-in", data={"token": secret, "next": "/"}, follow_redirects=False)
        assert answer.headers["location"] == "/"
        return client

    return signed_in


def csrf(client, place):
    return client.get(place).text.split('name="csrf" value="')[1].split('"')[0]


def test_a_visitor_without_a_token_is_asked_for_one(store):
    app = create_app(store, ServiceSettings(public_url=HOME))
    client = TestClient(app, base_url=HOME, headers={"accept": "text/html"})
    page = client.get("/")
    assert page.url.path == "/sign-in"
    assert 'name="token"' in page.text
    assert "This token is not known." in client.get("/sign-in?failed=1").text
    assert "Sign out" not in page.text


def test_who_may_read_sees_everything_and_no_form(visitor, project):
    client = visitor("read")
    for part in ("", "/batches", f"/batches/{project.batch}", "/model", "/monitor", "/setup", "/settings"):
        page = client.get(f"/projects/{project.project}{part}")
        assert page.status_code == 200, part
        for action in ("Estimate</button>", "Train</button>", "Save</button>", "Delete", "Label with the keyboard"):
            assert action not in page.text, part
        assert "Sign out" in page.text
    assert "Create project" not in client.get("/").text
    data = {"csrf": csrf(client, "/"), "confirm": "Roles"}
    refused = client.post(f"/projects/{project.project}/delete", data=data)
    assert refused.status_code == 403
    assert "This needs a token with the role &#39;manage&#39;" in refused.text


def test_who_may_label_labels_and_changes_nothing_else(visitor, project):
    client = visitor("label")
    batch = f"/projects/{project.project}/batches/{project.batch}"
    assert "Label with the keyboard" in client.get(batch).text
    assert "Which class is it?" in client.get(f"{batch}/label").text
    assert "Delete this batch" not in client.get(batch).text


def test_several_people_never_see_the_same_text(visitor, store):
    other = fill(store, "Two people")
    place = f"/projects/{other.project}/batches/{other.batch}/label"
    pages = [visitor("label").get(place).text for _ in range(2)]
    items = [page.split('name="item" value="')[1].split('"')[0] for page in pages]
    assert items[0] != items[1]


def test_the_cookie_of_one_visitor_does_not_make_the_forms_of_another_work(visitor, project):
    ann, bob = visitor("manage"), visitor("manage")
    data = {"csrf": csrf(ann, f"/projects/{project.project}/settings"), "confirm": "Roles"}
    assert bob.post(f"/projects/{project.project}/delete", data=data).status_code == 403
    assert ann.get(f"/projects/{project.project}").status_code == 200
