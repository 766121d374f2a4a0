"""Copies of texts, on the command line: reported by fit, harmless to its model, recognised by predict."""

import json

import numpy as np
import pandas as pd
import pytest

import quanet
from quanet.data import duplicates
from quanet.data.duplicates import hash_texts, hash_training_texts
from quanet.evaluation import contents
from quanet.evaluation.contents import TrainingOverlap
from quanet.persist.load import facts_of

from .conftest import draw


@pytest.fixture(scope="module")
def models(files, tmp_path_factory):
    """Training rows once, and three times, the copies in other letters."""
    folder = tmp_path_factory.mktemp("copies")
    once = pd.read_csv(files / "train.csv")[:400]
    again = [once.assign(review=once.review.str.upper()), once.assign(review="  " + once.review)]
    once.to_csv(folder / "once.csv", index=False)
    pd.concat([once, *again]).to_csv(folder / "thrice.csv", index=False)
    return folder


@pytest.fixture
def fitted(call, models):
    """The two models, and what `quanet fit` said."""
    said = {}
    for name in ("once", "thrice"):
        code, _, said[name] = call(
            *("fit", models / f"{name}.csv", "--text", "review", "--label", "sentiment", "--method", "EMQ"),
            *("-o", models / name, "--force"),
        )
        assert code == 0
    return models, said


def test_rows_written_three_times_make_the_model_of_rows_written_once(call, files, fitted):
    folder, said = fitted
    assert "copies of earlier" not in said["once"]
    assert "800 rows are copies of earlier ones (66.7 %); copies share a fold." in said["thrice"]
    assert facts_of(folder / "thrice")["duplicates"] == 800
    assert "800 rows are copies of others" in (folder / "thrice" / "README.md").read_text()
    errors = [facts_of(folder / name)["held_out"]["error"] for name in ("once", "thrice")]
    assert errors[1] == pytest.approx(errors[0], abs=0.015)
    assert errors[1] > 0.005
    shares = [
        json.loads(call("predict", folder / name, files / "new.csv", "--format", "json")[1])["total"]["classes"]
        for name in ("once", "thrice")
    ]
    assert shares[1]["positive"]["estimate"] == pytest.approx(shares[0]["positive"]["estimate"], abs=0.02)


def test_different_labels_of_copies_are_reported(call, files, tmp_path):
    table = pd.read_csv(files / "train.csv")[:200]
    other = table[:20].assign(sentiment=np.where(table.sentiment[:20] == "negative", "positive", "negative"))
    pd.concat([table, other]).to_csv(tmp_path / "both.csv", index=False)
    _, _, err = call("fit", "both.csv", "--text", "review", "--method", "EMQ", "-o", "model")
    assert "copies of 20 rows have different ones" in err


def test_predict_counts_the_texts_that_the_model_was_trained_on(call, files, model, tmp_path):
    new, train = pd.read_csv(files / "new.csv"), pd.read_csv(files / "train.csv")
    mixed = pd.concat([new[["review"]], train[["review"]][:80].apply(lambda column: column.str.upper())])
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    code, out, _ = call("predict", model, "mixed.csv", "--format", "json")
    assert code == 0
    found = {one["name"]: one for one in json.loads(out)["diagnosis"]}
    assert found["training texts"]["sentence"] == "80 of the 800 texts (10.0 %) are training texts."
    code, out, _ = call("predict", model, files / "new.csv", "--format", "json")
    assert "training texts" not in {one["name"] for one in json.loads(out)["diagnosis"]}


def test_a_model_that_does_not_remember_its_texts_says_nothing_of_them(call, files, model, tmp_path):
    loaded = quanet.load(model)
    del loaded.training_hashes_
    quanet.save(loaded, tmp_path / "older", facts=facts_of(model))
    _, out, _ = call("predict", "older", files / "train.csv", "--format", "json")
    assert "training texts" not in {one["name"] for one in json.loads(out)["diagnosis"]}


def test_a_part_of_many_training_texts_tells_how_many_come_again(monkeypatch):
    for module in (duplicates, contents):
        monkeypatch.setattr(module, "MAX_HASHES", 200)
    texts, _ = draw(0.5, 2000, 3)
    others, _ = draw(0.5, 1000, 4)
    kept = hash_training_texts(texts)
    assert len(kept) == 200
    seen = TrainingOverlap(kept)
    seen.add(hash_texts(texts[:1000]))
    seen.add(hash_texts(others))
    assert seen.count == pytest.approx(1000, abs=120)


def test_a_poor_model_is_called_poor_with_what_would_help(call, tmp_path):
    texts, labels = draw(0.5, 120, 5)
    pd.DataFrame({"review": [text.split()[0] + f" {at}" for at, text in enumerate(texts)], "label": labels}).to_csv(
        tmp_path / "poor.csv", index=False
    )
    code, _, err = call("fit", "poor.csv", "--text", "review", "--method", "EMQ", "-o", "model")
    assert code == 0
    assert "Warning: This is a poor model: its mean error is" in err
    assert "More labelled rows would help: about" in err


def test_a_good_model_is_not_called_poor(call, files):
    _, _, err = call("fit", files / "train.csv", "--method", "EMQ", "-o", "model")
    assert "poor" not in err


def test_classes_that_are_confused_most_are_named(call, tmp_path):
    rng = np.random.default_rng(0)
    words = {"good": ["fine", "great"], "bad": ["poor", "weak"], "awful": ["poor", "weak"]}
    rows = [
        {"text": f"{rng.choice(words[label])} thing number {at} of {rng.integers(10**6)}", "label": label}
        for at, label in enumerate(rng.choice(list(words), 150).tolist())
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "three.csv", index=False)
    _, _, err = call("fit", "three.csv", "--method", "EMQ", "-o", "model")
    assert "Fewer classes would help: merge 'awful' and 'bad'" in err
