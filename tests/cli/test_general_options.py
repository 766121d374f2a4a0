import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quanet import EMQ

# Tests that run in the background ignore SIGINT, and what they start would inherit that.
HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def start(*words, code="from quanet.cli.main import run; run()", **settings):
    return subprocess.Popen(
        [sys.executable, "-c", HEED + code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def until_idle(process):
    """Wait until a process does nothing but wait itself, by its use of the processor."""
    used = Path(f"/proc/{process.pid}/stat")
    before, quiet = None, 0
    for _ in range(300):
        time.sleep(0.1)
        now = used.read_text().rsplit(")", 1)[1].split()[11:13] if used.exists() else [str(time.time() // 5)]
        quiet = quiet + 1 if now == before else 0
        if quiet == 12 and (not used.exists() or sum(map(int, now)) > 50):
            return
        before = now


def test_ctrl_c_while_reading_ends_with_130(model):
    with start("predict", model, "-") as process:
        process.stdin.write("review\ngood film\n")
        process.stdin.flush()
        until_idle(process)  # it waits for more, which does not come
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stdout.read() == ""
        assert process.stderr.read() == "Stopped.\n"


def test_ctrl_c_does_not_make_half_a_training_a_model(files, tmp_path):
    # A network takes Ctrl-C for the end of its training, which must not become a model that looks finished.
    code = (
        "import time, quanet.nn.training as t\n"
        "def epochs(*a, **k):\n"
        "    print('training', flush=True)\n"
        "    time.sleep(60)\n"
        "    yield\n"
        "import quanet.nn.paper as e; e.train = epochs\n"
        "from quanet.cli.main import run; run()"
    )
    with start("fit", files / "train.csv", "--method", "QuaNet.paper", "-o", tmp_path / "model", code=code) as process:
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read().endswith("Stopped.\n")
    assert not list(tmp_path.iterdir())


def test_options_win_over_the_environment_and_that_over_the_file(call, model, files, tmp_path, monkeypatch):
    words = ("predict", model, files / "new.csv", "-q")
    (tmp_path / "quanet.toml").write_text('[predict]\nlevel = 0.8\nby = "product"\nformat = "json"\n')
    said = json.loads(call(*words)[1])
    assert (said["level"], len(said["groups"])) == (0.8, 2)
    monkeypatch.setenv("QUANET_PREDICT_LEVEL", "0.9")
    assert json.loads(call(*words)[1])["level"] == 0.9
    assert json.loads(call(*words, "--level", "0.99")[1])["level"] == 0.99
    monkeypatch.setenv("QUANET_PREDICT_FORMAT", "csv")
    assert call(*words)[1].startswith("product,class,estimate")


def test_the_file_can_hold_lists_tables_and_what_holds_everywhere(call, files, tmp_path):
    (tmp_path / "quanet.toml").write_text(
        'quiet = true\n[fit]\nmethod = "PACC"\noutput = "model"\n[fit.set]\ncv = 3\n[experiment.run]\njobs = 2\n'
    )
    code, _, err = call("fit", files / "train.csv")
    assert (code, err) == (0, "")
    assert '"cv":3' in (tmp_path / "model" / "config.json").read_text().replace(" ", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[predict]\nlevels = 0.8\n", "unknown key 'predict.levels'. Did you mean 'level'?"),
        ("[predcit]\nlevel = 0.8\n", "unknown key 'predcit'. Did you mean 'predict'?"),
        ("[predict\n", "quanet.toml cannot be read"),
        ('[predict]\nlevel = "high"\n', "Invalid value for '--level'"),
    ],
)
def test_a_wrong_file_is_a_wrong_call(call, model, files, tmp_path, content, message):
    (tmp_path / "quanet.toml").write_text(content)
    code, _, err = call("predict", model, files / "new.csv")
    assert code == 2
    assert message in " ".join(err.replace("│", "").split())


def test_options_of_all_commands_stand_anywhere(call, model, files):
    words = ["predict", model, files / "new.csv"]
    assert call("--quiet", *words)[2] == ""
    assert call(*words, "--quiet")[2] == ""
    assert call(*words)[2] != ""
    assert "Reading" in call("-v", *words)[2]


def test_colours_can_be_turned_off(call, model, files, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    from quanet.cli import console

    monkeypatch.setattr(console.console, "_force_terminal", True)
    monkeypatch.setattr(console.console, "_color_system", console.console._color_system)
    words = ["predict", model, files / "new.csv", "--format", "table", "-q"]
    assert "\x1b[3" not in call(*words, "--no-color")[1]


def test_what_the_system_refuses_is_one_line(call, model, files, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "shares.csv")

    monkeypatch.setattr("quanet.files.NamedTemporaryFile", full)
    code, _, err = call("predict", model, files / "new.csv", "-o", "shares.csv", "-q")
    assert (code, err) == (1, "Error: shares.csv cannot be written: No space left on device. Choose another file.\n")


def test_too_little_memory_is_one_line(call, files, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError

    monkeypatch.setattr(EMQ, "fit", greedy)
    code, _, err = call("fit", files / "train.csv", "--method", "EMQ", "-o", "model", "-q")
    assert code == 1
    assert err == "Error: Not enough memory. Use fewer rows or another --method.\n"
    monkeypatch.setattr("quanet.workflows.compare.run_methods", greedy)
    _, _, err = call("compare", files / "train.csv", files / "train.csv", "--label", "sentiment", "-q")
    assert "Use fewer rows, a smaller --bag-size, fewer --repeats or fewer --methods." in err


@pytest.mark.parametrize("verb", ["fit", "predict", "evaluate", "compare", "correct", "monitor", "info", "methods"])
def test_every_help_has_examples_and_names_no_variable(call, verb):
    code, out, _ = call(verb, "--help")
    assert code == 0
    assert "Examples" in out
    assert f"quanet {verb}" in out
    assert "QUANET_" not in out
    assert "--quiet" in out
    assert "📅" not in out  # what rich makes of ":date:"


def test_the_shell_can_complete(call, monkeypatch):
    monkeypatch.setenv("_QUANET_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "quanet pre")
    monkeypatch.setenv("COMP_CWORD", "1")
    _, out, _ = call()
    assert out.split() == ["predict"]
