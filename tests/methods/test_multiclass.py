"""One against the rest: for two classes the quantifier itself, for more a share for each."""

import numpy as np
import pytest
from hypothesis import given

from quanet import CC, EMQ, PACC, Bags, Gaussians, OneVsRest
from quanet.errors import InvalidData
from quanet.methods.multiclass import share_out
from tests.strategies import prevalences


@given(prevalences())
def test_shares_that_sum_to_one_stay(shares):
    np.testing.assert_allclose(share_out(shares, shares[0]), shares)
    np.testing.assert_allclose(share_out(shares / 3, shares[0]), shares)


def test_two_classes_need_no_rest():
    X, y = Gaussians().draw([0.4, 0.6], 200, rng=0)
    one, plain = OneVsRest(EMQ()).fit(X, y), EMQ().fit(X, y)
    assert len(one.quantifiers_) == 1
    np.testing.assert_array_equal(one.predict(X[:50]), plain.predict(X[:50]))


def test_each_class_is_estimated_against_the_rest():
    X, y = Gaussians(k=4, distance=4).draw([0.25] * 4, 1200, rng=0)
    new, _ = Gaussians(k=4, distance=4).draw([0.1, 0.2, 0.3, 0.4], 1000, rng=1)
    together = OneVsRest(PACC()).fit(X, y)
    alone = np.array([PACC().fit(X, y == c).predict(new)[1] for c in range(4)])
    np.testing.assert_allclose(together.predict(new), alone / alone.sum())
    np.testing.assert_allclose(together.predict(new), [0.1, 0.2, 0.3, 0.4], atol=0.04)
    assert together.predict_bags(new, Bags(np.arange(1000).reshape(20, 50))).shape == (20, 4)


def test_texts_are_passed_on():
    texts = ["red apple", "red wine", "green tea", "green leaf", "blue sky", "blue sea"] * 5
    labels = np.repeat([["red", "red", "green", "green", "blue", "blue"]], 5, axis=0).ravel()
    np.testing.assert_allclose(OneVsRest(CC()).fit(texts, labels).predict(texts), 1 / 3)


def test_rows_of_another_width_are_refused():
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 60, rng=0)
    with pytest.raises(InvalidData, match="Rows must have 6 columns; got 5"):
        OneVsRest(CC()).fit(X, y).aggregate(np.ones((4, 5)))
