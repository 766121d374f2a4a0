"""The test for prior shift: its level under the null, its power, and what it says of where."""

import tracemalloc

import numpy as np
import pytest

from quanet.evaluation.prior_shift import _Cells, _Model, mixture_test


def posteriors(codes, k, rng, sharp=2.0):
    """Posteriors of classes that overlap, by a softmax of noisy scores."""
    scores = sharp * np.eye(k)[codes] + rng.normal(size=(len(codes), k))
    values = np.exp(scores)
    return values / values.sum(axis=1, keepdims=True)


@pytest.mark.no_cover
@pytest.mark.parametrize("k", [2, 3, 5])
def test_bags_of_prior_shift_alarm_as_rarely_as_the_level_says(k):
    rng = np.random.default_rng(k)
    p_values = []
    for _ in range(150):
        codes = rng.integers(k, size=600)
        bag = rng.choice(k, size=200, p=rng.dirichlet(np.ones(k)))
        found = mixture_test(posteriors(bag, k, rng), posteriors(codes, k, rng), codes, resamples=99, rng=rng)
        p_values.append(found.p_value)
    assert 0.005 <= np.mean(np.array(p_values) <= 0.05) <= 0.11
    assert 0.35 <= np.median(p_values) <= 0.65


@pytest.mark.parametrize("sharp", [1.0, 3.5])
def test_a_classifier_that_got_worse_or_surer_is_noticed(sharp):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=2000)
    held = posteriors(codes, 2, rng)
    found = [
        mixture_test(posteriors(rng.integers(2, size=300), 2, rng, sharp), held, codes, resamples=99, rng=rng).p_value
        for _ in range(20)
    ]
    assert np.mean(np.array(found) <= 0.05) >= 0.9


def test_the_place_of_the_surplus_is_named():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=2000)
    held = posteriors(codes, 2, rng, 4.0)
    open_ = np.column_stack([np.full(300, 0.45), np.full(300, 0.55)])
    found = mixture_test(open_, held, codes, rng=rng)
    c, low, high = found.worst
    assert c == 1
    assert low <= 0.55 <= high
    assert found.surplus > 0.8
    assert found.p_value == pytest.approx(0.001)


def test_the_fit_finds_the_mixture_exactly_where_there_is_no_noise():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 500)
    held = posteriors(codes, 2, rng)
    cells = _Cells.fit(held, np.full(1000, 1 / 1000), 10)
    model = _Model(cells, held, codes, None)
    counts = np.array([np.bincount(cells.of(held[codes == c]), minlength=cells.size) for c in (0, 1)])
    found = model.fit(np.array([3, 2]) @ counts[None], model.counts[None])
    np.testing.assert_allclose(found.prevalences, [[0.6, 0.4]], atol=1e-6)
    np.testing.assert_allclose(found.residual, 0, atol=1e-6)


def test_a_classifier_that_learnt_from_more_is_no_drift_if_that_is_said():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=4000)
    held = posteriors(codes, 2, rng)
    alarms = {True: [], False: []}
    for _ in range(40):
        truth = rng.integers(2, size=500)
        surer = posteriors(truth, 2, rng) * np.exp(0.25 * np.eye(2)[truth])
        surer /= surer.sum(axis=1, keepdims=True)
        for refitted, found in alarms.items():
            test = mixture_test(surer, held, codes, refitted=refitted, resamples=99, rng=rng)
            found.append(test.p_value <= 0.05)
    assert np.mean(alarms[True]) <= 0.15
    assert np.mean(alarms[False]) >= 0.3


def test_every_instance_has_its_cell_and_ranges_cover_the_posterior():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=500)
    held = posteriors(codes, 3, rng)
    cells = _Cells.fit(held, np.full(500, 1 / 500), 20)
    numbers = cells.of(held)
    assert 15 <= cells.size <= 25
    assert set(numbers.tolist()) == set(range(cells.size))
    for row, number in zip(held, numbers, strict=True):
        c, low, high = cells.range_of(int(number))
        assert c == row.argmax()
        assert low <= row[c] <= high


def test_a_class_that_is_never_predicted_has_a_cell_too():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [400, 20])
    held = np.column_stack([rng.uniform(0.6, 1.0, 420), np.zeros(420)])
    held[:, 1] = 1 - held[:, 0]
    assert 0 < mixture_test(held[:100], held, codes, resamples=99, rng=rng).p_value <= 1


def test_many_classes_need_little_memory():
    k, rng = 100, np.random.default_rng(0)
    codes = np.arange(10 * k) % k
    held, bag = posteriors(codes, k, rng, 5.0), posteriors(rng.integers(k, size=2000), k, rng, 5.0)
    tracemalloc.start()
    found = mixture_test(bag, held, codes, refitted=True, resamples=199, rng=rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**29
    assert found.p_value > 0.05


def test_blocks_of_resamples_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    codes = np.arange(900) % 3
    held, bag = posteriors(codes, 3, rng), posteriors(rng.integers(3, size=200), 3, rng)
    whole, parts = (
        mixture_test(bag, held, codes, refitted=True, resamples=99, rng=np.random.default_rng(0))
        for most in (2**28, 2**14)
        if monkeypatch.setattr("quanet.evaluation.prior_shift.MAX_BYTES", most) is None
    )
    assert parts.p_value == whole.p_value
    assert parts.misfit == pytest.approx(whole.misfit)
