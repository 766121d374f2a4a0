"""Kill the service at random moments while clients use it, and count what is lost or doubled.

python benchmarks/serve_kill.py FOLDER --kills 50

Starts `quanet serve` on FOLDER/data, on this machine. Clients upload batches, label and train, and repeat a request
until it is accepted. The server or one of its workers is killed with SIGKILL; a server is started again. After every
kill, and at the end, the store must pass its integrity check and contain everything that was accepted, once. Writes
FOLDER/kill.json. QUANET_DATABASE_URL is for PostgreSQL.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from quanet.serve.store import answers, jobs, label_queue, uploads
from quanet.serve.store.blobs import blob_digest
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.integrity import check_integrity
from serve_kill_clients import Client, Ledger, label, table, train, upload

DOING = {
    "train": "training",
    "predict": "predicting",
    "plan": "labelling",
    "refine": "labelling",
    "overview": "putting batches together",
    "monitor": "putting batches together",
}
MOMENTS = ("upload", "training", "predicting", "labelling", "putting batches together", "nothing")


class Service:
    """`quanet serve`, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.log = (folder / "kill.log").open("ab")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        words = ["serve", "--data", str(self.data), "--port", str(self.port), "--requests-per-minute", "100000"]
        command = [sys.executable, "-m", "quanet", *words]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                if httpx.get(f"{self.address}/ready", timeout=2).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise SystemExit("The service does not start; see kill.log.")

    def workers(self) -> dict[str, int]:
        """Processes of the workers that this server has started, by lane."""
        found = {}
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            for number in (task / "children").read_text().split():
                words = Path(f"/proc/{number}/cmdline").read_bytes().decode().split("\0")
                if "--lane" in words:
                    found[words[words.index("--lane") + 1]] = int(number)
        return found

    def orphans(self) -> list[str]:
        """Workers of killed servers that have not ended."""
        mine = set(self.workers().values())
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:  # ended meanwhile
                continue
            if "worker" in words and str(self.data) in words and int(path.parent.name) not in mine:
                found.append(f"process {path.parent.name} of a killed server still works")
        return found

    def kill(self, name: str) -> bool:
        """Kill the server or the worker of a lane. False: it is being started at this moment."""
        if name == "server":
            self.process.kill()
            self.process.wait()
            self.start()
            return True
        try:
            os.kill(self.workers()[name], signal.SIGKILL)
        except (KeyError, OSError):
            return False
        return True


def set_up(service: Service, rng: random.Random) -> tuple[str, str, int]:
    """Two trained projects, and a batch of the first with a plan of rows to label."""
    http = httpx.Client(base_url=service.address, timeout=60)

    def job_done(number: int) -> None:
        while (job := http.get(f"/api/jobs/{number}").json())["state"] in ("queued", "running"):
            time.sleep(0.2)
        assert job["state"] == "done", job

    made = []
    for name in ("Batches", "Training"):
        settings = {"text": "review", "label": "sentiment", "method": "PACC"}
        project = http.post("/api/projects", json={"name": name, "settings": settings}).json()["id"]
        content = table(rng, 600, labelled=True)
        path = f"/api/projects/{project}"
        answer = http.post(f"{path}/training", content=content, headers={"Content-Type": "text/csv"})
        job_done(answer.raise_for_status().json()["job"]["id"])
        job_done(http.post(f"{path}/train", json={}).raise_for_status().json()["id"])
        made.append(project)
    path = f"/api/projects/{made[0]}/batches"
    headers = {"Content-Type": "text/csv", "Idempotency-Key": "first"}
    batch = http.post(path, content=table(rng, 3000), headers=headers).raise_for_status().json()["id"]
    while http.get(f"{path}/{batch}").json()["status"] != "done":
        time.sleep(0.2)
    job_done(http.post(f"{path}/{batch}/plan", json={"number": 2000}).raise_for_status().json()["id"])
    return made[0], made[1], batch


class Check:
    """Compares the store with what was accepted."""

    def __init__(self, store: ServiceStore, projects: tuple[str, str], batch: int) -> None:
        self.store, self.projects, self.batch = store, projects, batch

    def now(self, ledger: Ledger, *, last: bool = False) -> dict[str, list[str]]:
        """What is lost, doubled or contradictory; at the end also what is unfinished."""
        problems = check_integrity(self.store)
        lost, doubled = [], list(ledger.doubled)
        with self.store.read() as c:
            stored = {one.key: one for one in _all(uploads.list_batches, c, self.projects[0])}
            all_jobs = [job for project in self.projects for job in _all(jobs.list_jobs, c, project)]
            plan = label_queue.plans(c, self.batch)[0].id
            items = {id_: label_queue.item(c, id_) for id_ in ledger.labels}
            labels = label_queue.labels(c, plan)
            for key, batch in ledger.batches.items():
                row = stored.get(f"key:{key}")
                if row is None or row.id != batch["id"]:
                    lost.append(f"batch {batch['id']}")
                    continue
                path = self.store.blobs.path(uploads.file(c, self.projects[0], row.file).blob)
                if blob_digest(path) != batch["hash"]:
                    lost.append(f"content of batch {row.id}")
                if last and (row.status != "done" or row.rows != batch["rows"]):
                    lost.append(f"rows of batch {row.id}: {row.status} {row.error}")
            if last:
                lost += self._unfinished(c, stored, len(labels))
        lost += [
            f"label {id_}" for id_, given in ledger.labels.items() if (items[id_].by, items[id_].label) != _by(given)
        ]
        lost += [
            f"job {job.id} ({job.kind}): {job.state} {job.error}"
            for job in all_jobs
            if job.state in ("failed", "cancelled")
        ]
        known = {job.id for job in all_jobs}
        lost += [f"job {number}" for number in ledger.trainings if number not in known]
        doubled += self._doubled(all_jobs, stored)
        if last:
            trained = [job.id for job in all_jobs if job.kind == "train" and job.project == self.projects[1]]
            doubled += [
                f"training {number}" for number in trained[:-1] if number not in ledger.trainings
            ]  # newest first
            lost += [f"job {job.id} is still {job.state}" for job in all_jobs if job.state in ("queued", "running")]
            doubled += ["labels that nobody gave"] * (len(labels) - len(ledger.labels))
            doubled += ["batches that nobody sent"] * (len(stored) - len(ledger.batches) - 1)
        return {"lost": lost, "doubled": doubled, "problems": problems}

    def _unfinished(self, c: Any, stored: dict[str, Any], labelled: int) -> list[str]:
        """The answers about all batches and all labels contain each of them once."""
        overview = answers.answer(c, self.projects[0], "overview", "project")
        refined = answers.answer(c, self.projects[0], "refined", f"batch:{self.batch}")
        rows = sum(one.rows for one in stored.values())
        wrong = []
        if overview is None or (overview.data["rows"], overview.data["batches"]) != (rows, len(stored)):
            found = overview and (overview.data["rows"], overview.data["batches"])
            wrong.append(f"overview has {found} rows and batches, not {(rows, len(stored))}")
        if refined is None or refined.data["labels"] != labelled:
            wrong.append(f"the refined answer has {refined and refined.data['labels']} labels, not {labelled}")
        return wrong

    def _doubled(self, all_jobs: list[Any], stored: dict[str, Any]) -> list[str]:
        read = Counter(job.payload["batch"] for job in all_jobs if job.kind == "predict" and job.state == "done")
        files = Counter(one.file for one in stored.values())
        return [f"batch {id_} was read {n} times" for id_, n in read.items() if n > 1] + [
            f"file {id_} has {n} batches" for id_, n in files.items() if n > 1
        ]


def _by(given: tuple[str, str]) -> tuple[str, str]:
    return f"local:{given[0]}", given[1]


def _all(listed: Any, c: Any, project: str) -> list[Any]:
    rows: list[Any] = []
    while more := listed(c, project, before=rows[-1].id if rows else None, limit=500):
        rows += more
    return rows


def moment(store: ServiceStore, ledger: Ledger, name: str) -> str:
    """What is going on in the process that will be killed."""
    if name == "server":
        asked = ledger.in_flight()
        known = {"upload": "upload", "label": "labelling", "train": "training"}
        return next((what for kind, what in known.items() if kind in asked), "nothing")
    with store.read() as c:
        running = [job for job in jobs.list_jobs(c, state="running") if job.lane == name]
    return DOING.get(running[0].kind, "nothing") if running else "nothing"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=18)
    asked = parser.parse_args()
    shutil.rmtree(asked.folder / "data", ignore_errors=True)
    asked.folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(asked.seed)
    service = Service(asked.folder)
    try:
        found = run(service, rng, asked.kills)
    finally:
        service.process.terminate()
        service.process.wait(60)
    (asked.folder / "kill.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))


def run(service: Service, rng: random.Random, kills: int) -> dict[str, Any]:
    first, second, batch = set_up(service, rng)
    store = ServiceStore.open(service.data, os.environ.get("QUANET_DATABASE_URL"))
    ledger, stop = Ledger(), threading.Event()
    check = Check(store, (first, second), batch)

    def client(name: str, act: Any, *words: Any) -> threading.Thread:
        one = Client(service.address, ledger, stop, name, rng.getrandbits(30))
        return threading.Thread(target=act, args=(one, *words), name=name)

    threads = [client(f"upload{n}", upload, first) for n in range(2)]
    threads += [client(f"person{n}", label, first, batch) for n in range(2)]
    threads += [client("trainer", train, second)]
    for thread in threads:
        thread.start()
    rows: dict[str, list[int]] = {name: [0] * 5 for name in MOMENTS}
    started, seen = time.monotonic(), {"lost": set(), "doubled": set(), "problems": set()}
    done = 0
    while done < kills:
        time.sleep(rng.uniform(0.5, 5.0))
        name = rng.choices(["server", "quick", "long"], [0.4, 0.35, 0.25])[0]
        what = moment(store, ledger, name)
        if what == "nothing" and rng.random() < 0.8:  # most kills are to hit work
            continue
        if not service.kill(name):
            continue
        done += 1
        rows[what][0 if name == "server" else 1] += 1
        wrong = check.now(ledger.copy())
        for at, kind in enumerate(("lost", "doubled", "problems"), 2):
            new = set(wrong[kind]) - seen[kind]
            seen[kind] |= new
            rows[what][at] += len(new)
        print(f"{done}: {name} during {what}: {wrong}", flush=True)
    minutes = (time.monotonic() - started) / 60
    stop.set()
    for thread in threads:
        thread.join()
    time.sleep(15)  # within which workers of killed servers end
    drain(store)
    wrong = check.now(ledger, last=True)
    wrong["problems"] += service.orphans()
    rows = {name: values for name, values in rows.items() if any(values)}
    rows["all, after the last job"] = [sum(one[at] for one in rows.values()) for at in (0, 1)]
    rows["all, after the last job"] += [len(wrong[kind]) for kind in ("lost", "doubled", "problems")]
    how = (
        f"{kills} times, the server or a worker was killed with SIGKILL at a random moment of {minutes:.0f} minutes, "
        f"and started again. Meanwhile clients had {len(ledger.batches)} batches, {len(ledger.labels)} labels and "
        f"{len(ledger.trainings)} trainings accepted, and repeated {ledger.repeated} requests that were not answered. "
        "Rows: what the killed process was doing. Lost: accepted, but not stored, not finished, or not in the answers; "
        "doubled: stored, read, trained or labelled twice; problems: what the integrity check of the store found, "
        "and processes of killed servers that still work."
    )
    store.close()
    columns = ["kills of the server", "kills of a worker", "lost", "doubled", "problems"]
    return {"how": how, "columns": columns, "rows": rows, "wrong": wrong, "refused": dict(ledger.refused)}


def drain(store: ServiceStore, patience: float = 900.0) -> None:
    """Wait until no job waits or runs."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        with store.read() as c:
            if not jobs.list_jobs(c, state="queued", limit=1) and not jobs.list_jobs(c, state="running", limit=1):
                return
        time.sleep(0.5)


if __name__ == "__main__":
    main()
