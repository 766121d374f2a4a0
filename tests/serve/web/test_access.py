"""Who may do what."""

import re

import pytest
from fastapi import APIRouter
from starlette.testclient import TestClient

from quanet.serve.store.tokens import delete_token, list_tokens
from quanet.serve.web import envelope
from quanet.serve.web.access import PUBLIC, ROLES, check_rules, rule_of
from quanet.serve.web.app import create_app
from quanet.serve.web.service_settings import ServiceSettings
from quanet.serve.web.sessions import COOKIE

from .conftest import ABROAD, HOME

READ = ("GET",)
# What a role other than `read` is needed for; everything else is reading, and needs no more than `read`.
LABEL = {"plan", "label", "undo"}


def all_routes(app):
    """Every address with its methods and the role that it requires."""
    for router in app.state.routers:
        for route in router.routes:
            for method in sorted(route.methods - {"HEAD"}):
                yield method, route.path, rule_of(route)


def address(path, made):
    values = {
        "project_id": made.project,
        "number": str(made.batch),
        "form": "json",
    }
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: values.get(match[1], "1"), path)


def test_every_address_has_a_rule(client):
    found = list(all_routes(client.app))
    assert len(found) > 30
    assert {path for _, path, rule in found if rule is None} <= PUBLIC


def test_changing_needs_more_than_reading(client):
    for method, path, rule in all_routes(client.app):
        if path in PUBLIC or method == "GET":
            continue
        assert rule == ("label" if path.rsplit("/", 1)[-1] in LABEL else "manage"), (method, path)


def test_each_role_may_do_what_the_rules_say_and_nothing_else(abroad, made, secrets):
    abroad.app.state.requests.burst = 1e9
    for method, path, rule in all_routes(abroad.app):
        if path in PUBLIC:
            continue
        place = address(path, made)
        # A body that no address accepts: access is refused before, and nothing changes.
        for role in (None, *ROLES):
            headers = {"authorization": f"Bearer {secrets[role]}"} if role else {}
            answer = abroad.request(method, place, headers=headers, content=b"x" if method != "GET" else None)
            enough = role is not None and ROLES.index(role) >= ROLES.index(rule)
            if role is None:
                assert answer.status_code == 401, (method, path)
            else:
                assert (answer.status_code != 403) == enough, (method, path, role, answer.text)
            assert answer.status_code < 500
            if method == "DELETE" and answer.status_code == 204:
                break


def test_a_route_without_a_rule_is_refused():
    router = APIRouter()
    router.get("/secret")(lambda: None)
    with pytest.raises(AssertionError, match="has no rule"):
        check_rules(router)


def test_public_addresses_need_nothing(abroad):
    assert abroad.get("/health").status_code == 200
    assert abroad.get("/ready").status_code == 200


def test_a_wrong_token_is_refused_and_guessing_is_limited(abroad):
    answers = [abroad.get("/api/projects", headers={"authorization": f"Bearer x{at}"}) for at in range(25)]
    assert answers[0].status_code == 401
    assert answers[0].headers["www-authenticate"] == "Bearer"
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_the_last_use_of_a_token_is_noted(abroad, store, secrets):
    abroad.get("/api/projects", headers={"authorization": f"Bearer {secrets['read']}"})
    with store.read() as connection:
        assert [one.name for one in list_tokens(connection) if one.used] == ["read"]


def test_odd_tokens_are_refused(abroad):
    for secret in (b"", b" ", b"\xff\xfe", b"a" * 5000, b"'; drop table tokens; --"):
        answer = abroad.get("/api/projects", headers={b"authorization": b"Bearer " + secret})
        assert answer.status_code == 401


def sign_in(client, secret, **more):
    return client.post("/sign-in", data={"token": secret, **more})


def test_signing_in_sets_a_signed_cookie_that_scripts_and_other_sites_cannot_use(abroad, secrets):
    answer = sign_in(abroad, secrets["read"], next="/projects.json")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/projects.json"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert secrets["read"] not in cookie
    assert abroad.get("/api/projects").status_code == 200
    value = abroad.cookies[COOKIE]
    abroad.cookies.delete(COOKIE)
    # Not the last letter of the signature, of which some bits do not count.
    abroad.cookies.set(COOKIE, value[:-9] + ("A" if value[-9] != "A" else "B") + value[-8:])
    assert abroad.get("/api/projects").status_code == 401


def test_https_limits_the_cookie_to_https(store, secrets):
    app = create_app(store, ServiceSettings(public_url="https://quanet.example.org"))
    client = TestClient(app, base_url="https://quanet.example.org", follow_redirects=False)
    assert "; Secure" in sign_in(client, secrets["read"]).headers["set-cookie"]


@pytest.mark.parametrize("to", ["https://evil.example", "//evil.example", "/\\evil.example", "x", "/a\nb"])
def test_signing_in_never_leads_to_another_site(abroad, secrets, to):
    assert sign_in(abroad, secrets["read"], next=to).headers["location"] == "/"


def test_a_wrong_token_does_not_sign_in(abroad):
    answer = sign_in(abroad, "wrong")
    assert answer.headers["location"] == "/sign-in?failed=1"
    assert "set-cookie" not in answer.headers


def test_deleting_a_token_signs_its_users_out(abroad, store, secrets):
    sign_in(abroad, secrets["read"])
    assert abroad.get("/api/projects").status_code == 200
    with store.write() as connection:
        delete_token(connection, "read")
    assert abroad.get("/api/projects").status_code == 401
    assert abroad.get("/api/projects", headers={"authorization": f"Bearer {secrets['read']}"}).status_code == 401


def test_signing_out_deletes_the_cookie(abroad, secrets):
    sign_in(abroad, secrets["read"])
    assert abroad.post("/sign-out").status_code == 303
    assert abroad.get("/api/projects").status_code == 401


def csrf_of(client):
    """The token that a page of this browser has."""
    from starlette.requests import Request

    from quanet.serve.web.sessions import csrf_token

    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    scope = {"type": "http", "headers": [(b"cookie", cookie.encode())], "app": client.app, "state": {}}
    return csrf_token(Request(scope))


def test_a_browser_that_is_signed_in_repeats_a_token_to_change_something(abroad, secrets):
    sign_in(abroad, secrets["manage"])
    new = {"name": "From a page"}
    assert abroad.post("/api/projects", json=new).status_code == 403
    assert abroad.post("/api/projects", json=new, headers={"x-csrf-token": "x"}).status_code == 403
    token = csrf_of(abroad)
    assert abroad.post("/api/projects", json=new, headers={"x-csrf-token": token}).status_code == 201


def test_the_token_of_another_browser_is_not_accepted(abroad, secrets):
    sign_in(abroad, secrets["manage"])
    token = csrf_of(abroad)
    sign_in(abroad, secrets["manage"])
    assert abroad.post("/api/projects", json={"name": "x"}, headers={"x-csrf-token": token}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}],
)
def test_another_site_cannot_send_requests_to_this_machine(client, headers):
    assert client.post("/api/projects", json={"name": "x"}, headers=headers).status_code == 403
    assert client.get("/api/projects", headers=headers).status_code == 403


def test_a_page_of_this_machine_repeats_a_token(client):
    own = {"origin": HOME, "sec-fetch-site": "same-origin"}
    assert client.post("/api/projects", json={"name": "x"}, headers=own).status_code == 403
    token = csrf_of(client)
    assert client.post("/api/projects", json={"name": "x"}, headers={**own, "x-csrf-token": token}).status_code == 201


def test_a_program_on_this_machine_needs_no_token(client):
    assert client.post("/api/projects", json={"name": "x"}).status_code == 201


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""])
def test_a_name_that_was_given_the_address_of_this_machine_is_refused(client, host):
    assert client.get("/api/projects", headers={"host": host}).status_code == 400


def test_the_names_of_this_machine_are_answered(client):
    for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"):
        assert client.get("/api/projects", headers={"host": host}).status_code == 200


def test_every_answer_has_strict_headers(client, made):
    for path in ("/api/projects", "/nothing", f"/projects/{made.project}/overview.csv", "/health"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-request-id"]


def test_visitors_have_rates(store, secrets):
    app = create_app(store, ServiceSettings(requests_per_minute=60, public_url=ABROAD))
    client = TestClient(app, base_url=ABROAD)

    def ask(role):
        return client.get("/api/projects", headers={"authorization": f"Bearer {secrets[role]}"})

    answers = [ask("read") for _ in range(12)]
    assert [one.status_code for one in answers[:10]] == [200] * 10
    assert answers[-1].status_code == 429
    assert answers[-1].headers["retry-after"] == "1"
    assert ask("manage").status_code == 200  # of another visitor


def test_settings_say_who_signs_in():
    assert not ServiceSettings().sign_in
    assert ServiceSettings(host="0.0.0.0").sign_in
    assert ServiceSettings(public_url="https://x.org").sign_in
    assert not ServiceSettings(host="0.0.0.0", insecure=True).sign_in
    assert ServiceSettings(host="::1", port=80).address == "http://[::1]:80"


def test_more_requests_than_can_be_answered_at_once_are_told_to_come_back(store, monkeypatch):
    monkeypatch.setattr(envelope, "READS_AT_ONCE", 0)
    with TestClient(create_app(store, ServiceSettings()), base_url="http://127.0.0.1:8000") as client:
        refused = client.get("/api/projects")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["error"] == "The service is busy. Try again in 1 s."
        assert client.get("/health").status_code == 200
