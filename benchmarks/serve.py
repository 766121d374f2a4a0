"""The service under load: the first chart, pages with many batches, many clients; and the table of all this.

python benchmarks/serve.py first FOLDER
python benchmarks/serve.py pages FOLDER
python benchmarks/serve.py load FOLDER
python benchmarks/serve.py table FOLDER -o benchmarks/results/serve.md

`first` starts the service on an empty folder and clicks from the start page to the first chart, in Chromium. `pages`
adds batches to the demo project and asks for every page. `load` runs many clients against the same folder. Each writes
FOLDER/NAME.json, as `serve_kill.py` and `serve_schema.py` do. All requests go to this machine.
"""

import argparse
import asyncio
import json
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from serve_clients import HOST, PORT, WORDS, Clients, page_paths
from serve_table import write_table

AFTERWARDS = 20.0  # seconds in which the worker goes on alone


@contextmanager
def serving(data: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """`quanet serve`, from when it answers until it is told to stop."""
    log = (data.parent / "serve.log").open("ab")
    command = [sys.executable, "-m", "quanet", "serve", "--data", str(data), "--port", str(PORT), "--no-open", *words]
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                if httpx.get(f"{HOST}/ready", timeout=2).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        else:
            raise SystemExit("The service does not start; see serve.log.")
        yield process
    finally:
        process.terminate()
        process.wait(60)


def first(folder: Path) -> None:
    """Clicks and seconds from the command to the first chart of the demo."""
    from playwright.sync_api import sync_playwright

    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with serving(data), sync_playwright() as browsers:
        ready = time.monotonic() - started
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(HOST)
        page.get_by_role("button", name=re.compile("film reviews", re.IGNORECASE)).click()
        clicks = 1
        page.wait_for_selector("figure svg", timeout=600_000)  # the page renews itself
        seconds = time.monotonic() - started
        page.screenshot(path=folder / "first.png", full_page=True)
        browser.close()
        time.sleep(60)  # the other batches
    _keep(folder, "first", {"ready": ready, "clicks": clicks, "seconds": seconds})


def fill(data: Path, number: int = 10_000, rows: int = 100) -> str:
    """The demo project with many batches of many rows more, and its id. Each repeats the answer of a true batch."""
    from quanet.serve.store.answers import answer, put_answer
    from quanet.serve.store.connection import ServiceStore
    from quanet.serve.store.jobs import list_jobs
    from quanet.serve.store.projects import list_projects
    from quanet.serve.store.schema import jobs
    from quanet.serve.store.uploads import count_batches, finish_batch, list_batches, receive_batch

    rng = np.random.default_rng(0)
    store = ServiceStore.open(data)
    with store.read() as connection:
        project = list_projects(connection)[-1].id
        model = list_batches(connection, project, status="done")[0]
        told = answer(connection, project, "batch", f"batch:{model.id}")
        done = count_batches(connection, project)["done"]
        assert told is not None
        assert not list_jobs(connection, state="running")
    for start in range(done, number, 250):
        blobs = [store.blobs.put_bytes(_reviews(rng, rows), "csv") for _ in range(min(250, number - start))]
        with store.write() as connection:
            for at, blob in enumerate(blobs, start):
                row, _ = receive_batch(connection, project, f"batch-{at}.csv", blob, 5_000)
                finish_batch(connection, row.id, rows=rows, totals=model.totals, state=model.state, model=model.model)
                shown = {name: getattr(told, name) for name in ("request", "sentence", "command", "forms", "data")}
                put_answer(connection, project, "batch", f"batch:{row.id}", **shown)
            connection.execute(jobs.delete().where(jobs.c.state == "queued"))  # they are done already
    store.close()
    return project


def _reviews(rng: np.random.Generator, rows: int) -> bytes:
    lines = [f"{' '.join(rng.choice(WORDS, 12))} {rng.integers(1 << 40)}" for _ in range(rows)]
    return ("review\n" + "\n".join(lines) + "\n").encode()


def pages(folder: Path, repeats: int = 40) -> None:
    """Size and time of every page, one request at a time, with 10,000 batches and 1,000,000 rows stored."""
    project = fill(folder / "data")
    with serving(folder / "data"), httpx.Client(base_url=HOST, timeout=30) as client:
        planned = _planned(client, project)
        latest = client.get(f"/api/projects/{project}/batches").json()["batches"][0]["id"]
        old = client.get(f"/api/projects/{project}/batches", params={"before": 5000}).json()["batches"][0]["id"]
        measured = {}
        for name, path in page_paths(project, latest, old, planned).items():
            times, size = [], 0
            for _ in range(repeats):
                begun = time.perf_counter()
                answer = client.get(path, follow_redirects=True)
                times.append(time.perf_counter() - begun)
                size = len(answer.content)
                assert answer.status_code == 200, (path, answer.status_code)
            measured[name] = {"bytes": size, "p95": float(np.quantile(times, 0.95)), "median": float(np.median(times))}
    _keep(folder, "pages", {"pages": measured, "batches": 10_000, "rows": 1_000_000, "repeats": repeats})


def load(folder: Path, clients: int = 200, seconds: float = 60) -> None:
    """Latency, answers and memory while many clients read, post and label."""
    from quanet.serve.store.connection import ServiceStore
    from quanet.serve.store.tokens import create_token

    project = fill(folder / "data")
    store = ServiceStore.open(folder / "data")
    with store.write() as connection:
        run = time.time_ns()
        tokens = [create_token(connection, f"client {run} {at}", "manage") for at in range(clients)]
    store.close()
    known = {"Authorization": f"Bearer {tokens[0]}"}
    with serving(folder / "data") as process, httpx.Client(base_url=HOST, headers=known, timeout=60) as http:
        batch = _planned(http, project)
        users = Clients(project, batch, seconds, tokens)
        asyncio.run(users.run_with_memory(process.pid))
        time.sleep(AFTERWARDS)
        done = http.get(f"/api/projects/{project}").json()["batches"]
    _keep(
        folder,
        "load",
        {
            "clients": clients,
            "seconds": seconds,
            "codes": dict(users.codes),
            "p95": {kind: float(np.quantile(times, 0.95)) for kind, times in users.times.items()},
            "median": {kind: float(np.median(times)) for kind, times in users.times.items()},
            "memory": users.memory,
            "posted": len(users.posted),
            "labels": len(users.labels),
            "labelled_twice": len(users.labels) - len(set(users.labels)),
            "afterwards": AFTERWARDS,
            "batches": done,
        },
    )


def _planned(http: httpx.Client, project: str) -> int:
    """A batch of the demo with a plan of rows to label."""
    batches = http.get(f"/api/projects/{project}/batches", params={"before": 10}).json()["batches"]
    batch = max(batches, key=lambda one: one["rows"])["id"]
    asked = http.post(f"/api/projects/{project}/batches/{batch}/plan", json={"number": 400}).raise_for_status()
    job = asked.json()["id"]
    for _ in range(240):
        if http.get(f"/api/jobs/{job}").json()["state"] == "done":
            return int(batch)
        time.sleep(0.5)
    raise SystemExit("No plan of rows to label.")


def _keep(folder: Path, name: str, found: dict[str, Any]) -> None:
    machine = {"python": platform.python_version(), **{one: version(one) for one in ("fastapi", "sqlalchemy")}}
    (folder / f"{name}.json").write_text(json.dumps(found | {"versions": machine}, indent=1))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["first", "pages", "load", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--note", default="", help="a remark at the top of the table")
    chosen = parser.parse_args()
    if chosen.what == "table":
        write_table(chosen.folder, chosen.output, chosen.note)
    else:
        {"first": first, "pages": pages, "load": load}[chosen.what](chosen.folder)
