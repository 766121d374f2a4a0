"""The watched folder: complete files become batches, each once."""

import os

import pytest

from quanet.serve.store.uploads import list_batches, list_files
from quanet.serve.work.inbox import Inbox


@pytest.fixture
def folder(fresh):
    folder = fresh.store.data / "inbox" / fresh.project
    folder.mkdir()
    return folder


def old(path, content=b"review\ngood film\n", age=60):
    path.write_bytes(content)
    moment = path.stat().st_mtime - age
    os.utime(path, (moment, moment))
    return path


def names(fresh):
    with fresh.store.read() as connection:
        return [file.name for file in list_files(connection, fresh.project, "batch")]


def test_a_complete_file_becomes_a_batch_once(fresh, folder):
    inbox = Inbox(fresh.store, still=0.0)
    path = old(folder / "may.csv")
    assert inbox.look() == 1
    assert not path.exists()
    old(folder / "again.csv")  # the same content
    assert inbox.look() == 0
    assert not (folder / "again.csv").exists()
    assert names(fresh) == ["may.csv"]
    with fresh.store.read() as connection:
        (batch,) = list_batches(connection, fresh.project)
    assert batch.status == "queued"


def test_a_file_that_is_being_written_is_left_alone(fresh, folder):
    inbox = Inbox(fresh.store, still=0.2)
    (folder / "now.csv").write_bytes(b"review\n")
    assert inbox.look() == 0
    path = old(folder / "copied.csv")  # with the time of the original
    assert inbox.look() == 0
    path.write_bytes(b"review\ngood film\nbad film\n")
    assert inbox.look() == 0
    assert names(fresh) == []
    assert path.exists()


def test_other_files_are_left_alone(fresh, folder):
    inbox = Inbox(fresh.store, still=0.0)
    secret = old(fresh.store.data / "secret.csv", b"password\nhunter2\n")
    for name in (".may.csv", "may.csv.part", "may.tmp", "notes.docx", "may"):
        old(folder / name)
    (folder / "link.csv").symlink_to(secret)
    (folder / "folder.csv").mkdir()
    other = fresh.store.data / "inbox" / "nobody"
    other.mkdir()
    old(other / "may.csv")
    assert inbox.look() == 0
    assert names(fresh) == []
    assert (other / "may.csv").exists()
