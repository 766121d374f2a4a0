"""Runners that are killed, and go on."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from quanet.experiments.engines import Here
from quanet.experiments.pack import pack
from quanet.experiments.reader import read_plan
from quanet.experiments.runner import run, state_of
from tests.experiments.conftest import PLAN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
MANY = PLAN.replace("runs = 2", "runs = 12")


def start(home, *options):
    command = [sys.executable, "-m", "quanet", "experiment", "run", "plan.toml", "--output", "out", *options]
    return subprocess.Popen(command, cwd=home, stderr=subprocess.PIPE, text=True, start_new_session=True)


def packed(home, name):
    files = pack(home / name, home / f"{name}-packed")
    return {file.name: file.read_bytes() for file in files if file.suffix == ".npz"}


def test_killed_at_random_moments_and_continued_the_numbers_are_the_same_bytes(home):
    (home / "plan.toml").write_text(MANY)
    list(run(read_plan(home / "plan.toml"), home / "whole", Here()))
    rng = random.Random(0)
    kills = 0
    while kills < 10:
        runner = start(home, "--jobs", "1")
        for line in runner.stderr:  # the first line comes when work begins
            if "cells are there" in line:
                break
        time.sleep(rng.uniform(0, 0.12))
        runner.kill()
        runner.wait()
        runner.stderr.close()
        if runner.returncode != -signal.SIGKILL:
            break  # it was done before
        kills += 1
    last = start(home, "--jobs", "2")
    errors = last.communicate(timeout=120)[1]
    assert last.returncode == 0, errors
    assert "36 of 36 cells are in out" in errors
    assert kills >= 3
    assert packed(home, "out") == packed(home, "whole")
    assert not list(home.glob("out/**/.*.new"))


def test_ctrl_c_is_exit_code_130_keeps_cells_and_ends_the_workers(home):
    (home / "plan.toml").write_text(MANY.replace("runs = 12", "runs = 400"))
    runner = start(home, "--jobs", "2")
    for line in runner.stderr:
        if line.startswith("2/"):
            break
    os.killpg(runner.pid, signal.SIGINT)
    rest = runner.communicate(timeout=60)[1]
    assert runner.returncode == 130
    assert "the same command goes on" in rest
    assert "Traceback" not in rest
    states = list(state_of(home / "out").values())
    assert states.count("done") >= 2
    assert "missing" in states
    with pytest.raises(ProcessLookupError):  # no process of the group is left
        for _ in range(50):
            os.killpg(runner.pid, 0)
            time.sleep(0.1)


def test_workers_end_when_their_runner_is_killed(home):
    (home / "plan.toml").write_text(MANY.replace("runs = 12", "runs = 400"))
    runner = start(home, "--jobs", "2")
    for line in runner.stderr:
        if line.startswith("1/"):
            break
    runner.kill()
    runner.wait()
    runner.stderr.close()
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.killpg(runner.pid, 0)
            time.sleep(0.1)
