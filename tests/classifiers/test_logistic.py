import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from quanet.classifiers import logistic
from quanet.classifiers.logistic import fit_logistic, scores, sums

RNG = np.random.default_rng(0)
DENSE = (RNG.random((120, 30)) * (RNG.random((120, 30)) < 0.3)).astype(np.float32)
X = csr_matrix(DENSE)
SIGNS = np.sign(DENSE[:, :3] - DENSE[:, 3:6] + RNG.normal(size=(120, 3)) * 0.3).astype(np.float32)
SIGNS[SIGNS == 0] = 1


@pytest.fixture(autouse=True)
def _to_the_end(monkeypatch):
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-7)
    monkeypatch.setattr(logistic, "MAX_PASSES", 2000)


def reference(features, signs, C):
    """Scikit-learn's optimum, the intercept being a feature too, (d + 1,)."""
    features = np.column_stack([features, np.ones(len(features))])
    return LogisticRegression(C=C, fit_intercept=False, tol=1e-8, max_iter=10_000).fit(features, signs).coef_[0]


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_every_column_is_at_its_own_optimum(C):
    weights, _ = fit_logistic(X, SIGNS, C)
    for column in range(3):
        np.testing.assert_allclose(weights[:, column], reference(DENSE, SIGNS[:, column], C), atol=2e-3)


def test_instances_of_sign_zero_do_not_count():
    signs = SIGNS.copy()
    signs[:40, 1] = 0
    weights, _ = fit_logistic(X, signs, 3.0)
    np.testing.assert_allclose(weights[:, 1], reference(DENSE[40:], SIGNS[40:, 1], 3.0), atol=2e-3)


def test_a_scale_is_a_scale_of_features():
    scale = RNG.normal(size=(31, 3)).astype(np.float32)
    scale[-1] = 1
    weights, _ = fit_logistic(X, SIGNS, 3.0, scale=scale)
    for column in range(3):
        own = scale[:-1, column]
        expected = reference(DENSE * own, SIGNS[:, column], 3.0) * scale[:, column]
        np.testing.assert_allclose(weights[:, column], expected, atol=2e-3)


def test_the_optimum_does_not_depend_on_the_start():
    _, dual = fit_logistic(X, SIGNS[:, :1], 3.0)
    part = SIGNS.copy()
    part[30:50] = 0
    from_zero, _ = fit_logistic(X, part, 3.0)
    from_more, _ = fit_logistic(X, part, 3.0, start=np.abs(dual))
    np.testing.assert_allclose(from_zero, from_more, atol=1e-3)


def test_products_with_an_intercept():
    weights = RNG.normal(size=(31, 2)).astype(np.float32)
    np.testing.assert_allclose(scores(X, weights), DENSE @ weights[:-1] + weights[-1], atol=1e-4)
    shares = RNG.normal(size=(120, 2)).astype(np.float32)
    np.testing.assert_allclose(sums(X, shares), np.vstack([DENSE.T @ shares, shares.sum(axis=0)]), atol=1e-4)
