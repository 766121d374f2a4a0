import numpy as np
import pytest
import torch

from quanet.errors import InvalidData, QuanetWarning
from quanet.nn import text_batches as texts
from quanet.nn.text_batches import TextPool, alike_in_length, draw_balanced, held_out_weights, hold_out
from quanet.simplex import count

CLASSES = np.array(["a", "b", "c"])


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_same_share_of_every_class_is_held_out():
    codes = rng().permutation(np.repeat([0, 1, 2], [700, 200, 100]))
    seen, held = hold_out(codes, CLASSES, 0.1, rng=rng())
    assert count(codes[held], 3).tolist() == [70, 20, 10]
    assert sorted([*seen, *held]) == list(range(1000))


def test_a_class_of_two_is_both_trained_on_and_held_out():
    codes = np.array([0, 0, 1, 1])
    seen, held = hold_out(codes, CLASSES[:2], 0.9, rng=rng())
    assert codes[seen].tolist() == codes[held].tolist() == [0, 1]


def test_a_class_of_one_is_trained_on_and_named():
    codes = np.array([0, 0, 0, 1])
    with pytest.warns(QuanetWarning, match="class 'b' has one text. It is used for training"):
        seen, held = hold_out(codes, CLASSES[:2], 0.5, rng=rng())
    assert 3 in seen
    assert codes[held].tolist() == [0, 0]


def test_classes_of_one_alone_cannot_be_held_out():
    with pytest.raises(InvalidData, match=r"every class has one text.*Add texts"):
        hold_out(np.array([0, 1]), CLASSES[:2], 0.5, rng=rng())


def test_balanced_batches_have_prevalences_uniform_on_the_simplex():
    codes = np.repeat([0, 1, 2], [970, 20, 10])
    chosen = draw_balanced(codes, (4000, 50), rng=rng())
    prevalences = count(codes[chosen], 3) / 50
    np.testing.assert_allclose(prevalences.mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(prevalences.var(axis=0), 1 / 18, atol=0.01)


def test_balanced_batches_draw_every_instance_of_a_class_alike():
    codes = np.array([1, 0, 1, 0, 0])
    chosen = draw_balanced(codes, (4000, 10), rng=rng())
    times = np.bincount(chosen.ravel(), minlength=5) / chosen.size
    np.testing.assert_allclose(times, [1 / 4, 1 / 6, 1 / 4, 1 / 6, 1 / 6], atol=0.01)


def test_held_out_classes_weigh_alike_when_balanced():
    codes = np.array([0, 0, 0, 2])  # none of class 1 could be held out
    np.testing.assert_allclose(held_out_weights(codes, balanced=True), [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    np.testing.assert_allclose(held_out_weights(codes, balanced=False), 1 / 4)


def test_parts_are_bounded_and_hold_every_text_once(monkeypatch):
    monkeypatch.setattr(texts, "READ_AT_ONCE", 4)
    lengths = rng().integers(20, size=10)
    parts = list(alike_in_length(lengths))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sorted(np.concatenate(parts)) == list(range(10))
    assert (np.diff(lengths[np.concatenate(parts)]) >= 0).all()


def test_the_mean_of_all_batches_is_the_weighted_mean(monkeypatch):
    monkeypatch.setattr(texts, "READ_AT_ONCE", 3)
    codes, lengths = rng().integers(2, size=8), rng(1).integers(5, size=8)
    pool = TextPool.on(torch.device("cpu"), np.zeros((8, 5), dtype=np.int32), lengths, codes)
    weights = rng(2).dirichlet(np.ones(8))
    batches = list(pool.all_of(np.arange(8), weights))
    means = [float(share @ truth[:, 1]) for _, _, truth, share in batches]
    assert np.mean(means) == pytest.approx(float(weights @ codes), abs=1e-6)


def test_a_batch_is_as_wide_as_its_longest_text():
    ids = np.array([[2, 3, 4], [5, 0, 0], [0, 0, 0]], dtype=np.int32)
    pool = TextPool.on(torch.device("cpu"), ids, np.array([3, 1, 0]), np.array([0, 1, 1]))
    chosen = np.array([[0, 1], [1, 2], [2, 2]])
    widths = [tuple(batch[0].shape) for batch in pool.batches(chosen, np.full((3, 2), 0.5))]
    assert widths == [(2, 3), (2, 1), (2, 1)]
