"""Files read with an engine: the same state, progress, bad files, and runs that were stopped."""

import signal
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

from quanet.cli import main
from quanet.corpus import reading
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.reading import BlockNames, EngineChoice, RunCheckpoint, collect, read_state, read_with_engine
from quanet.corpus.state_files import to_bytes
from quanet.data.streams import TableSource
from quanet.errors import BadFile, Detected, InvalidData, QuanetWarning


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUANET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def read(corpus):
    """Read files in this process, through an engine or not."""

    def run(files, *, engine=True, follow=None, **how):
        work, source = corpus.work, TableSource(files, **how)
        reader = BatchReader(
            work.model.quantifier(),
            work.inputs,
            keys=work.keys,
            form="%d.%m.%Y",
            weight=work.weight,
            model=work.model.digest,
        )
        choice = EngineChoice(corpus.home / "model", workers=1) if engine else None
        return read_state(reader, source, engine=choice, follow=follow)

    return run


def content(state):
    return to_bytes(replace(state, partitions=frozenset()))


def test_chunks_of_one_file_and_partitions_of_many_give_the_same_state(corpus, read, tmp_path):
    corpus.table.to_csv(tmp_path / "all.csv", index=False)
    expected = content(read([tmp_path / "all.csv"], engine=False))
    steps = []
    chunked = read([tmp_path / "all.csv"], follow=lambda *step: steps.append(step))
    assert content(chunked) == expected
    assert steps[-1] == ((tmp_path / "all.csv").stat().st_size, 1200)
    parts = read([corpus.home / "64" / "*.parquet"])
    assert content(parts) == expected
    assert parts.partitions == {one.id for one in corpus.partitions[64]}


def test_formats_of_dates_are_detected_by_the_process_that_starts_the_workers(corpus, tmp_path):
    corpus.table.to_csv(tmp_path / "all.csv", index=False)
    work = corpus.work
    for files in (tmp_path / "all.csv", corpus.home / "7" / "*.parquet"):
        reader = BatchReader(work.model.quantifier(), work.inputs, keys=work.keys)
        with pytest.warns(Detected, match=r"format %d\.%m\.%Y"):
            state = read_with_engine(EngineChoice(corpus.home / "model", workers=1), reader, TableSource([files]))
        assert len(state.groups) == 6


@pytest.mark.parametrize("chunked", [True, False])
def test_a_run_that_was_stopped_continues_with_what_is_missing(corpus, read, tmp_path, monkeypatch, cache, chunked):
    monkeypatch.setattr(reading, "EVERY", 0.0)
    monkeypatch.setattr("quanet.data.streams.MAX_ROWS", 200)
    if chunked:
        for number in range(4):
            corpus.table[300 * number : 300 * number + 300].to_csv(tmp_path / f"{number}.csv", index=False)
    files = [tmp_path / "*.csv" if chunked else corpus.home / "7" / "*.parquet"]
    expected, run, done = content(read(files, engine=False)), reading.run_local, []

    def stop(work, partitions, *, workers):
        for number, result in enumerate(run(work, partitions, workers=workers)):
            if number == 3:
                raise KeyboardInterrupt
            yield result

    def count(work, partitions, *, workers):
        for result in run(work, partitions, workers=workers):
            done.append(result)
            yield result

    monkeypatch.setattr(reading, "run_local", stop)
    with pytest.raises(KeyboardInterrupt):
        read(files)
    assert len(list(cache.glob("runs/*.arrow"))) == 1
    monkeypatch.setattr(reading, "run_local", count)
    with pytest.warns(Detected, match=r"Continues a run that was stopped, after \d+ rows"):
        state = read(files)
    assert content(state) == expected
    assert len(done) == (4 if chunked else 7) - 3
    assert not list(cache.glob("runs/*"))


KILLED = """
import os, signal, sys
from quanet.corpus import reading
from quanet.cli.main import run
reading.EVERY, reading.SHARE = 0.0, 1e9
save = reading.RunCheckpoint.save
def die(self, state):
    save(self, state)
    if state.rows > 600:
        os.kill(os.getpid(), signal.SIGKILL)
reading.RunCheckpoint.save = die
sys.argv[0] = "quanet"
run()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_command_that_was_killed_continues_and_writes_its_output_in_one_step(
    corpus, tmp_path, cache, monkeypatch, capsys
):
    files, output = corpus.home / "7" / "*.parquet", tmp_path / "out" / "shares.csv"
    output.parent.mkdir()
    words = ["predict", corpus.home / "model", files, "--workers", "1", "--output", output]
    killed = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not list(output.parent.iterdir())
    monkeypatch.setattr(sys, "argv", ["quanet", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == 0
    assert "Continues a run that was stopped" in capsys.readouterr().err
    assert [file.name for file in output.parent.iterdir()] == ["shares.csv"]
    assert not list(cache.glob("runs/*"))


def test_a_bad_file_is_named_or_skipped(corpus, read, tmp_path):
    for number in range(3):
        corpus.table[:100].to_parquet(tmp_path / f"{number}.parquet")
    content = bytearray((tmp_path / "1.parquet").read_bytes())
    content[4:60] = bytes(56)
    (tmp_path / "1.parquet").write_bytes(content)
    with pytest.raises(BadFile, match=r"1\.parquet"):
        read([tmp_path / "*.parquet"])
    with pytest.warns(QuanetWarning, match=r"Skipped: .*1\.parquet"):
        assert read([tmp_path / "*.parquet"], skip_bad=True).rows == 200


def test_partitions_without_rows_count_nothing_and_a_table_without_rows_is_an_error(corpus, read, tmp_path):
    corpus.table[:0].to_parquet(tmp_path / "0.parquet")
    corpus.table[:50].to_parquet(tmp_path / "1.parquet")
    with pytest.warns(Detected, match=r"0\.parquet has no rows"):
        assert read([tmp_path / "*.parquet"]).rows == 50
    with pytest.raises(InvalidData, match="has no rows"):
        read([tmp_path / "0.parquet"])


def test_equal_blocks_that_arrive_once_each_all_count(corpus):
    table = pd.DataFrame({"x": [0.0], "z": [1.0], "product": ["tea"], "date": ["01.02.2024"], "views": [2]})
    import pyarrow as pa

    block = corpus.work.of_tables([pa.Table.from_pandas(table)])
    assert collect([block, block, block], name=BlockNames()).rows == 3
    assert collect([block, block, block]).rows == 1


def test_a_checkpoint_that_is_damaged_or_old_is_not_used(cache):
    checkpoint = RunCheckpoint("model", "files")
    assert checkpoint.path != RunCheckpoint("model", "other files").path
    checkpoint.path.parent.mkdir(parents=True)
    checkpoint.path.write_bytes(b"damaged")
    assert checkpoint.load() is None
    reading.OLDEST, before = -1, reading.OLDEST
    try:
        assert checkpoint.load() is None
    finally:
        reading.OLDEST = before
    assert not checkpoint.path.exists()
