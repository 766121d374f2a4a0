import errno
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet.bags import Bags
from quanet.errors import InvalidExperiment, QuanetWarning
from quanet.evaluation.evaluate import Cell, Results
from quanet.lab.store import Store, decode_results, encode_results, read_cells, read_manifest, write

CELL = Cell("words", "CC", 0)
ABOUT = {"prior": [0.5, 0.5], "seconds": {"fit": 1.5}}


def some_results(k=2, b=6, size=50, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.multinomial(size, np.full(k, 1 / k), size=b) / size
    classes = np.array(["bad", "good", "so-so"])[:k]
    return Results(truth, rng.dirichlet(np.ones(k), size=b), classes, np.full(b, size), np.arange(b))


@given(k=st.integers(2, 3), size=st.sampled_from([1, 7, 500, 70_000]), seed=st.integers(0, 9))
def test_results_come_back_with_exact_truth_and_estimates_to_seven_digits(k, size, seed):
    results = some_results(k=k, size=size, seed=seed)
    again = decode_results(encode_results(results), results.classes)
    np.testing.assert_array_equal(again.truth, results.truth)
    np.testing.assert_array_equal(again.sizes, results.sizes)
    np.testing.assert_allclose(again.estimate, results.estimate, atol=2e-7)
    np.testing.assert_allclose(again.estimate.sum(axis=1), 1, atol=1e-7)
    twice = encode_results(again)  # nothing more is lost
    assert all((twice[name] == values).all() for name, values in encode_results(results).items())


def test_a_cell_is_small(tmp_path):
    store = Store(tmp_path)
    store.write_cell(CELL, "k" * 32, some_results(k=3, b=2100, size=500), ABOUT)
    assert store.cell_path(CELL, "k" * 32).stat().st_size < 60_000


def test_a_cell_comes_back_with_what_is_said_about_it(tmp_path):
    store = Store(tmp_path)
    store.write_failure(CELL, "a" * 32, "it failed before", "")
    store.write_cell(CELL, "a" * 32, some_results(), ABOUT)
    outcome, about = store.read_cell(CELL, "a" * 32)
    assert outcome.results.classes.tolist() == ["bad", "good"]
    assert (outcome.seconds, outcome.prior.tolist()) == (1.5, [0.5, 0.5])
    assert about["cell"] == ["words", "CC", 0]
    assert store.failure(CELL, "a" * 32) == ""
    assert not store.has_cell(CELL, "b" * 32)


def overwritten(content):
    return content[:-40] + b"x" * 20 + content[-20:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: b"",
        lambda c: c[: len(c) // 2],
        lambda c: c[:200] + b"\0" * 50 + c[250:],
        lambda c: b"hello",
        overwritten,
    ],
)
def test_a_damaged_cell_is_set_aside_with_a_warning(tmp_path, damage):
    store = Store(tmp_path)
    store.write_cell(CELL, "a" * 32, some_results(), ABOUT)
    path = store.cell_path(CELL, "a" * 32)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(QuanetWarning, match="damaged.*will be computed again"):
        assert not store.has_cell(CELL, "a" * 32)
    assert path.with_name(f"{path.name}.bad").exists()
    assert not path.exists()


def test_a_damaged_cell_that_cannot_be_renamed_is_left_out(tmp_path, monkeypatch):
    def refuse(path, target):
        raise PermissionError(errno.EACCES, "Permission denied")

    store = Store(tmp_path)
    store.write_cell(CELL, "a" * 32, some_results(), ABOUT)
    store.cell_path(CELL, "a" * 32).write_bytes(b"")
    monkeypatch.setattr(type(tmp_path), "replace", refuse)
    with pytest.warns(QuanetWarning, match="cannot be renamed: Permission denied"):
        assert not store.has_cell(CELL, "a" * 32)


def test_another_cells_file_under_this_name_is_set_aside(tmp_path):
    store = Store(tmp_path)
    store.write_cell(CELL, "a" * 32, some_results(), ABOUT)
    path = store.cell_path(CELL, "b" * 32)
    store.cell_path(CELL, "a" * 32).rename(path)
    with pytest.warns(QuanetWarning, match="belongs to a different cell"):
        assert not store.has_cell(CELL, "b" * 32)


def test_counts_that_do_not_fit_the_classes_are_damage(tmp_path):
    store = Store(tmp_path)
    store.write_cell(CELL, "a" * 32, some_results(), ABOUT | {"classes": ["a", "b", "c"]})
    with pytest.raises(InvalidExperiment, match="3 classes do not match"):
        store.read_cell(CELL, "a" * 32)
    store.write_cell(CELL, "a" * 32, some_results(), {})
    with pytest.raises(InvalidExperiment, match="damaged: KeyError"):
        store.read_cell(CELL, "a" * 32)


def test_a_full_disk_leaves_what_was_there_and_no_half_file(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write(file, b"before")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidExperiment, match=r"cannot be written: No space left on device.*Free space"):
        write(file, b"after")
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of the system")
def test_a_disk_that_takes_no_more_is_one_line(tmp_path):
    code = (
        "import resource, signal, sys; from pathlib import Path; from quanet.lab.store import write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write(Path(sys.argv[1]), b'x' * 5000)\n"
        "except OSError as error: print(error)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "file")], capture_output=True, text=True, check=True
    ).stdout
    assert "file cannot be written: File too large" in printed
    assert not list(tmp_path.iterdir())


def test_two_runners_cannot_have_one_folder_and_a_dead_one_has_none(tmp_path):
    code = (
        "import sys, time; from quanet.lab.store import Store\n"
        "with Store(sys.argv[1]).locked(): print('locked', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "locked\n"
        with (
            pytest.raises(InvalidExperiment, match=rf"in use by another runner \(process {other.pid} on"),
            Store(tmp_path).locked(),
        ):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / ".half.npz.0.new").write_text("what a killed runner left")
    (tmp_path / ".experiment.json.0.new").write_text("what a killed runner left")
    with Store(tmp_path).locked():
        assert not list(tmp_path.rglob(".*.new"))


def test_a_folder_that_cannot_be_made_or_holds_no_experiment_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidExperiment, match="cannot be used"), Store(tmp_path / "file").locked():
        pass
    with pytest.raises(InvalidExperiment, match=r"not an experiment folder.*quanet experiment run"):
        read_cells(tmp_path)
    for content in ("{", "[]", "{}", '{"cells": 3}'):
        (tmp_path / "experiment.json").write_text(content)
        with pytest.raises(InvalidExperiment, match="damaged"):
            read_manifest(tmp_path)


def test_why_a_cell_failed_may_be_lost(tmp_path):
    store = Store(tmp_path)
    store.write_failure(CELL, "a" * 32, "too hot", "traceback")
    assert store.failure(CELL, "a" * 32) == "too hot"
    store.failure_path(CELL, "a" * 32).write_text("{")
    assert "its file is damaged" in store.failure(CELL, "a" * 32)


def test_bags_of_a_protocol_are_counted_exactly():
    bags = Bags(np.zeros((1, 3), dtype=int), [[1 / 3, 2 / 3]])
    results = Results(bags.prevalences, bags.prevalences, np.array([0, 1]), bags.sizes, bags.labels)
    assert encode_results(results)["truth"].tolist() == [[1, 2]]
