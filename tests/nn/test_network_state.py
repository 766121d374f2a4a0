from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from quanet import EMQ, LSTMClassifier, QuaNet, WordBags, load, save
from quanet.errors import InvalidModel
from quanet.nn import quanet as estimator

TEXTS, CODES = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
Y = np.array(["bad", "good"])[CODES]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, recipe in estimator.RECIPES.items():
        tiny = replace(recipe, bags=6, sizes=(20, 30), batches=2, stop_sizes=(20, 30), stop_batches=2)
        monkeypatch.setitem(estimator.RECIPES, name, tiny)


def classifier():
    return LSTMClassifier(hidden=8, dense=16, embedding_size=5, max_steps=20, device="cpu", random_state=0)


@cache
def frozen():
    return FrozenEstimator(classifier().fit(TEXTS[:150], Y[:150]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: QuaNet(max_epochs=1, cv=3, device="cpu", random_state=0),
        lambda: QuaNet(classifier(), max_epochs=1, device="cpu", random_state=0),
        lambda: QuaNet.paper(classifier(), max_epochs=1, device="cpu", random_state=0),
        lambda: QuaNet(frozen(), max_epochs=1, device="cpu", random_state=0),
        lambda: EMQ(frozen()),
    ],
    ids=["text default", "LSTM", "paper", "frozen LSTM", "EMQ on an LSTM"],
)
def test_networks_come_back_to_the_last_bit(make, tmp_path):
    quantifier = make().fit(TEXTS[150:], Y[150:])
    for corrects in (False, True):
        quantifier.corrects_ = corrects
        save(quantifier, tmp_path / f"model {corrects}")
        back = load(tmp_path / f"model {corrects}")
        np.testing.assert_array_equal(back.predict(TEXTS), quantifier.predict(TEXTS))
        assert back.classes_.tolist() == ["bad", "good"]


def test_weights_that_do_not_fit_their_network_are_refused(tmp_path, monkeypatch):
    quantifier = QuaNet(max_epochs=1, cv=3, device="cpu", random_state=0).fit(TEXTS, Y)
    save(quantifier, tmp_path / "model")
    real = estimator.ResidualNetwork
    monkeypatch.setattr(estimator, "ResidualNetwork", lambda width, numbers: real(width + 1, numbers))
    with pytest.raises(InvalidModel, match=r"QuaNet has other layers .* Fit the model again"):
        load(tmp_path / "model")
