"""The local engine: no digit depends on processes, on their order, or on their deaths."""

import os

import pytest

from quanet.corpus import local
from quanet.corpus.local import run_local
from quanet.errors import EngineFailed, InvalidData
from tests.corpus.conftest import LAYOUTS
from tests.corpus.killing import KillOnce, process, refuse


def test_partitions_in_any_order_and_repeated_give_the_same_digits_in_this_process(corpus, expected):
    found = corpus.by_layout(run_local(corpus.work, corpus.all_partitions(), workers=1))
    for layout in LAYOUTS:
        assert len(found[layout]) == layout + 1
        assert corpus.shares(found[layout]) == expected


def test_processes_give_the_same_digits_though_one_is_killed(corpus, expected, tmp_path):
    victim = corpus.partitions[64][20].id
    work = KillOnce(corpus.work, victim, tmp_path / "killed")
    found = corpus.by_layout(run_local(work, corpus.all_partitions(), workers=2))
    assert (tmp_path / "killed").exists()
    for layout in LAYOUTS:
        assert corpus.shares(found[layout]) == expected


def test_errors_and_repeated_deaths_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "ATTEMPTS", 1)
    work = KillOnce(refuse, "deadly", tmp_path / "killed", always=True)
    with pytest.raises(EngineFailed, match=r"killed 1 times while it read deadly.*fewer --workers"):
        list(run_local(work, ["deadly"], workers=2))
    with pytest.raises(InvalidData, match="not this one"):
        list(run_local(work, ["wrong"], workers=2))


def test_only_a_few_partitions_are_taken_before_they_are_needed():
    taken = []

    def partitions():
        for number in range(100):
            taken.append(number)
            yield number

    results = run_local(process, partitions(), workers=2)
    assert int(next(results)) != os.getpid()
    assert len(taken) <= 2 * local.WAITING + 1
    results.close()
