"""QuaNet: estimates and intervals from the network that is trained once."""

import warnings

import numpy as np
import pytest

from quanet import EMQ, UPP, Bags, Gaussians, QuaNet, check_quantifier, load, predict_interval_bags, save
from quanet.drift.scale import without_drift
from quanet.errors import InvalidSetting, QuanetWarning
from quanet.nn.share_reader import KnownRows, ShareCurves, log_ratios, powers, read_two

SOURCE = Gaussians(distance=2.0)
X, CODES = SOURCE.draw([0.5, 0.5], 600, rng=0)
POOL, POOL_CODES = SOURCE.draw([0.5, 0.5], 3000, rng=1)


@pytest.mark.same_lines
@pytest.mark.parametrize(("labels", "k"), [("string", 2), ("integer", 4)])
def test_quanet_keeps_the_contract(labels, k):
    check_quantifier(QuaNet(cv=3), k=k, labels=labels)


@pytest.fixture(scope="module")
def fitted():
    with without_drift():
        return QuaNet(cv=3).fit(X, CODES)


def errors(method, rows, k, distance, seeds, size=500):
    """Mean absolute errors of a method with so many training rows."""
    source, found = Gaussians(k=k, distance=distance), []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, rows])
        points, codes = source.draw(np.full(k, 1 / k), rows, rng=rng)
        pool, truth = source.draw(np.full(k, 1 / k), 6000, rng=rng)
        bags = UPP(bag_size=size, repeats=30).draw(truth, rng=seed)
        with without_drift():
            found.append(np.abs(method().fit(points, codes).predict_bags(pool, bags) - bags.prevalences).mean())
    return np.mean(found)


@pytest.mark.parametrize(("k", "distance"), [(2, 1.0), (3, 1.5)])
def test_with_few_labels_it_is_better_than_maximum_likelihood(k, distance):
    assert errors(QuaNet, 100, k, distance, 8) < 0.9 * errors(EMQ, 100, k, distance, 8)


@pytest.mark.parametrize("k", [2, 3])
def test_with_many_labels_it_agrees_with_maximum_likelihood(k):
    assert errors(QuaNet, 4000, k, 2.0, 1) < 1.05 * errors(EMQ, 4000, k, 2.0, 1)


def test_the_estimate_is_the_mean_of_the_distribution(fitted):
    rows = fitted.represent(POOL[:80])
    first, second = fitted.share_curves(rows[None])
    np.testing.assert_allclose(fitted.aggregate(rows), [first.mean[0], second.mean[0]], atol=1e-12)
    np.testing.assert_allclose(first.mean + second.mean, 1, atol=1e-12)
    np.testing.assert_allclose(first.quantile(0.1), 1 - second.quantile(0.9), atol=1e-9)


def test_intervals_are_from_the_network_and_contain_the_truth(fitted):
    bags = UPP(bag_size=100, repeats=200).draw(POOL_CODES, rng=2)
    found = fitted.predict_interval_bags(POOL, bags, drift=False)
    assert found.method == "network"
    assert 0.91 <= found.contains(bags.prevalences).mean() <= 0.995
    np.testing.assert_allclose(found.estimate, fitted.predict_bags(POOL, bags), atol=1e-9)
    source = fitted.predict_interval_bags(POOL, bags, drift=False, target="source")
    assert (source.width >= found.width - 1e-9).all()
    assert source.width.mean() > 1.1 * found.width.mean()


def test_intervals_of_three_classes_are_from_the_network():
    source, inside = Gaussians(k=3, distance=2.0), []
    pool, codes = source.draw(np.full(3, 1 / 3), 3000, rng=1)
    bags = UPP(bag_size=100, repeats=30).draw(codes, rng=2)
    for seed in range(24):  # what is learned from 300 rows is shared by all bags
        with without_drift():
            quantifier = QuaNet(cv=3).fit(*source.draw(np.full(3, 1 / 3), 300, rng=seed))
        found = quantifier.predict_interval_bags(pool, bags, drift=False)
        assert found.method == "network"
        inside.append((found.lower <= bags.prevalences) & (bags.prevalences <= found.upper))
    assert 0.92 <= np.mean(inside) <= 0.98
    np.testing.assert_allclose(found.covariance.sum(axis=2), 0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Calibrating intervals")
@pytest.mark.parametrize("method", ["closed", "conformal", "bootstrap", "bayes"])
def test_it_has_the_other_intervals_too(fitted, method):
    found = fitted.predict_interval(POOL[:200], method=method, **({"resamples": 200} if method == "bootstrap" else {}))
    assert found.contains(fitted.predict(POOL[:200])).all()
    assert 0.02 < found.width[1] < 0.35


def test_other_methods_have_no_network():
    with without_drift():
        emq = EMQ(cv=3).fit(X, CODES)
    with pytest.raises(InvalidSetting, match="EMQ has no network, which method='network' needs"):
        emq.predict_interval(POOL[:50], method="network")


def test_held_out_instances_of_ones_own_are_learned_from(fitted):
    own = SOURCE.draw([0.5, 0.5], 60, rng=8)
    bags = Bags([np.arange(300)])
    ours, theirs = (predict_interval_bags(fitted, POOL, bags, held_out=held, drift=False) for held in (own, None))
    assert ours.method == theirs.method == "network"
    assert ours.width[0, 1] > 1.2 * theirs.width[0, 1]  # 60 instances tell less than 600


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


# What must not break it: an honest, wide interval.


def fit_quietly(rows, codes):
    with warnings.catch_warnings(), without_drift():
        warnings.simplefilter("ignore", QuanetWarning)
        return QuaNet("precomputed").fit(rows, codes)


def posteriors(codes, rng, strength=1.5):
    odds = strength * (2 * codes - 1) + rng.normal(size=len(codes))
    return np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))])


@pytest.mark.parametrize("rare", [1, 2, 4])
def test_few_held_out_rows_of_a_class_give_a_wide_interval(rare):
    rng = np.random.default_rng(rare)
    codes = np.repeat([0, 1], [60, rare])
    quantifier = fit_quietly(posteriors(codes, rng), codes)
    truth = np.repeat([0, 1], [140, 60])
    found = quantifier.predict_interval(posteriors(truth, rng), drift=False)
    assert found.lower[1] <= 0.3 <= found.upper[1]
    assert found.width[1] > 0.1


def test_constant_scores_tell_nothing():
    codes = np.repeat([0, 1], 40)
    quantifier = fit_quietly(np.full((80, 2), 0.5), codes)
    found = quantifier.predict_interval(np.full((100, 2), 0.5), drift=False)
    assert found.width[1] > 0.9
    assert 0.3 < found.estimate[1] < 0.7


def test_a_bag_of_one_has_an_estimate_and_the_widest_interval(fitted):
    found = fitted.predict_interval(POOL[:1])
    assert found.estimate.sum() == pytest.approx(1)
    np.testing.assert_array_equal([found.lower, found.upper], [[0, 0], [1, 1]])


def test_scores_of_few_values_are_ties():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 300)
    rows = np.round(posteriors(codes, rng) * 5).clip(0.5, 4.5) / 5
    quantifier = fit_quietly(rows, codes)
    truth = (rng.random(500) < 0.7).astype(int)
    new = np.round(posteriors(truth, rng) * 5).clip(0.5, 4.5) / 5
    found = quantifier.predict_interval(new, drift=False)
    assert found.contains(np.array([1 - truth.mean(), truth.mean()])).all()
    assert found.width[1] < 0.3


# The rows that it reads.


def test_of_many_held_out_rows_evenly_spaced_ones_are_kept():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [30_000, 500])
    known = KnownRows.of(posteriors(codes, rng), codes)
    assert len(known.codes) == 10_500
    np.testing.assert_allclose(known.sizes, [30_000, 500])
    kept = log_ratios(known.likelihoods[known.codes == 0])
    every = log_ratios(posteriors(codes, np.random.default_rng(0))[codes == 0])
    np.testing.assert_allclose(np.quantile(kept, [0.1, 0.5, 0.9]), np.quantile(every, [0.1, 0.5, 0.9]), atol=0.01)


def test_copies_count_as_what_they_are_worth():
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], 50)
    known = KnownRows.of(posteriors(codes, rng), codes)
    fewer = known.counting_as(np.array([5.0, 5.0]))
    bag = posteriors(np.repeat([0, 1], [140, 60]), rng)[None]
    assert read_two(fewer, bag).variance[0] > 1.5 * read_two(known, bag).variance[0]
    assert read_two(known, bag, np.array([20.0])).variance[0] > 1.5 * read_two(known, bag).variance[0]


def test_a_class_against_the_others_of_two_is_that_class():
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1], [40, 60])
    known = KnownRows.of(posteriors(codes, rng), codes)
    held, counts = known.of_class(1, np.array([[1.0, 0.0]]))
    two, of_two = known.of_two()
    order = known.order.tolist()
    if order != [0, 1]:
        two, of_two = -two[:, ::-1], of_two[:, ::-1, ::-1]
    np.testing.assert_allclose(held, two, atol=1e-9)
    np.testing.assert_allclose(counts, of_two, atol=1e-9)


def test_a_curve_without_its_prior_is_a_likelihood():
    # 30 of 100 known instances are of the class: a binomial likelihood, whose posterior under the prior is given.
    nodes = np.linspace(0, 1, 101)[None]
    flat = ShareCurves(nodes, np.full((1, 101), 1 / 101))
    likelihood = 30 * np.log(nodes.clip(1e-9)) + 70 * np.log((1 - nodes).clip(1e-9))
    prior = np.log(flat.chances) - flat.log_likelihood()
    chances = np.exp(likelihood + prior)
    found = ShareCurves(nodes, chances / chances.sum()).log_likelihood()[0]
    np.testing.assert_allclose((found - found[30])[10:60], (likelihood[0] - likelihood[0, 30])[10:60], atol=1e-9)


def test_sharper_likelihoods_are_narrower_around_the_same_place():
    nodes = np.linspace(0, 1, 201)[None]
    chances = np.exp(-0.5 * ((nodes - 0.4) / 0.1) ** 2)
    curve = ShareCurves(nodes, chances / chances.sum())
    np.testing.assert_allclose(curve.sharpened(np.ones(1)).chances, curve.chances, atol=1e-12)
    sharp = curve.sharpened(np.array([4.0]))
    assert sharp.variance[0] == pytest.approx(curve.variance[0] / 4, rel=0.1)
    assert sharp.mean[0] == pytest.approx(0.4, abs=0.01)


def test_powers_are_one_for_good_classifiers_or_many_rows():
    rng = np.random.default_rng(0)
    half = np.array([[0.5, 0.5]])
    weak = posteriors(rng.integers(0, 2, 500), rng, 0.2)[None]
    found = [powers(weak, half, np.array([m, m]))[0, 1] for m in (10, 100, 1000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert 1.3 < found[0] < 1.5
    assert found[-1] == pytest.approx(1, abs=1e-3)


def test_the_drift_scale_is_that_of_maximum_likelihood_which_is_fast():
    X, y = Gaussians().draw([0.5, 0.5], 2000, rng=0)
    network, likelihood = QuaNet().fit(X, y), EMQ().fit(X, y)
    assert network.drift_.rate == pytest.approx(likelihood.drift_.rate, rel=0.05)
    rows = network.represent(X[:300])
    np.testing.assert_allclose(
        network.aggregate_quickly(rows), likelihood.aggregate(likelihood.represent(X[:300])), atol=5e-3
    )
