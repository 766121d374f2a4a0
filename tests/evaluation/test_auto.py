import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from quanet import (
    ACC,
    APP,
    CC,
    EMQ,
    PACC,
    PWK,
    T50,
    UPP,
    AutoQuantifier,
    Gaussians,
    TrainPrevalence,
    WordBags,
    evaluate,
)
from quanet.classifiers.folds import make_folds
from quanet.data.duplicates import canonical_order
from quanet.errors import InvalidData, InvalidSetting
from quanet.evaluation.auto import default_methods

FEW = APP(bag_size=50, repeats=3)


@pytest.fixture(scope="module")
def clouds():
    X, y = Gaussians(distance=2).draw([0.7, 0.3], 600, rng=0)
    order = canonical_order(X, y)  # as in `fit`
    return X[order], y[order]


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


def test_texts_and_more_classes_are_searched_alike():
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
