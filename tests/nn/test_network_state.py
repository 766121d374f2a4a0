from functools import cache

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from quanet import EMQ, DeepSets, LSTMClassifier, QuaNet, WordBags, load, save
from quanet.errors import InvalidModel
from quanet.nn import paper

TEXTS, CODES = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
Y = np.array(["bad", "good"])[CODES]


pytestmark = pytest.mark.usefixtures("small")
QUICK = {"max_epochs": 1, "device": "cpu", "random_state": 0}


def classifier():
    return LSTMClassifier(hidden=8, dense=16, embedding_size=5, max_steps=20, device="cpu", random_state=0)


@cache
def frozen():
    return FrozenEstimator(classifier().fit(TEXTS[:150], Y[:150]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: DeepSets(cv=3, **QUICK),
        lambda: DeepSets(classifier(), **QUICK),
        lambda: QuaNet.paper(classifier(), **QUICK),
        lambda: DeepSets(frozen(), **QUICK),
        lambda: EMQ(frozen()),
    ],
    ids=["text default", "LSTM", "paper", "frozen LSTM", "EMQ on an LSTM"],
)
def test_networks_come_back_to_the_last_bit(make, tmp_path):
    quantifier = make().fit(TEXTS[150:], Y[150:])
    save(quantifier, tmp_path / "model")
    back = load(tmp_path / "model")
    np.testing.assert_array_equal(back.predict(TEXTS), quantifier.predict(TEXTS))
    assert back.classes_.tolist() == ["bad", "good"]


def test_weights_that_do_not_fit_their_network_are_refused(tmp_path, monkeypatch):
    save(QuaNet.paper(**QUICK).fit(TEXTS, Y), tmp_path / "model")
    real = paper.PaperNetwork
    monkeypatch.setattr(paper, "PaperNetwork", lambda width: real(width + 1))
    with pytest.raises(InvalidModel, match=r"PaperQuaNet has other layers .* Fit the model again"):
        load(tmp_path / "model")


def test_an_estimator_that_is_not_fitted_has_no_network():
    assert not hasattr(QuaNet.paper(), "network_")
