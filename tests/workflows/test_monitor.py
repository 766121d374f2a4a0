import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quanet
from quanet import CC, EMQ, Gaussians, Monitor
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.grouped_inputs import reading_of
from quanet.data.instances import InputColumns
from quanet.data.periods import Key
from quanet.errors import InvalidBags, InvalidData, InvalidModel, InvalidSetting
from quanet.workflows.monitor import Batch, make_batches, monitor_batches, read_batches, resume

DAYS = [f"2024-03-{day:02}" for day in range(1, 29)]


@pytest.fixture(scope="module")
def fitted():
    return EMQ().fit(*Gaussians(distance=3).draw([0.5, 0.5], 400, rng=0))


def batches_of(fitted, shares, n=100, start=0):
    """Instances that were read, and a batch a day."""
    X = np.vstack([Gaussians(distance=3).draw([1 - p, p], n, rng=start + i)[0] for i, p in enumerate(shares)])
    parts = np.split(np.arange(len(X)), len(shares))
    days = DAYS[start:]
    return fitted.read(X), [Batch(day, day, part) for day, part in zip(days, parts, strict=False)]


@given(st.lists(st.integers(min_value=-1, max_value=6), min_size=2, max_size=30))
def test_every_row_with_a_date_is_in_one_batch_of_two_or_more(owner):
    codes = np.array(owner)
    groups = [(day,) for day in DAYS[:7]]
    if (codes >= 0).sum() < 2:
        with pytest.raises(InvalidBags, match="only one row has a date"):
            make_batches(Key("date", "day"), groups, codes)
        return
    batches, notes = make_batches(Key("date", "day"), groups, codes)
    members = np.concatenate([batch.indices for batch in batches])
    assert sorted(members.tolist()) == np.flatnonzero(codes >= 0).tolist()
    assert min(len(batch.indices) for batch in batches) >= 2
    assert [batch.date for batch in batches] == sorted(batch.date for batch in batches)
    assert bool(notes) == ((np.bincount(codes[codes >= 0], minlength=7) == 1).any())


def test_batches_are_in_the_order_of_time():
    batches, _ = make_batches(Key("round"), [("10",), ("9",)], np.array([0, 0, 1, 1]))
    assert [(batch.name, batch.date) for batch in batches] == [("9", 9.0), ("10", 10.0)]
    batches, _ = make_batches(Key("at"), [("2024-03-01T12:00",), ("2024-02-01",)], np.array([0, 0, 1, 1]))
    assert [batch.name for batch in batches] == ["2024-02-01", "2024-03-01T12:00"]
    with pytest.raises(InvalidData, match="'spring' in column 'season' is neither a number nor a date"):
        make_batches(Key("season"), [("spring",)], np.array([0, 0]))


def test_a_change_is_found_with_what_was_before_and_after(fitted):
    read, batches = batches_of(fitted, [0.3] * 6 + [0.7] * 6)
    found = monitor_batches(Monitor(fitted), read, batches)
    assert found.history.since == np.datetime64("2024-03-07")
    assert found.changed_most == 1
    [change] = found.history.changes
    np.testing.assert_allclose(change.before, [0.7, 0.3], atol=0.05)
    np.testing.assert_allclose(change.after, [0.3, 0.7], atol=0.05)
    assert found.batches == tuple(DAYS[:12])


def test_two_files_are_as_one_and_a_known_one_changes_nothing(fitted):
    shares = [0.3] * 4 + [0.4] * 4
    whole = monitor_batches(Monitor(fitted), *batches_of(fitted, shares))
    monitor = Monitor(fitted)
    read, batches = batches_of(fitted, shares)
    monitor_batches(monitor, read, batches[:4])
    apart = monitor_batches(monitor, read, batches[4:])
    np.testing.assert_allclose(apart.history.windowed, whole.history.windowed)
    assert (apart.earlier, len(apart.estimates)) == (4, 4)
    again = monitor_batches(monitor, read, batches)
    assert again.repeated == tuple(DAYS[:8])
    assert again.estimates == ()
    np.testing.assert_array_equal(again.history.estimate, whole.history.estimate)


def test_other_rows_of_a_known_time_are_taken_in(fitted):
    monitor = Monitor(fitted)
    read, batches = batches_of(fitted, [0.3] * 3)
    monitor_batches(monitor, read, [Batch(one.name, one.date, one.indices[:50]) for one in batches])
    late = monitor_batches(monitor, read, [Batch(one.name, one.date, one.indices[50:]) for one in batches])
    assert len(late.estimates) == 3
    assert late.repeated == ()


def test_different_rows_of_equal_date_size_and_estimate_are_added_and_equal_rows_in_any_order_are_not():
    # 1 of 4 rows is called positive in both batches, so both estimates of CC are .25: only the rows differ.
    posteriors = np.array(
        [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]
    )
    counter = CC("precomputed").fit(np.repeat([[0.9, 0.1], [0.1, 0.9]], 20, axis=0), np.repeat([0, 1], 20))
    monitor, read = Monitor(counter), counter.read(posteriors)
    first, other, shuffled = (
        [Batch("W1", "2024-01-01", np.array(rows))] for rows in ([0, 1, 2, 3], [4, 5, 6, 7], [3, 1, 0, 2])
    )
    monitor_batches(monitor, read, first)
    assert monitor_batches(monitor, read, other).repeated == ()
    for again in (first, other, shuffled):
        assert monitor_batches(monitor, read, again).repeated == ("W1",)
    assert monitor.sizes_.tolist() == [4, 4]
    weights = np.arange(1.0, 9.0)
    weighted = Monitor(counter)
    monitor_batches(weighted, read, first, weights=weights)
    assert monitor_batches(weighted, read, first, weights=weights).repeated == ("W1",)
    assert monitor_batches(weighted, read, first, weights=weights[::-1]).repeated == ()


def test_batches_of_an_older_monitor_are_known_by_their_estimates(fitted, tmp_path):
    monitor = Monitor(fitted)
    read, batches = batches_of(fitted, [0.3] * 3)
    monitor_batches(monitor, read, batches[:2])
    del monitor.contents_  # as an older version has saved it
    quanet.save(monitor, tmp_path / "watch")
    old = quanet.load(tmp_path / "watch")
    again = monitor_batches(old, read, batches)
    assert (again.repeated, again.batches) == (tuple(DAYS[:2]), (DAYS[2],))
    quanet.save(old, tmp_path / "watch", overwrite=True)
    assert monitor_batches(quanet.load(tmp_path / "watch"), read, batches).repeated == tuple(DAYS[:3])


def test_a_batch_of_a_saved_state_is_known_whatever_else_the_state_contains(monkeypatch):
    # Above the cap, which depends on the number of groups, rows are merged: the batch is the same nevertheless.
    monkeypatch.setattr("quanet.corpus.layout.ALL_SMOOTH_ROWS", 600)
    monkeypatch.setattr("quanet.corpus.layout.SMOOTH_ROWS", 16)
    model = EMQ().fit(*Gaussians().draw([0.5, 0.5], 400, rng=0))
    X = Gaussians().draw([0.6, 0.4], 900, rng=1)[0]
    table = pd.DataFrame({f"x{at}": column.astype(object) for at, column in enumerate(X.T)})
    table["day"] = np.repeat(np.array(DAYS[:9], dtype=object), 100)
    inputs, key = InputColumns(features=tuple(table.columns[:-1])), Key("day", "day")

    def found(monitor, rows):
        reader = BatchReader(model, inputs, keys=[key])
        reading = reading_of(reader(rows, partition="rows"), model)
        batches, _ = read_batches(key, reading)
        return monitor_batches(monitor, reading.instances, batches, weights=reading.row_weights, merged=reading.merged)

    monitor = Monitor(model)
    assert found(monitor, table).repeated == ()
    assert found(monitor, table[::-1]).repeated == tuple(DAYS[:9])
    assert found(monitor, table[100:300]).repeated == tuple(DAYS[1:3])
    changed = table[100:200].copy()
    changed.iloc[0, 0] += 0.5
    assert found(monitor, changed).repeated == ()


def test_a_monitor_is_resumed_with_its_own_model_and_settings(fitted, tmp_path):
    monitor = Monitor(fitted, window=3)
    monitor_batches(monitor, *batches_of(fitted, [0.3] * 2))
    quanet.save(monitor, tmp_path / "watch")
    assert resume(tmp_path / "watch", fitted, {"window": 3.0}, model="m").dates_.tolist() == monitor.dates_.tolist()
    with pytest.raises(InvalidSetting, match="created with window = 3; got 4"):
        resume(tmp_path / "watch", fitted, {"window": 4.0}, model="m")
    other = EMQ().fit(*Gaussians(distance=3).draw([0.4, 0.6], 400, rng=0))
    with pytest.raises(InvalidModel, match="a different model than m"):
        resume(tmp_path / "watch", other, {}, model="m")
    quanet.save(fitted, tmp_path / "model")
    with pytest.raises(InvalidModel, match="contains EMQ, not a monitor"):
        resume(tmp_path / "model", fitted, {}, model="m")


def test_dates_with_a_zone_count_as_they_are_written():
    key = Key("date")
    names = [("2024-03-01T12:30:00Z",), ("2024-03-01 11:30:00-05:00",)]
    batches, _ = make_batches(key, names, np.array([0, 0, 1, 1]))
    assert [str(batch.date) for batch in batches] == ["2024-03-01 11:30:00", "2024-03-01T12:30:00"]
