"""Clients of the service under load, and the memory of its processes."""

import asyncio
import json
import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

PORT = 8765
HOST = f"http://127.0.0.1:{PORT}"
WORDS = ("film", "plot", "music", "cast", "scene", "dull", "great", "slow", "funny", "warm", "story", "actor", "ending")


def page_paths(project: str, latest: int, old: int, planned: int) -> dict[str, str]:
    base = f"/projects/{project}"
    return {
        "projects": "/",
        "project": base,
        "older batches": f"{base}/batches?before={old}",
        "batch": f"{base}/batches/{latest}",
        "old batch": f"{base}/batches/{old}",
        "label": f"{base}/batches/{planned}/label",
        "model": f"{base}/model",
        "monitor": f"{base}/monitor",
        "setup": f"{base}/setup",
        "settings": f"{base}/settings",
        "batch, JSON": f"{base}/batches/{latest}.json",
        "batches, JSON": f"/api/projects/{project}/batches",
    }


class Clients:
    """Clients that read, post small batches and label, with pauses of a second on average."""

    def __init__(self, project: str, batch: int, seconds: float, tokens: list[str]) -> None:
        self.project, self.batch, self.seconds, self.tokens = project, batch, seconds, tokens
        self.times: dict[str, list[float]] = {"read": [], "post": [], "label": []}
        self.codes: Counter[str] = Counter()
        self.labels: list[int] = []
        self.posted: list[int] = []
        self.memory = 0

    async def run_with_memory(self, pid: int) -> None:
        """Run the clients, and note the largest memory of the service's processes together."""

        async def watch() -> None:
            while True:
                self.memory = max(self.memory, memory_of(pid))
                await asyncio.sleep(1)

        watcher = asyncio.create_task(watch())
        await self.run()
        watcher.cancel()

    async def run(self) -> None:
        kinds = {"read": self.read, "post": self.post, "label": self.label}
        names = ["read"] * 6 + ["post"] * 2 + ["label"] * 2
        await asyncio.gather(*(self.client(at, kinds[names[at % 10]]) for at in range(len(self.tokens))))

    async def client(self, at: int, act: Any) -> None:
        rng, line = random.Random(at), Line(self.tokens[at])
        end = time.monotonic() + self.seconds
        await asyncio.sleep(2 * rng.random())
        while time.monotonic() < end:
            await act(line, rng)
            await asyncio.sleep(rng.expovariate(1.0))
        line.close()

    async def ask(self, line: "Line", kind: str, method: str, path: str, **options: Any) -> tuple[int, bytes]:
        begun = time.perf_counter()
        status, content = await line.ask(method, path, **options)
        self.codes[f"{kind} {status}"] += 1
        if status == 429:
            await asyncio.sleep(1)
        else:
            self.times[kind].append(time.perf_counter() - begun)
        return status, content

    async def read(self, line: "Line", rng: random.Random) -> None:
        path = rng.choice([*page_paths(self.project, self.batch, self.batch, self.batch).values()])
        await self.ask(line, "read", "GET", path)

    async def post(self, line: "Line", rng: random.Random) -> None:
        rows = (f"{' '.join(rng.choices(WORDS, k=12))},2025-{rng.randint(1, 12):02d}-05" for _ in range(20))
        text = "review,date\n" + "\n".join(rows) + "\n"
        headers = {"Content-Type": "text/csv", "Idempotency-Key": f"load-{rng.getrandbits(60)}-{time.time_ns()}"}
        path = f"/api/projects/{self.project}/batches"
        status, content = await self.ask(line, "post", "POST", path, body=text.encode(), headers=headers)
        if status < 300:
            self.posted.append(json.loads(content)["id"])

    async def label(self, line: "Line", rng: random.Random) -> None:
        path = f"/api/projects/{self.project}/batches/{self.batch}/label"
        status, content = await self.ask(line, "label", "GET", path)
        found = json.loads(content) if status == 200 else {}
        if found.get("item"):
            given = {"item": found["item"]["id"], "label": rng.choice(found["classes"])}
            headers = {"Content-Type": "application/json"}
            status, _ = await self.ask(line, "label", "POST", path, body=json.dumps(given).encode(), headers=headers)
            if status == 200:
                self.labels.append(found["item"]["id"])


class Line:
    """A connection that stays open. Libraries would take more of the processor than the service that is measured."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Send a request; its status and content. If the service has ended the idle connection, on a new one."""
        if self.streams is not None:
            try:
                return await self._exchange(method, path, body, headers)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
        self.streams = await asyncio.open_connection("127.0.0.1", PORT)
        return await self._exchange(method, path, body, headers)

    async def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str] | None) -> tuple[int, bytes]:
        assert self.streams is not None
        reader, writer = self.streams
        known = {"Host": f"127.0.0.1:{PORT}", "Authorization": f"Bearer {self.token}", "Content-Length": len(body)}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {one}" for name, one in (known | (headers or {})).items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", head)
        content = await reader.readexactly(int(length[1])) if length else b""
        if "connection: close" in head:
            self.close()
        return int(head.split()[1]), content

    def close(self) -> None:
        """End the connection."""
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


def memory_of(pid: int) -> int:
    """Bytes of a process and all it has started, shared pages counted once (Pss)."""
    total, left = 0, [pid]
    while left:
        one = Path(f"/proc/{left.pop()}")
        try:
            total += int(re.search(r"^Pss:\s+(\d+)", (one / "smaps_rollup").read_text(), re.MULTILINE)[1]) * 1024  # type: ignore[index]
            for thread in (one / "task").iterdir():
                left += map(int, (thread / "children").read_text().split())
        except (OSError, TypeError):  # ended meanwhile
            continue
    return total
