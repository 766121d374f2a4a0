"""States: mergeable in any order, bounded, deterministic."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quanet import ACC, EMQ, Bags, Gaussians, HDx
from quanet.corpus import kept_rows, layout, state_files
from quanet.corpus.batch_reader import BatchReader
from quanet.corpus.fixed_point import FINE, LIMBS, FixedPoint
from quanet.corpus.grouped_inputs import reading_of
from quanet.corpus.kept_rows import KeptRows, Rows, coarsest, lattice_cells
from quanet.corpus.layout import Layout
from quanet.corpus.state import Accumulator, KeptTexts, State
from quanet.corpus.state_files import from_bytes, load_state, save_state, to_bytes
from quanet.data.duplicates import hash_texts
from quanet.data.instances import InputColumns, Inputs
from quanet.data.periods import Key
from quanet.errors import InvalidBags, InvalidData

INPUTS = InputColumns(features=("x0", "x1"))
KEYS = (Key("kind"),)


@pytest.fixture(scope="module")
def quantifier():
    return EMQ().fit(*Gaussians().draw([0.5, 0.5], 600, rng=0))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X, _ = Gaussians().draw([0.8, 0.2], 900, rng=2)
    columns = {"x0": X[:, 0].tolist(), "x1": X[:, 1].tolist(), "views": rng.lognormal(3, 1, 900).tolist()}
    columns["kind"] = rng.choice(["a", "b", "c"], 900, p=[0.7, 0.25, 0.05]).tolist()
    made = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    made.loc[[3, 500], "x0"] = None
    return made


@pytest.fixture
def small_cap(monkeypatch):
    for name, value in {
        "SMOOTH_ROWS": 100,
        "OTHER_ROWS": 100,
        "ALL_SMOOTH_ROWS": 300,
        "ALL_OTHER_ROWS": 300,
        "SAMPLED_ROWS": 100,
        "ALL_SAMPLED_BYTES": 1,
    }.items():
        monkeypatch.setattr(layout, name, value)


def reader(quantifier, **options):
    return BatchReader(quantifier, INPUTS, keys=KEYS, model="digest", **options)


def states_of(read, table, parts, rng):
    pieces = np.array_split(rng.permutation(len(table)), parts)
    return [read(table.iloc[piece], partition=str(at)) for at, piece in enumerate(pieces)]


def bytes_of(states):
    """The bytes of merged states, whatever the ids of their partitions are."""
    return to_bytes(replace(State.merge(states), partitions=frozenset()))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9, allow_subnormal=False), min_size=1, max_size=30), st.randoms())
def test_sums_are_exact_in_any_order(values, random):
    weighted = FixedPoint(FINE, LIMBS)
    shuffled = random.sample(values, len(values))
    sums = [weighted.write(np.array(one)).sum(axis=0) for one in (values, shuffled)]
    assert (sums[0] == sums[1]).all()
    rounded = sum(Fraction(round(Fraction(value) * 2**FINE), 2**FINE) for value in values)
    assert float(weighted.floats(sums[0])) == pytest.approx(float(rounded), rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("weight", [None, "views"])
@pytest.mark.parametrize("cap", ["usual", "small"])
def test_partitions_in_any_order_and_twice_give_the_same_bytes(quantifier, table, request, weight, cap):
    if cap == "small":
        request.getfixturevalue("small_cap")
    read, rng = reader(quantifier, weight=weight), np.random.default_rng(3)
    whole = bytes_of(states_of(read, table, 1, rng))
    for parts in (2, 7, 64):
        states = states_of(read, table, parts, rng)
        again = from_bytes(to_bytes(states[0]))
        assert bytes_of([*rng.permutation(states).tolist(), again]) == whole
        pairs = [State.merge(states[: parts // 2]), State.merge(states[parts // 2 :])]
        assert bytes_of(pairs[::-1]) == whole
        collected = Accumulator(states[0])
        for state in states[1:]:
            collected.add(state)
        assert bytes_of([collected.state()]) == whole


@pytest.mark.parametrize("cap", ["usual", "small"])
@pytest.mark.parametrize(("pending", "parts"), [(0, 64), (0, 2), (3000, 64)])
def test_states_that_arrive_one_by_one_give_the_same_bytes(
    quantifier, table, request, monkeypatch, cap, pending, parts
):
    if cap == "small":
        request.getfixturevalue("small_cap")
    monkeypatch.setattr(Accumulator, "MOST_PENDING", pending)
    monkeypatch.setattr(Accumulator, "MOST_PARTS", parts)
    read, rng = reader(quantifier), np.random.default_rng(8)
    whole = bytes_of([read(table, partition="whole")])
    by_kind = [read(one, partition=kind) for kind, one in table.groupby("kind")]  # groups that others do not have
    pieces = states_of(read, table, 12, rng)
    several = State.merge(pieces[3:8])  # of more partitions than those before
    for states in (by_kind, by_kind[::-1], [*pieces[:3], several, *pieces[8:]], [*pieces[:3], pieces[0], *pieces[3:]]):
        collected = Accumulator()
        for at, state in enumerate(states):
            collected.add(state)
            if at == 1:
                collected.state(in_order=True)  # as a checkpoint
        assert bytes_of([collected.state()]) == whole


@pytest.mark.parametrize("weight", [None, "views"])
def test_below_the_cap_estimates_are_those_of_all_rows(quantifier, table, weight):
    state = State.merge(states_of(reader(quantifier, weight=weight), table, 3, np.random.default_rng(4)))
    reading = reading_of(state, quantifier)
    used = table[table["x0"].notna()]
    inputs = quantifier.read(used[["x0", "x1"]].to_numpy(dtype=float))
    inputs = Inputs(inputs.values.astype(np.float32), inputs.descriptions.astype(np.float16))
    members = [np.flatnonzero(used["kind"] == kind) for kind in "abc"]
    weights = None if weight is None else used["views"].to_numpy(dtype=float)
    exact = quantifier.predict_interval_bags(inputs, Bags(members, weights=weights))
    found = quantifier.predict_interval_bags(reading.instances, reading.bags())
    for name in ("estimate", "lower", "upper", "counted", "sizes"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), atol=1e-12)
    assert found.drift.state.tolist() == exact.drift.state.tolist()
    assert reading.groups == [("a",), ("b",), ("c",)]
    assert reading.skipped == {"a number is missing": 2}
    assert (reading.total, state.rows, state.instances) == (898, 900, 898)


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("weight", [None, "views"])
def test_above_the_cap_counts_and_means_are_exact_and_estimates_close(quantifier, table, weight):
    state = State.merge(states_of(reader(quantifier, weight=weight), table, 3, np.random.default_rng(5)))
    reading = reading_of(state, quantifier)
    assert len(reading.codes) < 400
    used = table[table["x0"].notna()]
    inputs = quantifier.read(used[["x0", "x1"]].to_numpy(dtype=float))
    members = [np.flatnonzero(used["kind"] == kind) for kind in "abc"]
    weights = None if weight is None else used["views"].to_numpy(dtype=float)
    bags = Bags(members, weights=weights)
    exact = quantifier.predict_interval_bags(inputs, bags)
    merged = reading.bags()
    found = quantifier.predict_interval_bags(reading.instances, merged)
    assert merged.sizes.tolist() == bags.sizes.tolist()
    np.testing.assert_allclose(merged.effective_sizes, bags.effective_sizes, atol=1)
    np.testing.assert_allclose(found.counted, exact.counted, atol=1e-9)
    np.testing.assert_allclose(found.estimate, exact.estimate, atol=1e-3 if weight else 1e-4)
    np.testing.assert_allclose(found.width, exact.width, rtol=0.03)
    np.testing.assert_allclose(found.drift.distance, exact.drift.distance, atol=1e-3)


@pytest.mark.usefixtures("small_cap")
def test_means_of_cells_are_exact_and_methods_that_read_them_are_close(table):
    quantifier = ACC().fit(*Gaussians().draw([0.5, 0.5], 600, rng=0))
    state = State.merge(states_of(reader(quantifier), table, 2, np.random.default_rng(6)))
    reading = reading_of(state, quantifier).as_one()
    assert len(reading.codes) < 400
    X = table[table["x0"].notna()][["x0", "x1"]].to_numpy(dtype=float)
    mean = np.average(reading.instances.values, axis=0, weights=reading.row_weights)
    np.testing.assert_allclose(mean, quantifier.read(X).values.mean(axis=0), atol=1e-7)  # float32
    found = quantifier.predict_interval_bags(reading.instances, reading.bags())
    np.testing.assert_allclose(found.estimate[0], quantifier.predict(X), atol=1e-3)  # counts are rounded to repeat rows


@given(st.integers(3, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_a_group_has_the_finest_cells_that_are_few_enough(cap, seed):
    k = 2
    values = np.random.default_rng(seed).dirichlet(np.full(k, 0.3), size=200).astype(np.float32)
    groups = np.arange(200, dtype=np.int32) % 2
    rows = Layout(k, k, (1 / k,) * k, weighted=False, smooth=True)
    kept = KeptRows.merged([KeptRows.of(rows, Rows(groups, values, np.zeros(200, dtype=np.uint32), None), 2)], cap)
    cells = lattice_cells(values)
    for group, level in enumerate(kept.levels.tolist()):
        of_group = cells[groups == group]
        sizes = [len(np.unique(of_group >> np.uint64(at))) for at in range(coarsest(k) + 1)]
        assert level == next(at for at, size in enumerate(sizes) if size <= cap)
        assert (kept.cells.groups == group).sum() == sizes[level]
    assert kept.cells.counts.sum() == 200


@pytest.mark.parametrize("weight", [None, "views"])
def test_rows_become_cells_block_by_block(quantifier, table, monkeypatch, weight):
    state = State.merge(states_of(reader(quantifier, weight=weight), table, 3, np.random.default_rng(8)))
    monkeypatch.setattr(layout, "ALL_SMOOTH_ROWS", 90)
    monkeypatch.setattr(layout, "SMOOTH_ROWS", 30)
    whole = to_bytes(state.as_one()), to_bytes(state)
    monkeypatch.setattr(kept_rows, "BLOCK", 16)
    assert (to_bytes(state.as_one()), to_bytes(state)) == whole


def test_rows_with_equal_values_are_in_order_of_their_weights():
    rng = np.random.default_rng(9)
    values = np.repeat(rng.random((20, 2)).astype(np.float32), 5, axis=0)
    rows = Rows(np.zeros(100, dtype=np.int32), values, np.zeros(100, dtype=np.uint32), rng.random(100))
    first, again = rows.in_order(), rows.take(rng.permutation(100)).in_order()
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.weights, again.weights)


@pytest.mark.usefixtures("small_cap")
def test_features_are_sampled_by_their_hash_and_the_interval_is_wider(table):
    quantifier = HDx().fit(*Gaussians().draw([0.5, 0.5], 600, rng=0))
    read, rng = reader(quantifier), np.random.default_rng(7)
    assert bytes_of(states_of(read, table, 1, rng)) == bytes_of(states_of(read, table, 7, rng))
    reading = reading_of(State.merge(states_of(read, table, 3, rng)), quantifier)
    bags = reading.bags()
    assert (bags.noise > 0).tolist() == [True, True, False]
    assert bags.sizes.sum() == 898
    used = table[table["x0"].notna() & (table["kind"] == "a")]
    means = np.average(reading.instances.values[bags.members[0]], axis=0, weights=bags.weights[bags.members[0]])
    exact = quantifier.read(used[["x0", "x1"]].to_numpy(dtype=float)).values.mean(axis=0)
    np.testing.assert_allclose(means, exact, rtol=1e-6)


@pytest.mark.usefixtures("small_cap")
@pytest.mark.parametrize("method", [EMQ, HDx])
def test_a_group_without_weight_is_named_above_the_cap_too(table, method):
    quantifier = method().fit(*Gaussians().draw([0.5, 0.5], 600, rng=0))
    table = table.assign(views=np.where(table["kind"] == "a", 0.0, 2.0).astype(object))
    state = reader(quantifier, weight="views")(table, partition="1")
    reading = reading_of(state, quantifier)
    assert len(reading.codes) < len(table)
    with pytest.raises(InvalidBags, match="All weights in bag 'a' are 0"):
        quantifier.aggregate_bags(quantifier.rows(reading.instances.values), reading.bags())


def test_how_many_rows_are_kept_falls_with_the_number_of_groups():
    for smooth in (True, False):
        rows = Layout(2, 2, (0.5, 0.5), weighted=False, smooth=smooth)
        kept = [rows.most_rows(groups) for groups in range(1, 5000, 50)]
        assert kept == sorted(kept, reverse=True)


def test_states_of_other_models_groups_or_weights_are_never_merged(quantifier, table):
    first = reader(quantifier)(table, partition="1")
    others = {
        "another model": BatchReader(quantifier, INPUTS, keys=KEYS, model="other"),
        "grouped by nothing, the others by kind": BatchReader(quantifier, INPUTS, model="digest"),
        "weighted by column 'views'": reader(quantifier, weight="views"),
    }
    for message, other in others.items():
        with pytest.raises(InvalidData, match=message):
            State.merge([first, other(table, partition="2")])
    both = State.merge([first, reader(quantifier)(table, partition="2")])
    mixed = State.merge([first, reader(quantifier)(table, partition="3")])
    with pytest.raises(InvalidData, match="share 1 partitions"):
        State.merge([both, mixed])


def test_empty_partitions_count_their_rows(quantifier, table):
    read = reader(quantifier)
    empty, missing = read(table.iloc[:0], partition="none"), read(table.iloc[[3]], partition="missing")
    state = State.merge([empty, missing, read(table, partition="all")])
    assert (state.rows, state.skipped["a number is missing"], len(state.groups)) == (901, 3, 3)
    with pytest.raises(InvalidData, match="none of the 1 rows can be used"):
        reading_of(State.merge([empty, missing]), quantifier, "file.csv")


def test_a_file_is_complete_or_refused(quantifier, table, tmp_path, monkeypatch):
    state = reader(quantifier)(table, partition="1")
    path = tmp_path / "day.arrow"
    save_state(state, path)
    assert to_bytes(load_state(path)) == to_bytes(state)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidData, match=r"day\.arrow is not a state of quanet, or it is damaged"):
        load_state(path)
    with pytest.raises(InvalidData, match="cannot be read"):
        load_state(tmp_path / "missing.arrow")
    monkeypatch.setattr(state_files, "VERSION", 1)
    save_state(state, path)
    monkeypatch.undo()
    with pytest.raises(InvalidData, match=r"day\.arrow is a state of version 1; this quanet reads version 5\. Read"):
        load_state(path)
    with pytest.raises(InvalidData, match="is not a state"):
        from_bytes(b"text,label\n", "new.csv")


def test_which_texts_are_kept_follows_from_their_hash(monkeypatch):
    monkeypatch.setattr("quanet.corpus.state.MOST_TEXTS", 200)
    texts, rng = [f"text {number}" for number in range(4000)], np.random.default_rng(0)
    groups = np.arange(4000, dtype=np.int32) % 50

    def kept(parts):
        written = [[texts[at] for at in part] for part in parts]
        empty = np.empty((4000, 0))
        return KeptTexts.merged(
            [KeptTexts.of(one, hash_texts(one), groups[part], empty) for one, part in zip(written, parts, strict=True)]
        )

    whole, parts = kept([np.arange(4000)]), kept(np.array_split(rng.permutation(4000), 9))
    assert whole.strings(10**6) == parts.strings(10**6)
    assert (np.bincount(whole.groups, minlength=50) >= 2).all()
    places = np.array([int(text.split()[1]) for text in whole.strings(200)])
    assert abs(places.mean() - 2000) < 250
    monkeypatch.setattr("quanet.corpus.state.MOST_BYTES", 50)
    few = kept([np.arange(4000)])
    assert np.bincount(few.groups, minlength=50).min() == 2
    assert len(few.groups) < 110
