import numpy as np
import pytest
from scipy.stats import multivariate_normal

from quanet import Gaussians, WordBags
from quanet.errors import InvalidData, InvalidSetting


def test_gaussian_densities_are_scipys():
    source = Gaussians(k=3, distance=1.7)
    X, _ = source.draw([0.2, 0.3, 0.5], 10, rng=0)
    for c in range(3):
        np.testing.assert_allclose(source.log_density(X)[:, c], multivariate_normal(source.centres[c]).logpdf(X))
    gaps = np.linalg.norm(source.centres[:, None] - source.centres, axis=-1)
    np.testing.assert_allclose(gaps[~np.eye(3, dtype=bool)], 1.7)


@pytest.mark.parametrize("source", [Gaussians(k=3, distance=2.0), WordBags(k=3)], ids=["gaussians", "words"])
def test_posteriors_are_honest(source):
    prior = [0.5, 0.3, 0.2]
    X, y = source.draw(prior, 12_000, rng=0)
    np.testing.assert_allclose(np.bincount(y) / 12_000, prior)
    posteriors = source.posteriors(X, prior)
    assert (posteriors.argmax(axis=1) == y).mean() > 0.6
    for c in range(3):
        sure = posteriors[:, c]
        for low in (0.2, 0.5, 0.8):
            band = (sure >= low) & (sure < low + 0.2)
            assert (y[band] == c).mean() == pytest.approx(sure[band].mean(), abs=0.05)


def test_the_same_seed_draws_the_same_texts():
    source = WordBags()
    assert source.draw([0.5, 0.5], 5, rng=3)[0] == source.draw([0.5, 0.5], 5, rng=3)[0]


def test_a_class_of_prior_zero_has_posterior_zero():
    source = Gaussians()
    X, _ = source.draw([0.5, 0.5], 4, rng=0)
    np.testing.assert_array_equal(source.posteriors(X, [1.0, 0.0])[:, 1], 0)


def test_settings_are_checked():
    with pytest.raises(InvalidSetting, match="Gaussians: k must be a whole number of at least 2"):
        Gaussians(k=1)
    with pytest.raises(InvalidData, match="must have 2 classes"):
        Gaussians().draw([0.2, 0.3, 0.5], 10, rng=0)
