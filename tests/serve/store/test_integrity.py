import re

import pytest
from sqlalchemy import delete, insert, update

from quanet.serve.store import jobs, label_queue, projects, uploads
from quanet.serve.store.integrity import check_integrity
from quanet.serve.store.schema import answers, batches, label_items, uses
from quanet.serve.store.schema import jobs as job_table
from quanet.serve.store.store_errors import StoreError
from tests.serve.store.made_stores import made_answer, made_batch, made_plan, made_project, read_batch


@pytest.fixture
def whole(store):
    """A store with something of everything."""
    project = made_project(store).id
    folder = store.data / "new"
    folder.mkdir()
    with store.write() as c:
        projects.set_model(c, project, store.models.put(folder))
    first = made_batch(store, project, b"first")
    made_batch(store, project, b"second")
    read_batch(store)
    plan = made_plan(store, project, first.id)
    with store.write() as c:
        label_queue.give_label(c, label_queue.next_item(c, plan.id, "Ann").id, "Ann", "good")
        jobs.enqueue(c, "train", project, {}, lane="long")
    jobs.claim(store, "worker", "long")
    return store


def test_a_whole_store_has_no_problems(whole):
    assert check_integrity(whole) == []


def test_a_lost_or_changed_file_is_found(whole):
    names = [*whole.blobs.names()]
    whole.blobs.path(names[0]).unlink()
    whole.blobs.path(names[1]).write_bytes(b"changed")
    found = check_integrity(whole)
    assert len(found) == 2
    assert f"names {names[0]}, which does not exist." in found[0]
    assert "other content than its name says" in found[1]
    assert len(check_integrity(whole, contents=False)) == 1


DAMAGE = {
    "is done, but has no totals": update(batches).where(batches.c.status == "done").values(totals=None),
    "waits, but no job will read it": update(job_table)
    .where(job_table.c.key.startswith("predict:"), job_table.c.state == "queued")
    .values(state="failed", finished=1.0),
    "unknown status 'lost'": update(batches).where(batches.c.status == "done").values(status="lost"),
    "running, but no worker": update(job_table).where(job_table.c.state == "running").values(worker=""),
    "contradicts the time of its end": update(job_table).where(job_table.c.state == "done").values(finished=None),
    "is labelled and skipped": update(label_items).where(label_items.c.label.is_not(None)).values(skipped=1),
    "not by anybody": update(label_items).where(label_items.c.label.is_not(None)).values(by=""),
    "someone still holds it": update(label_items).where(label_items.c.label.is_not(None)).values(holder="Bob"),
    "not decided, but signed": update(label_items).where(label_items.c.label.is_(None)).values(by="Bob"),
    "names content that is not noted": delete(uses).where(uses.c.owner.startswith("file:")),
    "answer:.* names content that is not noted": delete(uses).where(uses.c.owner.startswith("answer:")),
    "was deleted, but its content": delete(answers),
}


@pytest.mark.parametrize("problem", DAMAGE)
def test_a_contradiction_is_found(whole, problem):
    with whole.write() as c:
        c.execute(DAMAGE[problem])
    found = check_integrity(whole)
    assert found
    assert all(re.search(problem, sentence) for sentence in found)


def test_two_running_jobs_of_one_key_are_found(whole):
    values = {
        "kind": "overview",
        "lane": "quick",
        "key": "k",
        "payload": {},
        "state": "running",
        "worker": "w",
        "created": 0,
    }
    with whole.write() as c:
        c.execute(insert(job_table), [values, values])
    assert "runs at the same time as another one with its key 'k'" in check_integrity(whole)[0]


def test_a_broken_reference_is_found(store):
    if store.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL cannot turn the checks off")
    made_batch(store, made_project(store).id)
    with store.write(foreign_keys=False) as c:
        c.exec_driver_sql("UPDATE batches SET file = 77")
    assert any("refers to a row of files" in sentence for sentence in check_integrity(store))


def test_a_damaged_file_is_found(store):
    if store.engine.dialect.name != "sqlite":
        pytest.skip("the files of PostgreSQL are its own")
    project = made_project(store).id
    for n in range(50):
        made_batch(store, project, b"%d" % n)
    made_answer(store, project, "overview", "project", note="x" * 50_000)
    with store.read() as c:
        assert uploads.list_batches(c, project)
    store.close()
    path = store.data / "quanet.sqlite3"
    content = bytearray(path.read_bytes())
    for start in range(3 * 4096, len(content), 4096):
        content[start : start + 64] = b"\xff" * 64
    path.write_bytes(content)
    try:
        found = check_integrity(store)
    except StoreError as error:  # so damaged that it cannot be read
        found = [str(error)]
    assert any("damaged" in sentence for sentence in found)
