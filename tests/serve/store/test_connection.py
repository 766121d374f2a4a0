import os
import sqlite3
import subprocess
import sys

import pytest

from quanet.errors import MissingExtra
from quanet.serve.store import projects
from quanet.serve.store.connection import FILE, ServiceStore
from quanet.serve.store.store_errors import StoreError
from tests.serve.store.made_stores import made_project

NOBODY = 65534


def refused(data, url=None):
    """The one line with which a store is refused."""
    with pytest.raises(StoreError) as caught:
        ServiceStore.open(data, url)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_block_is_stored_completely_or_not_at_all(store):
    def half(c):
        projects.create_project(c, "half", {})
        raise KeyError

    with pytest.raises(KeyError), store.write() as c:
        half(c)
    with store.read() as c:
        assert projects.list_projects(c) == []


def test_a_reader_sees_one_state(store):
    with store.read() as reader:
        assert projects.count_projects(reader) == 0
        made_project(store)
        assert projects.count_projects(reader) == 0
    with store.read() as reader:
        assert projects.count_projects(reader) == 1


def test_reading_cannot_write(store):
    with pytest.raises(StoreError, match="cannot be used"), store.read() as c:
        projects.create_project(c, "x", {})
    made_project(store)


def test_what_one_process_has_stored_another_opens(store, url):
    project = made_project(store)
    other = ServiceStore.open(store.data, url)
    with other.read() as c:
        assert projects.project(c, project.id) == project
    other.close()


def test_a_place_is_shown_without_its_password(tmp_path):
    url = "postgresql://ann:secret@localhost:1/reviews"
    said = refused(tmp_path, url)
    assert "secret" not in said
    assert "localhost" in said


@pytest.mark.parametrize("url", ["mysql://localhost/x", "sqlite:///x", "nonsense", "://"])
def test_an_address_must_be_of_postgresql(tmp_path, url):
    assert "must be like postgresql://" in refused(tmp_path, url)


def test_a_missing_driver_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"quanet\[postgres\]"):
        ServiceStore.open(tmp_path, "postgresql://localhost/x")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("made", [False, True])
def test_a_read_only_folder_is_refused(tmp_path, made):
    data = tmp_path / "data"
    data.mkdir()
    if made:
        ServiceStore.open(data).close()
    for path in (tmp_path, data, *data.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in tmp_path.parents:
        if path.stat().st_mode & 0o005 != 0o005:
            path.chmod(path.stat().st_mode | 0o005)
    os.seteuid(NOBODY)
    try:
        said = refused(data)
    finally:
        os.seteuid(0)
    assert "cannot be written: Permission denied" in said
    assert "--data" in said


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "data").write_text("a file")
    assert "cannot be written" in refused(tmp_path / "data")


def test_another_file_in_place_of_the_database_is_refused_and_kept(tmp_path):
    (tmp_path / FILE).write_text("not a database " * 100)
    assert "is no database of quanet, or damaged" in refused(tmp_path)
    assert (tmp_path / FILE).read_text().startswith("not a database")


def test_a_full_disk_loses_nothing(tmp_path):
    store = ServiceStore.open(tmp_path)
    project = made_project(store)

    def fill(c):
        pages = c.exec_driver_sql("PRAGMA page_count").scalar()
        c.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        projects.create_project(c, "large", {"note": "x" * 100_000})

    with pytest.raises(StoreError, match=r"disk is full\. Free space"), store.write() as c:
        fill(c)
    with store.read() as c:
        assert projects.list_projects(c) == [project]
    store.close()


def test_writers_wait_for_each_other(tmp_path, monkeypatch):
    store = ServiceStore.open(tmp_path)
    monkeypatch.setattr("quanet.serve.store.connection.PATIENCE", 0.01)
    with store.write(), pytest.raises(StoreError, match="is busy"), store.write():
        pass
    other = ServiceStore.open(tmp_path)
    with store.write(), pytest.raises(StoreError, match="Another process is writing"), other.write():
        pass
    made_project(store)
    store.close()
    other.close()


def test_sqlite_is_set_up_to_keep_what_it_acknowledges(tmp_path):
    store = ServiceStore.open(tmp_path)
    with store.read() as c:
        values = [
            c.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert values == ["wal", 2, 1]
    store.close()
    with sqlite3.connect(tmp_path / FILE) as plain:  # also when another program opens it
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    plain.close()


OPEN = "import sys; from quanet.serve.store.connection import ServiceStore; ServiceStore.open(sys.argv[1])"


def test_processes_may_open_a_new_folder_at_the_same_time(tmp_path):
    command = [sys.executable, "-c", OPEN, tmp_path]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate()[1] for process in started] == [b""] * 4


def test_the_store_imports_nothing_heavy():
    modules = [
        "connection",
        "projects",
        "uploads",
        "answers",
        "jobs",
        "label_queue",
        "alarms",
        "tokens",
        "audit_log",
        "integrity",
        "removal",
    ]
    code = f"import sys; from quanet.serve.store import {', '.join(modules)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "pandas", "pyarrow", "sklearn", "torch", "numba", "matplotlib", "fastapi", "psycopg"} & set(
        loaded
    )
