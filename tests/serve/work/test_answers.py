"""What jobs store for pages."""

import json
import re

import pandas as pd
from sqlalchemy import select

from quanet.serve.store import uploads
from quanet.serve.store.alarms import list_alarms
from quanet.serve.store.integrity import check_integrity
from quanet.serve.store.schema import answers

from .conftest import month_table, reviews


def test_a_fragment_has_neither_styles_nor_scripts(served):
    with served.store.read() as connection:
        rows = connection.execute(select(answers.c.kind, answers.c.forms)).all()
    assert {"batch", "overview", "monitor", "check", "training"} <= {row.kind for row in rows}
    for row in rows:
        part = served.store.blobs.path(row.forms["fragment"]).read_text()
        assert not re.search(r"<(script|style|link|html|main)\b|\son\w+=|\sstyle=|javascript:", part)
        assert len(part) < 90_000


def test_a_batch_has_totals_groups_and_examples(served):
    data = served.answer("batch", "batch:4").data
    assert data["classes"] == ["negative", "positive"]
    assert len(data["total"]["estimate"]) == 2
    (group,) = data["groups"]
    assert group["group"] == ["2024-04"]
    assert group["state"] in {"trusted", "widened", "refused", "unknown"}
    assert group["examples"]
    batch = served.batch(4)
    assert (batch.status, batch.rows) == ("done", 60)
    assert batch.totals["estimate"] == data["total"]["estimate"]


def test_the_overview_contains_all_batches(served):
    data = served.answer("overview", "project").data
    assert (data["batches"], data["rows"], len(data["groups"])) == (6, 360, 6)
    assert data["dates"]


def test_a_model_page_knows_errors_and_coverage(served):
    with served.store.read() as connection:
        query = select(answers.c.data).where(answers.c.kind == "training")
        data = connection.scalars(query).first()
    assert 0 < data["errors"]["error"] < data["errors"]["constant"]
    assert 0.8 < data["coverage"]["covered"] <= 1
    assert data["columns"] == {"text": "review", "features": [], "label": "sentiment"}


def test_a_check_has_example_rows(served):
    data = served.answer("check", "file:1").data
    assert (data["text"], data["label"], len(data["examples"])) == ("review", "sentiment", 5)


def test_a_change_is_an_alarm_once(served):
    with served.store.read() as connection:
        (alarm,) = list_alarms(connection, served.project)
    assert alarm.date == "2024-04-01"
    assert alarm.sentence.startswith("positive fell by")
    assert alarm.data["points"] < -30
    served.ask("monitor", {})
    served.work()
    with served.store.read() as connection:
        assert list_alarms(connection, served.project) == [alarm]


def test_without_dates_batches_are_monitored_by_arrival(with_model):
    project = with_model.new_project({"show": "positive"})
    with with_model.store.write() as connection:
        from quanet.serve.store.projects import set_model

        set_model(connection, project, with_model.store.models.names()[0])
    for month in (1, 2, 3, 4, 5, 6):
        with_model.upload(f"m{month}.csv", month_table(month)[["review"]], project=project)
    with_model.work()
    answer = with_model.answer("monitor", "project", project)
    assert answer.data["batches"] == 6
    assert answer.data["changes"][0]["class"] == "positive"
    assert json.loads(with_model.form(answer, "json"))["alarm"]


def test_a_deleted_batch_leaves_the_overview(with_model):
    first, second = (with_model.upload(f"m{month}.csv", month_table(month)) for month in (1, 4))
    with_model.work()
    uploads.delete_batch(with_model.store, with_model.project, first)
    with_model.work()
    data = with_model.answer("overview", "project").data
    assert (data["rows"], [group["group"] for group in data["groups"]]) == (60, [["2024-04"]])
    assert with_model.batch(second).status == "done"
    assert check_integrity(with_model.store) == []


def test_a_batch_that_is_read_again_counts_once_with_its_new_content(with_model):
    batch = with_model.upload("m1.csv", month_table(1))
    with_model.work()
    with with_model.store.write() as connection:
        uploads.read_again(connection, with_model.project, batch)
    with_model.work()
    assert with_model.answer("overview", "project").data["rows"] == 60


def test_other_groups_need_the_batches_to_be_read_again(with_model):
    from quanet.serve.store.projects import change_settings

    for month in (1, 4):
        with_model.upload(f"m{month}.csv", month_table(month))
    with_model.work()
    with with_model.store.write() as connection:
        change_settings(connection, with_model.project, {"by": ["product"], "show": "positive"})
    with_model.ask("overview", {}, key=f"overview:{with_model.project}")
    with_model.work()
    data = with_model.answer("overview", "project").data
    assert [group["group"] for group in data["groups"]] == [["lamp"], ["radio"]]


def test_training_again_reads_all_batches_with_the_new_model(with_model):
    batch = with_model.upload("m1.csv", month_table(1))
    with_model.work()
    old = with_model.batch(batch).model
    texts, labels = reviews(0.5, 200, 9)
    file = with_model.upload("more.csv", pd.DataFrame({"review": texts, "sentiment": labels}), "training")
    with_model.ask("train", {"file": file}, lane="long")
    with_model.work("long")
    with_model.work()
    assert with_model.batch(batch).model != old
    assert with_model.answer("overview", "project").data["model"] == with_model.batch(batch).model


def test_many_groups_fit_a_page(with_model):
    from quanet.serve.store.projects import change_settings

    with with_model.store.write() as connection:
        change_settings(connection, with_model.project, {"by": ["product"]})
    table = pd.concat([month_table(1)] * 5)
    table["product"] = [f"product number {at % 100}" for at in range(len(table))]
    batch = with_model.upload("many.csv", table)
    with_model.work()
    answer = with_model.answer("batch", f"batch:{batch}")
    assert len(answer.data["groups"]) == 100
    assert len(with_model.form(answer, "fragment")) < 90_000
    assert len(json.dumps(answer.data)) < 80_000
