"""From features to prevalences, quanet gives the digits of QuaPy: what docs/migration/quapy.md says."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from quanet import ACC, CC, EMQ, MS, PACC, PCC, SMM, DMy, DyS, HDy, KDEyCS, KDEyML

SETTINGS = {"classifier": LogisticRegression(), "cv": StratifiedKFold(5)}  # QuaPy's folds

# The second prevalence with QuaPy 0.2.3 and scikit-learn 1.9.1; every method as METHOD(LogisticRegression()), and what
# is given. The last number is what QuaPy's search leaves open, or the rounding of the classifier's optimum.
QUAPY = [
    ("CC", CC(LogisticRegression()), 0.292, 1e-12),
    ("PCC", PCC(LogisticRegression()), 0.323698285656, 1e-8),
    ("ACC", ACC(**SETTINGS), 0.199421966913, 1e-8),
    ("PACC", PACC(**SETTINGS), 0.191359969624, 1e-6),
    ("PACC, solver='exact-raise'", PACC(**SETTINGS), 0.191360206801, 1e-8),
    ("EMQ", EMQ(LogisticRegression(), calibration=None, solver="em", tol=1e-4), 0.182137150878, 1e-8),
    (
        "EMQ, calib='bcts', val_split=5, exact_train_prev=False",
        EMQ(**SETTINGS, prior="posteriors", solver="em", tol=1e-4),
        0.183295482589,
        1e-6,
    ),
    ("HDy", HDy(**SETTINGS, step=1 / 99), 0.20202020202, 1e-10),
    ("DyS", DyS(**SETTINGS, bins=8, divergence="hellinger"), 0.182468755845, 1e-5),
    ("SMM", SMM(**SETTINGS), 0.191360206801, 1e-8),
    ("DMy", DMy(**SETTINGS), 0.182411076206, 1e-4),
    ("KDEyML", KDEyML(**SETTINGS), 0.183948658687, 1e-5),
    ("KDEyCS", KDEyCS(**SETTINGS), 0.18743536525, 1e-3),
    ("MS", MS(**SETTINGS, positive=1), 0.177514792899, 1e-8),
]


def draw(n, share, seed):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    X = rng.normal(size=(n, 2)) + 1.5 * y[:, None]
    order = rng.permutation(n)
    return X[order], y[order]


@pytest.mark.parametrize(("peer", "quantifier", "theirs", "tolerance"), QUAPY, ids=[one[0] for one in QUAPY])
def test_estimates_from_features_are_quapys(peer, quantifier, theirs, tolerance):
    new, _ = draw(500, 0.2, 1)
    estimate = quantifier.fit(*draw(1000, 0.5, 0)).predict(new)
    np.testing.assert_allclose(estimate[1], theirs, rtol=0, atol=tolerance)
