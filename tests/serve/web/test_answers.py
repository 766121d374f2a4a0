"""Answers in every form, the model as an archive, the feed, and what operators look at."""

import io
import json
import xml.etree.ElementTree as ET
import zipfile

import pytest

from quanet.serve.store.alarms import add_alarm
from quanet.serve.web.service_logs import JsonLines

from .made_service import FORMS, REPORT

PLACES = ("batches/{batch}", "batches/{batch}/refined", "overview", "monitor", "training", "files/{file}/check")


@pytest.mark.parametrize("place", PLACES)
def test_every_answer_has_all_forms(client, made, place):
    home = f"/projects/{made.project}/{place.format(batch=made.batch, file=made.file)}"
    for form, content in {**FORMS, "html": REPORT.encode()}.items():
        answer = client.get(f"{home}.{form}")
        assert answer.content == content
        assert answer.headers["cache-control"] == "private, no-cache"
        again = client.get(f"{home}.{form}", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == answer.headers["etag"]
    assert client.get(f"{home}.exe").status_code == 422


def test_a_difference_has_its_groups_in_the_address(client, made):
    found = client.get(f"/api/projects/{made.project}/differences").json()["differences"][0]
    assert found["forms"]["csv"] == f"/projects/{made.project}/difference.csv?before=2024-01&after=2024-02"
    assert client.get(found["forms"]["csv"]).content == FORMS["csv"]
    assert client.get(found["forms"]["csv"].replace("2024-02", "2024-03")).status_code == 404


def test_a_report_runs_no_script_and_has_no_origin(client, made):
    headers = client.get(f"/projects/{made.project}/overview.html").headers
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "sandbox" in headers["content-security-policy"]
    assert "script-src" not in headers["content-security-policy"]


def test_the_batch_has_its_sentence_command_and_addresses(client, made):
    found = client.get(f"/api/projects/{made.project}/batches/{made.batch}").json()
    assert found["answer"]["sentence"] == "62 % are positive."
    assert found["answer"]["command"] == "quanet predict model march.csv"
    assert set(found["answer"]["forms"]) == {*FORMS, "html"}
    for place in found["refined"]["forms"].values():
        assert client.get(place).status_code == 200


def test_an_answer_that_does_not_exist_yet_is_404(client, made):
    project = client.post("/api/projects", json={"name": "New"}).json()["id"]
    for place in ("overview.json", "monitor.json", "training.json", "batches/1.json", "model.json"):
        answer = client.get(f"/projects/{project}/{place}")
        assert answer.status_code == 404
        assert answer.json()["error"]
    assert client.get(f"/projects/{made.project}/batches/99.json").status_code == 404
    assert client.get(f"/api/projects/{project}/overview").status_code == 404
    assert client.get(f"/api/projects/{project}/model.zip").status_code == 404


def test_the_model_is_sent_as_an_archive_of_its_folder_alone(client, made, store, tmp_path):
    found = client.get(f"/api/projects/{made.project}/model").json()
    folder = store.models.path(found["model"])
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    answer = client.get(found["download"])
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["model/arrays", "model/config.json"]
        assert archive.read("model/arrays") == b"0" * 1000
    assert answer.headers["content-disposition"].startswith('attachment; filename="model-')
    assert found["card"]["sentence"] == "62 % are positive."


def test_pages_have_a_twin_in_json(client, made):
    home = f"/projects/{made.project}"
    assert client.get("/projects.json").json() == client.get("/api/projects").json()
    assert client.get(f"{home}.json").json() == client.get(f"/api{home}").json()
    assert client.get(f"{home}/model.json").json() == client.get(f"/api{home}/model").json()
    assert client.get(f"{home}/alarms.json").json() == client.get(f"/api{home}/alarms").json()
    assert client.get(f"/jobs/{made.job}.json").json() == client.get(f"/api/jobs/{made.job}").json()


def test_lists_have_pages(client, made):
    for at in range(5):
        client.post("/api/projects", json={"name": f"Project {at}"})
    names, before = [], None
    while True:
        page = client.get("/api/projects", params={"limit": 2, **({"before": before} if before else {})}).json()
        names += [one["name"] for one in page["projects"]]
        before = page["next"]
        if before is None:
            break
    assert names == ["Project 4", "Project 3", "Project 2", "Project 1", "Project 0", "Film reviews"]


def test_the_feed_is_atom_and_escapes_texts(client, made, store):
    with store.write() as connection:
        add_alarm(connection, made.project, "k", "2024-03-01", "Control \x0b character", {})
    answer = client.get(f"/projects/{made.project}/feed.atom")
    assert answer.headers["content-type"] == "application/atom+xml"
    feed = ET.fromstring(answer.text)
    space = {"a": "http://www.w3.org/2005/Atom"}
    entries = feed.findall("a:entry", space)
    assert [entry.find("a:content", space).text for entry in entries] == [
        "Control  character",
        "More <b>negative</b> & fewer.",
    ]
    assert feed.find("a:link[@rel='self']", space).get("href").endswith(f"/projects/{made.project}/feed.atom")
    assert len({entry.find("a:id", space).text for entry in entries}) == 2


def test_metrics_are_by_template_not_by_address(client, made):
    client.get(f"/api/projects/{made.project}")
    client.get("/no/such/place")
    text = client.get("/metrics").text
    assert 'quanet_requests_total{method="GET",route="/api/projects/{project_id}",status="200"} 1.0' in text
    assert 'route="other",status="404"' in text
    assert made.project not in text
    assert 'quanet_jobs{kind="overview",state="queued"}' in text


def test_readiness_needs_the_database(client, store, monkeypatch):
    assert client.get("/ready").json() == {"status": "ready"}
    monkeypatch.setattr("quanet.serve.web.service_routes.count_projects", lambda _: 1 / 0)
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})
    assert client.get("/health").status_code == 200


def test_the_log_has_lines_of_json_without_queries_and_secrets(abroad, secrets, made, logged):
    headers = {"authorization": f"Bearer {secrets['read']}", "x-request-id": "request-1234"}
    abroad.get(f"/projects/{made.project}/difference.json?before=secret-group&after=b", headers=headers)
    lines = [JsonLines().format(record) for record in logged if record.name == "quanet.access"]
    found = json.loads(lines[-1])
    assert found["request"] == "request-1234"
    assert found["visitor"] == "read"
    assert found["path"] == f"/projects/{made.project}/difference.json"
    assert found["status"] == 404
    assert not any(secret in line for line in lines for secret in (*secrets.values(), "secret-group"))


def test_a_bug_is_an_internal_error_with_a_traceback_in_the_log(client, monkeypatch, logged):
    monkeypatch.setattr("quanet.serve.web.project_routes.list_projects", lambda *_: 1 / 0)
    answer = client.get("/api/projects")
    assert answer.status_code == 500
    assert answer.json() == {"error": "Internal error. The log of the service has the details.", "field": None}
    assert answer.headers["x-content-type-options"] == "nosniff"
    record = next(one for one in logged if one.getMessage() == "request failed")
    assert "ZeroDivisionError" in json.loads(JsonLines().format(record))["traceback"]


def test_every_change_is_in_the_audit_log(client, made):
    project = client.post("/api/projects", json={"name": "New"}).json()["id"]
    client.patch(f"/api/projects/{project}", json={"name": "Newer", "settings": {"text": "review"}})
    client.post(f"/api/projects/{project}/training", content=b"text,label\na,b\n")
    client.post(f"/api/projects/{project}/train", json={"settings": {"method": "CC"}})
    client.post(f"/api/projects/{made.project}/batches", content=b"text\nx\n")
    client.post(f"/api/projects/{made.project}/differences", json={"before": ["2024-01"], "after": ["2024-02"]})
    client.post(f"/api/projects/{made.project}/batches/{made.batch}/plan")
    client.delete(f"/api/projects/{made.project}/batches/{made.batch}")
    client.delete(f"/api/projects/{project}")
    client.post("/api/demo")
    entries = client.get("/api/audit").json()["entries"]
    assert [one["action"] for one in reversed(entries)] == [
        "create project",
        "change settings",
        "upload training file",
        "change settings",
        "train",
        "upload batch",
        "compare",
        "plan labels",
        "delete batch",
        "delete project",
        "demo",
    ]
    assert {one["who"] for one in entries} == {"local"}


def test_what_is_not_possible_now_is_refused_with_a_sentence(client, made):
    project = client.post("/api/projects", json={"name": "New"}).json()["id"]
    groups = {"before": ["a"], "after": ["b"]}
    for method, place, body, sentence in (
        ("POST", f"/api/projects/{project}/train", {}, "has no labelled file yet"),
        ("POST", f"/api/projects/{project}/differences", groups, "has no answer yet"),
        ("POST", f"/api/projects/{made.project}/differences", {**groups, "after": ["a"]}, "two different groups"),
        ("POST", f"/api/projects/{made.project}/differences", {"before": ["a", "b"], "after": ["c"]}, "1 columns"),
        ("POST", f"/api/projects/{made.project}/train", {"file": 2}, "not a labelled file"),
        ("PATCH", f"/api/projects/{made.project}", {"version": 77}, "changed by someone else"),
        ("PATCH", f"/api/projects/{made.project}", {"name": "\u200b"}, "a name"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"method": "os:system"}}, "Unknown method"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"encoding": "x"}}, "Unknown encoding"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"delimiter": "comma"}}, "Unknown delimiter"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"level": 2}}, "level"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"names": ["x"]}}, "LABEL=NAME"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"webhook": "file:///x"}}, "not an address"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"nothing": 1}}, "nothing"),
        ("PATCH", f"/api/projects/{made.project}", {"settings": {"text": "a\0b"}}, "Control characters"),
    ):
        answer = client.request(method, place, json=body)
        assert answer.status_code in {409, 422}, (place, body)
        assert sentence in answer.json()["error"]


def test_there_are_so_many_projects(client):
    object.__setattr__(client.app.state.settings, "projects", 1)
    for place in ("/api/projects", "/api/demo"):
        answer = client.post(place, json={"name": "x"})
        assert answer.status_code == 409
        assert "limit" in answer.json()["error"]


def test_a_body_that_is_no_json_is_refused(client):
    answer = client.post("/api/projects", content=b"{", headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (422, "The body is not valid JSON.")
    assert "Content-Type" in client.post("/api/projects", content=b"{}").json()["error"]
    assert client.post("/api/projects", json={}).json() == {"error": "name is missing.", "field": "name"}
    assert client.put("/api/projects").json()["error"] == "This address does not accept this method."


def test_batches_are_read_again_when_what_they_are_read_with_changes(client, made):
    batches = f"/api/projects/{made.project}/batches"
    before = [one["status"] for one in client.get(batches).json()["batches"]]
    client.patch(f"/api/projects/{made.project}", json={"settings": {"webhook": "https://example.org/hook"}})
    assert [one["status"] for one in client.get(batches).json()["batches"]] == before
    client.patch(f"/api/projects/{made.project}", json={"settings": {"level": 0.9}})
    assert {one["status"] for one in client.get(batches).json()["batches"]} == {"queued"}
