import numpy as np
import pytest

from quanet import PCC, DeBias, Friedman, Gaussians
from quanet.errors import QuanetWarning
from quanet.methods.friedman import share_above
from tests.methods.test_counting import fixed_bag
from tests.strategies import fixed_posteriors

QUANTIFICATIONLIB = {  # quantificationlib 0.1.2: FriedmanME with distance="L2", DeBias
    (2, Friedman): [0.111111111111, 0.888888888889],
    (3, Friedman): [0.203256090315, 0.375900178253, 0.420843731432],
    (2, DeBias): [0.331723954132, 0.668276045868],
}


@pytest.mark.parametrize(("k", "method"), QUANTIFICATIONLIB)
def test_estimates_are_quantificationlibs(k, method):
    held, y = fixed_posteriors(60, k, 0.0)
    estimate = method("precomputed").fit(held, y).predict(fixed_bag(k))
    np.testing.assert_allclose(estimate, QUANTIFICATIONLIB[k, method], atol=1e-9)


def test_rates_are_shares_above_the_prior():
    held, y = fixed_posteriors(60, 3, 0.0)
    fitted = Friedman("precomputed").fit(held, y)
    prior = np.bincount(y) / 60
    assert fitted.rates_[1, 2] == pytest.approx((held[y == 2][:, 1] >= prior[1]).mean())
    np.testing.assert_allclose(share_above(held, prior), fitted.rates_ @ prior)


@pytest.mark.parametrize("method", [Friedman, DeBias])
def test_true_posteriors_give_estimates_near_the_truth(method):
    source = Gaussians(distance=2.0)
    (X, y), (new, _) = source.draw([0.7, 0.3], 5000, rng=0), source.draw([0.2, 0.8], 20_000, rng=1)
    held, rows = source.posteriors(X, [0.7, 0.3]), source.posteriors(new, [0.7, 0.3])
    np.testing.assert_allclose(method("precomputed").fit(held, y).predict(rows), [0.2, 0.8], atol=0.03)


def test_posteriors_that_say_nothing_leave_their_mean_with_a_warning():
    useless = np.tile([[0.5, 0.5]], (10, 1))
    with pytest.warns(QuanetWarning, match="DeBias cannot separate the classes"):
        quantifier = DeBias("precomputed").fit(useless, [0, 1] * 5)
    bag = [[0.9, 0.1], [0.8, 0.2]]
    np.testing.assert_allclose(quantifier.predict(bag), PCC("precomputed").fit(useless, [0, 1] * 5).predict(bag))


def test_singular_rates_leave_the_training_prevalences_with_a_warning():
    useless = np.tile([[0.2, 0.3, 0.5]], (12, 1))
    with pytest.warns(QuanetWarning, match="Friedman cannot separate all classes"):
        quantifier = Friedman("precomputed").fit(useless, [0, 1, 2, 2] * 3)
    np.testing.assert_allclose(quantifier.predict(useless), [0.25, 0.25, 0.5], atol=1e-6)
