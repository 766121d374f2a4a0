import json

import numpy as np

import quanet
from quanet import CC, EMQ, PACC, Gaussians, Monitor
from quanet.persist.load import model_facts

from .made_tables import one_line


class Mine(CC):
    """Of nobody's module that quanet knows."""


def test_it_says_what_a_model_is(call, model):
    code, out, err = call("info", model)
    assert (code, err) == (0, "")
    for words in ("EMQ, trained on 800 instances", "train.csv", "negative", "50.00 %", "'bcts'", "CC, mean absolute"):
        assert words in out
    code, out, _ = call("info", model, "--json")
    said = json.loads(out)
    assert said["classes"] == ["negative", "positive"]
    assert said["instances"] == 800
    assert said["prior"] == [0.5, 0.5]
    assert said["facts"]["text"] == "review"
    assert said["bytes"] == sum(file.stat().st_size for file in model.iterdir())
    assert said["settings"]["calibration"] == "'bcts'"


def test_what_was_said_when_it_was_saved_is_shown(call, tmp_path):
    many = PACC("precomputed").fit(np.eye(40), np.arange(40))
    facts = {"skipped": {"no text": 3}, "sources": ["a", "b"], "files": ["a"]}
    quanet.save(many, tmp_path / "m", notes="Mine.", facts=facts)
    code, out, _ = call("info", tmp_path / "m")
    assert code == 0
    for words in ("Mine.", "no text: 3", "a, b", "and 10 more"):
        assert words in out
    assert "Held-out errors" not in out


def test_a_model_of_unknown_types_is_shown_and_not_loaded(call, monkeypatch, tmp_path):
    quanet.save(Mine().fit(*Gaussians().draw([0.5, 0.5], 40, rng=0)), tmp_path / "mine")
    monkeypatch.setattr(Mine, "__new__", None)  # to build one would fail
    code, out, _ = call("info", tmp_path / "mine")
    assert code == 0
    assert f"{Mine.__module__}.Mine" in out.replace("\n", "")
    assert "not loaded unless you trust them" in " ".join(out.split())


def test_a_monitor_has_the_classes_of_its_quantifier(call, tmp_path):
    quanet.save(Monitor(EMQ()).fit(*Gaussians().draw([0.5, 0.5], 60, rng=0)), tmp_path / "watch")
    facts = model_facts(tmp_path / "watch")
    assert (facts.method, facts.classes) == ("Monitor", [0, 1])
    assert facts.settings["quantifier"].startswith("EMQ(classifier=None, cv=5")
    assert call("info", tmp_path / "watch")[0] == 0


def test_a_folder_that_is_no_model_is_told(call, model, tmp_path):
    code, out, err = call("info", tmp_path / "nothing")
    assert (code, out) == (1, "")
    assert "does not exist" in one_line(err)
    (tmp_path / "empty").mkdir()
    code, _, err = call("info", tmp_path / "empty")
    assert code == 1
    assert "is not a quanet model" in one_line(err)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for file in model.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    (damaged / "arrays.safetensors").write_bytes(b"cut")
    code, _, err = call("info", damaged)
    assert code == 1
    assert "changed or cut off" in one_line(err)
