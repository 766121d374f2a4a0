"""Drift of batches: intervals that include it, a state for every batch, and changes that it may explain."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from quanet import EMQ, Bags, Gaussians, GridSearchQ, Monitor, load, save
from quanet.drift.scale import NO_SCALE, without_drift
from quanet.evaluation.monitor_batches import PER_BATCH, Change, measure_batch, share_distances

SOURCE = Gaussians()


@cache
def fitted():
    return EMQ().fit(*SOURCE.draw([0.5, 0.5], 2000, rng=0))


AWAY = np.array([1.0, 1.0])  # the same for both classes


def batch(p, n, seed, shift=0.0):
    return SOURCE.draw([1 - p, p], n, rng=seed)[0] + shift * AWAY


def monitored(batches, quantifier=None, **settings):
    monitor = Monitor(quantifier or fitted(), **settings)
    return monitor, [monitor.update(one) for one in batches]


def test_batches_of_the_training_source_are_not_widened_and_others_are():
    # Two numbers of 400 rows show little, four batches of them more.
    _, near = monitored([batch(0.4, 400, seed) for seed in range(6)], window=1)
    _, far = monitored([batch(0.4, 400, seed, shift=0.5) for seed in range(6)], window=1)
    assert [one.drift.state for one in near].count("few rows") >= 4
    assert {one.drift.state for one in far} <= {"widened", "refused"}
    _, several = monitored([batch(0.4, 400, seed) for seed in range(6)], window=4)
    assert several[-1].drift.state == "trusted"
    widths = [(one.upper - one.lower).mean() / (one.drift.upper - one.drift.lower).mean() for one in near]
    assert np.median(widths) < 1.15
    assert all(((one.upper - one.lower) > 1.5 * (one.drift.upper - one.drift.lower)).all() for one in far)
    np.testing.assert_allclose(far[-1].drift.cost, far[-1].drift.cost[::-1], atol=1e-9)  # two classes cost the same


def test_without_drift_the_ends_are_those_of_chance():
    monitor, found = monitored([batch(0.4, 300, seed, shift=0.3) for seed in range(3)], window=1)
    deviation = np.sqrt(monitor._variances(np.empty(0))[-1])
    reach = stats.norm.isf(0.025) * deviation
    np.testing.assert_allclose(found[-1].drift.lower, found[-1].estimate - reach)
    np.testing.assert_allclose(found[-1].drift.upper, found[-1].estimate + reach)


def test_the_newest_window_of_the_history_is_the_newest_estimate():
    monitor, found = monitored([batch(0.4, 200, seed, shift=0.2) for seed in range(5)], window=3)
    history = monitor.history()
    for name in ("lower", "upper"):
        np.testing.assert_allclose(getattr(history, name)[-1], getattr(found[-1], name))
    np.testing.assert_allclose(history.drift.cost[-1], found[-1].drift.cost)
    assert history.drift.state.tolist()[-1] == found[-1].drift.state


def test_small_batches_share_what_is_known_about_their_distance():
    read = [fitted().read(batch(0.4, n, seed)) for seed, n in enumerate([20] * 30)]
    measured = np.array([measure_batch(fitted(), one, Bags([np.arange(20)])) for one in read])
    shared = share_distances(fitted(), *measured.T, np.full(30, 20))
    assert measured[:, 0].max() > 0.05  # by chance
    assert shared.max() < 0.6 * measured[:, 0].max()
    assert np.mean(shared) < 0.5 * np.mean(np.maximum(measured[:, 0], 0))
    # One batch alone keeps what exceeds its noise.
    alone = share_distances(fitted(), *measured[:1].T, np.array([20]))
    assert alone[0] == pytest.approx(max(0.0, measured[0, 0] - measured[0, 1]))


def test_batches_without_a_distance_are_unknown_and_the_others_are_not():
    distances, deviations = np.array([0.2, np.nan, 0.2]), np.full(3, 1e-4)
    shared = share_distances(fitted(), distances, deviations, np.full(3, 500))
    assert np.isnan(shared).tolist() == [False, True, False]
    monitor, _ = monitored([batch(0.4, 200, seed) for seed in range(3)], window=1)
    monitor.distances_[1] = np.nan
    assert (monitor.history().drift.state == "unknown").tolist() == [False, True, False]


def test_a_saved_monitor_resumes_with_the_same_drift(tmp_path):
    batches = [batch(0.4, 150, seed, shift=0.1 * seed) for seed in range(6)]
    first, _ = monitored(batches[:3])
    save(first, tmp_path / "monitor")
    resumed = load(tmp_path / "monitor")
    later = [resumed.update(one) for one in batches[3:]]
    _, whole = monitored(batches)
    for one, other in zip(later, whole[3:], strict=True):
        np.testing.assert_array_equal(one.lower, other.lower)
        assert one.drift.state == other.drift.state
    assert {name: len(getattr(resumed, name)) for name in PER_BATCH} == dict.fromkeys(PER_BATCH, 6)
    resumed.restart(date=4)
    assert len(resumed.distances_) == len(resumed.deviations_) == 2


def test_a_monitor_of_an_older_version_gives_intervals_of_chance_and_says_so():
    with without_drift():
        old = EMQ().fit(*SOURCE.draw([0.5, 0.5], 300, rng=0))
    monitor, _ = monitored([batch(0.4, 150, seed) for seed in range(3)], old)
    del monitor.distances_, monitor.deviations_
    found = monitor.update(batch(0.4, 150, 3))
    assert (found.drift.state, found.drift.source) == ("unknown", NO_SCALE)
    np.testing.assert_array_equal(found.lower, found.drift.lower)
    assert np.isnan(monitor.history().drift.cost).all()


def test_a_search_is_monitored_as_what_it_has_chosen():
    X, y = SOURCE.draw([0.5, 0.5], 400, rng=0)
    search = GridSearchQ(EMQ(), {"calibration": ["bcts"]}).fit(X, y)
    one, other = (monitored([batch(0.4, 150, 0, shift=0.3)], each)[1][0] for each in (search, search.quantifier_))
    np.testing.assert_array_equal(one.drift.cost, other.drift.cost)
    assert one.drift.state != "unknown"


def test_drift_may_explain_a_change_no_larger_than_its_cost():
    before, after = np.array([0.7, 0.3]), np.array([0.66, 0.34])
    assert Change(1, 2, before, after, np.array([0.05, 0.05])).may_be_drift
    assert not Change(1, 2, before, after, np.array([0.03, 0.03])).may_be_drift
    assert not Change(1, 2, before, after, np.array([np.nan, np.nan])).may_be_drift
    assert not Change(1, 2, before, after).may_be_drift


def test_a_change_of_prevalences_alone_is_not_drift_and_a_shift_of_contents_may_be():
    calm = [batch(0.4, 400, seed) for seed in range(8)]
    changed, _ = monitored([*calm, *(batch(0.7, 400, seed) for seed in range(8, 12))])
    [change] = changed.history().changes
    assert not change.may_be_drift
    aside = np.array([0.6, 0.0])  # towards one of the classes, and away from both
    moved, _ = monitored([*calm, *(batch(0.4, 400, seed) + aside for seed in range(8, 12))])
    [change] = moved.history().changes
    assert change.may_be_drift
