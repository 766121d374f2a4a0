import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
from typer.testing import CliRunner

from quanet.cli.console import console
from quanet.cli.main import app
from tests.data.formats import lequa_task, lines
from tests.data.server import serving

RECORD = {"/kindle/kindle_train.txt": lines(3_821), "/kindle/kindle_test.txt": lines(21_592)}


@pytest.fixture
def site(monkeypatch, tmp_path):
    for name in ("QUANET_DATA", "QUANET_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QUANET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("COLUMNS", "100")
    with serving(files=dict(RECORD)) as opened:
        yield opened


def call(*words):
    return CliRunner().invoke(app, ["datasets", *words])


@pytest.fixture
def command():
    """The command line in processes of its own, which end with the test."""
    started = []

    def start(*words):
        # Tests that run in the background ignore SIGINT, and what they start would inherit that.
        heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = f"{heed}; from quanet.cli.main import run; run()"
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", code, "datasets", *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for running in started:
        running.kill()
        running.communicate()


def test_list_shows_every_dataset_and_which_is_at_hand(site, tmp_path, monkeypatch):
    monkeypatch.setattr(console, "width", 160)  # whatever the screen was when the console was made
    printed = call("list")
    assert printed.exit_code == 0
    rows = {line.split()[0]: line for line in printed.stdout.splitlines() if line.strip()}
    for name in ("imdb", "kindle", "hp", "lequa2022-t1a", "lequa2024-t4", "amazon-devices", "airline-3class"):
        assert rows[name].rstrip().endswith("no")
    assert "3,821" in rows["kindle"]
    assert "21,592" in rows["kindle"]
    assert "5,000 x 1,000" in rows["lequa2022-t1b"]
    assert "stand-in for HP" in rows["amazon-devices"]
    assert call("fetch", "kindle", "--mirror", site.url).exit_code == 0
    again = {line.split()[0]: line for line in call("list").stdout.splitlines() if line.strip()}
    assert again["kindle"].rstrip().endswith("cache")


def test_fetch_says_where_the_files_lie(site, tmp_path):
    printed = call("fetch", "kindle", "--mirror", site.url)
    assert printed.exit_code == 0
    assert printed.stdout == f"kindle: {tmp_path / 'cache' / 'kindle'}\n"


def test_fetch_suggests_the_nearest_name(site):
    printed = call("fetch", "kindel")
    assert printed.exit_code == 2
    assert "Did you mean kindle?" in printed.stderr
    assert call("fetch").exit_code == 2
    assert site.asked == []


def test_fetch_of_what_is_not_there_is_an_error_with_the_address(site, tmp_path):
    printed = call("fetch", "hp", "--mirror", site.url)
    assert printed.exit_code == 1
    assert re.search(f"Error: .*returned 404 .*save {site.url}/hp/hp_train.txt as", printed.stderr)


def test_show_counts_classes_words_and_dates(site, tmp_path):
    table = pd.DataFrame(
        {"text": ["[b]good[/b] film", "bad", "bad"], "label": ["pos", "neg", "neg"], "date": "2020-05"}
    )
    table.to_csv(tmp_path / "train.csv", index=False)
    table.to_json(tmp_path / "test.jsonl", orient="records", lines=True)
    for given in (str(tmp_path), f"{tmp_path / 'train.csv'}::{tmp_path / 'test.jsonl'}"):
        printed = call("show", given, "--first", "1")
        assert printed.exit_code == 0
        assert "train: 3 instances" in printed.stdout
        assert "test: 3 instances" in printed.stdout
        assert "0.6667" in printed.stdout
        assert "words per text: 1 to 2" in printed.stdout
        assert "1 repeated texts" in printed.stdout
        assert "dates: 2020-05 to 2020-05" in printed.stdout
        assert "pos  [b]good[/b] film" in printed.stdout  # not taken for markup
    alone = call("show", str(tmp_path / "train.csv"))
    assert "all: 3 instances" in alone.stdout


def test_show_takes_dated_reviews_apart(site, tmp_path):
    path = tmp_path / "reviews.txt"
    path.write_text("".join(f"{year} user\treview of {year}\t5\n" for year in range(1998, 2005)))
    printed = call("show", str(path))
    assert "train: 3 instances" in printed.stdout
    assert "dates: 2001 to 2004" in printed.stdout


def test_show_knows_bags_and_many_classes(site, tmp_path):
    for name, content in lequa_task(k=32, train=64)[1].items():
        (tmp_path / "T1B" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "T1B" / name).write_bytes(content)
    printed = call("show", str(tmp_path / "T1B"))
    assert printed.exit_code == 0
    assert "and 2 more" in printed.stdout
    assert "features: 4" in printed.stdout
    assert "dev: 3 bags" in printed.stdout
    assert "test: 4 bags" in printed.stdout
    (tmp_path / "T1B" / "test_prevalences.txt").unlink()
    assert "their true prevalences are not available" in call("show", str(tmp_path / "T1B")).stdout


def test_show_of_nothing_is_an_error(site, tmp_path):
    for name, message in ((str(tmp_path / "gone.csv"), "does not exist"), ("kindle", "quanet datasets fetch kindle")):
        printed = call("show", name)
        assert printed.exit_code == 1
        assert re.search(f"^Error: .*{message}.*\n$", printed.stderr)


def test_in_a_process_of_its_own_a_cut_download_ends_whole(site, tmp_path, command):
    site.cuts = [10_000]
    running = command("fetch", "kindle", "--mirror", site.url)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert out == f"kindle: {tmp_path / 'cache' / 'kindle'}\n"
    assert ("/kindle/kindle_train.txt", "bytes=10000-") in site.asked
    shown = command("show", "kindle")
    assert "0.9000" in shown.communicate(timeout=120)[0]
    assert shown.returncode == 0


def test_errors_are_one_line_and_exit_code_1(site, command):
    for words in (("fetch", "hp", "--mirror", site.url), ("show", "kindel")):
        running = command(*words)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 1
        assert out == ""
        assert len(err.strip().splitlines()) == 1
        assert err.strip().startswith("Error: ")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_after_an_interruption_the_next_call_goes_on(sent, code, site, tmp_path, command):
    site.stall = 50_000
    running = command("fetch", "kindle", "--mirror", site.url)
    part = tmp_path / "cache" / "kindle" / "kindle_train.txt.part"
    deadline = time.monotonic() + 60
    while not (part.is_file() and part.stat().st_size):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(sent)
    out, err = running.communicate(timeout=60)
    assert running.returncode == code
    assert out == ""
    assert ("Run the same command to resume" in err) == (sent == signal.SIGINT)
    assert "Traceback" not in err
    kept = part.stat().st_size
    site.stall, site.asked = 0, []
    assert call("fetch", "kindle", "--mirror", site.url).exit_code == 0
    assert site.asked[0] == ("/kindle/kindle_train.txt", f"bytes={kept}-")


def test_two_processes_fetch_each_file_once(site, command):
    both = [command("fetch", "kindle", "--mirror", site.url) for _ in range(2)]
    for running in both:
        running.communicate(timeout=120)
        assert running.returncode == 0
    assert sorted(path for path, _ in site.asked) == ["/kindle/kindle_test.txt", "/kindle/kindle_train.txt"]
