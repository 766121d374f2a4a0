"""Uploads: streamed, limited, and stored under names that the service chooses."""

import asyncio
import bz2
import gzip
import io
import json
import lzma
import zipfile

import httpx
import pytest
from starlette.testclient import TestClient

from quanet.errors import InvalidData
from quanet.serve.store.uploads import list_batches, list_files
from quanet.serve.web import envelope, receiving
from quanet.serve.web.app import create_app
from quanet.serve.web.file_titles import clean_file_name
from quanet.serve.web.service_settings import MEGABYTE, ServiceSettings
from quanet.serve.web.upload_kinds import check_unpacked, upload_suffix

from .conftest import HOME
from .made_service import CSV

NEW = b"text,date\nA new film,2024-03-01\n"


def place(made, what="batches"):
    return f"/api/projects/{made.project}/{what}"


def incoming(store):
    return [path for path in store.blobs.incoming().iterdir() if not path.name.startswith(".")]


def test_a_body_and_a_form_give_the_same_batch(client, made, store):
    body = client.post(place(made), content=NEW, headers={"content-type": "text/csv"}, params={"name": "a.csv"})
    form = client.post(place(made), files={"file": ("b.csv", NEW)})
    assert body.status_code == 202
    assert not body.json()["repeated"]
    assert form.status_code == 200
    assert form.json()["repeated"]
    assert form.json()["id"] == body.json()["id"]
    assert form.json()["name"] == "a.csv"
    assert incoming(store) == []


def test_a_batch_can_be_read_back(client, made, store):
    answer = client.post(place(made), content=NEW)
    shown = client.get(answer.headers["location"]).json()
    assert shown["status"] == "queued"
    assert shown["answer"] is None
    with store.read() as connection:
        row = list_batches(connection, made.project, limit=1)[0]
        assert row.id == shown["id"]


def test_the_same_key_is_accepted_once_and_never_for_another_file(client, made):
    key = {"idempotency-key": "upload-17"}
    first = client.post(place(made), content=NEW, headers=key)
    again = client.post(place(made), content=NEW, headers=key)
    other = client.post(place(made), content=NEW + b"x,2024-04-04\n", headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (202, 200, 422)
    assert again.json()["id"] == first.json()["id"]
    assert other.json()["field"] == "Idempotency-Key"


@pytest.mark.parametrize("key", ["", "x" * 151, "a b", "ü"])
def test_a_bad_key_is_refused(client, made, key):
    answer = client.post(place(made), content=NEW, headers={b"idempotency-key": key.encode()})
    assert answer.status_code == 422


def test_a_large_file_never_is_in_memory(served, store, made, monkeypatch):
    largest = 0
    write = receiving._write

    def watched(file, waiting):
        nonlocal largest
        largest = max(largest, len(waiting))
        return write(file, waiting)

    monkeypatch.setattr(receiving, "_write", watched)
    block = b"a film that is as long as it is dull\n" * 2000
    number = 12 * MEGABYTE // len(block)

    def blocks():
        yield b"text\n"
        for _ in range(number):
            yield block

    answer = httpx.post(f"{served[0]}{place(made)}", content=blocks(), timeout=60)
    assert answer.status_code == 202
    assert largest < 2 * receiving.BLOCK
    assert store.blobs.path(_blob(store, made)).stat().st_size == 5 + number * len(block)


def _blob(store, made):
    with store.read() as connection:
        return list_files(connection, made.project, "batch", limit=1)[0].blob


@pytest.fixture
def small(store):
    """A service that accepts files of 1 MB."""
    return TestClient(create_app(store, ServiceSettings(upload_bytes=MEGABYTE)), base_url=HOME)


def test_a_file_that_announces_too_much_is_refused_before_it_is_read(small, made):
    answer = small.post(place(made), content=b"x", headers={"content-length": str(10 * MEGABYTE)})
    assert answer.status_code == 413
    assert answer.json() == {"error": "The file is larger than 1 MB. Split it, or raise --max-upload.", "field": "file"}


@pytest.mark.parametrize("form", [False, True])
def test_a_file_that_announces_nothing_is_refused_when_it_is_too_large(small, made, store, form):
    start = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n' if form else b""

    def endless():
        yield start
        for _ in range(30):
            yield b"x" * 100_000

    kind = "multipart/form-data; boundary=b" if form else "text/csv"
    answer = small.post(place(made), content=endless(), headers={"content-type": kind})
    assert answer.status_code == 413
    assert incoming(store) == []


def test_other_requests_are_small(client, made):
    answer = client.post("/api/projects", content=b'{"name": "' + b"x" * 2_000_000 + b'"}')
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", "multipart/form-data; boundary=b", 400),
        (b"--b--\r\n", "multipart/form-data; boundary=b", 422),
        (
            b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
            422,
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nx',
            "multipart/form-data; boundary=b",
            400,
        ),
        (b"--b\r\nno header\r\n\r\n", "multipart/form-data; boundary=b", 400),
        (b"x", "multipart/form-data", 400),
        (b"x", "multipart/form-data; boundary=" + "b" * 500, 400),
        (b"", "text/csv", 422),
        (b"SQLite format 3\0...", "text/csv", 415),
        (b"%PDF-1.7", "application/pdf", 415),
        (b"PK\x03\x04 no archive", "text/csv", 422),
        (b"\x1f\x8b\x08 damaged", "text/csv", 422),
        (b"text\nx\n", "application/vnd.apache.parquet", 415),
    ],
)
def test_what_is_no_table_is_refused(client, made, store, content, kind, status):
    answer = client.post(place(made), content=content, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]
    assert incoming(store) == []


def test_two_files_in_one_form_are_refused(client, made):
    answer = client.post(place(made), files=[("file", ("a.csv", NEW)), ("file", ("b.csv", CSV))])
    assert answer.status_code == 400


def test_fields_of_a_form_are_limited(client, made):
    long = client.post(place(made), files={"file": ("a.csv", NEW)}, data={"note": "x" * 100_000})
    many = client.post(place(made), files={"file": ("a.csv", NEW)}, data={f"f{at}": "x" for at in range(60)})
    assert (long.status_code, many.status_code) == (413, 413)


def test_a_form_of_a_browser_is_refused_before_its_file_is_read(client, made, store):
    own = {"origin": HOME}
    answer = client.post(place(made), files={"file": ("a.csv", NEW)}, headers=own)
    assert answer.status_code == 403
    from .test_access import csrf_of

    answer = client.post(place(made), data={"csrf": csrf_of(client)}, files={"file": ("a.csv", NEW)}, headers=own)
    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("head", "name", "kind", "suffix"),
    [
        (b"a,b", "x.csv", "", "csv"),
        (b"a\tb", "x.TSV", "", "tsv"),
        (b"{}", "x", "", "jsonl"),
        (b"[{}]", "x", "", "json"),
        (b"\xef\xbb\xbf[{}]", "x", "", "json"),
        (b"{}", "x.ndjson", "", "jsonl"),
        (b"a", "x.sh", "", "csv"),
        (b"a", "../../x.py", "text/x-python", "csv"),
        (b"{}", "", "application/json", "json"),
        (gzip.compress(b"a,b\n", mtime=0), "x.csv.gz", "", "csv.gz"),
        (gzip.compress(b'{"a": 1}\n', mtime=0), "x", "", "jsonl.gz"),
        (bz2.compress(b"[1]"), "x", "", "json.bz2"),
        (lzma.compress(b"a"), "x.tsv.xz", "", "tsv.xz"),
        (b"PAR1abc", "x.csv", "", "parquet"),
        (b"PK\x03\x04abc", "x.xlsx", "", "xlsx"),
    ],
)
def test_the_suffix_comes_from_a_fixed_list(head, name, kind, suffix):
    assert upload_suffix(head, name, kind) == suffix


def test_files_that_unpack_to_too_much_are_refused(tmp_path):
    bomb = tmp_path / "bomb"
    for suffix, pack in {"csv.gz": gzip.compress, "csv.bz2": bz2.compress, "csv.xz": lzma.compress}.items():
        bomb.write_bytes(pack(b"0" * 5_000_000))
        with pytest.raises(InvalidData, match="unpacks to more than"):
            check_unpacked(bomb, suffix, 1_000_000)
        check_unpacked(bomb, suffix, 6_000_000)
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", b"")
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 5_000_000)
    bomb.write_bytes(book.getvalue())
    with pytest.raises(InvalidData, match="unpacks to more than"):
        check_unpacked(bomb, "xlsx", 1_000_000)


def test_a_zstandard_file_is_counted_too(tmp_path):
    pa = pytest.importorskip("pyarrow")
    packed = tmp_path / "a.csv.zst"
    with pa.CompressedOutputStream(pa.OSFile(str(packed), "wb"), "zstd") as stream:
        stream.write(b"0" * 3_000_000)
    with pytest.raises(InvalidData, match="unpacks to more than"):
        check_unpacked(packed, "csv.zst", 1_000_000)
    check_unpacked(packed, "csv.zst", 4_000_000)
    packed.write_bytes(b"\x28\xb5\x2f\xfd damaged")
    with pytest.raises(InvalidData, match="damaged"):
        check_unpacked(packed, "csv.zst", 4_000_000)


def test_a_full_disk_is_reported_and_nothing_is_stored(client, made, store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    answer = client.post(place(made), content=NEW)
    assert answer.status_code == 507
    assert answer.json()["error"] == "The disk of the service is full. Nothing was stored."
    assert incoming(store) == []
    with store.read() as connection:
        assert len(list_batches(connection, made.project)) == 1


def test_a_disk_that_is_nearly_full_accepts_nothing(client, made, monkeypatch):
    monkeypatch.setattr(receiving, "SPARE", 2**62)
    assert client.post(place(made), content=NEW).status_code == 507


def test_a_body_that_stops_arriving_is_given_up(client, made, store, monkeypatch):
    monkeypatch.setattr(envelope, "IDLE_SECONDS", 0.05)
    parts = [{"type": "http.request", "body": b"text\n", "more_body": True}]
    sent = []

    async def receive():
        return parts.pop() if parts else await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"text/csv")]
    scope = {"type": "http", "method": "POST", "path": place(made), "raw_path": b"", "query_string": b""}
    scope |= {"headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000), "scheme": "http"}
    asyncio.run(client.app(scope | {"http_version": "1.1", "root_path": "", "asgi": {"version": "3.0"}}, receive, send))
    assert sent[0]["status"] == 408
    assert incoming(store) == []


def test_a_project_accepts_so_many_batches(client, made):
    client.patch(f"/api/projects/{made.project}", json={"settings": {"limits": {"batches": 1}}})
    answer = client.post(place(made), content=NEW)
    assert answer.status_code == 409
    assert "limit" in answer.json()["error"]


def test_new_data_need_a_model(client):
    project = client.post("/api/projects", json={"name": "New"}).json()["id"]
    answer = client.post(f"/api/projects/{project}/batches", content=NEW)
    assert answer.status_code == 409
    assert "no model yet" in answer.json()["error"]


def test_names_are_only_shown():
    assert clean_file_name("..\\..\\x.csv") == "x.csv"
    assert clean_file_name("\0\x1b[31m") == "[31m"
    assert len(clean_file_name("x" * 1000)) == 200
    assert json.dumps(clean_file_name("\ud800a")) == '"a"'
