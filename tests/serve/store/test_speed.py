"""Every list is read through an index, so that a page does not slow down with the number of rows."""

import pytest
from sqlalchemy import event, insert

from quanet.serve.store import alarms, answers, audit_log, jobs, label_queue, projects, tokens, uploads
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.schema import batches, files
from quanet.serve.store.schema import jobs as job_table

P = "p"
READS = {
    "a project": lambda c: projects.project(c, P),
    "projects": lambda c: projects.list_projects(c, before=P),
    "a batch": lambda c: uploads.batch(c, P, 5000),
    "batches": lambda c: uploads.list_batches(c, P, before=5000),
    "batches with a status": lambda c: uploads.list_batches(c, P, before=5000, status="done"),
    "batches with a rare status": lambda c: uploads.list_batches(c, P, status="failed"),
    "counts of batches": lambda c: uploads.count_batches(c, P),
    "a batch by its key": lambda c: uploads.find_batch(c, P, "key 77"),
    "unmerged batches": lambda c: uploads.unmerged(c, P, after=9990),
    "batches of a model": lambda c: uploads.done_batches(c, P, "m"),
    "files": lambda c: uploads.list_files(c, P, "batch", before=5000),
    "answers": lambda c: answers.list_answers(c, P, before=5000),
    "answers of a kind": lambda c: answers.list_answers(c, P, "batch", before=5000),
    "an answer": lambda c: answers.answer(c, P, "batch", "batch:5"),
    "jobs": lambda c: jobs.list_jobs(c, before=5000),
    "jobs of a project": lambda c: jobs.list_jobs(c, P, before=5000),
    "jobs with a state": lambda c: jobs.list_jobs(c, state="running", before=5000),
    "jobs of a project with a state": lambda c: jobs.list_jobs(c, P, state="running", before=5000),
    "label plans": lambda c: label_queue.plans(c, 5),
    "labels": lambda c: label_queue.labels(c, 5),
    "progress": lambda c: label_queue.progress(c, 5),
    "alarms": lambda c: alarms.list_alarms(c, P, before=5),
    "a token": lambda c: tokens.find_token(c, "secret"),
    "the audit log": lambda c: audit_log.list_audit(c, before=5),
    "the audit log of a project": lambda c: audit_log.list_audit(c, P, before=5),
    "the next job": lambda c: jobs._claimable(c, "quick"),
}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A project of 10,000 batches."""
    store = ServiceStore.open(tmp_path_factory.mktemp("large"))
    numbers = range(1, 10_001)
    common = {"project": P, "created": 0.0}
    with store.write() as c:
        c.exec_driver_sql("INSERT INTO projects VALUES ('p', 'Large', 0, '{}', '', 0)")
        rows = [{"id": n, "kind": "batch", "name": "x", "blob": f"{n}", "size": 1} | common for n in numbers]
        c.execute(insert(files), rows)
        rows = [{"id": n, "file": n, "key": f"key {n}", "status": "done", "done": n} | common for n in numbers]
        c.execute(insert(batches), rows)
        job = {"kind": "predict", "lane": "quick", "payload": {}, "state": "done", "finished": 1.0}
        c.execute(insert(job_table), [{"key": f"predict:{n}"} | job | common for n in numbers])
    yield store
    store.close()


@pytest.mark.parametrize("what", READS)
def test_a_read_neither_scans_nor_sorts(large, what):
    statements = []

    def note(connection, cursor, statement, parameters, context, executemany):
        statements.append((statement, parameters))

    with large.read() as c:
        event.listen(large.engine, "before_cursor_execute", note)
        try:
            READS[what](c)
        finally:
            event.remove(large.engine, "before_cursor_execute", note)
        plans = [
            row[3] for query in statements for row in c.exec_driver_sql(f"EXPLAIN QUERY PLAN {query[0]}", query[1])
        ]
    assert plans
    assert not [plan for plan in plans if "SCAN" in plan or "TEMP B-TREE" in plan]
