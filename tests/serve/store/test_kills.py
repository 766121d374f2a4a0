"""Processes that are killed in the middle of writing: what they acknowledged is stored, and stored once."""

import random
import time

import pytest

from quanet.serve.store import answers, jobs, label_queue, uploads
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.integrity import check_integrity
from tests.serve.store.made_stores import made_batch, made_plan, made_project, read_batch
from tests.serve.store.test_concurrency import start

KILLS = 4
WRITER = """
import itertools, sys
from pathlib import Path
from quanet.serve.store import jobs, label_queue, uploads
from quanet.serve.store.connection import ServiceStore
from tests.serve.store.made_stores import made_batch, read_batch
data, url, project, plan, life = sys.argv[1:]
store = ServiceStore.open(Path(data), url or None)
jobs.release_dead(store, lambda worker: worker == "killed")
print("ready", flush=True)
for n in itertools.count():
    batch = made_batch(store, project, f"{life} {n}".encode())
    print("batch", batch.id, flush=True)
    if number := read_batch(store, "killed"):
        print("read", number, flush=True)
    with store.write() as c:
        item = label_queue.next_item(c, int(plan), "Ann")
        label_queue.give_label(c, item.id, "Ann", "good")
    print("label", item.position, flush=True)
    if n % 5 == 4:
        uploads.delete_batch(store, project, batch.id)
        print("deleted", batch.id, flush=True)
"""


def read_the_rest(store, project):
    """Read all batches. A server may still finish what a killed process has asked for, so look more than once."""
    for _ in range(200):
        jobs.release_dead(store, lambda worker: worker == "killed")
        while read_batch(store):
            pass
        with store.read() as c:
            states = {job.state for job in jobs.list_jobs(c, project, limit=500) if job.kind == "predict"}
        if states <= {"done", "cancelled"}:
            return
        time.sleep(0.05)


@pytest.mark.no_cover
def test_a_killed_process_loses_nothing_and_repeats_nothing(store, url):
    project = made_project(store).id
    plan = made_plan(store, project, made_batch(store, project).id, items=5000).id
    said = {"batch": [], "read": [], "label": [], "deleted": []}
    moments = random.Random(18)
    for life in range(KILLS):
        writer = start(WRITER, store.data, url or "", project, plan, life)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(moments.uniform(0.01, 0.3))
        writer.kill()
        for line in writer.communicate()[0].splitlines():
            kind, number = line.split()
            said[kind].append(int(number))
        assert check_integrity(store) == []
    read_the_rest(store, project)
    with store.read() as c:
        stored = {batch.id: batch for batch in uploads.list_batches(c, project, limit=500)}
        labelled = label_queue.labels(c, plan)
        read = [answer.about for answer in answers.list_answers(c, project, "batch", limit=500)]
        done = [job.payload["batch"] for job in jobs.list_jobs(c, project, "done", limit=500) if job.kind == "predict"]
    kept = set(said["batch"]) - set(said["deleted"])
    assert len(said["batch"]) == len(set(said["batch"]))
    assert len(kept - set(stored)) <= 1  # at most the one whose deletion was not acknowledged
    assert all(batch.status == "done" for batch in stored.values())
    assert sorted(read) == sorted(f"batch:{number}" for number in stored)
    assert len(done) == len(set(done))
    assert set(said["label"]) <= set(labelled)
    assert len(said["label"]) == len(set(said["label"]))
    assert len(labelled) - len(said["label"]) <= KILLS  # stored, but killed before it could say so
    assert check_integrity(store) == []
    ServiceStore.open(store.data, url).close()
