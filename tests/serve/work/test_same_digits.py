"""Answers of the service are those of the command that they show, to the last digit."""

import json

import pytest

from quanet.report.render import VERSIONS
from quanet.serve.store.label_queue import give_label, labels, next_item, plans, skip_item
from quanet.serve.store.projects import project, set_model
from quanet.serve.store.uploads import list_batches
from quanet.serve.work.label_files import LABELS, SHEET, filled_sheet

from .conftest import month_table


def same(served, answer, command_line, *options):
    code, out, err = command_line(answer.command, *options, "--format", "json")
    assert code == 0, err
    assert json.loads(served.form(answer, "json")) == json.loads(out)


def test_batch(served, command_line):
    answer = served.answer("batch", "batch:1")
    same(served, answer, command_line)
    code, out, _ = command_line(answer.command, "--format", "csv")
    assert (code, served.form(answer, "csv")) == (0, out)


def test_overview(served, command_line):
    same(served, served.answer("overview", "project"), command_line)


def test_monitor(served, command_line):
    same(served, served.answer("monitor", "project"), command_line)


def test_difference(served, command_line):
    served.ask("difference", {"before": ["2024-03"], "after": ["2024-04"]})
    served.work()
    answer = served.answer("difference", "2024-03|2024-04")
    assert answer.sentence.startswith("positive fell by")
    same(served, answer, command_line)


def test_check(served, command_line):
    same(served, served.answer("check", "file:1"), command_line)


def test_training(served, command_line, tmp_path):
    with served.store.read() as connection:
        model = project(connection, served.project).model
    answer = served.answer("training", f"model:{model}")
    code, _, err = command_line(answer.command, "--force", "--report", "fit.json")
    assert code == 0, err
    again = json.loads((tmp_path / "folder" / "fit.json").read_text())["data"]
    mine = json.loads(served.form(answer, "json"))
    for facts in (again, mine):
        del facts["seconds"], facts["command"]
    assert mine == VERSIONS | again


@pytest.mark.parametrize("gaps", [False, True])
def test_plan_and_refined_shares(served, command_line, gaps):
    batch = 5 + gaps
    served.ask("plan", {"batch": batch, "number": 30})
    served.work()
    plan_answer = served.answer("plan", f"batch:{batch}")
    same(served, plan_answer, command_line, "--force")
    with served.store.write() as connection:
        (plan,) = plans(connection, batch)
        assert plan.facts["rows"] == 30
        assert plan.facts["before"] > 0
        assert plan.facts["after"] > 0
        for number in range(24):
            item = next_item(connection, plan.id, "ann")
            assert set(item.detail) == {"date"}
            if gaps and number % 5 == 0:
                skip_item(connection, item.id, "ann")
            else:
                give_label(connection, item.id, "ann", ["negative", "positive"][number % 3 == 0])
        given = labels(connection, plan.id)
    sheet = served.store.blobs.path(plan.sheet).read_bytes()
    served.files[LABELS] = filled_sheet(sheet, given, plan.facts["label"])
    assert (SHEET in plan_answer.command, "--random" in plan_answer.command) == (True, False)
    served.ask("refine", {"batch": batch})
    served.work()
    answer = served.answer("refined", f"batch:{batch}")
    assert answer.data["labels"] == len(given)
    assert ("--random" in answer.command) == gaps
    same(served, answer, command_line)


def test_too_few_labels_change_nothing(served):
    served.ask("plan", {"batch": 2, "number": 20})
    job = served.ask("refine", {"batch": 2})
    served.work()
    assert served.job(job).state == "done"
    assert served.answer("refined", "batch:2") is None


def test_answers_with_other_settings(served, command_line):
    settings = {"by": ["date:month", "product"], "names": ["negative=bad", "positive=good"], "show": "good"}
    own = served.new_project(settings | {"level": 0.9, "seed": 3, "weight": "views"})
    with served.store.write() as connection:
        set_model(connection, own, served.store.models.names()[0])
    for month in (2, 5):
        table = month_table(month)
        served.upload(f"views {month}.csv", table.assign(views=range(1, len(table) + 1)), project=own)
    served.ask("difference", {"before": ["2024-02", "lamp"], "after": ["2024-05", "lamp"]}, own, not_before=1.0)
    served.work()
    served.work()
    for kind in ("overview", "monitor"):
        same(served, served.answer(kind, "project", own), command_line)
    answer = served.answer("difference", "2024-02, lamp|2024-05, lamp", own)
    same(served, answer, command_line)
    with served.store.read() as connection:
        batch = list_batches(connection, own)[0]
    answer = served.answer("batch", f"batch:{batch.id}", own)
    assert answer.sentence.startswith("good ")
    assert "'views 5.csv'" in answer.command
    same(served, answer, command_line)
