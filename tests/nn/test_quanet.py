import numpy as np
import pytest

from quanet import EMQ, UPP, Bags, Gaussians, QuaNet, check_quantifier, load, save
from quanet.simplex import smooth

SOURCE = Gaussians(distance=2.0)
X, CODES = SOURCE.draw([0.5, 0.5], 600, rng=0)
POOL, POOL_CODES = SOURCE.draw([0.5, 0.5], 3000, rng=1)


@pytest.mark.same_lines
@pytest.mark.parametrize(("labels", "k"), [("string", 2), ("integer", 4)])
def test_quanet_keeps_the_contract(labels, k):
    check_quantifier(QuaNet(cv=3), k=k, labels=labels)


def test_it_is_smoothed_calibrated_maximum_likelihood():
    quantifier, emq = (make(cv=3).fit(X, CODES) for make in (QuaNet, EMQ))
    np.testing.assert_allclose(quantifier.predict(POOL[:50]), smooth(emq.predict(POOL[:50]), 0.01), atol=1e-9)


@pytest.fixture(scope="module")
def fitted():
    return QuaNet(cv=3).fit(X, CODES)


def test_intervals_of_quanet_are_by_formula(fitted):
    bags = UPP(bag_size=100, repeats=60).draw(POOL_CODES, rng=2)
    found = fitted.predict_interval_bags(POOL, bags)
    assert found.method == "closed"
    assert found.contains(bags.prevalences).mean() >= 0.88
    np.testing.assert_allclose(found.estimate, fitted.predict_bags(POOL, bags), atol=1e-9)


@pytest.mark.parametrize("method", ["conformal", "bootstrap", "bayes"])
def test_it_has_the_other_intervals_too(fitted, method):
    found = fitted.predict_interval(POOL[:200], method=method, **({"resamples": 200} if method == "bootstrap" else {}))
    assert found.contains(fitted.predict(POOL[:200])).all()
    assert 0.02 < found.width[1] < 0.3


def test_every_held_out_row_is_kept(fitted):
    assert len(fitted.held_out_.inputs) == 600
    assert fitted.held_out_.inputs.dtype == np.float32


def test_a_loaded_quanet_gives_the_same_interval(fitted, tmp_path):
    save(fitted, tmp_path / "model")
    bags = Bags([np.arange(90), np.arange(90, 300)])
    ours, theirs = (one.predict_interval_bags(POOL, bags) for one in (fitted, load(tmp_path / "model")))
    np.testing.assert_array_equal(ours.lower, theirs.lower)
    np.testing.assert_array_equal(ours.upper, theirs.upper)


def test_the_network_of_the_paper_is_made_with_its_settings():
    made = QuaNet.paper("precomputed", max_epochs=7, device="cpu", random_state=1)
    assert type(made).__name__ == "PaperQuaNet"
    assert (made.classifier, made.max_epochs, made.patience, made.random_state) == ("precomputed", 7, 20, 1)
