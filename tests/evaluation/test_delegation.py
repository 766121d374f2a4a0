"""A fitted search can do everything that the quantifier it has chosen can do."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from quanet import (
    APP,
    EMQ,
    PACC,
    SVMQ,
    AutoQuantifier,
    Bags,
    Gaussians,
    GridSearchQ,
    diagnose,
    load,
    plan_labels,
    refine,
    save,
)
from quanet.drift.scale import without_drift
from quanet.persist.facts import model_facts

FEW = APP(bag_size=50, repeats=2)
X, Y = Gaussians(distance=2).draw([0.7, 0.3], 400, rng=0)
NEW, Y_NEW = Gaussians(distance=2).draw([0.4, 0.6], 200, rng=1)
BAGS = Bags([np.arange(90), np.arange(90, 200)])
MADE = {
    "grid": lambda: GridSearchQ(EMQ(), {"calibration": [None, "bcts"]}, protocol=FEW),
    "grid without refit": lambda: GridSearchQ(PACC(), {"cv": [3, 5]}, protocol=FEW, refit=False),
    "auto": lambda: AutoQuantifier([PACC(), EMQ()], [None], protocol=FEW),
    "nested": lambda: GridSearchQ(AutoQuantifier([EMQ()], [None], protocol=FEW), {"cv": [0.4, 0.3]}, protocol=FEW),
}


@pytest.fixture(scope="module", params=MADE)
def search(request):
    return MADE[request.param]().fit(X, Y)


CAPABILITIES = {
    "predict": lambda one: one.predict(NEW),
    "predict_bags": lambda one: one.predict_bags(NEW, BAGS),
    "read": lambda one: one.predict(one.read(NEW)),
    "represent and aggregate": lambda one: one.aggregate(one.represent(NEW)),
    "score": lambda one: one.score(NEW, Y_NEW),
    "predict_interval": lambda one: np.stack([one.predict_interval(NEW).lower, one.predict_interval(NEW).upper]),
    "bootstrap": lambda one: one.predict_interval(NEW, method="bootstrap", resamples=50).lower,
    "bayes": lambda one: one.predict_interval(NEW, method="bayes").lower,
    "predict_interval_bags": lambda one: one.predict_interval_bags(NEW, BAGS).upper,
    "diagnose": lambda one: [str(finding) for finding in diagnose(one, NEW, resamples=50)],
    "refine": lambda one: refine(one, NEW, NEW[:40], Y_NEW[:40]).lower,
    "plan_labels": lambda one: plan_labels(one, NEW, 0.2).indices,
}


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_search_answers_as_the_quantifier_it_has_chosen(search, capability):
    ask = CAPABILITIES[capability]
    np.testing.assert_array_equal(ask(search), ask(search.quantifier_))


def test_a_search_has_every_public_attribute_of_the_quantifier_it_has_chosen(search):
    assert not [name for name in dir(search.quantifier_) if not name.startswith("_") and not hasattr(search, name)]
    own = set(search.get_params(deep=False))
    fitted = [name for name in vars(search.quantifier_) if name.endswith("_") and name not in own]
    assert {"held_out_", "prior_", "n_instances_", "classes_"} <= {*fitted, *vars(search)}
    assert search.held_out_ is search.quantifier_.held_out_
    for name in ("prior_", "n_instances_", "classes_"):
        np.testing.assert_array_equal(getattr(search, name), getattr(search.quantifier_, name))


def test_a_search_that_is_not_fitted_has_nothing_of_a_chosen_one():
    search = GridSearchQ(EMQ(), {"cv": [3]})
    assert search.held_out_ is None
    assert not clone(search).reads_posteriors
    with pytest.raises(AttributeError, match="'GridSearchQ' object has no attribute 'classifier_'"):
        _ = search.classifier_
    with pytest.raises(NotFittedError):
        search.aggregate(X)


def test_a_loaded_search_can_do_the_same(search, tmp_path):
    save(search, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_interval(NEW).lower, search.predict_interval(NEW).lower)
    assert str(diagnose(loaded, NEW, resamples=50)) == str(diagnose(search, NEW, resamples=50))


class WithAPart(PACC):
    """Someone's method, which has a part of this name and estimates by itself."""

    def _fit(self, X, y):
        super()._fit(X, y)
        self.quantifier_ = EMQ(calibration=None).fit(X, 1 - np.asarray(y))


def test_only_a_search_estimates_by_another_quantifier(tmp_path):
    with without_drift():
        mine, plain = WithAPart().fit(X, Y), PACC().fit(X, Y)
    assert mine.chosen() is mine
    np.testing.assert_allclose(mine.predict_interval(NEW).estimate, plain.predict(NEW))
    save(mine, tmp_path / "mine")
    save(plain, tmp_path / "plain")
    assert model_facts(tmp_path / "mine").drift == model_facts(tmp_path / "plain").drift


def test_every_copy_along_a_path_knows_what_a_fit_alone_knows():
    with without_drift():  # a path is for searches, which need no drift scale
        alone = SVMQ().fit(X, Y)
    for copy in SVMQ().fit_path(X, Y, [0.1, 1.0]):
        assert vars(copy).keys() == vars(alone).keys()
        assert copy.n_instances_ == alone.n_instances_ == 400
