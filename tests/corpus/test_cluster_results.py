"""What workers of a cluster send: states, one-line errors, versions; and what is missing here."""

import sys

import pytest

import quanet
from quanet.corpus import ray_data, spark_sql
from quanet.corpus.cluster_results import as_table, attempt, check_versions, states_of, version_probe
from quanet.corpus.reading import EngineChoice
from quanet.errors import EngineFailed, InvalidData, InvalidSetting, MissingExtra


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
