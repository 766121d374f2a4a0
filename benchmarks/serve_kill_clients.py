"""Clients of a service that is killed: they repeat a request until it is accepted, and note what was accepted."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import httpx

WORDS = {
    "good": ("warm", "great", "funny", "moving", "superb", "lively"),
    "bad": ("dull", "slow", "awful", "flat", "clumsy", "boring"),
}
BOTH = ("film", "plot", "music", "cast", "scene", "story", "actor", "ending", "camera", "script")


def texts(rng: random.Random, number: int, label: str | None = None) -> Iterator[tuple[str, str]]:
    """Texts with their labels."""
    for _ in range(number):
        known = label or rng.choice(["good", "bad"])
        yield " ".join([*rng.choices(BOTH, k=6), *rng.choices(WORDS[known], k=2), str(rng.getrandbits(40))]), known


def table(rng: random.Random, number: int, *, labelled: bool = False) -> bytes:
    """A CSV file of texts."""
    lines = [f"{text},{label}" if labelled else text for text, label in texts(rng, number)]
    return "\n".join(["review,sentiment" if labelled else "review", *lines, ""]).encode()


class Ledger:
    """What the service has accepted, and what is being asked."""

    def __init__(self) -> None:
        self.batches: dict[str, dict[str, Any]] = {}  # by key: id, hash, rows
        self.labels: dict[int, tuple[str, str]] = {}  # by item: who, label
        self.trainings: list[int] = []  # jobs
        self.doubled: list[str] = []
        self.refused: Counter[str] = Counter()
        self.repeated = 0
        self._asking: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def asking(self, kind: str) -> Iterator[None]:
        with self._lock:
            self._asking[kind] += 1
        try:
            yield
        finally:
            with self._lock:
                self._asking[kind] -= 1

    def in_flight(self) -> list[str]:
        with self._lock:
            return [kind for kind, number in self._asking.items() if number > 0]

    def accept_label(self, item: int, who: str, label: str) -> None:
        with self._lock:
            if item in self.labels:
                self.doubled.append(f"item {item} was labelled by {self.labels[item][0]} and {who}")
            self.labels[item] = (who, label)

    def copy(self) -> "Ledger":
        with self._lock:
            other = Ledger()
            other.batches, other.labels = dict(self.batches), dict(self.labels)
            other.trainings, other.doubled = list(self.trainings), list(self.doubled)
            return other


class Client:
    """Repeats a request until it is answered."""

    def __init__(self, address: str, ledger: Ledger, stop: threading.Event, name: str, seed: int) -> None:
        self.ledger, self.stop, self.name = ledger, stop, name
        self.rng = random.Random(f"{name} {seed}")
        self.http = httpx.Client(base_url=address, timeout=30, headers={"X-Visitor": name})

    def ask(self, kind: str, method: str, path: str, **options: Any) -> httpx.Response | None:
        """The answer; None if the clients stop before the service has answered."""
        body: Callable[[], Any] | None = options.pop("body", None)
        while True:
            if body:
                options["content"] = body()
            try:
                with self.ledger.asking(kind):
                    answer = self.http.request(method, path, **options)
            except httpx.HTTPError:
                answer = None
            if answer is not None and answer.status_code < 500 and answer.status_code != 429:
                if answer.status_code >= 400:
                    self.ledger.refused[f"{kind} {answer.status_code}: {answer.text[:160]}"] += 1
                return answer
            if answer is not None and answer.status_code == 500:
                self.ledger.refused[f"{kind} 500"] += 1
            self.ledger.repeated += 1
            time.sleep(0.3)

    def pause(self, seconds: float) -> None:
        self.stop.wait(self.rng.uniform(0.3, 1.7) * seconds)


def upload(client: Client, project: str) -> None:
    """Post batches with an Idempotency-Key; every other one slowly, so that kills hit the middle of an upload."""
    number = 0
    while not client.stop.is_set():
        number += 1
        key, rows = f"{client.name}-{number}", client.rng.randint(5, 40)
        content = table(client.rng, rows)
        parts = [content[at : at + 400] for at in range(0, len(content), 400)]

        def body(parts: list[bytes] = parts, slow: bool = number % 2 == 0) -> Iterator[bytes]:
            for part in parts:
                yield part
                time.sleep(0.15 if slow else 0)

        headers = {"Content-Type": "text/csv", "Idempotency-Key": key}
        path = f"/api/projects/{project}/batches"
        answer = client.ask("upload", "POST", path, body=body, headers=headers)
        if answer is not None and answer.is_success:
            digest = sha256(content).hexdigest()
            client.ledger.batches[key] = {"id": answer.json()["id"], "hash": digest, "rows": rows}
        client.pause(2.0)


def label(client: Client, project: str, batch: int) -> None:
    """Label what is shown; a label is sent again until it is accepted."""
    path = f"/api/projects/{project}/batches/{batch}/label"
    while not client.stop.is_set():
        answer = client.ask("label", "GET", path)
        item = answer.json().get("item") if answer is not None and answer.is_success else None
        if item:
            given = {"item": item["id"], "label": client.rng.choice(["good", "bad"])}
            answer = client.ask("label", "POST", path, json=given)
            if answer is not None and answer.is_success:
                client.ledger.accept_label(item["id"], client.name, given["label"])
        client.pause(0.7)


def train(client: Client, project: str) -> None:
    """Train again and again. Before a request is repeated, the client looks whether it was accepted."""
    path = f"/api/projects/{project}"
    while not client.stop.is_set():
        job = _train_once(client, path)
        client.ledger.trainings.append(job)
        while not client.stop.is_set():
            answer = client.ask("look", "GET", f"/api/jobs/{job}")
            if answer is None or answer.json().get("state") not in ("queued", "running"):
                break
            client.pause(0.5)
        client.pause(1.0)


def _train_once(client: Client, path: str) -> int:
    known = set(client.ledger.trainings)
    while True:
        try:
            with client.ledger.asking("train"):
                answer = client.http.post(f"{path}/train", json={})
            if answer.status_code == 202:
                return int(answer.json()["id"])
        except httpx.HTTPError:
            pass
        time.sleep(0.3)
        seen = client.ask("look", "GET", f"{path}/jobs?limit=20")
        if seen is not None and seen.is_success:
            for job in seen.json()["jobs"]:
                if job["kind"] == "train" and job["id"] not in known:
                    return int(job["id"])
