"""Runners that are killed, and go on."""

import os
import signal
import subprocess
import sys
import time

import pytest

from quanet.lab.parallel import Serial
from quanet.lab.plan import read_plan
from quanet.lab.runner import run, state_of
from quanet.lab.store import pack
from tests.lab.conftest import PLAN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
MANY = PLAN.replace("runs = 2", "runs = 12")


def start(home, *options):
    command = [sys.executable, "-m", "quanet", "experiment", "run", "plan.toml", "--output", "out", *options]
    return subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE, text=True, start_new_session=True)


def ends(touch):
    """Whether what is touched is gone within ten seconds."""
    for _ in range(100):
        try:
            touch()
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def packed(home, name):
    files = pack(home / name, home / f"{name}-packed")
    return {file.name: file.read_bytes() for file in files if file.suffix == ".npz"}


# One process reads the libraries; its children are the runners, so that a start takes no time.
KILLER = """
import os, random, signal, sys, time
from contextlib import suppress
from quanet.cli.main import run
sys.argv = ["quanet", "experiment", "run", "plan.toml", "--jobs", "1", "--output", "first", "--only", "run=0"]
for folder in ("first", "second"):  # the first reads and compiles
    sys.argv[-3], started = folder, time.perf_counter()
    with suppress(SystemExit):
        run()
usual = time.perf_counter() - started
rng, kills = random.Random(0), 0
sys.argv[-3:] = ["out"]
while kills < 10:
    child = os.fork()
    if not child:
        run()
        os._exit(0)
    time.sleep(rng.uniform(0, 2 * usual))
    os.kill(child, signal.SIGKILL)
    if os.waitpid(child, 0)[1] != signal.SIGKILL:
        break
    kills += 1
    print(kills, len(os.listdir("out/cells")) if os.path.isdir("out/cells") else 0)
"""


@pytest.mark.no_cover
def test_killed_at_ten_random_moments_and_continued_the_numbers_are_the_same_bytes(home):
    (home / "plan.toml").write_text(MANY)
    list(run(read_plan(home / "plan.toml"), home / "whole", Serial()))
    killer = subprocess.run([sys.executable, "-c", KILLER], cwd=home, capture_output=True, text=True, check=True)
    cells = [int(line.split()[1]) for line in killer.stdout.splitlines()]
    assert len(cells) >= 3
    assert len(set(cells)) > 1
    assert list(run(read_plan(home / "plan.toml"), home / "out", Serial()))[-1].done == 36
    assert packed(home, "out") == packed(home, "whole")
    assert not list(home.glob("out/**/.*.new"))


def test_ctrl_c_is_exit_code_130_and_keeps_cells(home):
    (home / "plan.toml").write_text(MANY.replace("runs = 12", "runs = 200"))
    runner = start(home, "--jobs", "1")
    for line in runner.stderr:
        if line.startswith("2/"):
            break
    os.killpg(runner.pid, signal.SIGINT)
    rest = runner.communicate(timeout=60)[1]
    assert runner.returncode == 130
    assert "the same command resumes" in rest
    assert "Traceback" not in rest
    states = list(state_of(home / "out").cells.values())
    assert states.count("done") >= 2
    assert "missing" in states
    assert ends(lambda: os.killpg(runner.pid, 0))  # no process of the group is left


PARENT = """
import subprocess, sys, time
code = "import os, time; from quanet.corpus.workers import exit_with; exit_with(os.getppid()); " \\
    "print(os.getpid(), flush=True); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", code]).wait()
"""


def test_a_worker_ends_when_its_runner_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert ends(lambda: os.kill(worker, 0))
