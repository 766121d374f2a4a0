"""Samples of large groups: calibrated on exact sums, so that their estimates are nearly those of all rows."""

import numpy as np
import pandas as pd
import pytest

from quanet import (
    ACC,
    EMQ,
    MAPLS,
    OEMQ,
    PACC,
    Bags,
    CvMy,
    DeepSets,
    DMy,
    FrankHall,
    Friedman,
    Gaussians,
    Histogram,
    KDEyCS,
    KDEyML,
    MatchingX,
    Median,
)
from quanet.arrays import Merged
from quanet.corpus import grouped_inputs
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.layout import Layout
from quanet.corpus.state import State
from quanet.corpus.state_files import to_bytes
from quanet.data.instances import InputColumns

CAP = 1000


@pytest.fixture(scope="module")
def three_classes():
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 600, rng=0)
    new, _ = Gaussians(k=3).draw([0.7, 0.2, 0.1], 4000, rng=1)
    return X, y, new


@pytest.fixture
def sampled(monkeypatch):
    """States of rows in several partitions, of which `CAP` are kept."""
    monkeypatch.setattr(Layout, "most_rows", lambda *_: CAP)

    def states(quantifier, X, parts):
        names = [f"x{at}" for at in range(X.shape[1])]
        read = BatchReader(quantifier, InputColumns(features=tuple(names)), model="digest")
        table = pd.DataFrame(X, columns=names).astype(object)
        rows = np.array_split(np.random.default_rng(parts).permutation(len(X)), parts)
        return State.merge([read(table.iloc[some], partition=str(at)) for at, some in enumerate(rows)])

    def partitions_do_not_matter(quantifier, X):
        one, seven = (states(quantifier, X, parts) for parts in (1, 7))
        named = [to_bytes(state.named("all")) for state in (one, seven)]
        assert named[0] == named[1]
        return one

    return partitions_do_not_matter


def estimate(quantifier, state):
    reading = reading_of(state, quantifier)
    return quantifier.aggregate_bags(quantifier.rows(reading.instances.values), reading.bags())[0]


@pytest.mark.parametrize(
    ("make", "own", "limit"),
    [
        (ACC, "", 2e-5),
        (PACC, "", 2e-4),
        (EMQ, "likelihoods", 2e-3),
        (KDEyML, "likelihoods", 2e-3),
        (MAPLS, "likelihoods", 2e-3),
        (OEMQ, "likelihoods", 2e-3),
        (KDEyCS, "means", 1e-4),
        (DMy, "", 2e-3),
        (CvMy, "", 2e-3),
        (Friedman, "", 2e-3),
        (lambda: FrankHall(EMQ()), "", 4e-3),
        (lambda: Median(DMy(), {"bins": [4, 8]}), "", 2e-3),
        (lambda: MatchingX(representation=Histogram(8, span=None)), "", 2e-3),
    ],
)
def test_the_estimate_of_a_quarter_of_the_rows_is_nearly_that_of_all(three_classes, sampled, make, own, limit):
    X, y, new = three_classes
    quantifier = make().fit(X, y)
    state = sampled(quantifier, new)
    assert state.header.layout.own == own
    reading = reading_of(state, quantifier)
    assert len(reading.codes) <= CAP
    assert reading.bags().sizes.tolist() == [4000]
    np.testing.assert_allclose(estimate(quantifier, state), quantifier.predict(new), atol=limit)  # a plain sample: .02


@pytest.mark.parametrize("method", [EMQ, PACC])
def test_the_interval_of_a_sample_is_hardly_wider_than_that_of_all_rows(three_classes, sampled, method):
    X, y, new = three_classes
    quantifier = method().fit(X, y)
    reading = reading_of(sampled(quantifier, new), quantifier)
    interval = quantifier.predict_interval_bags(reading.instances, reading.bags()).of_bag(0)
    whole = quantifier.predict_interval(new)
    assert (interval.width < 1.2 * whole.width + 0.01).all()
    assert (interval.lower < whole.estimate).all()
    assert (whole.estimate < interval.upper).all()


def posteriors_and_features(k, n, seed):
    source, equal = Gaussians(k=k), np.full(k, 1 / k)
    X, y = source.draw(equal, n, rng=seed)
    return np.hstack([source.posteriors(X, equal), X]), y


def test_a_network_that_reads_each_embedding_gets_real_rows(sampled):
    rows, y = posteriors_and_features(2, 600, 0)
    quantifier = DeepSets("precomputed", max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    new, _ = posteriors_and_features(2, 3000, 1)
    reading = reading_of(sampled(quantifier, new), quantifier)
    read = {row.tobytes() for row in quantifier.read(new).values.astype(np.float32)}
    assert {row.tobytes() for row in reading.instances.values.astype(np.float32)} <= read
    assert len(reading.codes) == CAP


def test_sums_of_a_sample_are_posteriors_and_their_products_at_fixed_prevalences():
    rows = Layout(3, 3, (0.5, 0.25, 0.25), weighted=False, smooth=False)
    posteriors = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    known = rows.control_variates(posteriors)
    assert known.shape == (rows.controls, 50)
    assert ((known >= 0) & (known <= 1)).all()
    np.testing.assert_array_equal(known[:3], posteriors.T)
    np.testing.assert_array_equal(known[3:6].argmax(axis=0), posteriors.argmax(axis=1))
    equal = posteriors / np.array([0.5, 0.25, 0.25])
    equal /= equal.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(known[7], equal[:, 0] * equal[:, 1])
    skewed = equal * (np.array([0.0, 0.8, 0.0]) + 0.2 / 3)  # .8 of the way from the centre to the second class
    np.testing.assert_allclose(known[21], (skewed[:, 1] / skewed.sum(axis=1)) ** 2)


def test_sums_of_other_methods_include_the_bins_of_an_eighth_and_the_prior():
    rows = Layout(3, 3, (0.5, 0.2, 0.3), weighted=False, smooth=False)
    posteriors = np.random.default_rng(0).dirichlet(np.ones(3), size=500)
    bins = rows.control_variates(posteriors)[rows.main_controls :]
    assert set(np.unique(bins)) == {0.0, 1.0}
    of_second = bins[45 : 45 + 46]  # .5 is an edge already, so the first class has 45 bins, besides the last
    wanted = [posteriors[:, 1] < edge for edge in (0.125, 0.2, 0.875)]
    found = of_second.cumsum(axis=0)
    assert all((found == one).all(axis=1).any() for one in wanted)


def test_a_method_that_reads_means_needs_no_other_sums():
    assert Layout(3, 3, (0.5, 0.25, 0.25), weighted=False, smooth=True).controls == 6


def test_many_features_have_no_histograms():
    few, many = (Layout(d, 0, (), weighted=False, smooth=False) for d in (21, 22))
    assert (few.controls, many.controls) == (21 * (4 + 71), 22 * 4)


def test_weights_that_do_not_give_the_means_are_replaced_by_cautious_ones(monkeypatch):
    tried = []

    def raked(known, base, products, ridge):
        tried.append(float(ridge[0]))
        return base, 1.0 if len(tried) < 3 else 1e-6

    monkeypatch.setattr(grouped_inputs, "_raked", raked)
    layout = Layout(3, 3, (0.5, 0.25, 0.25), weighted=False, smooth=True)
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    known = grouped_inputs._Controls(rows, layout, layout.control_variates(rows).mean(axis=1))
    weights = np.full(50, 1 / 50)
    grouped_inputs._calibrated(known, weights, known.products(weights))
    assert tried == list(grouped_inputs.RIDGES[:3])


def test_few_rows_that_stand_for_many_instances_have_precise_weights():
    counts = np.array([123_456, 876_544])
    bags = Bags([[0, 1]], weights=counts, merged=Merged(counts, counts.astype(float), np.zeros(2)))
    (only,) = bags.unweighted(np.eye(2)).members
    assert (only == 0).mean() == pytest.approx(0.123456, abs=1e-4)
