import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from quanet import Dataset
from quanet.errors import InvalidData, InvalidSetting
from tests.strategies import SEEDS

DATA = Dataset([f"text {i}" for i in range(100)], np.repeat(["a", "b"], [80, 20]), "hundred")


@given(st.floats(0.1, 0.9), SEEDS)
def test_a_split_keeps_every_instance_once_and_the_prevalence(share, seed):
    first, second = DATA.split(share, rng=seed)
    assert sorted(first.X + second.X) == sorted(DATA.X)
    np.testing.assert_allclose(first.prevalence, DATA.prevalence, atol=0.05)
    assert first.name == "hundred"


def test_a_split_is_random_and_repeatable():
    assert DATA.split(0.5, rng=1)[0].X == DATA.split(0.5, rng=1)[0].X != DATA.split(0.5, rng=2)[0].X


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix, pd.DataFrame, lambda x: x.tolist()])
def test_instances_come_in_any_container(kind):
    data = Dataset(kind(np.arange(8.0).reshape(4, 2)), [0, 1, 0, 1])
    taken = data.take(np.array([3, 0])).X
    values = taken.toarray() if hasattr(taken, "toarray") else np.asarray(taken)
    assert values.tolist() == [[6, 7], [0, 1]]


def test_classes_can_be_left_out():
    assert DATA.without("b").classes.tolist() == ["a"]


def test_the_first_of_equal_texts_is_kept():
    data = Dataset(["x", "y", "x", "z", "y"], [0, 1, 1, 0, 1]).without_duplicates()
    assert (data.X, data.y.tolist()) == (["x", "y", "z"], [0, 1, 0])


def test_lengths_and_shares_are_checked():
    with pytest.raises(InvalidData, match="2 instances but y has 1 labels"):
        Dataset(["x", "y"], [0])
    with pytest.raises(InvalidSetting, match="between 0 and 1; got 1"):
        DATA.split(1, rng=0)


def test_dates_go_with_their_instances():
    data = Dataset(["a", "b", "c"], [0, 1, 0], dates=["2001", "2002", "2003"])
    assert data.take(np.array([2, 0])).dates.tolist() == ["2003", "2001"]
    assert data.without(0).dates.tolist() == ["2002"]
    with pytest.raises(InvalidData, match="Got 2 instances but 1 dates"):
        Dataset(["a", "b"], [0, 1], dates=["2001"])
