"""Workers: what happens when they are killed, stopped, too slow, or meet bad files."""

import json
import subprocess
import sys
import threading
import time

import pytest

from quanet.serve.store import answers, jobs
from quanet.serve.store.integrity import check_integrity
from quanet.serve.store.store_errors import LeaseLost
from quanet.serve.work import checking, heartbeat
from quanet.serve.work.heartbeat import Heartbeat
from quanet.serve.work.worker import Worker

from .conftest import month_table, until

SLEEPY = """
import sys, time
from pathlib import Path
from quanet.serve.work import predicting, worker
predicting.perform = lambda context: time.sleep(600)
worker.run_worker(Path(sys.argv[1]), "quick")
"""


def test_the_job_of_a_killed_worker_is_repeated_and_has_one_result(with_model):
    batch = with_model.upload("m1.csv", month_table(1))
    process = subprocess.Popen([sys.executable, "-c", SLEEPY, str(with_model.store.data)])
    try:
        until(lambda: with_model.job(1).state == "running")
    finally:
        process.kill()
        process.wait()
    with_model.work()  # at once: the worker is known to be dead
    assert with_model.job(1).attempts == 2
    assert with_model.batch(batch).status == "done"
    with with_model.store.read() as connection:
        assert len(answers.list_answers(connection, with_model.project, "batch")) == 1
    assert check_integrity(with_model.store) == []


def test_a_worker_that_lost_its_job_stores_nothing(with_model):
    from quanet.serve.work import predicting
    from quanet.serve.work.job_context import JobContext

    batch = with_model.upload("m1.csv", month_table(1))
    held = jobs.claim(with_model.store, "slow", "quick", lease=0.0)
    late = predicting.perform(JobContext(with_model.store, held))
    with_model.work()
    first = with_model.answer("batch", f"batch:{batch}")

    def store_late():
        with with_model.store.write() as connection:
            jobs.finish(connection, held)
            late(connection)

    with pytest.raises(LeaseLost):
        store_late()
    assert with_model.answer("batch", f"batch:{batch}") == first


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.csv", b"text;date\n"),
        ("empty.csv", b""),
        ("other.csv", b"review,day\nfine film,2024-01-01\nbad film,2024-01-02\n"),
        ("dates.csv", b"review,date\nfine film,yesterday\nbad film,today\n"),
        ("broken.parquet", b"PAR1 nothing"),
        ("broken.jsonl", b'{"review": "a", "date": "2024-01-01"}\n{"review": \n'),
        ("zip.csv.gz", b"no gzip"),
    ],
)
def test_a_bad_file_fails_with_the_sentence_of_the_command_line(served, command_line, name, content):
    batch = served.upload(name, content)
    served.work()
    row = served.batch(batch)
    assert row.status == "failed"
    code, _, err = command_line(f"quanet predict model {name} --by date:month")
    assert code == 1
    assert [f"Error: {row.error}"] == [line for line in err.splitlines() if line.startswith("Error")]


def test_bad_settings_fail_with_the_sentence_of_the_command_line(served, command_line):
    job = served.ask("train", {"file": 1, "settings": {"text": "reviews"}}, lane="long")
    served.work("long")
    _, _, err = command_line("quanet fit train.csv -o other --text reviews --label sentiment --method EMQ")
    assert f"Error: {served.job(job).error}" in err.splitlines()


def test_an_unknown_error_is_tried_three_times(fresh, monkeypatch, logged):
    def broken(context):
        raise ZeroDivisionError

    monkeypatch.setattr(checking, "perform", broken)
    job = fresh.ask("check", {"file": 1})
    for attempt in (1, 2, 3):
        held = jobs.claim(fresh.store, "w", "quick")
        Worker(fresh.store, "quick", threading.Event()).do(held)
        found = fresh.job(job)
        assert (found.attempts, found.state) == (attempt, "queued" if attempt < 3 else "failed")
        with fresh.store.write() as connection:
            from quanet.serve.store.schema import jobs as table

            connection.execute(table.update().values(not_before=0.0))
    assert found.error == "Internal error; the log of the service has the details."
    assert {one.exc_info[0] for one in logged if one.exc_info} == {ZeroDivisionError}


def test_too_many_rows_are_refused_before_they_are_read(with_model):
    batch = with_model.upload("m1.csv", month_table(1))
    Worker(with_model.store, "quick", threading.Event(), most_rows=59).run(once=True)
    assert with_model.batch(batch).error == "m1.csv has more than 59 rows. Split it into several files."


def test_a_project_may_have_a_shorter_limit(fresh):
    from quanet.serve.store.projects import change_settings

    with fresh.store.write() as connection:
        change_settings(connection, fresh.project, {"limits": {"seconds": 5.0, "rows": 10}})
    held = fresh.job(fresh.ask("check", {"file": 1}))
    assert Worker(fresh.store, "quick", threading.Event())._limit(held) == 5.0


def beat(service, monkeypatch, stop, seconds):
    """A job that is computed until its heart ends the process; returns the exit code."""
    monkeypatch.setattr(heartbeat, "BEAT", 0.01)
    monkeypatch.setattr(heartbeat, "GRACE", 0.0)
    service.upload("m1.csv", month_table(1))
    held = jobs.claim(service.store, "w", "quick")
    ended = []
    with Heartbeat(service.store, held, stop, seconds, ended.append):
        until(lambda: ended)
    return ended[0], service.job(held.id)


def test_a_job_that_takes_too_long_fails_and_ends_the_worker(with_model, monkeypatch):
    code, job = beat(with_model, monkeypatch, threading.Event(), 0.0)
    assert (code, job.state) == (1, "failed")
    assert "took longer than 0 s" in job.error
    assert with_model.batch(1).status == "failed"


def test_a_worker_that_is_told_to_stop_gives_its_job_back(with_model, monkeypatch):
    stop = threading.Event()
    stop.set()
    code, job = beat(with_model, monkeypatch, stop, 100.0)
    assert (code, job.state) == (0, "running")
    assert job.lease <= time.time()
    with_model.work()
    assert with_model.batch(1).status == "done"


def test_progress_is_stored_while_a_job_runs(with_model, monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT", 0.01)
    with_model.upload("m1.csv", month_table(1))
    held = jobs.claim(with_model.store, "w", "quick")
    with Heartbeat(with_model.store, held, threading.Event(), 100.0, print) as heart:
        heart.report(0.5, "Reading")
        until(lambda: with_model.job(held.id).progress == 0.5)
        assert with_model.job(held.id).message == "Reading"


def test_a_model_is_loaded_once(with_model, monkeypatch):
    from quanet.serve.work import loaded_models

    loads, load = [], loaded_models.load_model
    monkeypatch.setattr(loaded_models, "load_model", lambda *given: loads.append(given) or load(*given))
    for month in (1, 2):
        with_model.upload(f"m{month}.csv", month_table(month))
    with_model.work()
    assert len(loads) == 1


def test_a_worker_without_jobs_has_imported_nothing_heavy():
    code = "import json, sys, quanet.serve.work.worker; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
    assert not {"torch", "sklearn", "scipy", "numba", "pandas", "numpy", "matplotlib"} & set(loaded)
