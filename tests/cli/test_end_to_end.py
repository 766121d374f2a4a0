"""The installed command through every verb, on files, as a person or a script would call it."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from .made_tables import judged, labelled, stream

QUANET = Path(sys.executable).with_name("quanet")
IN_TURN = """
import contextlib, json, os, pathlib, sys
from quanet.cli.main import run

folder = pathlib.Path(os.environ["QUANET_CACHE"])
folder.mkdir(exist_ok=True)
for name, words in json.loads(sys.argv[1]).items():
    sys.argv = ["quanet", *words]
    with (folder / name).open("w") as out, contextlib.redirect_stdout(out):
        try:
            run()
        except SystemExit as ended:
            if ended.code:
                raise
"""


@pytest.mark.skipif(not QUANET.exists(), reason="quanet is not installed beside this Python")
def test_from_nothing_to_every_answer(tmp_path):
    labelled(240, 0.5, seed=1).to_csv(tmp_path / "train.csv", index=False)
    labelled(200, 0.4, seed=2).to_csv(tmp_path / "test.csv", index=False)
    new = labelled(240, 0.7, seed=3).drop(columns="sentiment")
    new.to_csv(tmp_path / "new.csv", index=False)
    stream([0.3] * 3 + [0.8] * 3).to_csv(tmp_path / "stream.csv", index=False)
    judged(300).to_csv(tmp_path / "judged.csv", index=False)
    environment = os.environ | {"COLUMNS": "100", "QUANET_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(*words, stdin=None):
        ended = subprocess.run(
            words, cwd=tmp_path, env=environment, input=stdin, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.stdout

    few = ("--text", "review", "--label", "sentiment")
    assert run(QUANET, "fit", "train.csv", *few, "--method", "emq", "-o", "model") == ""
    calls = {
        "methods": ("methods", "emq", "--json"),
        "info": ("info", "model", "--json"),
        "piped": ("predict", "model", "-"),
        "predict": ("predict", "model", "new.csv", "--by", "date:month", "--format", "csv"),
        "evaluate": ("evaluate", "model", "test.csv", "--repeats", "2", "--report", "report.html"),
        "compare": ("compare", "train.csv", "test.csv", *few, "--methods", "cc,emq", "--repeats", "2"),
        "correct": ("correct", "judged.csv", "--human", "human", "--judge", "judge", "--by", "model"),
        "monitor": ("monitor", "model", "stream.csv", "--by", "date:week", "--state", "watch"),
        "datasets": ("datasets", "list"),
    }
    # Further calls share a process, because most of a call is waiting for imports.
    run(sys.executable, "-c", IN_TURN, json.dumps(calls), stdin=new.to_csv(index=False))
    out = {name: (tmp_path / "cache" / name).read_text() for name in calls}

    assert json.loads(out["methods"])["name"] == "EMQ"
    assert json.loads(out["info"])["classes"] == ["negative", "positive"]
    months = pd.read_csv(StringIO(out["predict"]))
    assert months["date"].unique().tolist() == ["2024-01", "2024-02", "2024-03"]
    assert "positive" in json.dumps(json.loads(out["piped"]))
    errors = json.loads(out["evaluate"])["methods"]
    assert errors[0]["ae"] < errors[-1]["ae"]
    assert (tmp_path / "report.html").read_text().lower().startswith("<!doctype html>")
    assert {one["method"] for one in json.loads(out["compare"])["methods"]} == {"CC", "EMQ"}
    assert len(json.loads(out["correct"])["groups"]) == 4
    watched = json.loads(out["monitor"])
    assert watched["alarm"]
    assert watched["since"] == "2024-01-22"
    assert (tmp_path / "watch" / "config.json").is_file()
    assert "imdb" in out["datasets"]
    made = {path.name for path in tmp_path.iterdir()}
    given = {f"{name}.csv" for name in ("train", "test", "new", "stream", "judged")}
    assert made - given - {"cache"} == {"model", "report.html", "watch"}
