"""The monitor: changes found soon, steady sources left alone, dates in any order, and saved whole."""

from dataclasses import replace
from datetime import date, datetime
from functools import cache

import numpy as np
import pandas as pd
import pytest

from quanet import CC, EMQ, Gaussians, Monitor, load, save
from quanet.arrays import Merged
from quanet.errors import InvalidBags, InvalidData, InvalidSetting

SOURCE = Gaussians()


@cache
def fitted():
    return EMQ().fit(*SOURCE.draw([0.5, 0.5], 1000, rng=0))


POOL, CODES = SOURCE.draw([0.5, 0.5], 4000, rng=1)


@cache
def rows():
    return fitted().represent(POOL)


@cache
def precomputed():
    return EMQ("precomputed", calibration=None).fit(rows(), CODES)


def batch(p, n, rng):
    positive = rng.binomial(n, p)
    by_class = [rows()[c == CODES] for c in (0, 1)]
    return np.concatenate([rng.choice(by_class[1], positive), rng.choice(by_class[0], n - positive)])


@cache
def counter():
    return CC("precomputed").fit(np.repeat([[0.9, 0.1], [0.1, 0.9]], 20, axis=0), np.repeat([0, 1], 20))


def drawn(p, n, rng):
    """A batch whose instances a perfect classifier counts."""
    return np.where(rng.random(n) < p, [[0.1], [0.9]], [[0.9], [0.1]]).T


@pytest.mark.no_cover
def test_steady_sources_raise_no_alarm_and_shifts_do_within_five_batches():
    rng = np.random.default_rng(0)
    false, delays = 0, []
    for p in (0.02, 0.3, 0.5, 0.9) * 3:
        monitor = Monitor(precomputed())
        false += any(monitor.update(batch(p, 500, rng)).alarm for _ in range(60))
        shifted = p + 0.1 if p < 0.5 else p - 0.1
        delays.append(next((at for at in range(1, 10) if monitor.update(batch(shifted, 500, rng)).alarm), 10))
    assert false <= 1  # of 12
    assert max(delays) <= 5


def test_the_evidence_is_the_bayes_factor_by_hand():
    monitor = Monitor(precomputed())
    for seed in range(2):
        found = monitor.update(batch(0.5, 100, np.random.default_rng(seed)))
    variance = 2 * (400 * monitor.spreads_[0, 1] + 200 * monitor.spreads_[1, 1]) / 600 / 100
    difference = monitor.estimates_[1, 1] - monitor.estimates_[0, 1]
    expected = np.sqrt(variance / (variance + 0.01)) * np.exp(difference**2 * 0.01 / 2 / variance / (variance + 0.01))
    assert found.evidence == pytest.approx(expected / 2)  # the first candidate has half of all weight


def test_the_first_batch_is_no_evidence():
    found = Monitor(precomputed()).update(rows()[:50])
    assert found.evidence == 0
    assert not found.alarm
    assert found.since is None
    np.testing.assert_allclose(found.windowed, found.estimate)


def test_batches_in_any_order_give_the_same_course():
    rng = np.random.default_rng(0)
    days = {f"2026-03-{day:02d}": batch(0.3 + 0.01 * day, 100 + day, rng) for day in (1, 2, 5, 9)}  # with gaps
    histories = []
    for order in ([0, 1, 2, 3], [0, 3, 1, 2]):
        monitor = Monitor(precomputed(), window=4, half_life=2)
        for at in order:
            monitor.update(list(days.values())[at], date=list(days)[at])
        histories.append(monitor.history())
    first, late = histories
    np.testing.assert_array_equal(first.dates, late.dates)
    assert first.dates.dtype.kind == "M"
    for name in ("estimate", "windowed", "weighted"):
        np.testing.assert_allclose(getattr(first, name), getattr(late, name))
    np.testing.assert_allclose(first.windowed[2], (first.sizes[1:3] / first.sizes[1:3].sum()) @ first.estimate[1:3])
    weights = first.sizes[:2] * np.array([0.5**0.5, 1])
    np.testing.assert_allclose(first.weighted[1], weights @ first.estimate[:2] / weights.sum())


def test_a_late_batch_cannot_open_a_change_but_counts_for_its_date():
    rng = np.random.default_rng(0)
    monitor = Monitor(precomputed())
    for at in (1, 2, 4):
        monitor.update(batch(0.3, 300, rng), date=at)
    monitor.update(batch(0.3, 300, rng), date=3)
    assert monitor.opens_.tolist() == [0, 1, 2]
    assert monitor.history().dates.tolist() == [1, 2, 3, 4]


def test_tolerance_lets_a_restless_source_be():
    rng = np.random.default_rng(0)
    estimates = {}
    for tolerance in (0.0, 0.1):
        monitor = Monitor(precomputed(), tolerance=tolerance)
        for p in (0.3, 0.45) * 8:
            found = monitor.update(batch(p, 2000, rng))
        estimates[tolerance] = found
    assert estimates[0.0].alarm
    assert not estimates[0.1].alarm


def test_an_alarm_stays_until_the_restart():
    rng = np.random.default_rng(0)
    monitor = Monitor(precomputed())
    for p in [0.3] * 8 + [0.6] * 4:
        found = monitor.update(batch(p, 500, rng))
    assert found.alarm
    assert found.since == 8
    assert monitor.history().since == 8
    monitor.restart()
    assert monitor.history().dates.tolist() == [8, 9, 10, 11]
    assert not monitor.update(batch(0.6, 500, rng)).alarm
    with pytest.raises(InvalidSetting, match="nothing to restart from"):
        monitor.restart()
    monitor.restart(date=10)
    assert len(monitor.dates_) == 3


def test_every_change_is_found_with_the_level_before_and_after_it():
    rng = np.random.default_rng(0)
    monitor = Monitor(precomputed())
    estimates = [monitor.update(batch(p, 500, rng)) for p in [0.24] * 8 + [0.1] * 8 + [0.3] * 8]
    changes = monitor.history().changes
    assert [one.date for one in changes] == [8, 16]
    np.testing.assert_allclose([one.before[1] for one in changes], [0.24, 0.1], atol=0.03)
    np.testing.assert_allclose([one.after[1] for one in changes], [0.1, 0.3], atol=0.03)
    assert sum(found.found for found in estimates) == 2
    assert [one.found for one in changes] == [at for at, found in enumerate(estimates) if found.found]
    assert estimates[-1].since == 16


def test_a_large_change_brings_its_own_variance():
    rng = np.random.default_rng(0)
    monitor = Monitor(precomputed())
    for p in [0.01] * 10 + [0.5] * 40:
        monitor.update(batch(p, 300, rng))
    history = monitor.history()
    assert [one.date for one in history.changes] == [10]
    reach = (history.batch_upper - history.batch_lower)[:, 1]
    assert reach[-1] > 1.5 * reach[0]
    assert history.outside[10:, 1].mean() <= 0.15


@pytest.mark.no_cover
def test_the_band_holds_most_batches_of_a_steady_source_and_alarms_are_few():
    rng = np.random.default_rng(0)
    inside, false = [], 0
    for trial in range(40):
        monitor = Monitor(counter())
        p, n = (0.1, 0.3, 0.5, 0.8)[trial % 4], int(rng.integers(100, 1000))
        for _ in range(20):
            monitor.update(drawn(p, n, rng))
        history = monitor.history()
        inside.append(1 - history.outside[:, 1].mean())
        false += len(history.changes) > 0
    assert 0.93 <= np.mean(inside) <= 0.98
    assert false <= 4  # 2 of 40 at most, in expectation; benchmarks/judges.py has 200 series


def test_a_restart_anywhere_leaves_a_course():
    rng = np.random.default_rng(0)
    monitor = Monitor(precomputed())
    monitor.restart(date="2026-01-01")  # before any batch
    for number in range(4):
        monitor.update(batch(0.3, 100, rng), date=f"2026-03-0{1 + number}")
    monitor.restart(date="2026-03-01")  # the first date
    assert len(monitor.history().dates) == 4
    with pytest.raises(InvalidData, match="came with dates, this one with numbers"):
        monitor.restart(date=3)
    monitor.restart(date="2030-01-01")
    monitor.restart(date="2030-01-01")
    history = monitor.history()
    assert history.estimate.shape == history.lower.shape == history.batch_upper.shape == (0, 2)
    assert history.since is None
    assert not monitor.update(batch(0.3, 100, rng), date="2030-01-02").alarm
    assert len(monitor.history().dates) == 1


def test_batches_without_dates_keep_their_numbers_after_a_restart():
    monitor = Monitor(precomputed())
    for _ in range(3):
        monitor.update(rows()[:50])
    monitor.restart(date=99)
    assert monitor.update(rows()[:50]).date == 3


def test_a_monitor_of_version_0_1_goes_on():
    monitor = Monitor(precomputed())
    for _ in range(3):
        monitor.update(rows()[:50])
    monitor.unit_variance_, monitor.resamples_, monitor.since_ = monitor.spreads_[0], 400, 1.0
    for name in ("spreads_", "resampled_", "received_", "changes_", "alarms_"):
        delattr(monitor, name)
    assert monitor.update(rows()[:50]).date == 3
    assert monitor.history().since is not None


def test_a_share_of_nothing_has_a_band_too():
    found = Monitor(precomputed()).update(rows()[(CODES == 0) & (rows()[:, 1] < 0.05)][:200])
    assert found.estimate[1] == pytest.approx(0, abs=1e-6)
    assert found.upper[1] > 0


@pytest.mark.parametrize("when", [date(2026, 3, 1), datetime(2026, 3, 1), pd.Timestamp("2026-03-01"), "2026-03-01"])
def test_dates_of_every_kind_are_the_same_date(when):
    assert Monitor(precomputed()).update(rows()[:50], date=when).date == np.datetime64("2026-03-01")


def test_a_monitor_comes_back_and_goes_on_as_if_nothing_had_happened(tmp_path):
    rng = np.random.default_rng(0)
    monitor = Monitor(precomputed())
    for _ in range(3):
        monitor.update(batch(0.3, 200, rng))
    save(monitor, tmp_path / "monitor")
    again, following = load(tmp_path / "monitor"), batch(0.5, 200, rng)
    assert again.update(following).evidence == monitor.update(following).evidence
    assert again.history().dates.tolist() == [0, 1, 2, 3]


def test_fit_fits_the_quantifier_and_forgets_the_batches():
    monitor = Monitor(EMQ("precomputed")).fit(rows(), CODES)
    monitor.update(rows()[:50])
    assert len(monitor.fit(rows(), CODES).dates_) == 0


def test_large_batches_are_resampled_in_part():
    monitor = Monitor(precomputed())
    monitor.update(rows())
    small = Monitor(precomputed())
    small.update(rows()[:1000])
    np.testing.assert_allclose(monitor.spreads_, small.spreads_, rtol=0.3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"level": 1.0}, "level must be a number from 0"),
        ({"window": 0}, "window must be a number above 0"),
        ({"half_life": -1}, "half_life must be a number above 0"),
        ({"shift": 0}, "shift must be a number above 0"),
        ({"tolerance": -0.1}, "tolerance must be a number of at least 0"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(InvalidSetting, match=words):
        Monitor(precomputed(), **settings).update(rows()[:50])


def test_bad_batches_are_named():
    monitor = Monitor(precomputed())
    with pytest.raises(InvalidBags, match="at least 2"):
        monitor.update(rows()[:1])
    for wrong in ("someday", float("nan"), np.datetime64("NaT"), [2026], True):
        with pytest.raises(InvalidData, match="is not a date"):
            monitor.update(rows()[:50], date=wrong)
    monitor.update(rows()[:50], date="2026-03-01")
    with pytest.raises(InvalidData, match="came with dates, this one with no dates"):
        monitor.update(rows()[:50])
    with pytest.raises(InvalidData, match="this one with numbers as dates"):
        monitor.update(rows()[:50], date=3)


def test_a_monitor_of_weights_counts_batches_by_weight():
    rng = np.random.default_rng(5)
    monitor, plain = Monitor(counter()), Monitor(counter())
    first, second = drawn(0.5, 200, rng), drawn(0.5, 100, rng)
    for one, weights in ((first, np.full(200, 3.0)), (second, np.full(100, 12.0))):
        found, usual = monitor.update(one, weights=weights), plain.update(one)
        np.testing.assert_array_equal(found.estimate, usual.estimate)
        assert found.effective_n == usual.n
        assert usual.effective_n is None
    shares = monitor.estimates_
    np.testing.assert_allclose(found.windowed, (600 * shares[0] + 1200 * shares[1]) / 1800)
    assert monitor.history().effective_sizes.tolist() == [200, 100]
    with pytest.raises(InvalidData, match="earlier batches came with weights, this one with none"):
        monitor.update(first)
    with pytest.raises(InvalidData, match="earlier batches came with no weights, this one with some"):
        plain.update(first, weights=np.ones(200))


def test_unequal_weights_widen_a_monitors_interval(tmp_path):
    rng = np.random.default_rng(6)
    widths = []
    for deviation in (0.0, 1.5):
        monitor = Monitor(precomputed())
        for _ in range(4):
            found = monitor.update(batch(0.4, 400, rng), weights=np.exp(deviation * rng.normal(size=400)))
        widths.append((found.drift.upper - found.drift.lower)[1])
    assert 1.5 < widths[1] / widths[0] < 5
    save(monitor, tmp_path / "monitor")
    np.testing.assert_array_equal(load(tmp_path / "monitor").history().lower, monitor.history().lower)


def test_copies_in_a_batch_do_not_narrow_its_interval_or_raise_an_alarm():
    source = Gaussians(distance=2)
    quantifier = EMQ().fit(*source.draw([0.5, 0.5], 400, rng=0))
    once, often = Monitor(quantifier), Monitor(quantifier)
    for number, share in enumerate([0.3] * 3 + [0.45] * 3):
        X = source.draw([1 - share, share], 40, rng=number)[0]
        few, many = once.update(X), often.update(np.tile(X, (10, 1)))
    np.testing.assert_allclose(many.upper - many.lower, few.upper - few.lower, rtol=0.15)
    assert many.n == 400
    assert many.alarm == few.alarm


def test_rows_that_stand_for_several_instances_count_as_these():
    source = Gaussians(distance=3)
    quantifier = EMQ().fit(*source.draw([0.5, 0.5], 400, rng=0))
    every, few = Monitor(quantifier), Monitor(quantifier)
    for number, share in enumerate([0.3] * 6 + [0.7] * 3):
        read = quantifier.read(source.draw([1 - share, share], 60, rng=number)[0])
        counts = np.arange(60) % 5 + 1
        alike = replace(read.take(np.repeat(np.arange(60), counts)), hashes=None)  # different instances, no copies
        whole = every.update(alike)
        merged = Merged(counts, counts.astype(float), np.zeros(60))
        found = few.update(read, weights=counts, merged=merged)
        assert found.n == whole.n == counts.sum()
        assert found.effective_n is None
        np.testing.assert_allclose(found.estimate, whole.estimate, atol=1e-6)
        np.testing.assert_allclose(found.upper - found.lower, whole.upper - whole.lower, rtol=0.1)
    assert found.alarm == whole.alarm
    assert found.since == whole.since
