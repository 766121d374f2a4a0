"""Run a command and watch all its processes: time, peak memory and CPU time of each, as the kernel reports them."""

import os
import subprocess
import tempfile
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

EVERY = 0.1  # seconds between looks
TICKS = os.sysconf("SC_CLK_TCK")
MARK = "QUANET_BENCHMARK_RUN"  # in the environment of all processes of a run, also of those that a daemon has started


@dataclass(slots=True)
class Watched:
    """A process: the end of its command line, peak memory in MB, and seconds of CPU time."""

    name: str
    peak_mb: float = 0.0
    cpu_s: float = 0.0


def run_watched(words: list[str], *, environment: dict[str, str], cores: set[int] | None = None) -> dict[str, Any]:
    """Seconds of a command, and what its processes used; the first is the command itself.

    Parameters
    ----------
    words : the command.
    environment : added to that of this process.
    cores : that all its processes may use; None means all.
    """
    mark = uuid.uuid4().hex
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, sorted(cores))), *words] if cores else words,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=os.environ | environment | {MARK: mark},
        )
        found: dict[int, Watched] = {process.pid: Watched("command")}
        ignored: set[int] = set()
        while process.poll() is None:
            _look(found, ignored, mark)
            time.sleep(EVERY)
        seconds = time.perf_counter() - begin
        said.seek(0)
        output = said.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}:\n{output[-3000:]}")
    return {"seconds": seconds, "processes": [asdict(one) for one in found.values() if one.peak_mb]}


def _look(found: dict[int, Watched], ignored: set[int], mark: str) -> None:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in ignored:
            continue
        pid = int(entry.name)
        try:
            if pid not in found:
                if f"{MARK}={mark}".encode() not in (entry / "environ").read_bytes():
                    ignored.add(pid)
                    continue
                found[pid] = Watched("")
            _measure(pid, found[pid])
        except (OSError, ValueError, IndexError):  # it has ended, or belongs to someone else
            ignored.add(pid)


def _measure(pid: int, process: Watched) -> None:
    if not process.name:
        words = Path("/proc", str(pid), "cmdline").read_bytes().decode(errors="replace").split("\0")
        process.name = " ".join(words)[:120]
    for line in Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            process.peak_mb = max(process.peak_mb, int(line.split()[1]) / 1024)
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    process.cpu_s = max(process.cpu_s, (int(fields[11]) + int(fields[12])) / TICKS)
