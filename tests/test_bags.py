import numpy as np
import pytest

from quanet import bags as room
from quanet.arrays import check_rows
from quanet.bags import Bags
from quanet.errors import InvalidBags, InvalidData


def test_bags_of_one_size_are_a_matrix():
    bags = Bags(np.array([[0, 1], [2, 3]]), [[0.5, 0.5], [1.0, 0.0]])
    assert bags.indices.tolist() == [[0, 1], [2, 3]]
    assert bags.prevalences.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert bags.labels.tolist() == [0, 1]


def test_bags_of_several_sizes_come_back_by_size():
    bags = Bags([[5], [1, 2], [7], [3, 4]])
    groups = [(positions.tolist(), matrix.tolist()) for positions, matrix in bags.by_size()]
    assert groups == [([0, 2], [[5], [7]]), ([1, 3], [[1, 2], [3, 4]])]
    with pytest.raises(InvalidBags, match="differ in size"):
        _ = bags.indices


@pytest.mark.parametrize("chunk", [1, 7, 2**18])
def test_gathering_gives_every_bag_its_rows_however_small_the_chunks(chunk, monkeypatch):
    monkeypatch.setattr(room, "CHUNK", chunk)
    rows = np.arange(20.0).reshape(10, 2)
    bags = Bags([[0, 9], [1], [2, 3], [4], [5, 6, 7]])
    gathered = {int(p): bag for positions, stack in bags.gather(rows) for p, bag in zip(positions, stack, strict=True)}
    assert sorted(gathered) == [0, 1, 2, 3, 4]
    for position, bag in enumerate([[0, 9], [1], [2, 3], [4], [5, 6, 7]]):
        np.testing.assert_array_equal(gathered[position], rows[bag])


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([], "There are no bags"),
        ([[0], []], "Bag 1 is empty"),
        ([[0, -1]], "Row number -1 is negative"),
        ([[0.5]], "row numbers"),
        ([[[0]], [[1]]], "row numbers"),
    ],
)
def test_what_is_no_bag_is_refused(indices, message):
    with pytest.raises(InvalidBags, match=message):
        Bags(indices)


def test_prevalences_and_labels_are_one_for_each_bag():
    with pytest.raises(InvalidBags, match="2 bags but 1 prevalences"):
        Bags([[0], [1]], [[0.5, 0.5]])
    with pytest.raises(InvalidBags, match="2 bags but 3 labels"):
        Bags([[0], [1]], labels=["a", "b", "c"])


def test_unlabelled_bags_say_so():
    with pytest.raises(InvalidBags, match="have no true prevalences"):
        _ = Bags([[0]]).prevalences


def test_a_bag_outside_the_pool_is_refused():
    with pytest.raises(InvalidBags, match="Row number 3 is outside the pool, which has 3"):
        next(Bags([[3]]).gather(np.zeros((3, 2))))


def test_rows_are_checked():
    with pytest.raises(InvalidData, match="Rows must be a matrix"):
        check_rows([0.5, 0.5])
    with pytest.raises(InvalidBags, match="bag is empty"):
        check_rows(np.empty((3, 0, 2)))
    with pytest.raises(InvalidData, match="must have 3 columns; got 2"):
        check_rows([[0.5, 0.5]], width=3)
    assert repr(Bags([[0, 1]])) == "Bags(1 bags of 2 instances)"


WEIGHED = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]])


def test_equal_weights_are_no_weights():
    bags = Bags([[0, 1, 3], [2, 1]], weights=[0.1] * 4)
    assert bags.unweighted(WEIGHED).flat.tolist() == [0, 1, 3, 2, 1]
    assert bags.effective_sizes.tolist() == [3, 2]
    codes = np.array([0, 1, 1, 0])
    np.testing.assert_array_equal(bags.shares(codes, 2), Bags([[0, 1, 3], [2, 1]]).shares(codes, 2))


def test_whole_weights_repeat_rows_and_zero_leaves_them_out():
    bags = Bags([[0, 1, 2, 3], [3, 1]], weights=[2, 0, 4, 6])
    spelled = bags.unweighted(WEIGHED)
    assert [part.tolist() for part in np.split(spelled.flat, [6])] == [[0, 2, 2, 3, 3, 3], [3]]
    np.testing.assert_allclose(bags.shares(np.array([0, 0, 1, 1]), 2), [[2 / 12, 10 / 12], [0.0, 1.0]])


@pytest.mark.parametrize("factor", [2.0, 0.5, 3.0])
def test_only_ratios_of_weights_count(factor):
    rng = np.random.default_rng(0)
    rows, weights = rng.random((200, 2)), rng.lognormal(size=200)
    once, scaled = (Bags([np.arange(200)], weights=weights * f) for f in (1.0, factor))
    np.testing.assert_array_equal(once.unweighted(rows).flat, scaled.unweighted(rows).flat)
    assert once.effective_sizes == scaled.effective_sizes


def test_unequal_weights_keep_the_weighted_distribution_of_rows():
    rng = np.random.default_rng(1)
    positive, weights = rng.random(300), rng.lognormal(sigma=2, size=300)
    rows = np.stack([1 - positive, positive], axis=1)
    spelled = Bags([np.arange(300)], weights=weights).unweighted(rows)
    assert spelled.sizes.tolist() == [1200]
    for cut in (0.1, 0.5, 0.9):
        exact = weights[positive < cut].sum() / weights.sum()
        assert abs((positive[spelled.flat] < cut).mean() - exact) < 2 / 1200
    shuffled = rng.permutation(300)
    again = Bags([np.arange(300)], weights=weights[shuffled]).unweighted(rows[shuffled])
    np.testing.assert_array_equal(np.sort(shuffled[again.flat]), np.sort(spelled.flat))


def test_a_weighted_bag_does_not_depend_on_other_bags():
    rng = np.random.default_rng(2)
    rows, weights = rng.random((100, 3)), rng.pareto(1.0, size=100)
    parts = [rng.choice(100, size, replace=False) for size in (5, 40, 40, 80)]
    together = Bags(parts, weights=weights).unweighted(rows)
    alone = [Bags([part], weights=weights).unweighted(rows).flat for part in parts]
    np.testing.assert_array_equal(together.flat, np.concatenate(alone))


def test_heavy_weights_do_not_need_much_memory():
    weights = np.ones(2000)
    weights[0] = 1e12
    bags = Bags([np.arange(2000)], weights=weights)
    assert bags.unweighted(np.eye(2000, 2)).sizes.tolist() == [8000]
    assert bags.effective_sizes.tolist() == [1]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -2], "weight at index 1 is -2.0"),
        ([np.nan, 1], "weight at index 0 is nan"),
        ([1, np.inf], "weight at index 1 is inf"),
        ([0, 0], "All weights are 0"),
        (["a", "b"], "must be numbers"),
        ([[1, 1]], r"one weight per instance; got shape \(1, 2\)"),
        ([1], "Row number 1 is outside the pool"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises((InvalidData, InvalidBags), match=message):
        Bags([[0, 1]], weights=weights)


def test_a_bag_without_weight_is_named():
    with pytest.raises(InvalidBags, match="All weights in bag 'June' are 0"):
        Bags([[0], [1, 2]], labels=["May", "June"], weights=[1, 0, 0])
    with pytest.raises(InvalidData, match=r"one weight per instance \(3\); got shape \(2,\)"):
        Bags([[0]], pool_size=3, weights=[1, 2])
