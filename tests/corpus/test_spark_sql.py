"""A real Spark on this machine. It starts once, for all that is asked of it."""

import shutil
from importlib.util import find_spec

import pandas as pd
import pytest

from quanet.corpus import spark_sql
from quanet.corpus.spark_sql import run_spark, session
from quanet.errors import EngineFailed, InvalidData
from tests.corpus.conftest import LAYOUTS, check_how_to, digits, local_digits
from tests.corpus.killing import KillOnce

# Found, not imported, which every process that collects tests would do.
pytestmark = [
    pytest.mark.skipif(not find_spec("pyspark"), reason="the extra spark is not installed"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, which is not installed"),
    pytest.mark.filterwarnings("ignore"),  # what Spark announces for later versions
]


@pytest.fixture(scope="module")
def spark():
    with pytest.MonkeyPatch.context() as patch:
        # Java compiles fast rather than well: it ends before the better code would pay.
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        with session(1) as spark:
            yield spark


def test_partitions_in_any_order_one_repeated_and_one_worker_killed_give_the_same_digits(
    spark, corpus, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(spark_sql, "WAVE", 100)  # one job: each takes a while to start
    work = KillOnce(corpus.work, corpus.partitions[64][20].id, tmp_path / "killed")
    found = corpus.by_layout(run_spark(work, corpus.all_partitions(), workers=1))
    assert (tmp_path / "killed").exists()
    for layout in LAYOUTS:
        assert corpus.shares(found[layout]) == expected


def test_a_worker_that_dies_again_and_again_is_one_line(spark, tmp_path):
    work = KillOnce(None, 0, tmp_path / "killed", always=True)
    with pytest.raises(EngineFailed, match=r"Spark lost a task 4 times.*crashed"):
        list(run_spark(work, [0], workers=1))


def test_the_how_to_runs_and_its_data_frame_has_the_digits_of_one_process(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_sql, "MERGERS", 2)
    page = check_how_to("spark", tmp_path, monkeypatch)
    frame = pd.DataFrame(page["rows"], columns=["text", "product"])
    assert digits(page["shares"]) == local_digits(page["model"], frame)
    with pytest.raises(InvalidData, match="no column 'brand'"):
        page["quanet"].spark.predict(page["df"], page["model"], by="brand")
