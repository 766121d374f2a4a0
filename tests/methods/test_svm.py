"""The classifier and its five quantifiers: what they find, how they start warm, and how they refuse."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils.estimator_checks import check_estimator

from quanet import (
    SVMAE,
    SVMKLD,
    SVMNKLD,
    SVMQ,
    SVMRAE,
    Gaussians,
    QuanetError,
    QuanetWarning,
    QuantificationSVC,
    WordBags,
)
from quanet.errors import InvalidData, InvalidSetting
from quanet.methods.svm import LOSSES

FIVE = [SVMKLD, SVMNKLD, SVMQ, SVMAE, SVMRAE]


@pytest.fixture(scope="module")
def clouds():
    return Gaussians(distance=3).draw([0.6, 0.4], 400, rng=0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bounds_enclose_the_objective(loss, clouds):
    fitted = QuantificationSVC(loss, C=10.0).fit(*clouds)
    assert fitted.gap_ == pytest.approx(fitted.primal_ - fitted.dual_, abs=1e-9)
    assert 0 <= fitted.gap_ <= 1.0
    assert fitted.n_iter_ >= 1
    assert fitted.coef_.shape == (1, 2)
    assert fitted.intercept_.shape == (1,)


@pytest.mark.parametrize("loss", LOSSES)
def test_separated_classes_are_counted_exactly(loss):
    X, y = Gaussians(distance=12).draw([0.7, 0.3], 200, rng=1)
    assert (QuantificationSVC(loss, C=100.0).fit(X, y).predict(X) == y).all()


@pytest.mark.parametrize("make", [csr_matrix, csr_array, lambda X: csr_matrix(X.astype(np.float32)), list])
def test_dense_and_sparse_rows_are_fitted_alike(make, clouds):
    X, y = clouds
    dense, other = QuantificationSVC("nkld").fit(X, y), QuantificationSVC("nkld").fit(make(X), y)
    np.testing.assert_allclose(other.coef_, dense.coef_, rtol=1e-4)
    np.testing.assert_allclose(other.decision_function(make(X)), dense.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_start_ends_as_near_to_the_optimum_as_a_cold_one(loss, clouds):
    values = [100.0, 0.1, 10.0]
    path = QuantificationSVC(loss, tol=0.01).fit_path(*clouds, values)
    assert [one.C for one in path] == values
    for one in path:
        cold = clone(one).fit(*clouds)
        assert one.gap_ <= one.C * 0.01
        assert abs(one.primal_ - cold.primal_) <= one.C * 0.01
    assert path[0].n_iter_ <= clone(path[0]).fit(*clouds).n_iter_


@pytest.mark.parametrize("loss", ["kld", "nkld", "ae", "rae"])
def test_which_class_is_positive_changes_nothing_where_the_loss_only_counts(loss):
    X, y = Gaussians(distance=2).draw([0.7, 0.3], 300, rng=2)
    first, second = (QuantificationSVC(loss, tol=1e-4, positive=label).fit(X, y) for label in (0, 1))
    assert first.primal_ == pytest.approx(second.primal_, abs=2e-4)


def test_q_asks_for_the_recall_of_the_positive_class():
    X, y = Gaussians(distance=1).draw([0.5, 0.5], 400, rng=3)
    recall = [
        [(fitted.predict(X) == y)[y == label].mean() for label in (0, 1)]
        for fitted in (QuantificationSVC("q", C=10.0, positive=label).fit(X, y) for label in (0, 1))
    ]
    assert recall[0][0] > recall[1][0]
    assert recall[1][1] > recall[0][1]


def test_the_positive_class_is_the_rarer_one_unless_named():
    X, y = Gaussians(distance=1).draw([0.3, 0.7], 300, rng=4)
    np.testing.assert_array_equal(
        QuantificationSVC("q").fit(X, y).coef_, QuantificationSVC("q", positive=0).fit(X, y).coef_
    )


def test_the_classifier_passes_scikit_learns_own_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are skipped or fail, which are read below
        checked = check_estimator(QuantificationSVC(), on_fail=None)
    failed = {check["check_name"] for check in checked if check["status"] == "failed"}
    # These ask for scikit-learn's words, or for a column of labels to be taken as labels.
    assert failed == {"check_supervised_y_2d", "check_requires_y_none"}


def test_scores_can_be_calibrated_to_probabilities(clouds):
    X, y = clouds
    posteriors = CalibratedClassifierCV(QuantificationSVC("q", C=10.0)).fit(X, y).predict_proba(X)
    assert (posteriors.argmax(axis=1) == y).mean() > 0.9


@pytest.mark.parametrize("method", FIVE)
def test_texts_go_in_as_they_are(method):
    texts, y = WordBags(preference=8).draw([0.5, 0.5], 300, rng=0)
    new, _ = WordBags(preference=8).draw([0.2, 0.8], 500, rng=1)
    quantifier = method(C=10.0).fit(texts, np.array(["no", "yes"])[y])
    np.testing.assert_allclose(quantifier.predict(new), [0.2, 0.8], atol=0.1)


@pytest.mark.parametrize("method", FIVE)
def test_more_classes_are_told_from_the_rest_one_by_one(method):
    X, y = Gaussians(k=3, distance=6).draw([0.2, 0.3, 0.5], 600, rng=0)
    new, _ = Gaussians(k=3, distance=6).draw([0.6, 0.3, 0.1], 500, rng=1)
    quantifier = method(C=100.0).fit(X, y)
    assert len(quantifier.classifiers_) == 3
    np.testing.assert_allclose(quantifier.predict(new), [0.6, 0.3, 0.1], atol=0.05)


def test_a_path_of_quantifiers_leaves_the_one_it_starts_from_unfitted(clouds):
    start = SVMNKLD()
    path = start.fit_path(*clouds, [1.0, 10.0])
    assert [one.classifiers_[0].C for one in path] == [1.0, 10.0]
    assert not hasattr(start, "classes_")


def test_no_instance_claimed_by_any_class_gives_the_prior():
    X, y = Gaussians(k=3, distance=6).draw([0.2, 0.3, 0.5], 100, rng=0)
    quantifier = SVMAE().fit(X, y)
    np.testing.assert_allclose(quantifier.aggregate(np.zeros((4, 3))), [0.2, 0.3, 0.5])


def test_a_positive_class_cannot_be_named_among_three():
    X, y = Gaussians(k=3).draw([0.2, 0.3, 0.5], 100, rng=0)
    with pytest.raises(InvalidSetting, match="only for two classes, but y has 3"):
        SVMQ(positive=1).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of 'kld', 'nkld', 'q', 'ae', 'rae'; got 'hinge'"),
        ({"C": 0}, "C must be a number above 0; got 0"),
        ({"C": -1.0}, "C must be a number above 0"),
        ({"C": np.nan}, "C must be a number above 0"),
        ({"C": "1"}, "C must be a number above 0"),
        ({"tol": -0.1}, "tol must be a number of at least 0"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"positive": "maybe"}, "positive is 'maybe', but the classes are"),
    ],
)
def test_a_wrong_setting_is_named(settings, message, clouds):
    with pytest.raises(InvalidSetting, match=message):
        QuantificationSVC().set_params(**settings).fit(*clouds)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], ["a", "a"], "one class only, 'a'"),
        ([[1.0], [2.0], [3.0]], ["a", "b", "c"], "binary classification is supported, and y has 3"),
        ([[0.0], [0.0]], ["a", "b"], "all features are zero"),
        (csr_matrix((2, 3)), ["a", "b"], "all features are zero"),
        (np.empty((2, 0)), ["a", "b"], r"0 feature\(s\)"),
        ([[np.nan], [1.0]], ["a", "b"], "contains NaN"),
        (csr_matrix([[np.inf], [1.0]]), ["a", "b"], "contains infinity"),
        ([["x"], ["y"]], ["a", "b"], "not a matrix of numbers"),
        ([1.0, 2.0], ["a", "b"], "not a matrix of numbers"),
        ([[1.0], [2.0]], ["a"], "2 instances but y has 1"),
    ],
)
def test_data_that_cannot_be_used_are_refused(X, y, message):
    with pytest.raises(InvalidData, match=message):
        QuantificationSVC().fit(X, y)


@pytest.mark.parametrize("method", FIVE)
@pytest.mark.parametrize(("X", "y"), [([[1.0], [2.0]], [1, 1]), ([[0.0], [0.0]], [0, 1]), ([[np.nan], [0.0]], [0, 1])])
def test_a_quantifier_refuses_the_same(method, X, y):
    with pytest.raises(QuanetError):
        method().fit(X, y)


def test_other_columns_than_those_of_the_fit_are_refused(clouds):
    with pytest.raises(InvalidData, match="X has 3 features, but QuantificationSVC is expecting 2"):
        QuantificationSVC().fit(*clouds).predict(np.ones((2, 3)))


def test_a_fit_that_does_not_converge_warns_with_its_gap(clouds):
    with pytest.warns(QuanetWarning, match=r"stopped after 1 steps with a gap of .* above C \* tol = 100"):
        fitted = QuantificationSVC("q", C=1000.0, max_iter=1).fit(*clouds)
    assert fitted.gap_ > 100
    assert fitted.n_iter_ == 1


def test_indistinct_instances_are_fitted_without_complaint():
    X, y = np.ones((20, 2)), np.arange(20) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loss in LOSSES:
            assert np.isfinite(QuantificationSVC(loss, C=100.0).fit(X, y).gap_)
