"""Several threads and processes at once: no job, item or batch twice."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quanet.serve.store import jobs, label_queue, uploads
from quanet.serve.store.integrity import check_integrity
from tests.serve.store.made_stores import made_batch, made_plan, made_project

ROOT = Path(__file__).parents[3]
WORKER = """
import sys
from pathlib import Path
from quanet.serve.store import label_queue
from quanet.serve.store.connection import ServiceStore
from tests.serve.store.made_stores import read_batch
data, url, plan, who = sys.argv[1:]
store = ServiceStore.open(Path(data), url or None)
print("ready", flush=True)
sys.stdin.readline()
while number := read_batch(store, who):
    print("batch", number)
while True:
    with store.write() as c:
        item = label_queue.next_item(c, int(plan), who)
        if item is None:
            break
        print("label", label_queue.give_label(c, item.id, who, who).id)
"""


def start(code, *arguments):
    command = [sys.executable, "-c", code, *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def in_threads(function, number=6):
    with ThreadPoolExecutor(number) as pool:
        return [one for many in pool.map(lambda n: function(f"thread {n}"), range(number)) for one in many]


def test_threads_take_no_job_twice(store):
    with store.write() as c:
        ids = [jobs.enqueue(c, "check", None, {}).id for _ in range(40)]

    def take(who):
        taken = []
        while held := jobs.claim(store, who, "quick"):
            taken.append(held.id)
            with store.write() as c:
                jobs.finish(c, held)
        return taken

    assert sorted(in_threads(take)) == ids


def test_threads_label_no_item_twice(store):
    project = made_project(store).id
    plan = made_plan(store, project, made_batch(store, project).id, items=40).id

    def label(who):
        labelled = []
        while True:
            with store.write() as c:
                item = label_queue.next_item(c, plan, who)
            if item is None:
                return labelled
            with store.write() as c:
                labelled.append(label_queue.give_label(c, item.id, who, who).position)

    assert sorted(in_threads(label)) == list(range(40))
    with store.read() as c:
        assert sorted(label_queue.labels(c, plan)) == list(range(40))


def test_threads_that_post_the_same_make_one_batch(store):
    project = made_project(store).id
    numbers = in_threads(lambda who: [made_batch(store, project, b"%d" % n).id for n in range(5)])
    assert Counter(numbers) == dict.fromkeys(numbers, 6)
    assert len(set(numbers)) == 5
    with store.read() as c:
        assert len(jobs.list_jobs(c)) == len(uploads.list_files(c, project, "batch")) == 5


def test_threads_may_read_while_one_writes(store):
    project = made_project(store).id

    def look(who):
        with store.read() as c:
            return [len(uploads.list_batches(c, project))]

    with store.write():
        assert set(in_threads(look, 12)) == {0}


@pytest.mark.no_cover
def test_processes_take_nothing_twice(store, url):
    project = made_project(store).id
    batches = [made_batch(store, project, b"%d" % n).id for n in range(25)]
    plan = made_plan(store, project, batches[0], items=30).id
    workers = [start(WORKER, store.data, url or "", plan, f"worker {n}") for n in range(3)]
    assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 3
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    lines = [line.split() for worker in workers for line in worker.communicate(timeout=120)[0].splitlines()]
    done = {what: sorted(int(number) for kind, number in lines if kind == what) for what in ("batch", "label")}
    assert done["batch"] == batches
    assert len(done["label"]) == len(set(done["label"])) == 30
    with store.read() as c:
        assert [batch.done for batch in uploads.unmerged(c, project)] == list(range(1, 26))
        assert label_queue.progress(c, plan).left == 0
    assert check_integrity(store) == []
