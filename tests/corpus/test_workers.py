"""Workers: no digit depends on processes, their order or deaths; what clusters send, and what is missing here."""

import os
import sys

import pytest

import quanet
from quanet.corpus import ray_data, spark_sql, workers
from quanet.corpus.reading import EngineChoice
from quanet.corpus.workers import as_table, attempt, check_versions, run_local, states_of, version_probe
from quanet.errors import EngineFailed, InvalidData, InvalidSetting, MissingExtra
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
    monkeypatch.setattr(workers, "ATTEMPTS", 1)
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
    assert len(taken) <= 2 * workers.WAITING + 1
    results.close()


def test_results_are_states_or_the_error_of_the_worker():
    assert list(states_of(as_table([attempt(lambda: b"a"), attempt(lambda: b"b")]))) == [b"a", b"b"]

    def refuse():
        raise InvalidData("row 3: no date")

    with pytest.raises(InvalidData, match="row 3: no date"):
        list(states_of(as_table([attempt(refuse)])))


def test_a_cluster_without_quanet_or_with_another_version_is_named_with_both_versions(monkeypatch):
    probe = version_probe()
    check_versions([probe()], "the cluster")
    with pytest.raises(EngineFailed, match=rf"have quanet 0.0.9, and this process has {quanet.__version__}"):
        check_versions(["0.0.9"], "the cluster")
    monkeypatch.setitem(sys.modules, "quanet", None)
    assert probe() == ""
    with pytest.raises(EngineFailed, match=r"the cluster do not have quanet.*pip install quanet=="):
        check_versions([""], "the cluster")


def test_an_engine_that_is_unknown_or_not_installed_is_named(monkeypatch):
    with pytest.raises(InvalidSetting, match="Did you mean 'spark'"):
        EngineChoice("model", "sparc")
    with pytest.raises(InvalidSetting, match="at least 1; got 0"):
        EngineChoice("model", workers=0)
    for name, module in (("ray", "ray"), ("spark", "pyspark.sql")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtra, match=rf"pip install 'quanet\[{name}\]'"):
            EngineChoice("model", name).check()


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch):
    class Ray:
        def init(self, **_):
            raise ConnectionError("no\nanswer.")

    for address, reason in (("127.0.0.1:1", "Connection refused"), ("auto", "no answer")):
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(EngineFailed, match=rf"No Ray cluster answers at RAY_ADDRESS={address}: {reason}\. Start"):
            ray_data.start_ray(Ray())


def test_a_ray_of_our_own_ends_with_its_block(monkeypatch):
    calls = []

    class Ray:
        def is_initialized(self):
            return False

        def init(self, **settings):
            calls.append(settings["num_cpus"])

        def shutdown(self):
            calls.append("ended")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray_data, "import_ray", Ray)
    with ray_data.connected(3):
        calls.append("at work")
    assert calls == [3, "at work", "ended"]


def test_spark_without_java_is_one_line(monkeypatch, tmp_path):
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(EngineFailed, match=r"Java 17.*set JAVA_HOME"), spark_sql.session(1):
        pass
