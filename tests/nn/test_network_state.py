from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from quanet import EMQ, LSTMClassifier, QuaNet, WordBags, load, save
from quanet.errors import InvalidModel
from quanet.nn import correction
from quanet.persist.load import model_digest

TEXTS, CODES = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
Y = np.array(["bad", "good"])[CODES]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, recipe in correction.RECIPES.items():
        tiny = replace(recipe, bags=6, sizes=(20, 30), batches=2, stop_sizes=(20, 30), stop_batches=2)
        monkeypatch.setitem(correction.RECIPES, name, tiny)


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
    for corrects in (False, True):
        quantifier.corrects_ = corrects
        save(quantifier, tmp_path / f"model {corrects}")
    real = correction.ResidualNetwork
    monkeypatch.setattr(correction, "ResidualNetwork", lambda width, numbers: real(width + 1, numbers))
    with pytest.raises(InvalidModel, match=r"QuaNet has other layers .* Fit the model again"):
        load(tmp_path / "model True")
    unused = load(tmp_path / "model False")
    quantifier.corrects_ = False
    np.testing.assert_array_equal(unused.predict(TEXTS), quantifier.predict(TEXTS))
    with pytest.raises(InvalidModel, match=r"QuaNet has other layers .* Fit the model again"):
        _ = unused.network_


def test_a_network_that_is_not_used_is_built_when_asked_for_and_saved_as_it_was(tmp_path):
    quantifier = QuaNet(max_epochs=1, cv=3, device="cpu", random_state=0).fit(TEXTS, Y)
    quantifier.corrects_ = False
    assert not hasattr(QuaNet(), "network_")
    save(quantifier, tmp_path / "model")
    untouched, built = load(tmp_path / "model"), load(tmp_path / "model")
    for ours, theirs in zip(built.network_.parameters(), quantifier.network_.parameters(), strict=True):
        assert (ours == theirs).all()
    for back, name in ((untouched, "untouched"), (built, "built")):
        save(back, tmp_path / name)
    assert model_digest(tmp_path / "untouched") == model_digest(tmp_path / "built")
