"""The client, against a service behind a real connection."""

from dataclasses import replace

import httpx
import pandas as pd
import pytest

import quanet.client
from quanet.client import Client, RemoteBatch, RemoteJob, ServiceError
from quanet.errors import QuanetError
from quanet.serve.store.jobs import claim, fail, finish
from quanet.serve.store.uploads import fail_batch, finish_batch, list_files
from quanet.serve.web.rate_limits import RateLimit
from tests.pages.blocks import blocks_of
from tests.pages.commands import ROOT


@pytest.fixture
def service(served):
    with Client(served[0], name="ann") as client:
        client.app = served[1]
        yield client


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)


def batch_of(made):
    return RemoteBatch(made.batch, made.project, "done", "", 2)


def test_projects_are_created_listed_and_deleted(service, made):
    created = service.create("New", text="review", by=["date:month"])
    assert created.settings == {"text": "review", "by": ["date:month"]}
    assert [one.id for one in service.projects()] == [created.id, made.project]
    service.delete(created)
    assert [one.name for one in service.projects()] == ["Film reviews"]


def test_the_page_for_operators_uses_the_client_as_it_is(served, made, tmp_path, monkeypatch, capsys):
    blocks = blocks_of((ROOT / "docs" / "how-to" / "operate-the-service.md").read_text(encoding="utf-8"))
    [code] = [block.code for block in blocks if block.language == "python"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.csv").write_text("review,sentiment,date\nA film,pos,2024-02-01\n")
    (tmp_path / "march.csv").write_text("review,date\nNew film,2024-03-01\n")
    create = Client.create
    # No worker runs, so a project that has a model takes the place of the new one.
    monkeypatch.setattr(Client, "create", lambda *words, **more: create(*words, **more) and made.project)
    monkeypatch.setattr(Client, "wait", lambda self, job: job)
    monkeypatch.setattr(Client, "wait_batch", lambda self, batch: replace(batch, sentence="70 % positive."))
    exec(code.replace("http://127.0.0.1:8000", served[0]), {})  # noqa: S102
    assert capsys.readouterr().out == "70 % positive.\n"


def test_what_is_refused_is_an_error_with_the_sentence_and_the_field(service):
    with pytest.raises(QuanetError, match="Unknown period 'moth'") as refused:
        service.create("New", by=["date:moth"])
    assert (refused.value.status, refused.value.field) == (422, "settings.by")


def test_a_file_and_a_table_become_batches(service, made, store, tmp_path):
    file = tmp_path / "march.csv"
    file.write_text("text,date\nNew film,2024-03-01\n")
    first, again = service.batch(made.project, file), service.batch(made.project, str(file))
    assert (first.repeated, again.repeated) == (False, True)
    assert first.id == again.id
    table = pd.DataFrame({"text": ["Another film"], "date": ["2024-04-01"]})
    assert service.batch(made.project, table, key="april").status == "queued"
    with store.read() as connection:
        names = [one.name for one in list_files(connection, made.project, "batch")]
    assert names == ["data.parquet", "march.csv", "march.csv"]
    assert len(list(service.batches(made.project))) == 3
    with pytest.raises(ServiceError, match="does not exist"):
        service.batch(made.project, tmp_path / "nothing.csv")


def test_waiting_ends_with_the_job(service, made, store):
    job = service.upload_training(made.project, pd.DataFrame({"text": ["a"], "label": ["pos"]}))
    claimed = claim(store, "w", "quick")
    while claimed.id != job.id:
        with store.write() as connection:
            finish(connection, claimed)
        claimed = claim(store, "w", "quick")
    with store.write() as connection:
        finish(connection, claimed)
    assert service.wait(job).state == "done"
    training = service.train(made.project, method="CC")
    claimed = claim(store, "w", "long")
    with store.write() as connection:
        fail(connection, claimed, "Column 'label' has one class.")
    with pytest.raises(ServiceError, match="has one class"):
        service.wait(training)


def test_waiting_for_too_long_is_an_error(service, made):
    job = RemoteJob(made.job, "overview", "queued", 0.0, "", "")
    with pytest.raises(ServiceError, match="is not done after 0 s"):
        service.wait(job, timeout=0)


def test_a_batch_has_an_answer_or_an_error(service, made, store):
    batch = service.wait_batch(batch_of(made))
    assert batch.sentence == "62 % are positive."
    assert batch.totals["estimate"] == [0.38, 0.62]
    assert service.answer(batch) == service.answer(batch, refined=True) == {"share": 0.62}
    assert service.overview(made.project) == {"share": 0.62}
    with store.write() as connection:
        fail_batch(connection, made.batch, "Column 'text' does not exist.")
    with pytest.raises(ServiceError, match="Column 'text' does not exist"):
        service.wait_batch(batch)
    with store.write() as connection:
        finish_batch(connection, made.batch, rows=2, totals={}, state="", model="")


def test_labels_are_given_and_exported(service, made):
    batch = batch_of(made)
    first = service.next_label(batch)
    assert first["item"]["text"] == "Fine film"
    second = service.label(batch, first["item"]["id"], "pos")
    third = service.label(batch, second["item"]["id"], None)
    assert third["progress"] == {"labelled": 1, "skipped": 1, "left": 1}
    assert service.labels(batch).splitlines()[1:3] == ["Fine film,pos,1,2", "Dull plot,,2,1"]
    assert service.plan(batch, 10).kind == "plan"


def test_a_request_that_comes_too_soon_is_sent_again(service, monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    limits = iter([RateLimit(60, burst=1e-9), RateLimit(60, burst=1e-9), RateLimit(6000)])

    class Changing:
        def wait(self, key):
            return next(limits).wait(key)

    service.app.state.requests = Changing()
    service.create("New")
    assert len(waits) == 2
    assert min(waits) >= 1.0


def test_a_service_that_is_away_is_an_error(monkeypatch):
    with pytest.raises(ServiceError, match="does not answer"):
        Client("http://127.0.0.1:9").create("x")


def test_a_batch_is_sent_again_when_the_connection_breaks_and_a_project_is_not(service, made, monkeypatch):
    sent = []
    request = httpx.Client.request

    def breaking(self, method, place, **more):
        sent.append(place)
        answer = request(self, method, place, **more)
        if len(sent) == 1:
            raise httpx.ReadError("broken")
        return answer

    monkeypatch.setattr(httpx.Client, "request", breaking)
    batch = service.batch(made.project, pd.DataFrame({"text": ["x"]}))
    assert batch.repeated  # it had arrived
    assert len(sent) == 2
    sent.clear()
    with pytest.raises(ServiceError, match="broken"):
        service.create("x")
    assert len(sent) == 1


def test_what_is_no_address_is_an_error():
    with pytest.raises(ServiceError):
        Client("http://[").create("x")


def test_an_answer_that_is_not_of_the_service_is_an_error():
    answer = httpx.Response(502, text="<html>", request=httpx.Request("GET", "http://x/"))
    assert str(quanet.client._refusal(answer)) == "http://x/ answers 502 Bad Gateway."
