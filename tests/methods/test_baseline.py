import numpy as np

from quanet import Bags, TrainPrevalence


def test_every_bag_gets_the_training_prevalence():
    quantifier = TrainPrevalence().fit(["a", "b", "c", "d"], [1, 2, 2, 2])
    estimate = quantifier.predict_bags(["x", "y", "z"], Bags([[0], [1, 2]]))
    np.testing.assert_array_equal(estimate, [[0.25, 0.75]] * 2)
