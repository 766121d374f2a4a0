import numpy as np
import pytest

from quanet import NPP, TextClassifier
from quanet.evaluation.limits import mean_limit, pool_limit
from quanet.lab.bounds import bound_of, bounds_of
from quanet.lab.parallel import Serial
from quanet.lab.plan import load, read_plan
from quanet.lab.runner import run
from quanet.lab.store import pack
from quanet.protocols import ByGroup


def test_the_bound_of_an_experiment_is_that_of_its_classifiers_posteriors(home):
    plan = read_plan(home / "plan.toml")
    list(run(plan, home / "out", Serial()))
    parts = load(plan.place("words"))
    limits = []
    for seed in (0, 1):
        learn, _ = parts.train.split(0.6, rng=seed)
        posteriors = TextClassifier(embedding_size=4).fit(learn.X, learn.y).predict_proba(parts.test.X)
        limits.append(pool_limit(posteriors, parts.test.y, parts.train.classes, bag_size=20))
    bound = bounds_of(home / "out")["words"]
    np.testing.assert_allclose(bound.errors, mean_limit(limits).errors, atol=1e-5)
    assert bound.methods == ("CC", "EMQ")  # the SVM reads texts
    pack(home / "out", home / "packed")
    np.testing.assert_array_equal(bounds_of(home / "packed")["words"].errors, bound.errors)


@pytest.mark.parametrize(("protocol", "known"), [(NPP(bag_size=50), True), (ByGroup(groups=["a", "b"]), False)])
def test_bags_without_one_size_have_no_bound(protocol, known):
    posteriors = np.repeat([[0.9, 0.1], [0.1, 0.9]], 10, axis=0)
    labels = np.repeat([0, 1], 10)
    assert (bound_of(posteriors, labels, np.array([0, 1]), protocol) is not None) == known
