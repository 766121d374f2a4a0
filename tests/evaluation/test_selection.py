"""A grid search finds what held-out bags say, once for every job, and names what it cannot search."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from quanet import ACC, APP, CC, EMQ, SVMNKLD, SVMQ, Gaussians, GridSearchQ, WordBags, evaluate
from quanet.classifiers.folds import make_folds
from quanet.data.duplicates import canonical_order
from quanet.errors import InvalidSetting
from quanet.evaluation.selection import along_paths

FEW = APP(bag_size=50, repeats=3)


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
