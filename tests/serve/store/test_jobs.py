import pytest
from sqlalchemy import update

from quanet.serve.store import jobs, projects
from quanet.serve.store.integrity import check_integrity
from quanet.serve.store.schema import jobs as job_table
from quanet.serve.store.store_errors import LeaseLost, NotFound
from tests.serve.store.made_stores import made_project


def queued(store, kind="check", **options):
    with store.write() as c:
        return jobs.enqueue(c, kind, None, {}, **options)


def state(store, job):
    with store.read() as c:
        return jobs.job(c, job.id).state


def test_jobs_of_a_lane_are_taken_in_order_and_once(store):
    first, second, training = queued(store), queued(store), queued(store, "train", lane="long")
    assert [jobs.claim(store, "a", "quick").id for _ in range(2)] == [first.id, second.id]
    assert jobs.claim(store, "a", "quick") is None
    assert jobs.claim(store, "b", "long").id == training.id


def test_waiting_jobs_of_one_key_are_one_job(store):
    first = queued(store, "overview", key="overview:p")
    assert queued(store, "overview", key="overview:p") == first
    held = jobs.claim(store, "a", "quick")
    later = queued(store, "overview", key="overview:p")
    assert later.id != held.id  # what arrived since the first began needs another


def test_two_jobs_of_one_key_never_run_at_once(store):
    queued(store, "overview", key="overview:p")
    held = jobs.claim(store, "a", "quick")
    later, other = queued(store, "overview", key="overview:p"), queued(store)
    assert jobs.claim(store, "b", "quick").id == other.id
    assert jobs.claim(store, "b", "quick") is None
    with store.write() as c:
        jobs.finish(c, held)
    assert jobs.claim(store, "b", "quick").id == later.id


def test_a_job_without_a_lease_is_taken_by_another_and_the_first_cannot_finish_it(store):
    queued(store)
    first = jobs.claim(store, "a", "quick", lease=0)
    second = jobs.claim(store, "b", "quick")
    assert (second.id, second.attempts) == (first.id, 2)
    assert not jobs.renew(store, first)

    def end(c):
        projects.create_project(c, "not stored", {})
        jobs.finish(c, first)

    with pytest.raises(LeaseLost, match="no longer held by a"), store.write() as c:
        end(c)
    with store.write() as c:
        assert projects.list_projects(c) == []
        jobs.finish(c, second)
    assert state(store, second) == "done"


def test_the_same_worker_cannot_finish_an_earlier_attempt(store):
    queued(store)
    first = jobs.claim(store, "a", "quick", lease=0)
    jobs.claim(store, "a", "quick")
    with pytest.raises(LeaseLost), store.write() as c:
        jobs.fail(c, first, "too late")


def test_a_renewed_lease_shows_progress(store):
    queued(store)
    held = jobs.claim(store, "a", "quick", lease=0)
    assert jobs.renew(store, held, progress=1.5, message="x" * 1000)
    assert jobs.claim(store, "b", "quick") is None
    with store.read() as c:
        row = jobs.job(c, held.id)
    assert (row.progress, len(row.message), row.lease > held.lease) == (1.0, 500, True)


def test_a_job_that_is_given_back_or_whose_worker_is_dead_is_taken_at_once(store):
    job = queued(store)
    held = jobs.claim(store, "a", "quick")
    assert jobs.release(store, held)
    held = jobs.claim(store, "b", "quick")
    assert held.id == job.id
    assert held.lost == 0
    assert jobs.release_dead(store, lambda worker: worker == "a") == 0
    assert jobs.release_dead(store, lambda worker: worker == "b") == 1
    held = jobs.claim(store, "c", "quick")
    assert (held.attempts, held.lost) == (3, 1)


def test_a_job_whose_workers_died_often_lets_others_go_first(store):
    deadly = queued(store)
    for deaths in range(3):
        held = jobs.claim(store, "a", "quick")
        assert (held.id, held.lost) == (deadly.id, deaths)
        jobs.release_dead(store, lambda worker: True)
    other = queued(store)
    assert jobs.claim(store, "b", "quick").id == other.id
    assert jobs.claim(store, "b", "quick") is None
    with store.write() as c:  # ten seconds later
        c.execute(update(job_table).where(job_table.c.id == deadly.id).values(lease=job_table.c.lease - 10))
    assert jobs.claim(store, "b", "quick").lost == 3


def test_a_failed_job_is_tried_again_when_it_is_time(store):
    queued(store)
    held = jobs.claim(store, "a", "quick")
    with store.write() as c:
        jobs.fail(c, held, "no answer", retry_at=0)
    held = jobs.claim(store, "a", "quick")
    with store.write() as c:
        jobs.fail(c, held, "no answer", retry_at=9e9)
    assert jobs.claim(store, "a", "quick") is None
    assert state(store, held) == "queued"


def test_a_job_that_is_tried_again_gives_way_to_one_of_its_key_that_waits(store):
    queued(store, key="refine:1")
    held = jobs.claim(store, "a", "quick")
    later = queued(store, key="refine:1")
    with store.write() as c:
        jobs.fail(c, held, "crashed", retry_at=0)
    assert state(store, held) == "cancelled"
    assert jobs.claim(store, "a", "quick").id == later.id


def test_a_cancelled_job_stops_its_worker(store):
    waiting, running = queued(store), queued(store, lane="long")
    held = jobs.claim(store, "a", "long")
    with store.write() as c:
        assert [jobs.cancel(c, job.id).state for job in (waiting, running)] == ["cancelled"] * 2
    assert not jobs.renew(store, held)
    assert jobs.claim(store, "a", "quick") is None
    assert check_integrity(store) == []


def test_an_ended_job_stays_as_it_ended(store):
    queued(store)
    held = jobs.claim(store, "a", "quick")
    with store.write() as c:
        jobs.fail(c, held, "bad file")
        assert jobs.cancel(c, held.id).state == "failed"
        assert jobs.count_jobs(c) == {("failed", "check"): 1}


def test_lists_have_pages(store):
    project = made_project(store)
    with store.write() as c:
        ids = [jobs.enqueue(c, "check", project.id if n % 2 else None, {}).id for n in range(6)]
        assert [job.id for job in jobs.list_jobs(c, limit=2)] == ids[:-3:-1]
        assert [job.id for job in jobs.list_jobs(c, before=ids[4], limit=2)] == [ids[3], ids[2]]
        assert [job.id for job in jobs.list_jobs(c, project=project.id)] == ids[1::2][::-1]
        assert jobs.list_jobs(c, state="done") == []
        with pytest.raises(NotFound, match="Job 999 does not exist"):
            jobs.job(c, 999)
