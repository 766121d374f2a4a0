import json

import pytest

import quanet
from quanet import EMQ, PACC, DMy, GridSearchQ, Histogram, Matching, Median, TextClassifier
from quanet.errors import InvalidModel
from quanet.persist.load import model_facts
from quanet.persist.trust import canonical_json, digest

POSTERIORS, LABELS = [[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]] * 10, ["no", "no", "yes", "yes"] * 10


@pytest.mark.parametrize(
    ("quantifier", "settings"),
    [
        (EMQ("precomputed", calibration=None), {"calibration": "None", "tol": "1e-06"}),
        (DMy("precomputed", bins=(4, 6)), {"bins": "(4, 6)"}),
        (DMy("precomputed", bins=[4]), {"bins": "[4]"}),
        (Matching("precomputed", representation=Histogram((4,))), {"representation": "Histogram(bins=(4,), "}),
        (Median(PACC("precomputed"), {"cv": [5]}), {"grid": "{'cv': [5]}", "quantifier": "PACC("}),
        (GridSearchQ(PACC("precomputed"), {"cv": [5]}), {"refit": "True"}),
    ],
    ids=repr,
)
def test_settings_and_classes_are_read_without_loading(quantifier, settings, tmp_path):
    quanet.save(quantifier.fit(POSTERIORS, LABELS), tmp_path / "m", data="forty", results={"AE": 0.5})
    facts = model_facts(tmp_path / "m")
    assert facts.method == type(quantifier).__name__
    assert facts.classes == ["no", "yes"]
    assert facts.prior == [0.5, 0.5]
    assert facts.instances == 40
    for name, value in settings.items():
        assert facts.settings[name].startswith(value)
    assert facts.config["data"] == "forty"
    assert facts.config["results"] == {"AE": 0.5}
    assert facts.untrusted == []
    assert facts.files.keys() >= {"config.json", "README.md"}


def test_a_classifier_alone_has_facts_too(tmp_path):
    texts = ["good film", "bad film", "good plot", "bad plot"] * 5
    quanet.save(TextClassifier().fit(texts, ["pos", "neg"] * 10), tmp_path / "m")
    facts = model_facts(tmp_path / "m")
    assert (facts.method, facts.classes, facts.prior) == ("TextClassifier", ["neg", "pos"], [])


def test_a_tree_that_is_none_is_told(tmp_path):
    quanet.save(PACC("precomputed").fit(POSTERIORS, LABELS), tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    del config["sha256"]
    config["model"] = {"$tuple": []}
    config["sha256"] = digest(canonical_json(config))
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidModel, match="is damaged and cannot be read"):
        model_facts(tmp_path / "m")
