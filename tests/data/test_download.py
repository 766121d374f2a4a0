import errno
import hashlib
import json
import shutil
import subprocess
import sys
import threading
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quanet.data import download as room
from quanet.data.download import download
from quanet.errors import DownloadFailed
from tests.data.server import serving

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "folder" / "file.bin"


def left_over(target):
    return sorted(path.name for path in target.parent.iterdir() if not path.name.endswith(".lock"))


def test_a_file_is_fetched_once_and_only_the_whole_is_left(site, target):
    site.files["/f"] = CONTENT
    seen = []
    for _ in range(2):
        assert download(f"{site.url}/f", target, md5=MD5, progress=lambda *step: seen.append(step)) == target
    assert target.read_bytes() == CONTENT
    assert left_over(target) == ["file.bin"]
    assert site.asked == [("/f", None)]
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_cut_connection_is_gone_on_with_where_it_was(site, target):
    site.files["/f"] = CONTENT
    site.cuts = [100_000, 50_000]
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert site.asked == [("/f", None), ("/f", "bytes=100000-"), ("/f", "bytes=150000-")]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 299_999), max_size=6), ranges=st.booleans(), tag=st.sampled_from([None, '"x"']))
def test_however_it_is_cut_the_file_is_whole_or_an_error(site, tmp_path_factory, cuts, ranges, tag):
    with serving(files={"/f": CONTENT}, cuts=list(cuts), ranges=ranges, tag=tag) as other:
        place = tmp_path_factory.mktemp("cuts") / "f"
        try:
            download(f"{other.url}/f", place, md5=MD5)
        except DownloadFailed:
            assert not place.exists()
            assert len(cuts) >= room.TRIES
        else:
            assert place.read_bytes() == CONTENT


def test_what_an_earlier_call_received_is_gone_on_with(site, target, monkeypatch):
    site.files["/f"] = CONTENT
    site.cuts = [100_000] + [0] * room.TRIES
    with pytest.raises(DownloadFailed, match=r"ended after 100,000 of 300,000 bytes.*100,000 bytes are kept"):
        download(f"{site.url}/f", target, md5=MD5)
    assert not target.exists()
    site.asked.clear()
    download(f"{site.url}/f", target, md5=MD5)
    assert site.asked == [("/f", "bytes=100000-")]
    assert target.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_all_of_it_again(site, target):
    site.files["/f"] = CONTENT
    site.ranges = False
    site.cuts = [100_000]
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_not_spliced(site, target):
    site.files["/f"] = bytes(300_000)
    site.cuts = [100_000] + [0] * room.TRIES
    with pytest.raises(DownloadFailed):
        download(f"{site.url}/f", target)
    site.files["/f"], site.tag = CONTENT, '"two"'
    download(f"{site.url}/f", target)
    assert target.read_bytes() == CONTENT


def test_a_part_from_another_server_is_not_gone_on_with(site, target):
    target.parent.mkdir()
    (target.parent / "file.bin.part").write_bytes(b"other")
    (target.parent / "file.bin.part.json").write_text(json.dumps({"url": "http://elsewhere/f", "validator": None}))
    site.files["/f"] = CONTENT
    download(f"{site.url}/f", target, md5=MD5)
    assert site.asked == [("/f", None)]


@pytest.mark.parametrize("note", ["{broken", "[]", None])
def test_a_part_without_a_readable_note_is_started_again(note, site, target):
    target.parent.mkdir()
    (target.parent / "file.bin.part").write_bytes(b"other")
    if note:
        (target.parent / "file.bin.part.json").write_text(note)
    site.files["/f"] = CONTENT
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT


def test_an_answer_that_starts_earlier_than_asked_is_put_in_its_place(site, target):
    site.files["/f"] = CONTENT
    site.cuts, site.shifted = [100_000], 10_000
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT


def test_an_answer_that_starts_later_than_asked_is_refused(site, target):
    site.files["/f"] = CONTENT
    site.cuts, site.shifted = [100_000], -10
    with pytest.raises(DownloadFailed, match="a different part of the file than requested"):
        download(f"{site.url}/f", target, md5=MD5)


def test_a_part_that_is_whole_already_is_taken(site, target):
    site.files["/f"] = CONTENT
    target.parent.mkdir()
    (target.parent / "file.bin.part").write_bytes(CONTENT)
    (target.parent / "file.bin.part.json").write_text(json.dumps({"url": f"{site.url}/f", "validator": '"one"'}))
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_thrown_away(site, target):
    site.files["/f"] = CONTENT
    target.parent.mkdir()
    (target.parent / "file.bin.part").write_bytes(CONTENT + b"more")
    (target.parent / "file.bin.part.json").write_text(json.dumps({"url": f"{site.url}/f", "validator": '"one"'}))
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT


def test_a_length_that_is_not_said_is_no_obstacle(site, target):
    site.files["/f"] = CONTENT
    site.lengths = False
    seen = []
    download(f"{site.url}/f", target, md5=MD5, progress=lambda *step: seen.append(step))
    assert seen[-1] == (len(CONTENT), None)


def test_pieces_that_break_off_are_a_cut_too(site, target):
    site.files["/f"] = CONTENT
    site.chunked, site.cuts = True, [100_000]
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert site.asked[1][1] is not None


@pytest.mark.parametrize("lengths", [True, False])
def test_a_part_of_a_file_of_unknown_length_is_put_in_its_place(lengths, site, target):
    site.files["/f"] = CONTENT
    site.cuts, site.total = [100_000] + [0] * room.TRIES, False
    with pytest.raises(DownloadFailed):
        download(f"{site.url}/f", target, md5=MD5)
    site.lengths, site.cuts = lengths, []
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT


def test_a_connection_that_is_closed_without_an_answer_is_tried_again(site, target):
    site.files["/f"] = CONTENT
    site.slams = 2
    download(f"{site.url}/f", target, md5=MD5)
    assert len(site.asked) == 3


def test_a_redirection_is_followed_also_when_going_on(site, target):
    site.files["/new"] = CONTENT
    site.moved["/f"] = "/new"
    site.cuts = [100_000]
    download(f"{site.url}/f", target, md5=MD5)
    assert target.read_bytes() == CONTENT
    assert ("/new", "bytes=100000-") in site.asked


def test_a_wrong_checksum_sets_the_file_aside(site, target):
    site.files["/f"] = CONTENT[:-1] + b"?"
    with pytest.raises(DownloadFailed, match=rf"has the checksum \w{{32}} instead of {MD5}.*file\.bin\.wrong"):
        download(f"{site.url}/f", target, md5=MD5)
    assert not target.exists()
    assert "file.bin.wrong" in left_over(target)
    site.files["/f"] = CONTENT
    assert download(f"{site.url}/f", target, md5=MD5).read_bytes() == CONTENT


def test_a_file_that_was_damaged_since_is_fetched_again(site, target):
    site.files["/f"] = CONTENT
    download(f"{site.url}/f", target, md5=MD5)
    target.write_bytes(b"damaged")
    assert download(f"{site.url}/f", target, md5=MD5).read_bytes() == CONTENT
    assert (target.parent / "file.bin.wrong").read_bytes() == b"damaged"


@pytest.mark.parametrize("status", [404, 403, 410])
def test_an_answer_that_will_not_change_is_an_error_at_once(status, site, target):
    site.statuses = [status]
    with pytest.raises(DownloadFailed, match=f"the server returned {status}"):
        download(f"{site.url}/f", target)
    assert len(site.asked) == 1
    assert left_over(target) == []


def test_an_answer_that_may_change_is_tried_again(site, target):
    site.files["/f"] = CONTENT
    site.statuses = [503, 429]
    assert download(f"{site.url}/f", target, md5=MD5).read_bytes() == CONTENT
    site.statuses = [500] * room.TRIES
    with pytest.raises(DownloadFailed, match="returned 500"):
        download(f"{site.url}/f", target.with_name("other"))


def test_without_a_network_it_says_so_at_once(target, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving() as gone:
        url = f"{gone.url}/f"
    with pytest.raises(DownloadFailed, match=r"no connection \(Connection refused\)"):
        download(url, target)


def test_only_the_web_is_fetched_from(target):
    with pytest.raises(DownloadFailed, match="not an http or https URL"):
        download("file:///etc/passwd", target)


def test_a_disk_that_is_too_small_is_told_before_the_download(site, target, monkeypatch):
    site.files["/f"] = CONTENT
    Usage = namedtuple("Usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10, 0, 1000))
    with pytest.raises(DownloadFailed, match=r"needs 300,000 bytes .* 1,000 are free.*QUANET_CACHE"):
        download(f"{site.url}/f", target)


@pytest.mark.parametrize(("code", "message"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "cannot be written")])
def test_a_disk_that_fails_meanwhile_keeps_what_there_is(code, message, site, target, monkeypatch):
    site.files["/f"] = CONTENT
    monkeypatch.setattr(room.os, "fsync", lambda number: (_ for _ in ()).throw(OSError(code, "no")))
    with pytest.raises(DownloadFailed, match=message):
        download(f"{site.url}/f", target)
    assert not target.exists()
    monkeypatch.undo()
    monkeypatch.setenv("no_proxy", "*")
    download(f"{site.url}/f", target, md5=MD5)


def test_a_full_disk_while_writing_is_one_clear_error(site, target):
    site.files["/f"] = CONTENT
    target.parent.mkdir()
    (target.parent / "file.bin.part").symlink_to("/dev/full")  # every write to it finds the disk full
    with pytest.raises(DownloadFailed, match=r"the disk is full: file\.bin does not fit"):
        download(f"{site.url}/f", target)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadFailed, match="cannot be written"):
        download("http://127.0.0.1/f", tmp_path / "file" / "inside" / "f")


def test_an_interruption_keeps_what_was_received(site, target):
    site.files["/f"] = CONTENT

    def stop(done, total):
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(f"{site.url}/f", target, progress=stop)
    kept = (target.parent / "file.bin.part").stat().st_size
    assert kept > 100_000
    site.asked.clear()
    download(f"{site.url}/f", target, md5=MD5)
    assert site.asked == [("/f", f"bytes={kept}-")]


def test_two_processes_fetch_once(site, target):
    site.files["/f"] = CONTENT
    site.gate = threading.Event()
    code = "import sys, pathlib; from quanet.data.download import *; download(sys.argv[1], pathlib.Path(sys.argv[2]))"
    command = [sys.executable, "-c", code, f"{site.url}/f", str(target)]
    both = [subprocess.Popen(command) for _ in range(2)]
    while not site.asked:
        assert all(one.poll() is None for one in both)
    site.gate.set()
    assert [one.wait(60) for one in both] == [0, 0]
    assert target.read_bytes() == CONTENT
    assert site.asked == [("/f", None)]
