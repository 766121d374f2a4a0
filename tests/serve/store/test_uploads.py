import pytest

from quanet.serve.store import answers, jobs, label_queue, projects, uploads
from quanet.serve.store.integrity import check_integrity
from quanet.serve.store.store_errors import LeaseLost, NotFound, Outdated, StoreError
from tests.serve.store.made_stores import TOTALS, made_answer, made_batch, made_plan, made_project, read_batch


def files_of(store):
    return set(store.blobs.names())


def test_the_same_content_is_one_batch_of_a_project_and_is_read_once(store):
    project, other = made_project(store), made_project(store)
    first, again = made_batch(store, project.id), made_batch(store, project.id)
    assert first == again
    assert made_batch(store, other.id).id != first.id
    with store.read() as c:
        assert len(jobs.list_jobs(c, project.id)) == len(uploads.list_files(c, project.id, "batch")) == 1
    assert len(files_of(store)) == 1


def test_a_key_decides_what_the_same_batch_is(store):
    project = made_project(store).id
    batches = [made_batch(store, project, b"one", key=key).id for key in ("a" * 1000, "a" * 999, "a" * 1000, "\0")]
    assert batches[0] == batches[2]
    assert len(set(batches)) == 3


def test_batches_are_merged_in_the_order_in_which_they_were_finished(store):
    project = made_project(store).id
    first, second, third = (made_batch(store, project, b"%d" % n) for n in range(3))
    state = store.blobs.put_bytes(b"state", "arrow")
    with store.write() as c:
        for batch in (second, first):
            uploads.finish_batch(c, batch.id, rows=1, totals=TOTALS, state=state, model="m")
        assert [batch.id for batch in uploads.unmerged(c, project)] == [second.id, first.id]
        uploads.finish_batch(c, third.id, rows=1, totals=TOTALS, state=state, model="n")
        assert [batch.id for batch in uploads.unmerged(c, project, after=1)] == [first.id, third.id]
        assert [batch.id for batch in uploads.unmerged(c, project, model="n")] == [third.id]


def test_a_batch_that_failed_can_be_read_again(store):
    project = made_project(store).id
    batch = made_batch(store, project)
    held = jobs.claim(store, "a", "quick")
    with store.write() as c:
        uploads.start_batch(c, batch.id)
        assert uploads.fail_batch(c, batch.id, "no column 'text'").error == "no column 'text'"
        jobs.finish(c, held)
        assert uploads.count_batches(c, project) == {"failed": 1}
        uploads.read_again(c, project, batch.id)
    assert read_batch(store) == batch.id
    with store.read() as c:
        row = uploads.batch(c, project, batch.id)
    assert (row.status, row.error, row.totals, row.name) == ("done", "", TOTALS, "new.csv")
    assert check_integrity(store) == []


def test_a_new_model_reads_all_batches_again(store):
    project = made_project(store).id
    ids = [made_batch(store, project, b"%d" % n).id for n in range(3)]
    for _ in ids:
        read_batch(store)
    with store.write() as c:
        assert [batch.id for batch in uploads.done_batches(c, project, "")] == ids
        uploads.read_all_again(c, project)
        assert uploads.count_batches(c, project) == {"queued": 3}
        assert uploads.unmerged(c, project) == uploads.done_batches(c, project, "") == []
    for _ in ids:
        read_batch(store)
    with store.write() as c:
        assert [batch.done for batch in uploads.unmerged(c, project)] == [4, 5, 6]
    assert check_integrity(store) == []


def test_lists_have_pages(store):
    project = made_project(store).id
    ids = [made_batch(store, project, b"%d" % n).id for n in range(5)]
    read_batch(store)
    with store.read() as c:
        assert [batch.id for batch in uploads.list_batches(c, project, limit=2)] == [ids[4], ids[3]]
        assert [batch.id for batch in uploads.list_batches(c, project, before=ids[2])] == [ids[1], ids[0]]
        assert [batch.id for batch in uploads.list_batches(c, project, status="done")] == [ids[0]]


def test_what_belongs_to_another_project_does_not_exist(store):
    project, other = made_project(store).id, made_project(store).id
    batch = made_batch(store, project)
    with store.read() as c:
        for look in (uploads.batch, uploads.file, answers.answer_by_id):
            with pytest.raises(NotFound):
                look(c, other, batch.id)
    with pytest.raises(NotFound):
        uploads.delete_batch(store, other, batch.id)


def test_a_row_cannot_name_content_that_is_not_stored(store):
    project = made_project(store).id
    with pytest.raises(StoreError, match="Send it again"), store.write() as c:
        uploads.receive_batch(c, project, "new.csv", "0" * 64 + ".csv", 1)
    with store.read() as c:
        assert uploads.list_batches(c, project) == []


def test_a_deleted_batch_leaves_nothing_except_what_others_name(store):
    project, other = made_project(store).id, made_project(store).id
    kept = made_batch(store, other, b"shared")
    before = files_of(store)
    batch = made_batch(store, project, b"shared")
    read_batch(store), read_batch(store)
    made_plan(store, project, batch.id)
    made_answer(store, project, "overview", "project", state=store.blobs.put_bytes(b"merged", "arrow"))
    made_answer(store, project, "overview", "project", "newer", state=store.blobs.put_bytes(b"more", "arrow"))
    made_answer(store, project, "refined", f"batch:{batch.id}")
    uploads.delete_batch(store, project, batch.id)
    with store.read() as c:
        assert uploads.batch(c, other, kept.id).status == "done"
        assert answers.list_answers(c, project) == label_queue.plans(c, batch.id) == []
        assert [job.kind for job in jobs.list_jobs(c, project, state="queued")] == ["overview"]
    assert before <= files_of(store)
    assert len(files_of(store)) == len(before) + 2  # state and answer of the other
    assert check_integrity(store) == []


def test_an_id_is_never_used_again(store):
    project = made_project(store).id
    batch = made_batch(store, project)
    uploads.delete_batch(store, project, batch.id)
    assert made_batch(store, project).id > batch.id


def test_deleting_a_batch_stops_the_job_that_reads_it(store):
    project = made_project(store).id
    batch = made_batch(store, project)
    held = jobs.claim(store, "a", "quick")
    uploads.delete_batch(store, project, batch.id)
    with pytest.raises(LeaseLost), store.write() as c:
        jobs.finish(c, held)


def test_what_is_being_computed_from_all_batches_begins_again_without_a_deleted_one(store):
    project = made_project(store).id
    batch = made_batch(store, project)
    read_batch(store)
    held = jobs.claim(store, "a", "long")
    assert held.kind == "overview"
    uploads.delete_batch(store, project, batch.id)
    with pytest.raises(LeaseLost), store.write() as c:
        jobs.finish(c, held)
    assert jobs.claim(store, "b", "long").kind == "overview"


def test_a_deleted_project_leaves_nothing(store, tmp_path):
    project = made_project(store).id
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    name = store.models.put(model)
    batch = made_batch(store, project)
    with store.write() as c:
        projects.set_model(c, project, name)
    read_batch(store)
    made_plan(store, project, batch.id)
    made_answer(store, project, "batch", f"batch:{batch.id}", "replaced")
    inbox = store.data / "inbox" / project
    inbox.mkdir()
    (inbox / "next.csv").write_text("text\n")
    projects.delete_project(store, project)
    assert files_of(store) == set()
    assert not inbox.exists()
    assert store.models.names() == []
    with store.read() as c, pytest.raises(NotFound, match="The project does not exist"):
        projects.project(c, project)
    with pytest.raises(NotFound):
        projects.delete_project(store, project)
    assert check_integrity(store) == []


def test_a_model_of_two_projects_outlives_one_of_them(store, tmp_path):
    owners = [made_project(store).id for _ in range(2)]
    for n, owner in enumerate(owners):
        (tmp_path / f"model{n}").mkdir()
        (tmp_path / f"model{n}" / "config.json").write_text("{}")
        name = store.models.put(tmp_path / f"model{n}")
        with store.write() as c:
            assert projects.set_model(c, owner, name).model == name
    projects.delete_project(store, owners[0])
    assert store.models.names() == [name]
    projects.delete_project(store, owners[1])
    assert store.models.names() == []


def test_settings_based_on_outdated_ones_are_refused(store):
    project = made_project(store)
    with store.write() as c:
        changed = projects.change_settings(c, project.id, {"text": "body"}, version=project.version, name="Mails")
    assert (changed.settings, changed.name) == ({"text": "body"}, "Mails")
    with pytest.raises(Outdated, match="someone else"), store.write() as c:
        projects.change_settings(c, project.id, {}, version=project.version)


def test_projects_have_pages(store):
    made = [made_project(store, str(n)) for n in range(5)]
    with store.read() as c:
        assert projects.count_projects(c) == 5
        first = projects.list_projects(c, limit=3)
        assert first + projects.list_projects(c, before=first[-1].id) == made[::-1]
