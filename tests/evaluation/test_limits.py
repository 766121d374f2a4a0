import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from quanet.errors import InvalidData
from quanet.evaluation.limits import (
    Limit,
    cramer_rao_error,
    cramer_rao_variance,
    limits_to_json,
    mean_limit,
    pool_limit,
    read_limits,
)
from quanet.methods.solvers import maximum_likelihood
from tests.strategies import SEEDS, prevalences

SHARES = np.array([0.05, 0.3, 0.5, 0.9])
BOTH = np.column_stack([1 - SHARES, SHARES])


def decisions(right_0, right_1, n=1000):
    """Calibrated posteriors of a classifier that only says yes or no, in a pool of equal shares."""
    yes, no = (np.array([1 - right_0, right_1]), np.array([right_0, 1 - right_1]))
    counts = np.round(n / 2 * np.array([no.sum(), yes.sum()])).astype(int)
    return np.repeat([no / no.sum(), yes / yes.sum()], counts, axis=0)


@pytest.mark.parametrize(("right_0", "right_1"), [(0.9, 0.9), (0.95, 0.7), (0.6, 0.8)])
def test_yes_or_no_has_the_variance_of_adjusted_count(right_0, right_1):
    tpr, fpr, n = right_1, 1 - right_0, 250
    said = SHARES * tpr + (1 - SHARES) * fpr
    of_source = said * (1 - said) / (tpr - fpr) ** 2 / n
    of_bag = (SHARES * tpr * (1 - tpr) + (1 - SHARES) * fpr * (1 - fpr)) / (tpr - fpr) ** 2 / n
    pool = decisions(right_0, right_1)
    np.testing.assert_allclose(
        cramer_rao_variance(pool, BOTH, bag_size=n, fixed_counts=False), np.tile(of_source[:, None], 2)
    )
    np.testing.assert_allclose(cramer_rao_variance(pool, BOTH, bag_size=n), np.tile(of_bag[:, None], 2), atol=1e-12)


def gaussian_pool(n, rng, distance=2.0):
    """Two unit Gaussians, equal shares, and their true posteriors."""
    y = np.arange(n) % 2
    x = rng.normal(size=n) + distance * y
    odds = np.exp(distance * x - distance**2 / 2)
    return np.column_stack([1 / (1 + odds), odds / (1 + odds)]), y


def test_two_gaussians_have_the_integral_of_their_densities():
    posteriors, _ = gaussian_pool(400_000, np.random.default_rng(0))
    for share, got in zip(SHARES, cramer_rao_variance(posteriors, BOTH, bag_size=100)[:, 1], strict=True):

        def integrand(x, p=share):
            f0, f1 = stats.norm.pdf(x), stats.norm.pdf(x, 2.0)
            return (f1 - f0) ** 2 / ((1 - p) * f0 + p * f1)

        information, _ = integrate.quad(integrand, -10, 12)
        assert got == pytest.approx((1 / information - share * (1 - share)) / 100, rel=0.02)


def three_gaussians(n, shares, rng):
    """True posteriors of three Gaussians in the plane, at equal shares, with exactly these class counts."""
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.5]])
    y = np.repeat(np.arange(3), np.round(n * np.asarray(shares)).astype(int))
    x = rng.normal(size=(len(y), 2)) + centres[y]
    densities = np.exp(-0.5 * np.square(x[:, None] - centres).sum(axis=-1))
    return densities / densities.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.2, 0.2, 0.6)])
def test_maximum_likelihood_reaches_the_bound(shares):
    rng = np.random.default_rng(1)
    pool = three_gaussians(90_000, [1 / 3] * 3, rng)
    bags = np.stack([three_gaussians(500, shares, rng) for _ in range(1500)])
    errors = maximum_likelihood(bags, np.full(3, 1 / 3))[0] - shares
    bound = cramer_rao_variance(pool, shares, bag_size=500)
    np.testing.assert_allclose(errors.var(axis=0), bound, rtol=0.12)
    assert np.abs(errors).mean() == pytest.approx(float(cramer_rao_error(pool, shares, bag_size=500)), rel=0.05)


@given(SEEDS, prevalences())
def test_bounds_fall_with_the_bag_and_follow_the_classes(seed, shares):
    k = shares.shape[1]
    pool = np.random.default_rng(seed).dirichlet(np.full(k, 0.3), size=200)
    error = cramer_rao_error(pool, shares, bag_size=100)
    assert (error >= 0).all()
    np.testing.assert_allclose(cramer_rao_error(pool, shares, bag_size=400), error / 2)
    np.testing.assert_allclose(
        cramer_rao_error(pool[:, ::-1], shares[:, ::-1], bag_size=100), error, rtol=1e-6, atol=1e-9
    )
    free = cramer_rao_variance(pool, shares, bag_size=1, fixed_counts=False)
    assert (free >= cramer_rao_variance(pool, shares, bag_size=1) - 1e-12).all()


@given(st.integers(2, 5))
def test_certain_posteriors_have_no_error_and_empty_ones_no_limit(k):
    shares = np.vstack([np.full(k, 1 / k), np.eye(k)])
    np.testing.assert_allclose(cramer_rao_error(np.eye(k), shares, bag_size=10), 0, atol=1e-6)
    assert np.isinf(cramer_rao_error(np.full((5, k), 1 / k), shares, bag_size=10)).all()


def test_a_pools_limit_does_not_depend_on_how_sure_the_classifier_sounds():
    posteriors, y = gaussian_pool(4000, np.random.default_rng(2))
    louder = posteriors**3 / (posteriors**3).sum(axis=1, keepdims=True)
    classes = np.array([0, 1])
    honest = pool_limit(posteriors, y, classes, bag_size=500)
    assert len(honest.prevalences) == 21
    np.testing.assert_allclose(pool_limit(louder, y, classes, bag_size=500).errors, honest.errors, rtol=1e-3)


def test_limits_are_averaged_written_and_read(tmp_path):
    one, other = (Limit(np.array([0.1, 0.9]), np.array([0.01, 0.02]) * scale, ("EMQ",)) for scale in (1, 3))
    mean = mean_limit([one, other])
    np.testing.assert_allclose(mean.errors, [0.02, 0.04])
    (tmp_path / "limits.json").write_text(limits_to_json({"imdb": mean}))
    again = read_limits(tmp_path / "limits.json")["imdb"]
    np.testing.assert_array_equal(again.errors, mean.errors)
    assert again.methods == ("EMQ",)
    with pytest.raises(InvalidData, match="their prevalences differ"):
        mean_limit([one, Limit(np.array([0.2, 0.9]), one.errors)])


@pytest.mark.parametrize("text", ["no json", "[1]", '{"imdb": {"errors": [1]}}', '{"imdb": 3}'])
def test_a_file_without_limits_is_named(tmp_path, text):
    (tmp_path / "limits.json").write_text(text)
    with pytest.raises(InvalidData, match=r"limits\.json does not contain limits"):
        read_limits(tmp_path / "limits.json")
    (tmp_path / "limits.json").write_text('{"imdb": {"errors": [1], "prevalences": [0.1, 0.2]}}')
    with pytest.raises(InvalidData, match="as many errors as prevalences"):
        read_limits(tmp_path / "limits.json")


def test_posteriors_that_are_none_are_refused():
    with pytest.raises(InvalidData, match=r"shape \(n, k\)"):
        cramer_rao_error([0.5, 0.5], [0.5, 0.5], bag_size=10)
    with pytest.raises(InvalidData, match="All posteriors of class 1"):
        cramer_rao_error([[1.0, 0.0]], [0.5, 0.5], bag_size=10)
    with pytest.raises(InvalidData, match="must have 2 classes"):
        cramer_rao_error([[0.5, 0.5]], [0.5, 0.3, 0.2], bag_size=10)
