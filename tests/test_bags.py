import numpy as np
import pytest

from quanet import bags as room
from quanet.bags import Bags, check_rows
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
