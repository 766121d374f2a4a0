import sys

import numpy as np
import pandas as pd
import pytest
import typer

from quanet import WordBags, load  # `quanet.load` is found now, before `call` replaces it where it is defined
from quanet.cli import main

CLASSES = np.array(["negative", "positive"])
COMMAND = typer.main.get_command(main.app)  # made once: that takes longer than many calls
LOADED = {}  # the model that many calls share, and with it all that is learned from it once


def draw(share, n, seed):
    texts, codes = WordBags(length=12, preference=4.0).draw([1 - share, share], n, rng=seed)
    return texts, CLASSES[codes]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Labelled reviews to learn from, and new ones of two products over three months."""
    folder = tmp_path_factory.mktemp("files")
    texts, labels = draw(0.5, 800, 0)
    pd.DataFrame({"id": range(800), "review": texts, "sentiment": labels}).to_csv(folder / "train.csv", index=False)
    parts = []
    for product, share in (("lamp", 0.8), ("radio", 0.3)):
        for month in range(1, 4):
            texts, _ = draw(share, 120, 10 * month + len(product))
            days = [f"2024-{month:02}-{1 + n % 28:02}" for n in range(120)]
            parts.append(pd.DataFrame({"review": texts, "product": product, "date": days}))
    pd.concat(parts).to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="session")
def model(files):
    """What `quanet fit` makes of them."""
    quiet = ["quanet", "fit", str(files / "train.csv"), "--method", "EMQ", "-o", str(files / "model"), "--quiet"]
    before, sys.argv = sys.argv, quiet
    try:
        with pytest.raises(SystemExit) as ended:
            main.run()
    finally:
        sys.argv = before
    assert ended.value.code == 0
    LOADED[files / "model"] = load(files / "model")
    return files / "model"


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder: its exit code, standard output and standard error."""

    monkeypatch.setattr(main, "app", COMMAND)
    monkeypatch.setattr("quanet.persist.load.load", lambda folder, **how: LOADED.get(folder) or load(folder, **how))

    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["quanet", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as ended:
            main.run()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run
