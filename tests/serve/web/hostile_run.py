"""Send hostile uploads and names to a service, and look for what they did."""

import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from quanet.serve.store.connection import ServiceStore
from quanet.serve.web.app import create_app
from quanet.serve.web.service_settings import MEGABYTE, ServiceSettings

from .hostile_uploads import MARK, PRODUCT, HostileUpload, hostile_uploads
from .made_service import Made

JSON = {"content-type": "application/json"}
STORED = re.compile(
    r"(blobs/[0-9a-f]{2}/[0-9a-f]{64}\.[a-z0-9.]+|models/[0-9a-f]{64}/.+|incoming/\.writable|quanet\.sqlite3(-wal|-shm)?"
    r"|migration\.lock)"
)
# What a page would contain if a name were not escaped.
UNESCAPED = re.compile(rf"<(?:script>alert\('{MARK}|img src=x|svg/onload|b>{MARK})", re.IGNORECASE)


def run_hostile(store: ServiceStore, made: Made, number: int, *, pages: int = 20, first: int = 0) -> Counter[str]:
    """Upload hostile files and use their names for projects. What is wrong raises an error; the answers by status.

    Parameters
    ----------
    store, made : of the service, and what exists in it.
    number : of uploads.
    pages : how many batches are looked at on pages.
    first : seed.
    """
    limits = ServiceSettings(requests_per_minute=10**9, upload_bytes=MEGABYTE, projects=10**6)
    with TestClient(create_app(store, limits), base_url="http://127.0.0.1:8000") as client:
        return _run(client, store, made, number, pages, first)


def _run(client: TestClient, store: ServiceStore, made: Made, number: int, pages: int, first: int) -> Counter[str]:
    around = _files(store.data.parent) - _files(store.data)
    counts: Counter[str] = Counter()
    for at, upload in enumerate(hostile_uploads(number, first)):
        kind = "training" if at % 5 == 0 else "batches"
        answers = [_send(client, f"/api/projects/{made.project}/{kind}", upload)]
        if at % 10 == 0:
            settings = json.dumps({"name": upload.name, "settings": {"text": upload.name[:200]}})
            answers.append(client.post("/api/projects", content=json.dumps({"name": upload.name}), headers=JSON))
            answers.append(client.patch(f"/api/projects/{made.project}", content=settings, headers=JSON))
        for answer in answers:
            assert answer.status_code < 500, (upload.name, answer.text)
            assert "x-injected" not in answer.headers
            counts[str(answer.status_code)] += 1
    assert _files(store.data.parent) - _files(store.data) == around
    for path in _files(store.data):
        assert STORED.fullmatch(path.relative_to(store.data).as_posix()), path
    counts["pages"] = _look(client, made, pages)
    return counts


def _send(client: TestClient, place: str, upload: HostileUpload) -> Any:
    name = upload.name.encode("utf-8", "replace").decode()
    if upload.form:
        return client.post(place, files={"file": (name, upload.content, upload.kind)})
    return client.post(place, params={"name": name}, content=upload.content, headers={"content-type": upload.kind})


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() or path.is_symlink()}


def _look(client: TestClient, made: Made, number: int) -> int:
    """Names are shown, and only shown."""
    batches = client.get(f"/api/projects/{made.project}/batches", params={"limit": 200}).json()["batches"]
    places = ["/", f"/projects/{made.project}", f"/projects/{made.project}/settings", f"/projects/{made.project}/setup"]
    places += [one["url"] for one in batches[:number]]
    projects = client.get("/api/projects", params={"limit": 200}).json()["projects"]
    places += [one["url"] for one in projects[:number]] + [f"{one['url']}/feed.atom" for one in projects[:5]]
    shown = 0
    for place in places:
        answer = client.get(place, headers={"accept": "text/html"})
        assert answer.status_code < 500, (place, answer.text)
        if answer.status_code == 404:
            continue
        shown += MARK in html.unescape(answer.text)
        assert not UNESCAPED.search(answer.text), place
        assert PRODUCT not in answer.text, place
    assert shown
    return shown
