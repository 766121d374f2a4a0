"""Intervals for shares of weights: as wide as the effective size says, whatever the kind."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import quanet
from quanet import ACC, EMQ, PACC, Bags, Gaussians, GridSearchQ
from quanet.errors import InvalidData
from quanet.uncertainty.relearning import IntervalRequest, Likelihoods, held_out_of
from quanet.uncertainty.sampling import sampling_sizes

SOURCE = Gaussians(distance=2.5)
X, Y = SOURCE.draw([0.5, 0.5], 600, rng=0)
POOL, CODES = SOURCE.draw([0.6, 0.4], 400, rng=1)


@cache
def fitted_ones():
    return {kind.__name__: kind().fit(X, Y) for kind in (ACC, PACC, EMQ)}


KINDS = ("closed", "conformal", "bootstrap", "bayes")
SKEWED = np.random.default_rng(2).lognormal(sigma=1.0, size=400)
MEMBERS = np.arange(400).reshape(4, 100)


def ends(fitted, bags, **options):
    found = quanet.predict_interval_bags(fitted, POOL, bags, **options)
    return np.stack([found.estimate, found.lower, found.upper])


@pytest.mark.parametrize("method", KINDS)
@pytest.mark.parametrize("name", ["PACC", "EMQ"])
def test_equal_weights_are_none_bit_for_bit(name, method):
    options = {"method": method, "resamples": 100}
    none, equal = (ends(fitted_ones()[name], Bags(MEMBERS, weights=w), **options) for w in (None, np.full(400, 0.3)))
    np.testing.assert_array_equal(none, equal)


@pytest.mark.parametrize("method", KINDS)
def test_intervals_are_as_wide_as_those_of_the_effective_size(method):
    options = {"method": method, "resamples": 1000, "drift": False}
    weights = np.where(np.arange(400) % 4 == 0, 1.0, 0.02)  # nearly all weight is on one in four
    widths = []
    for bags in (Bags([np.arange(400)], weights=weights), Bags([np.arange(0, 400, 4)])):
        found = quanet.predict_interval_bags(fitted_ones()["EMQ"], POOL, bags, **options)
        widths.append(found.width[0, 1])
    assert bags.effective_sizes == 100
    assert widths[0] == pytest.approx(widths[1], rel=0.15)


@pytest.mark.parametrize("name", ["ACC", "EMQ"])
def test_an_instance_of_weight_0_is_absent(name):
    weights = np.where(np.arange(400) < 30, 0.0, SKEWED)
    all_of_them = ends(fitted_ones()[name], Bags([np.arange(400)], weights=weights))
    without = ends(fitted_ones()[name], Bags([np.arange(30, 400)], weights=SKEWED))
    np.testing.assert_allclose(all_of_them, without, atol=1e-9)


@pytest.mark.parametrize("method", KINDS)
def test_a_weighted_bag_never_depends_on_its_neighbours(method):
    options = {"method": method, "resamples": 100, "drift": False}
    together = ends(fitted_ones()["EMQ"], Bags(MEMBERS, weights=SKEWED), **options)
    first = ends(fitted_ones()["EMQ"], Bags(MEMBERS[:1], weights=SKEWED), **options)
    # Draws depend on the sign of an eigenvector, which a platform may choose otherwise for a stack.
    np.testing.assert_allclose(together[:, :1], first, atol=0.01 if method == "bayes" else 1e-9)


def test_one_bag_many_bags_and_a_search_agree():
    fitted = fitted_ones()["PACC"]
    one = fitted.predict_interval(POOL, weights=SKEWED)
    many = fitted.predict_interval_bags(POOL, Bags([np.arange(400)], weights=SKEWED)).of_bag(0)
    np.testing.assert_array_equal(one.lower, many.lower)
    np.testing.assert_array_equal(one.estimate, fitted.predict(POOL, SKEWED))
    assert one.sizes == 400
    assert one.effective_sizes == round(SKEWED.sum() ** 2 / (SKEWED**2).sum())
    assert one.frame()["effective_n"].tolist() == [one.effective_sizes] * 2
    search = GridSearchQ(PACC(), {"cv": [5]}, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(search.predict(POOL, SKEWED), search.quantifier_.predict(POOL, SKEWED))


def test_the_plain_count_by_hand():
    posteriors = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])
    fitted = PACC("precomputed").fit(np.repeat(posteriors[:2], 50, axis=0), np.repeat([0, 1], 50))
    found = fitted.predict_interval(posteriors, weights=[1, 2, 5])
    np.testing.assert_allclose(found.counted, [6 / 8, 2 / 8])


def test_one_dominating_weight_leaves_any_share_possible():
    found = fitted_ones()["EMQ"].predict_interval(POOL[:50], weights=[1e9, *[1] * 49], drift=False)
    np.testing.assert_array_equal([found.lower, found.upper], [[0, 0], [1, 1]])
    assert "nearly all of the weight" in str(found.notes)


def test_large_weights_of_one_class_count_as_fewer_instances():
    fitted, rng = fitted_ones()["EMQ"], np.random.default_rng(3)
    pool, codes = SOURCE.draw([0.9, 0.1], 2000, rng=4)
    bags = Bags(np.arange(2000)[None])
    request = IntervalRequest(
        quantifier=fitted,
        inputs=fitted.read(pool).values,
        bags=bags,
        positions=np.arange(1),
        estimate=np.array([[0.9, 0.1]]),
        sizes=bags.effective_sizes,
        held_out=held_out_of(fitted),
        level=0.95,
        target_is_bag=True,
        resamples=None,
        seed=0,
        held_out_from_fit=True,
    )
    assert sampling_sizes(request) == [2000]
    noise = rng.normal(size=2000)
    independent = Bags(np.arange(2000)[None], weights=np.exp(noise))
    size = int(independent.effective_sizes[0])
    assert 0.8 * size < sampling_sizes(replace(request, bags=independent))[0] <= size
    # The rare class has posteriors that vary more, and nearly all of the large weights.
    of_rare = Bags(np.arange(2000)[None], weights=np.where(codes == 1, np.exp(1.5 * noise), 1.0))
    assert sampling_sizes(replace(request, bags=of_rare))[0] < 0.8 * of_rare.effective_sizes[0]


def test_rows_that_weights_repeat_are_no_evidence_that_a_class_is_absent():
    few = np.tile([1.0, 0.05], (18, 1))
    many = np.repeat(few, 50, axis=0)
    expected = Likelihoods.prevalences(few)
    np.testing.assert_allclose(Likelihoods.prevalences(many, 18), expected, atol=1e-6)
    assert Likelihoods.prevalences(many)[1] < expected[1] / 5


@pytest.mark.parametrize("method", ["conformal", "bootstrap"])
def test_few_effective_instances_have_the_interval_of_as_many_instances(method):
    # All instances look like class 0. Half of the weight is on one of them, so that they count as about 4.
    fitted = fitted_ones()["ACC"]
    rows = np.tile(POOL[CODES == 0][:1], (100, 1))
    weighted = Bags(np.arange(100)[None], weights=np.r_[99.0, np.ones(99)])
    assert weighted.effective_sizes == [4]
    found, alike = (
        quanet.predict_interval_bags(fitted, rows, bags, method=method, drift=False)
        for bags in (weighted, Bags(np.arange(4)[None]))
    )
    np.testing.assert_allclose(found.upper[:, 1], alike.upper[:, 1], atol=0.02)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 399, r"one weight per instance \(400\)"),
        ([-1.0] + [1.0] * 399, "index 0 is -1.0"),
        ([0.0] * 400, "are 0"),
    ],
)
def test_weights_are_checked(weights, message):
    for call in (fitted_ones()["EMQ"].predict, lambda X, w: fitted_ones()["EMQ"].predict_interval(X, weights=w)):
        with pytest.raises(InvalidData, match=message):
            call(POOL, weights)
