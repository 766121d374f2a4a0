"""Copies in states: the same digits as from rows below the cap, and seen above it, in any partition."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from quanet import EMQ, Bags, Gaussians
from quanet.corpus import layout
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.state import State
from quanet.corpus.state_files import from_bytes, to_bytes
from quanet.data.copies import content_hashes, content_sums, count_copies
from quanet.data.instances import InputColumns, Inputs
from quanet.data.periods import Key

SOURCE = Gaussians()


@pytest.fixture(scope="module")
def quantifier():
    return EMQ().fit(*SOURCE.draw([0.5, 0.5], 600, rng=0))


@pytest.fixture(scope="module")
def table():
    """Group a has 60 rows five times, one of them 200 times more; b and c have no copies."""
    X, _ = SOURCE.draw([0.8, 0.2], 460, rng=2)
    rows = np.concatenate([np.tile(np.arange(60), 5), np.zeros(200, dtype=int), np.arange(60, 460)])
    kind = np.repeat(["a", "b", "c"], [500, 300, 100])
    views = np.random.default_rng(3).lognormal(1, 1, 900)
    return pd.DataFrame({"x0": X[rows, 0], "x1": X[rows, 1], "views": views, "kind": kind}).astype(object)


def reader(quantifier, **options):
    return BatchReader(quantifier, InputColumns(features=("x0", "x1")), keys=(Key("kind"),), model="digest", **options)


def state_of(quantifier, table, parts, rng, **options):
    pieces = np.array_split(rng.permutation(len(table)), parts)
    read = reader(quantifier, **options)
    states = [read(table.iloc[piece], partition=str(at)) for at, piece in enumerate(pieces)]
    return replace(State.merge([*states, from_bytes(to_bytes(states[0]))]), partitions=frozenset())


def from_rows(quantifier, table, weight):
    """The bags and what is read of the rows, with the digits of a state."""
    read = quantifier.read(table[["x0", "x1"]].to_numpy(dtype=float))
    read = Inputs(read.values.astype(np.float32), read.descriptions.astype(np.float16), read.hashes)
    members = [np.flatnonzero(table["kind"] == kind) for kind in "abc"]
    return read, Bags(members, weights=table["views"].to_numpy(dtype=float) if weight else None)


@pytest.mark.parametrize("weight", [None, "views"])
def test_below_the_cap_intervals_are_those_of_the_rows(quantifier, table, weight):
    state = state_of(quantifier, table, 4, np.random.default_rng(4), weight=weight)
    reading = reading_of(state, quantifier)
    read, bags = from_rows(quantifier, table, weight)
    exact = quantifier.predict_interval_bags(read, bags, drift=False)
    found = quantifier.predict_interval_bags(reading.instances, reading.bags(), drift=False)
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), atol=1e-12)
    assert found.notes.tolist() == exact.notes.tolist()
    assert "440 of 500 rows are copies" in found.notes[0]
    assert found.notes.tolist()[1:] == ["", ""]


@pytest.mark.parametrize("weight", [None, "views"])
def test_above_the_cap_copies_are_seen_in_any_partition(quantifier, table, monkeypatch, weight):
    for name in ("SMOOTH_ROWS", "ALL_SMOOTH_ROWS"):
        monkeypatch.setattr(layout, name, 100)
    states = [state_of(quantifier, table, parts, np.random.default_rng(parts), weight=weight) for parts in (1, 2, 9)]
    assert len({to_bytes(state) for state in states}) == 1
    assert len(states[0].kept.copies.groups) == 2
    reading = reading_of(states[1], quantifier)
    read, bags = from_rows(quantifier, table, weight)
    exact, found = count_copies(read.hashes, bags).factor, count_copies(reading.instances.hashes, reading.bags())
    np.testing.assert_allclose(found.factor, exact, rtol=0.05)
    assert found.factor[1] == found.factor[2] == 1
    assert found.number.tolist() == [-1, -1, 0]
    whole = count_copies(reading.instances.hashes, reading.whole()).factor
    np.testing.assert_allclose(whole, count_copies(read.hashes, bags.joined()).factor, rtol=0.05)
    intervals = quantifier.predict_interval_bags(reading.instances, reading.bags())
    np.testing.assert_allclose(intervals.width, quantifier.predict_interval_bags(read, bags).width, rtol=0.05)
    assert "many of the 500 rows are copies" in intervals.notes[0]


def test_fewer_sums_are_sums_of_pairs_and_estimate_the_squares():
    rng = np.random.default_rng(5)
    hashes = content_hashes([f"text {at}" for at in range(20_000)]).astype(np.uint32)[rng.integers(20_000, size=50_000)]
    counts = np.unique(hashes, return_counts=True)[1]
    for m in (64, 1024):
        places, values = content_sums(hashes, np.ones(50_000), m)
        sums = np.bincount(places, values, minlength=m + 1)
        assert (sums[:-1] ** 2).sum() == pytest.approx((counts**2.0).sum(), rel=4 * np.sqrt(2 / m))
        assert sums[-1] == 0
        halved = sums[:-1].reshape(2, -1).sum(axis=0)
        places, values = content_sums(hashes, np.ones(50_000), m // 2)
        np.testing.assert_array_equal(halved, np.bincount(places, values, minlength=m // 2))


def test_groups_that_become_one_keep_their_copies(quantifier, table, monkeypatch):
    for name in ("SMOOTH_ROWS", "ALL_SMOOTH_ROWS"):
        monkeypatch.setattr(layout, name, 100)
    reading = reading_of(state_of(quantifier, table, 3, np.random.default_rng(6)).as_one(), quantifier)
    read, bags = from_rows(quantifier, table, None)
    found = count_copies(reading.instances.hashes, reading.bags())
    np.testing.assert_allclose(found.factor, count_copies(read.hashes, bags.joined()).factor, rtol=0.05)
