"""Searches choose by held-out bags, name what they cannot search, and answer by the quantifier they have chosen."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from quanet import (
    ACC,
    APP,
    CC,
    EMQ,
    PACC,
    PWK,
    SVMNKLD,
    SVMQ,
    T50,
    UPP,
    AutoQuantifier,
    Bags,
    Gaussians,
    GridSearchQ,
    TrainPrevalence,
    WordBags,
    diagnose,
    evaluate,
    load,
    plan_labels,
    refine,
    save,
)
from quanet.classifiers.folds import make_folds
from quanet.data.duplicates import canonical_order
from quanet.drift.scale import without_drift
from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.searches import along_paths, default_methods
from quanet.persist.load import model_facts

FEW = APP(bag_size=50, repeats=3)
FEWER = APP(bag_size=50, repeats=2)
X, Y = Gaussians(distance=2).draw([0.7, 0.3], 400, rng=0)
NEW, Y_NEW = Gaussians(distance=2).draw([0.4, 0.6], 200, rng=1)
BAGS = Bags([np.arange(90), np.arange(90, 200)])
MADE = {
    "grid": lambda: GridSearchQ(EMQ(), {"calibration": [None, "bcts"]}, protocol=FEWER),
    "grid without refit": lambda: GridSearchQ(PACC(), {"cv": [3, 5]}, protocol=FEWER, refit=False),
    "auto": lambda: AutoQuantifier([PACC(), EMQ()], [None], protocol=FEWER),
    "nested": lambda: GridSearchQ(AutoQuantifier([EMQ()], [None], protocol=FEWER), {"cv": [0.4, 0.3]}, protocol=FEWER),
}


@pytest.fixture(scope="module")
def clouds():
    X, y = Gaussians(distance=2).draw([0.7, 0.3], 600, rng=0)
    order = canonical_order(X, y)  # as in `fit`
    return X[order], y[order]


def test_the_errors_are_those_of_held_out_bags(clouds):
    X, y = clouds
    search = GridSearchQ(CC(), {"classifier": [LogisticRegression(C=C) for C in (1e-4, 1.0)]}, protocol=FEW).fit(X, y)
    seen, held = make_folds(X, y, np.array([0, 1]), 0.4)[0]
    for setting, error in zip(search.settings_, search.errors_, strict=True):
        alone = CC(**setting).fit(X[seen], y[seen])
        assert error == pytest.approx(evaluate(alone, X[held], y[held], FEW, rng=0).error("ae").mean())
    assert search.best_error_ == search.errors_.min()
    assert search.best_setting_ == search.settings_[int(search.errors_.argmin())]
    refitted = CC(**search.best_setting_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), refitted.predict(X))


def test_an_uninformative_setting_is_not_chosen(clouds):
    search = GridSearchQ(SVMNKLD(), {"C": [1e-6, 10.0]}, protocol=FEW).fit(*clouds)
    assert search.best_setting_ == {"C": 10.0}


@pytest.mark.parametrize("metric", ["rae", "kld", "se"])
def test_the_metric_decides(metric, clouds):
    X, y = clouds
    search = GridSearchQ(SVMQ(), {"C": [0.01, 1.0], "tol": [0.1, 0.5]}, protocol=FEW, metric=metric).fit(X, y)
    seen, held = make_folds(X, y, np.array([0, 1]), 0.4)[0]
    errors = {}
    for tol in (0.1, 0.5):  # along the same paths, since a fit alone stops at another point within the tolerance
        for C, fitted in zip((0.01, 1.0), SVMQ(tol=tol).fit_path(X[seen], y[seen], [0.01, 1.0]), strict=True):
            errors[C, tol] = evaluate(fitted, X[held], y[held], FEW, rng=0).error(metric).mean()
    for setting, error in zip(search.settings_, search.errors_, strict=True):
        assert error == pytest.approx(errors[setting["C"], setting["tol"]], rel=1e-9)
    assert search.best_error_ == pytest.approx(min(errors.values()), rel=1e-9)
    assert errors[search.best_setting_["C"], search.best_setting_["tol"]] == pytest.approx(search.best_error_, rel=1e-9)


def test_processes_change_nothing(clouds):
    grid = {"C": [0.1, 1.0], "tol": [0.01, 0.1]}
    alone, together = (GridSearchQ(SVMNKLD(), grid, protocol=FEW, n_jobs=jobs).fit(*clouds) for jobs in (1, 2))
    np.testing.assert_array_equal(alone.errors_, together.errors_)
    assert alone.best_setting_ == together.best_setting_


def test_settings_along_a_path_are_fitted_together():
    settings = [{"C": 1, "tol": 0.1}, {"C": 1, "tol": 0.2}, {"C": 9, "tol": 0.1}, {"tol": 0.1}]
    assert along_paths(SVMQ(), settings) == [[0, 2], [1], [3]]
    assert along_paths(EMQ(), [{"tol": 0.1}, {"tol": 0.2}]) == [[0], [1]]


def test_several_folds_are_averaged(clouds):
    X, y = clouds
    folds = StratifiedKFold(3)
    search = GridSearchQ(ACC(), {"cv": [2, 4]}, protocol=FEW, cv=folds).fit(X, y)
    parts = [
        evaluate(ACC(cv=2).fit(X[seen], y[seen]), X[held], y[held], FEW, rng=0).error("ae").mean()
        for seen, held in folds.split(X, y)
    ]
    assert search.errors_[0] == pytest.approx(np.mean(parts))


def test_without_refit_the_held_out_part_stays_unseen(clouds):
    X, y = clouds
    search = GridSearchQ(SVMNKLD(), {"C": [1.0]}, protocol=FEW, refit=False).fit(X, y)
    seen, _ = make_folds(X, y, np.array([0, 1]), 0.4)[0]
    np.testing.assert_array_equal(search.predict(X), SVMNKLD(C=1.0).fit(X[seen], y[seen]).predict(X))


def test_texts_and_more_classes_are_searched_alike():
    texts, y = WordBags(k=3, preference=8).draw([0.3, 0.3, 0.4], 300, rng=0)
    search = GridSearchQ(SVMNKLD(), {"C": [0.01, 10.0]}).fit(texts, y)
    np.testing.assert_allclose(search.predict(texts), [0.3, 0.3, 0.4], atol=0.05)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (GridSearchQ(CC(), {"C": [1.0]}), "CC has no parameter 'C'. Choose from classifier"),
        (GridSearchQ(CC(), {"classifier": []}), "grid must give each parameter a list of values"),
        (GridSearchQ(CC(), {"classifier": None}), "grid must give each parameter a list of values"),
        (GridSearchQ(SVMQ(), {"C": [1.0, -1.0]}), "C must be a number above 0; got -1.0"),
        (GridSearchQ(SVMQ(), {"C": [1.0]}, metric="accuracy"), "Unknown metric 'accuracy'"),
        (GridSearchQ(SVMQ(), {"C": [1.0]}, metric="bias"), "computed per class"),
        (GridSearchQ(SVMQ(), {"C": [1.0]}, cv=3, refit=False), "cv=3 makes 3 folds"),
        (GridSearchQ(SVMQ(), {"C": [1.0]}, cv=1.5), "between 0 and 1"),
    ],
)
def test_what_cannot_be_searched_is_named(search, message, clouds):
    with pytest.raises(InvalidSetting, match=message):
        search.fit(*clouds)


def test_each_candidate_is_judged_on_held_out_bags(clouds):
    X, y = clouds
    auto = AutoQuantifier([CC(), PACC()], [LogisticRegression(C=C) for C in (1e-3, 1.0)], protocol=FEW).fit(X, y)
    seen, held = make_folds(X, y, np.array([0, 1]), 0.4)[0]
    assert len(auto.report_) == 4
    for entry in auto.report_:
        method = {"CC()": CC, "PACC()": PACC}[entry["method"]]
        classifier = LogisticRegression(C=1e-3 if "0.001" in entry["classifier"] else 1.0)
        alone = method(classifier).fit(X[seen], y[seen])
        expected = evaluate(alone, X[held], y[held], FEW, rng=0).error().mean()
        assert entry["error"] == pytest.approx(expected)
    errors = [entry["error"] for entry in auto.report_]
    assert errors == sorted(errors)
    assert auto.report_[0]["excess"] == 0.0


def test_the_best_is_fitted_to_all_data(clouds):
    X, y = clouds
    auto = AutoQuantifier([TrainPrevalence(), PACC()], [LogisticRegression()], protocol=FEW).fit(X, y)
    np.testing.assert_array_equal(auto.predict(X[:90]), PACC(LogisticRegression()).fit(X, y).predict(X[:90]))


def test_methods_without_a_classifier_are_tried_once(clouds):
    auto = AutoQuantifier([PWK(), CC()], [None, LogisticRegression()], protocol=FEW).fit(*clouds)
    assert sorted(entry["method"] for entry in auto.report_) == ["CC()", "CC()", "PWK()"]
    assert [entry["classifier"] for entry in auto.report_ if entry["method"] == "PWK()"] == [""]


def test_it_says_why(clouds):
    auto = AutoQuantifier([CC(), ACC(), EMQ()], [LogisticRegression()], protocol=FEW).fit(*clouds)
    told, best = auto.explain(), auto.report_[0]["method"]
    assert told.startswith(f"Chosen: {best} on LogisticRegression(). It has the smallest mean ae, ")
    assert "63 bags that APP(bag_size=50, repeats=3, prevalences=None) drew from 240 held-out" in told
    assert f"Second: {auto.report_[1]['method']}" in told
    assert "By method (smallest error of each):" in told
    assert "all 600 instances" in told
    assert "clear difference" in told
    assert auto.frame()["method"].tolist() == [entry["method"] for entry in auto.report_]


def test_one_candidate_needs_no_comparison(clouds):
    assert "Next" not in AutoQuantifier([CC()], [None], protocol=FEW).fit(*clouds).explain()


def test_the_defaults_find_what_an_overconfident_prior_needs():
    X, y = Gaussians(distance=1.5).draw([0.85, 0.15], 500, rng=0)
    auto = AutoQuantifier(protocol=FEW).fit(X, y)
    assert len(auto.report_) == 33
    assert {"DyS()", "KDEyML()", "MS()"} < {entry["method"] for entry in auto.report_}
    counted = next(entry for entry in auto.report_ if entry["method"] == "CC()")
    floor = next(entry for entry in auto.report_ if entry["method"] == "TrainPrevalence()")
    assert auto.report_[0]["error"] < counted["error"] < floor["error"]
    pool, y_pool = Gaussians(distance=1.5).draw([0.5, 0.5], 3000, rng=1)
    assert evaluate(auto, pool, y_pool, FEW, rng=0).error().mean() < counted["error"]


def test_the_defaults_for_more_classes_take_them_all():
    names = [type(one).__name__ for one in default_methods(3)]
    assert names == ["TrainPrevalence", "CC", "ACC", "PACC", *["EMQ"] * 4, "MAPLS", "KDEyML"]
    X, y = Gaussians(k=3, distance=2).draw([0.3, 0.3, 0.4], 240, rng=0)
    auto = AutoQuantifier(classifiers=[LogisticRegression()], protocol=UPP(bag_size=50, repeats=20)).fit(X, y)
    assert len(auto.report_) == 10


def test_methods_for_texts_and_more_classes_are_searched_alike():
    texts, y = WordBags(k=3, preference=8).draw([0.3, 0.3, 0.4], 300, rng=0)
    auto = AutoQuantifier([PACC(), EMQ(calibration=None)]).fit(texts, y)
    assert "TextClassifier" in auto.report_[0]["classifier"]
    np.testing.assert_allclose(auto.predict(texts), [0.3, 0.3, 0.4], atol=0.05)


def test_folds_are_pooled(clouds):
    X, y = clouds
    auto = AutoQuantifier([PACC()], [LogisticRegression()], cv=3, protocol=FEW).fit(X, y)
    assert auto.report_[0]["bags"] == 3 * 63
    assert auto.n_held_out_ == 600


@pytest.mark.parametrize(
    ("auto", "error", "message"),
    [
        (AutoQuantifier([]), InvalidSetting, "methods or classifiers is empty"),
        (AutoQuantifier([CC()], []), InvalidSetting, "methods or classifiers is empty"),
        (AutoQuantifier([CC()], metric="bias"), InvalidSetting, "bias is computed per class"),
        (AutoQuantifier([CC()], metric="accuracy"), InvalidSetting, "Unknown metric 'accuracy'"),
    ],
)
def test_what_cannot_be_chosen_from_is_named(auto, error, message, clouds):
    with pytest.raises(error, match=message):
        auto.fit(*clouds)


def test_a_method_for_two_classes_is_refused_for_more():
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 90, rng=0)
    with pytest.raises(InvalidData, match=r"OneVsRest\(T50\(\)\)"):
        AutoQuantifier([T50()], [None]).fit(X, y)


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
