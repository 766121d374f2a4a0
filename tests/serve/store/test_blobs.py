import errno
import os
import shutil
import time
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quanet.serve.store.blobs import Blobs, Folders
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.removal import collect
from quanet.serve.store.store_errors import NotFound, StoreError
from tests.serve.store.made_stores import made_batch, made_project

HOSTILE = ["", ".", "..", "../quanet.sqlite3", "/etc/passwd", "0" * 64, "0" * 64 + ".py", "0" * 64 + ".csv/../x"]
HOSTILE += ["0" * 63 + "g.csv", "0" * 64 + ".csv\n", "A" * 64 + ".csv", "models/..", "0" * 64 + ".csv\0"]


@pytest.fixture
def blobs(tmp_path):
    for name in ("blobs", "incoming"):
        (tmp_path / name).mkdir()
    return Blobs(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(), suffix=st.sampled_from(["csv", ".CSV.GZ", "arrow", "html"]))
def test_content_is_found_by_its_hash(blobs, content, suffix):
    name = blobs.put_bytes(content, suffix)
    assert name == f"{sha256(content).hexdigest()}.{suffix.lstrip('.').lower()}"
    assert blobs.path(name).read_bytes() == content
    assert blobs.put_bytes(content, suffix) == name
    assert list(blobs.incoming().iterdir()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_leads_out_of_the_folder(blobs, name):
    with pytest.raises(NotFound, match="is not the name of a stored file"):
        blobs.path(name)


@given(name=st.text())
def test_any_name_is_a_blob_or_refused(name):
    try:
        path = Blobs(Path("/data")).path(name)
    except NotFound:
        return
    assert path.parent.parent == Path("/data/blobs")


@pytest.mark.parametrize("suffix", ["py", "sqlite", "csv.exe", "", "../x", "htm l"])
def test_a_suffix_is_one_of_a_list(blobs, suffix):
    with pytest.raises(NotFound):
        blobs.put_bytes(b"x", suffix)
    assert list(blobs.names()) == list(blobs.incoming().iterdir()) == []


def test_a_blob_is_on_the_disk_before_it_has_its_name(blobs, monkeypatch):
    steps = []
    replace = Path.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: steps.append("fsync"))
    monkeypatch.setattr(Path, "replace", lambda *paths: steps.append("name") or replace(*paths))
    blobs.put_bytes(b"x", "csv")
    assert steps == ["fsync", "name", "fsync"]  # the file, its name, the folder that has the name


def test_a_full_disk_is_reported_in_one_line_and_leaves_nothing(blobs, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="The disk is full") as caught:
        blobs.put_bytes(b"x", "csv")
    assert "\n" not in str(caught.value)
    assert list(blobs.names()) == list(blobs.incoming().iterdir()) == []


def folder_of(path, **files):
    path.mkdir()
    for name, content in files.items():
        (path / name).write_text(content)
    return path


def test_a_folder_is_named_by_its_names_and_contents(tmp_path):
    (tmp_path / "models").mkdir()
    folders = Folders(tmp_path, "models")
    names = [
        folders.put(folder_of(tmp_path / str(n), **files))
        for n, files in enumerate([{"a": "1"}, {"a": "1"}, {"b": "1"}, {"a": "2"}])
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3 == len(folders.names())
    assert (folders.path(names[3]) / "a").read_text() == "2"
    with pytest.raises(NotFound):
        folders.path("../models")


def make_older(path, seconds=7200):
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def test_content_that_nobody_names_is_collected_when_it_is_old(store, tmp_path):
    made_batch(store, made_project(store).id, b"named")
    old, young = store.blobs.put_bytes(b"old", "csv"), store.blobs.put_bytes(b"young", "csv")
    model = store.models.put(folder_of(tmp_path / "model", a="1"))
    for name in [*store.blobs.names()]:
        if name != young:
            make_older(store.blobs.path(name))
    make_older(store.models.path(model))
    part = store.blobs.incoming() / "upload.part"
    part.write_bytes(b"half")
    assert collect(store) == 2
    assert old not in store.blobs.names()
    assert len([*store.blobs.names()]) == 2
    assert part.exists()
    make_older(part, 1e6)
    collect(store)
    assert not part.exists()


def test_an_old_blob_that_is_stored_again_is_young(store):
    make_older(store.blobs.path(store.blobs.put_bytes(b"old", "csv")))
    store.blobs.put_bytes(b"old", "csv")
    assert collect(store) == 0


def test_what_was_deleted_is_removed_after_a_crash(store, monkeypatch):
    from quanet.serve.store import projects

    project = made_project(store).id
    made_batch(store, project)
    monkeypatch.setattr(projects, "remove_content", lambda store: None)  # killed before the files were removed
    projects.delete_project(store, project)
    assert [*store.blobs.names()]
    url = None if store.engine.dialect.name == "sqlite" else store.engine.url.render_as_string(hide_password=False)
    ServiceStore.open(store.data, url).close()
    assert not [*store.blobs.names()]


def test_a_deleted_text_is_not_in_any_file(store):
    from quanet.serve.store import uploads
    from tests.serve.store.made_stores import made_answer, made_plan

    if store.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL overwrites deleted rows when it vacuums")
    project = made_project(store).id
    batch = made_batch(store, project, b"text\nthe secret text\n")
    made_answer(store, project, "overview", "project", examples=["the secret text"])
    plan = made_plan(store, project, batch.id)
    assert plan.id
    shutil.copy(store.data / "quanet.sqlite3", store.data / "quanet.before-0000.sqlite3")
    uploads.delete_batch(store, project, batch.id)
    for path in store.data.rglob("*"):
        assert not path.is_file() or b"secret text" not in path.read_bytes(), path
    assert not list(store.data.glob("quanet.before-*"))
