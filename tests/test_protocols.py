import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quanet import PACC, Gaussians
from quanet.errors import InvalidBags, InvalidData, InvalidSetting, QuanetWarning
from quanet.protocols import APP, NPP, UPP, ByGroup, Dirichlet
from quanet.simplex import prevalence_of
from tests.strategies import SEEDS

POOL = np.array(["a"] * 300 + ["b"] * 200 + ["c"] * 100)
ALL = [
    APP(bag_size=40, repeats=2),
    UPP(bag_size=40, repeats=30),
    NPP(bag_size=40, repeats=30),
    Dirichlet(alpha=[5, 1, 1], bag_size=40, repeats=30),
]


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: type(protocol).__name__)
@given(seed=SEEDS)
def test_prevalences_are_those_of_the_instances_drawn(protocol, seed):
    bags = protocol.draw(POOL, rng=seed)
    realised = np.stack([prevalence_of(POOL[bag], ["a", "b", "c"]) for bag in bags.indices])
    np.testing.assert_allclose(bags.prevalences, realised)


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: type(protocol).__name__)
def test_an_instance_occurs_once_in_a_bag_as_long_as_its_class_lasts(protocol):
    bags = protocol.draw(POOL, rng=1)
    assert all(len(np.unique(bag)) == 40 for bag in bags.indices)


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: type(protocol).__name__)
def test_the_same_seed_draws_the_same_bags_and_another_one_others(protocol):
    first, again, other = (protocol.draw(POOL, rng=seed).indices for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(first, protocol.draw(POOL, rng=np.random.default_rng(3)).indices)


def test_a_class_with_too_few_instances_is_drawn_with_replacement():
    bags = APP(bag_size=20, repeats=3, prevalences=[0.5]).draw([0] * 50 + [1] * 3, rng=0)
    for bag in bags.indices:
        assert len(np.unique(bag[bag < 50])) == 10
        assert set(bag[bag >= 50].tolist()) <= {50, 51, 52}
    np.testing.assert_allclose(bags.prevalences, 0.5)


def test_every_instance_of_a_class_is_drawn_equally_often():
    bags = APP(bag_size=10, repeats=6000, prevalences=[0.5]).draw(np.repeat([0, 1], [20, 10]), rng=0)
    frequency = np.bincount(bags.flat, minlength=30)
    expected = np.repeat([6000 * 5 / 20, 6000 * 5 / 10], [20, 10])
    # A binomial count lies within five standard deviations of its mean.
    assert (np.abs(frequency - expected) < 5 * np.sqrt(expected)).all()


def test_pairs_of_instances_meet_equally_often():
    bags = APP(bag_size=6, repeats=8000, prevalences=[0.5]).draw(np.repeat([0, 1], [5, 5]), rng=0)
    together = np.zeros((10, 10))
    for bag in bags.indices:
        together[np.ix_(bag, bag)] += 1
    pairs = together[:5, :5][~np.eye(5, dtype=bool)]
    assert np.abs(pairs - 8000 * 3 / 10).max() < 5 * np.sqrt(8000 * 0.3 * 0.7)  # 3 of 5: 3 of the 10 pairs


def test_app_takes_the_papers_21_values_for_two_classes():
    bags = APP(repeats=100).draw(np.repeat([0, 1], 600), rng=0)
    assert bags.indices.shape == (2100, 500)
    assert np.unique(bags.prevalences[:, 1].round(9)).tolist() == [0.01, *(i / 20 for i in range(1, 20)), 0.99]


@pytest.mark.parametrize(("k", "points"), [(3, 231), (4, 1771), (5, 1820), (28, 406), (2500, 2500)])
def test_app_lays_a_grid_of_at_most_2000_points_while_it_can(k, points):
    assert APP().grid(k).shape == (points, k)


def test_app_takes_any_grid():
    two = APP(bag_size=10, repeats=1, prevalences=[0.2, 0.7]).draw([0, 1] * 20, rng=0)
    np.testing.assert_allclose(two.prevalences, [[0.8, 0.2], [0.3, 0.7]])
    three = APP(bag_size=10, repeats=2, prevalences=[0.2, 0.3, 0.5]).draw(POOL, rng=0)
    np.testing.assert_allclose(three.prevalences, [[0.2, 0.3, 0.5]] * 2)
    with pytest.raises(InvalidData, match="not a prevalence vector"):
        APP(prevalences=[1.2]).draw([0, 1], rng=0)


def test_the_grid_of_three_classes_is_quapys():
    # QuaPy 0.2.3: APP(data, sample_size=100, n_prevalences=21, repeats=1), in its order
    quapy = [[a / 20, b / 20, (20 - a - b) / 20] for a in range(21) for b in range(21 - a)]
    bags = APP(bag_size=100, repeats=1).draw(np.arange(300) % 3, rng=0)
    np.testing.assert_array_equal(bags.prevalences, quapy)


def test_npp_stays_near_the_pools_prevalence_without_bias():
    bags = NPP(bag_size=60, repeats=4000).draw(POOL, rng=0)
    np.testing.assert_allclose(bags.prevalences.mean(axis=0), [1 / 2, 1 / 3, 1 / 6], atol=0.004)
    hypergeometric = np.sqrt(60 * (1 / 2) * (1 / 2) * (540 / 599)) / 60
    assert bags.prevalences[:, 0].std() == pytest.approx(hypergeometric, rel=0.05)


def test_npp_draws_bags_larger_than_the_pool_with_replacement():
    with pytest.warns(QuanetWarning, match="the pool has 3"):
        assert NPP(bag_size=50, repeats=2).draw([0, 1, 1], rng=0).indices.shape == (2, 50)


def test_a_missing_class_is_named_when_a_bag_needs_it():
    with pytest.raises(InvalidBags, match=r"APP needs at least one instance of every class .* class 'd' has none"):
        APP(bag_size=10).draw(POOL, rng=0, classes=["a", "b", "c", "d"])
    natural = NPP(bag_size=10, repeats=5).draw(POOL, rng=0, classes=["a", "b", "c", "d"])
    assert (natural.prevalences[:, 3] == 0).all()


@pytest.mark.parametrize("settings", [{"bag_size": 0}, {"repeats": 0}])
def test_bags_have_at_least_one_instance_and_there_is_at_least_one(settings):
    for protocol in (APP, UPP, NPP, Dirichlet):
        with pytest.raises(InvalidSetting, match=f"{next(iter(settings))} must be a whole number of at least 1; got 0"):
            protocol(**settings).draw(POOL, rng=0)


@pytest.mark.parametrize("alpha", [0.0, [1.0, 2.0], -1.0])
def test_alpha_is_positive_and_one_for_each_class(alpha):
    with pytest.raises(InvalidSetting, match="alpha must be a positive number, or one for each of 3 classes"):
        Dirichlet(alpha=alpha).draw(POOL, rng=0)


@given(st.lists(st.tuples(st.sampled_from(["x", "y", "z", None]), st.sampled_from([0, 1])), min_size=3, max_size=40))
def test_groups_hold_their_instances_and_no_others(pairs):
    groups, y = [group for group, _ in pairs], np.array([label for _, label in pairs])
    if all(group is None for group in groups):
        with pytest.raises(InvalidBags, match="No instance has a group"):
            ByGroup(groups=groups).bags()
        return
    bags = ByGroup(groups=groups).draw(y, rng=0, classes=[0, 1])
    ends = np.cumsum(bags.sizes)
    for label, start, end, shares in zip(bags.labels, ends - bags.sizes, ends, bags.prevalences, strict=True):
        members = [i for i, group in enumerate(groups) if (group or "(empty)") == label]
        assert bags.flat[start:end].tolist() == members
        np.testing.assert_allclose(shares, prevalence_of(y[members], [0, 1]))


def test_groups_may_be_dates_and_lack_some():
    days = pd.to_datetime(pd.Series(["2024-05-02", None, "2024-05-01", "2024-05-02"]))
    bags = ByGroup(groups=days).bags()
    assert [str(day)[:10] for day in bags.labels] == ["2024-05-01", "2024-05-02", "(empty)"]
    assert bags.flat.tolist() == [2, 0, 3, 1]
    assert ByGroup(groups=pd.Series(["x", pd.NA], dtype="string")).bags().labels.tolist() == ["x", "(empty)"]


def test_groups_are_one_for_each_instance():
    with pytest.raises(InvalidBags, match="3 labels but 2 groups"):
        ByGroup(groups=["x", "y"]).draw([0, 1, 0], rng=0)


def test_groups_of_another_length_than_the_pool_are_refused():
    X, y = Gaussians().draw([0.5, 0.5], 200, rng=0)
    quantifier = PACC().fit(X, y)
    bags = ByGroup(groups=["a"] * 10).bags()
    for estimate in (quantifier.predict_bags, quantifier.predict_interval_bags):
        with pytest.raises(InvalidBags, match="made for a pool of 10 instances, but this pool has 200"):
            estimate(X, bags)
    with pytest.raises(InvalidBags, match="pool of 50 instances, but this pool has 200"):
        quantifier.predict_bags(X, NPP(bag_size=10, repeats=2).draw(y[:50], rng=0))


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NaT])
def test_instances_without_a_group_are_a_group_of_their_own(missing):
    bags = ByGroup(groups=["b", missing, "a", missing]).draw([0, 1, 1, 1], rng=0)
    assert bags.labels.tolist() == ["a", "b", "(empty)"]
    assert bags.sizes.tolist() == [1, 1, 2]
    assert bags.prevalences[2].tolist() == [0, 1]


def test_numbers_stay_whole_next_to_instances_without_a_group():
    assert ByGroup(groups=pd.Series([2, None, 1])).bags().labels.tolist() == [1, 2, "(empty)"]


def test_true_is_another_group_than_one():
    assert ByGroup(groups=[True, 1, 1.0, "nan", False]).bags().labels.tolist() == [False, True, 1, "nan"]


def test_groups_of_mixed_types_are_sorted_numbers_first():
    assert ByGroup(groups=["b", 2, "a", 10]).bags().labels.tolist() == [2, 10, "a", "b"]


def test_two_columns_of_groups_say_how_to_join_them():
    with pytest.raises(InvalidBags, match="groups has 2 columns, but every instance needs one group"):
        ByGroup(groups=pd.DataFrame({"a": [1, 2], "b": [3, 4]})).bags()
    assert len(ByGroup(groups=pd.DataFrame({"a": [1, 2]})).bags()) == 2


def test_bags_larger_than_their_pool_are_warned_of():
    with pytest.warns(QuanetWarning, match="The bags have 5,000 instances, but the pool has 400"):
        APP(bag_size=5000, repeats=1).draw([0, 1] * 200, rng=0)
