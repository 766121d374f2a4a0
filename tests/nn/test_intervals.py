from copy import copy

import numpy as np
import pytest

from quanet import UPP, Bags, Gaussians, QuaNet, load, save
from quanet.errors import InvalidSetting
from quanet.nn import quanet as estimator
from quanet.nn.guard import Verdict
from tests.nn.test_quanet import small  # noqa: F401

SOURCE = Gaussians(distance=2.0)
X, CODES = SOURCE.draw([0.5, 0.5], 600, rng=0)
POOL, POOL_CODES = SOURCE.draw([0.5, 0.5], 3000, rng=1)


@pytest.fixture
def fitted(small):  # noqa: F811
    return QuaNet(cv=3, max_epochs=1, device="cpu", random_state=0).fit(X, CODES)


def test_intervals_of_quanet_are_conformal_by_default(fitted):
    bags = UPP(bag_size=100, repeats=60).draw(POOL_CODES, rng=2)
    found = fitted.predict_interval_bags(POOL, bags)
    assert found.method == "conformal"
    assert found.contains(bags.prevalences).mean() >= 0.88
    np.testing.assert_allclose(found.estimate, fitted.predict_bags(POOL, bags), atol=1e-9)


@pytest.mark.parametrize("method", ["closed", "bootstrap", "bayes"])
def test_a_base_that_is_not_corrected_has_the_other_intervals_too(fitted, method):
    assert not fitted.corrects_
    found = fitted.predict_interval(POOL[:200], method=method, resamples=200)
    assert found.contains(fitted.predict(POOL[:200]))
    assert 0.02 < found.width[1] < 0.3


def test_every_held_out_row_is_kept_unless_the_network_has_learned_from_it(fitted, small, monkeypatch):  # noqa: F811
    assert len(fitted.held_out_.inputs) == 600
    assert fitted.held_out_.inputs.dtype == np.float32
    monkeypatch.setattr(estimator, "compare", lambda *_, **__: Verdict(passes=True, p_value=0.0))
    corrected = QuaNet(cv=3, max_epochs=1, device="cpu", random_state=0).fit(X, CODES)
    assert corrected.corrects_
    assert len(corrected.held_out_.inputs) == 240
    assert corrected.predict_interval(POOL[:100]).method == "conformal"
    with pytest.raises(InvalidSetting, match=r"QuaNet has no closed-form interval\. Use method='conformal'"):
        corrected.predict_interval(POOL[:100], method="closed")


def test_a_loaded_quanet_gives_the_same_interval(fitted, tmp_path):
    save(fitted, tmp_path / "model")
    bags = Bags([np.arange(90), np.arange(90, 300)])
    ours, theirs = (one.predict_interval_bags(POOL, bags) for one in (fitted, load(tmp_path / "model")))
    np.testing.assert_array_equal(ours.lower, theirs.lower)
    np.testing.assert_array_equal(ours.upper, theirs.upper)


def test_relearning_leaves_the_quantifier_as_it_was(fitted):
    before = copy(fitted.statistics_)
    fitted.predict_interval(POOL[:50])
    assert fitted.statistics_.prior.tolist() == before.prior.tolist()
