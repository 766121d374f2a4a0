"""Engines: what they do, and that no number depends on them."""

import os
import signal
import time
from pathlib import Path

import pytest

from quanet.corpus.workers import one_core
from quanet.errors import InvalidExperiment, InvalidSetting, MissingExtra
from quanet.lab import parallel as engines
from quanet.lab.parallel import Joblib, Serial, engine_of
from quanet.lab.plan import read_plan
from quanet.lab.runner import run
from quanet.lab.store import read_cells


def all_of(engine, works):
    found = {}
    for name, (function, *arguments) in works.items():
        engine.submit(name, function, *arguments)
    for _ in works:
        name, value = engine.next()
        found[name] = value
    return found


def test_here_works_in_order_in_this_process():
    with Serial() as engine:
        assert all_of(engine, {"a": (os.getpid,), "b": (abs, -3)}) == {"a": os.getpid(), "b": 3}
        engine.submit("c", abs, -1)


def test_two_processes_give_the_numbers_of_one_and_end_with_the_engine(home):
    plan = read_plan(home / "plan.toml")
    list(run(plan, home / "here", Serial()))
    with engine_of("joblib", 2) as engine:
        assert isinstance(engine, Joblib)
        list(run(plan, home / "there", engine))
        engine.submit("pid", os.getpid)
        worker = engine.next()[1]
        assert worker != os.getpid()
        engine.submit("ctrl-c", _interrupt)  # it reaches all processes of a terminal, and is the runner's alone
        assert engine.next() == ("ctrl-c", "went on")
        engine.submit("cores", _threads)
        assert engine.next()[1] == {1}
        here, there = read_cells(home / "here"), read_cells(home / "there")
        assert list(here) == list(there)
        for cell in here:
            assert (here[cell].results.estimate == there[cell].results.estimate).all()
        engine.submit("long", time.sleep, 60)
    for _ in range(100):
        if not _alive(worker):
            break
        time.sleep(0.1)
    assert not _alive(worker)


def _interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)
    return "went on"


def _threads():
    import numpy as np  # noqa: F401 - it brings the library that is asked
    from threadpoolctl import threadpool_info

    return {pool["num_threads"] for pool in threadpool_info()}


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_worker_that_is_killed_is_said():
    with Joblib(2) as engine:
        engine.submit("end", os._exit, 9)
        with pytest.raises(InvalidExperiment, match="fewer --jobs"):
            engine.next()


def test_one_core_is_for_torch_too():
    import torch

    with one_core():
        assert torch.get_num_threads() == 1


def test_an_engine_or_number_that_there_is_not_is_named(monkeypatch):
    with pytest.raises(InvalidSetting, match=r"Unknown engine 'spark'\. Choose from joblib, ray"):
        engine_of("spark", None)
    with pytest.raises(InvalidSetting, match="jobs must be at least 1"):
        engine_of("joblib", 0)
    monkeypatch.setattr(engines, "cores", lambda: 1)
    assert isinstance(engine_of("joblib", None), Serial)
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"quanet\[ray\]"):
        engine_of("ray", 1)
