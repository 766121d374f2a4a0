import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.neighbors import KNeighborsClassifier

from quanet import ACC, PWK, Gaussians, WeightedNeighbours
from quanet.errors import InvalidData, InvalidSetting

I = np.arange(60)  # noqa: E741
Y = np.where(I % 4 == 0, 0, (I * 7 + I // 5) % 3)
X = np.column_stack([np.sin(1.3 * I) + Y, np.cos(0.7 * I) + 0.5 * Y])
NEW = np.column_stack([np.sin(0.9 * I) + 1.2, np.cos(1.1 * I) + 0.4])

MLQUANTIFY = {  # PWK of mlquantify 0.5.1, for numbers of neighbours that leave no tie
    (3, 1, 7): [0.25, 0.533333333333, 0.216666666667],
    (2, 1, 10): [0.35, 0.65],
    (3, 2, 10): [0.4, 0.466666666667, 0.133333333333],
    (2, 2, 10): [0.416666666667, 0.583333333333],
}


@pytest.mark.parametrize(("k", "alpha", "n_neighbors"), MLQUANTIFY)
def test_estimates_are_mlquantifys(k, alpha, n_neighbors):
    known = k > Y
    estimate = PWK(n_neighbors, alpha=alpha).fit(X[known], Y[known]).predict(NEW)
    np.testing.assert_allclose(estimate, MLQUANTIFY[k, alpha, n_neighbors], atol=1e-11)


def test_of_classes_with_equal_votes_that_of_the_nearest_wins():
    near = [[0.0], [0.3], [0.1], [0.2]]
    for labels in (list("aabb"), list("bbaa")):
        classifier = WeightedNeighbours(4).fit(near, labels)
        assert classifier.predict([[-1.0]])[0] == labels[0]
        assert classifier.predict([[0.13]])[0] == labels[2]


def test_a_large_alpha_is_plain_voting():
    plain = KNeighborsClassifier(10).fit(X, Y).predict_proba(NEW)
    np.testing.assert_allclose(WeightedNeighbours(alpha=1e12).fit(X, Y).predict_proba(NEW), plain, atol=1e-9)


def test_few_instances_all_vote():
    classifier = WeightedNeighbours(500).fit(X, Y)
    sizes = np.bincount(Y)
    np.testing.assert_allclose(classifier.predict_proba(NEW[:1])[0], 1 / 3)
    np.testing.assert_allclose(classifier.weights_, sizes.min() / sizes)


def test_texts_and_sparse_rows_are_read():
    texts = ["good film", "a good one", "good fun", "bad film", "a bad one"] * 3
    labels = ["yes", "yes", "yes", "no", "no"] * 3
    np.testing.assert_allclose(PWK(3).fit(texts, labels).predict(["so good", "so bad", "good", "bad plot"]), 0.5)
    np.testing.assert_array_equal(PWK().fit(csr_matrix(X), Y).predict(NEW), PWK().fit(X, Y).predict(NEW))


def test_an_honest_adjustment_is_a_classifier_away():
    source = Gaussians(distance=3.0)
    (train, y), (new, _) = source.draw([0.8, 0.2], 800, rng=0), source.draw([0.3, 0.7], 1000, rng=1)
    np.testing.assert_allclose(ACC(WeightedNeighbours()).fit(train, y).predict(new), [0.3, 0.7], atol=0.04)


def test_bad_settings_and_columns_are_named():
    with pytest.raises(InvalidSetting, match="n_neighbors must be a whole number of at least 1; got 0"):
        PWK(0).fit(X, Y)
    with pytest.raises(InvalidSetting, match="alpha must be a number above 0; got -1"):
        PWK(alpha=-1).fit(X, Y)
    with pytest.raises(InvalidData, match="X has 1 columns; the training data had 2"):
        PWK().fit(X, Y).predict(NEW[:, :1])
