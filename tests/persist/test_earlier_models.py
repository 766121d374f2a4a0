"""A model saved by an earlier version (0.1.0, before texts were scored without a matrix) gives the same posteriors."""

from pathlib import Path

import numpy as np
import skops.io
from sklearn.calibration import CalibratedClassifierCV

from quanet import TextClassifier, load
from quanet.persist import trust

TRAINING = [
    *("Good film, a GOOD one", "I didn't like it", "très bon film, ÉMOUVANT", "bad, bad, bad film"),
    *("ΚΑΛΟΣ ΗΛΙΟΣ", "İyi değil", "这部电影好看", "😀 fun!"),
]
NEW = ["a good FILM", "Bad film, didn't like", "Καλός ήλιος", "iyi", "好看 😀", "", "ha" * 3000, "unknown"]
POSTERIORS = [0.6610092, 0.3037662, 0.5896272, 0.4401497, 0.496982, 0.4972966, 0.512318, 0.4871893]
EMBEDDING = [[0.443061, 0], [0.337399, 0.269378], *[[0, 0]] * 6]


def test_it_loads_and_gives_the_same_posteriors():
    model = load(Path(__file__).parent / "earlier_model")
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], POSTERIORS, atol=1e-6)
    np.testing.assert_allclose(model.transform(NEW), EMBEDDING, atol=1e-5)


def test_the_same_texts_still_give_that_model():
    model = TextClassifier(embedding_size=2).fit(TRAINING, ["yes", "no"] * 4)
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], POSTERIORS, atol=1e-4)


def test_a_class_within_an_estimator_of_scikit_learn_may_have_been_in_another_module(monkeypatch):
    monkeypatch.setattr(TextClassifier, "__module__", "quanet.text")
    classifier = CalibratedClassifierCV(TextClassifier(embedding_size=2), cv=2).fit(TRAINING, ["yes", "no"] * 4)
    part = skops.io.dumps(classifier)
    assert b"quanet.text" in part
    monkeypatch.undo()
    assert trust.untrusted_in(part) == []
    loaded = trust.Trust(()).load_part(part)
    np.testing.assert_array_equal(loaded.predict_proba(NEW), classifier.predict_proba(NEW))
