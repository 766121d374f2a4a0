import numpy as np
import pytest
from hypothesis import given

from quanet import CDE
from quanet.errors import InvalidSetting
from quanet.methods.cde import iterate_counts
from tests.methods.test_counting import fixed_bag
from tests.strategies import fixed_posteriors, posteriors


def test_estimates_are_mlquantifys():
    held, y = fixed_posteriors(60, 2, 0.0)
    estimate = CDE("precomputed").fit(held, y).predict(fixed_bag(2))
    np.testing.assert_allclose(estimate, [0.407407407407, 0.592592592593], atol=1e-11)  # mlquantify 0.5.1


@given(stack=posteriors(2))
def test_the_answer_is_the_count_at_the_threshold_that_it_implies(stack):
    scores, prior = stack[..., 1], 0.3
    share = iterate_counts(scores, prior, tol=1e-9, max_iter=1000)
    cost = prior / (1 - prior) * np.maximum(1 - share, 1e-12) / np.maximum(share, 1e-12)
    np.testing.assert_allclose((scores > (cost / (1 + cost))[:, None]).mean(axis=1), share)


def test_one_round_is_classify_and_count():
    held, y = fixed_posteriors(60, 2, 0.0)
    once = CDE("precomputed", max_iter=1).fit(held, y).predict(fixed_bag(2))
    assert once[1] == pytest.approx((fixed_bag(2)[:, 1] > 0.5).mean())


def test_no_rounds_are_refused():
    held, y = fixed_posteriors(60, 2, 0.0)
    with pytest.raises(InvalidSetting, match="max_iter must be a whole number of at least 1; got 0"):
        CDE("precomputed", max_iter=0).fit(held, y)
