"""The drift scale that `fit` learns."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from quanet import ACC, CC, EMQ, PACC, Ensemble, Gaussians, GridSearchQ, TrainPrevalence, WordBags
from quanet.drift.scale import PRIOR_PARTS, TYPICAL_RATES, fit_rate, variance_at, without_drift
from quanet.errors import InvalidData

X, Y = Gaussians(distance=2).draw([0.5, 0.5], 1500, rng=0)


@pytest.fixture(scope="module")
def emq():
    return EMQ().fit(X, Y)


def test_the_rate_is_shrunk_towards_what_other_datasets_show(emq):
    scale = emq.drift_
    m = len(scale.distances)
    assert scale.kind == "clusters"
    assert 3 <= m <= 8
    own = fit_rate(scale.distances, scale.variances)
    assert scale.rate == pytest.approx((PRIOR_PARTS * TYPICAL_RATES["contents"] + m * own) / (PRIOR_PARTS + m))
    assert scale.degrees == PRIOR_PARTS + m


def test_the_variance_grows_with_distance_and_with_few_instances_of_a_class(emq):
    even, rare = np.full((2, 2), 0.5), np.array([[0.99, 0.01]] * 2)
    near, far = emq.drift_.variance(np.array([0.0, 0.1]), even, np.ones(2))
    assert far > near > 0
    assert emq.drift_.variance(np.zeros(2), rare, np.ones(2))[0] > near  # one class alone: half as many instances
    assert emq.drift_.variance(np.zeros(2), rare, np.full(2, 1e-6)).max() == pytest.approx(1e-6)
    assert variance_at(np.array([1e9]), 0.5)[0] <= 2


def test_the_rate_reproduces_the_variances_that_were_found():
    distances = np.array([0.01, 0.05, 0.2])
    assert fit_rate(distances, variance_at(distances, 0.7)) == pytest.approx(0.7)
    assert fit_rate(distances, np.array([-0.1, 0.02, 0.01])) == 0.0


def test_groups_replace_clusters():
    groups = np.digitize(X[:, 0], [-1, 0, 1, 2])
    assert PACC().fit(X, Y, groups=groups).drift_.kind == "groups"
    with pytest.raises(InvalidData, match="one group per instance"):
        PACC().fit(X, Y, groups=groups[:10])


def test_small_data_use_the_typical_rate():
    scale = EMQ().fit(X[:300], Y[:300]).drift_
    assert scale.kind == ""
    assert scale.rate == TYPICAL_RATES["contents"]


@pytest.mark.parametrize("quantifier", [CC(), TrainPrevalence(), ACC(LogisticRegression())])
def test_every_method_learns_a_scale(quantifier):
    assert quantifier.fit(X, Y).drift_.profile is not None


def test_posteriors_alone_are_described_by_their_bins():
    posteriors = EMQ().fit(X, Y).read(X).values
    scale = EMQ("precomputed").fit(posteriors, Y).drift_
    assert scale.rate == TYPICAL_RATES["posteriors"]
    assert scale.describe(None, posteriors).shape == (1500, 10)


@pytest.mark.parametrize("n", [12, 18])
def test_too_few_instances_are_unknown(n):
    scale = EMQ().fit(X[:n], Y[:n]).drift_
    assert scale.profile is None
    assert scale.unknown


def test_identical_texts_are_unknown():
    texts = ["the same text again"] * 60
    scale = CC().fit(texts, [0, 1] * 30).drift_
    assert "alike" in scale.unknown


def test_members_and_candidates_learn_no_scale_of_their_own_and_the_whole_does():
    ensemble = Ensemble(PACC(), size=3, random_state=0).fit(X[:400], Y[:400])
    assert all(member.drift_ is None for member in ensemble.members_)
    assert ensemble.drift_ is not None
    search = GridSearchQ(EMQ(), {"calibration": ["bcts", "platt"]}).fit(X[:400], Y[:400])
    assert search.quantifier_.drift_ is not None


def test_the_scale_can_be_left_out():
    with without_drift():
        assert EMQ().fit(X, Y).drift_ is None
    assert clone(EMQ()).fit(X[:100], Y[:100]).drift_ is not None


def test_texts_are_read_with_their_descriptions():
    texts, labels = WordBags(k=2, length=10).draw([0.5, 0.5], 300, rng=0)
    inputs = PACC().fit(list(texts), labels).read(list(texts))
    assert inputs.descriptions.shape[0] == 300
    assert inputs.take(np.array([1, 2])).descriptions.shape[0] == 2
