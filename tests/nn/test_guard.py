"""A network replaces its base only where the evidence on held-out rows leaves little room for luck."""

import numpy as np
import pytest

from quanet.nn.bag_pools import BagPool
from quanet.nn.guard import compare, judge
from quanet.simplex import prevalence_of

BASE = 0.02 + np.random.default_rng(0).normal(0, 0.001, (10, 3))


def test_a_gain_that_is_large_significant_and_in_every_part_is_believed():
    assert judge(BASE, 0.8 * BASE).passes


def test_a_gain_that_an_ordinary_test_would_believe_is_not_enough():
    noise = np.random.default_rng(1).normal(0, 1, (10, 3))
    gains = 0.1 * BASE.mean() * (1 + 1.1 * (noise - noise.mean(axis=0)) / noise.std(axis=0))
    found = judge(BASE, BASE - gains)
    assert 0.005 < found.p_value < 0.05
    assert not found.passes


def test_a_gain_that_is_too_small_to_matter_is_refused():
    found = judge(BASE, 0.97 * BASE)
    assert found.p_value < 1e-6
    assert not found.passes


@pytest.mark.parametrize("metric", range(3))
def test_a_loss_in_one_part_and_one_error_is_enough_to_refuse(metric):
    after = 0.6 * BASE
    after[4, metric] = 1.01 * BASE[4, metric]
    found = judge(BASE, after)
    assert found.p_value < 0.005
    assert not found.passes


def pool_of(n, k=2):
    """Rows are the class and the position of an instance."""
    codes = np.arange(n) % k
    return BagPool(np.stack([codes, np.arange(n)], axis=1).astype(float), codes, k)


def counted(rows, wrong=0.0):
    """The true prevalences (b, 2) of bags, moved towards one half."""
    share = rows[..., 0].mean(axis=1)
    return (1 - wrong) * np.stack([1 - share, share], axis=1) + wrong / 2


def test_a_network_that_is_right_beats_a_base_that_is_not():
    found = compare(lambda rows: counted(rows, 0.3), counted, pool_of(400), rng=np.random.default_rng(0))
    assert found.passes


@pytest.mark.parametrize(("n", "passes"), [(100, False), (118, False), (122, True)])
def test_six_parts_with_ten_instances_of_every_class_are_needed(n, passes):
    found = compare(lambda rows: counted(rows, 0.3), counted, pool_of(n), rng=np.random.default_rng(0))
    assert found.passes == passes
    assert passes or found.p_value == 1


def test_pools_are_disjoint_random_parts_with_the_prevalence_of_the_whole():
    pool = pool_of(600)
    parts = pool.parts((0.6, 0.2, 0.2), rng=np.random.default_rng(0))
    positions = [set(part.rows[:, 1].astype(int).tolist()) for part in parts]
    assert set.union(*positions) == set(range(600))
    for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
        assert len(part.codes) == pytest.approx(600 * share, abs=2)
        np.testing.assert_allclose(prevalence_of(part.codes, np.arange(2)), 0.5, atol=0.01)
    # The probability that two neighbours in a class are in one pool is .6 ** 2 + 2 * .2 ** 2.
    together = np.mean([any({at, at + 2} <= mine for mine in positions) for at in range(598)])
    assert together == pytest.approx(0.44, abs=0.06)
