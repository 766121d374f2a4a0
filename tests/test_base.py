import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from quanet import ACC, CC, EMQ, PACC, PCC, Gaussians
from quanet.classifiers.cross_fitting import check_posteriors, cross_fit
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.methods.aggregative import AggregativeQuantifier

SOURCE = Gaussians(k=2, distance=3.0)
X, CODES = SOURCE.draw([0.6, 0.4], 200, rng=0)
Y = np.array(["no", "yes"])[CODES]


class Memory(LogisticRegression):
    """Knows by heart the labels of what it was fitted to, and is right about nothing else."""

    def fit(self, X, y):
        self.seen_ = {tuple(row) for row in X}
        return super().fit(X, y)

    def predict_proba(self, X):
        known = np.array([tuple(row) in self.seen_ for row in X], dtype=float)
        return np.column_stack([1 - known, known])


@pytest.mark.parametrize("cv", [2, 5, 0.3, StratifiedKFold(3, shuffle=True, random_state=0)])
def test_no_posterior_comes_from_a_classifier_that_saw_its_instance(cv):
    fitted, posteriors, held = cross_fit(Memory(), X, CODES, np.array(["no", "yes"]), cv=cv)
    assert (posteriors[:, 1] == 0).all()
    assert (fitted.predict_proba(X)[:, 1] == 1).all()  # the last one is fitted to all
    expected = len(X) * cv if isinstance(cv, float) else len(X)
    assert len(np.unique(held)) == len(held) == len(posteriors) == expected


def test_a_frozen_classifier_is_neither_fitted_nor_split():
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    coefficients = frozen.coef_.copy()
    new_X, new_codes = SOURCE.draw([0.2, 0.8], 100, rng=1)
    quantifier = PACC(frozen).fit(new_X, np.array(["no", "yes"])[new_codes])
    np.testing.assert_array_equal(frozen.coef_, coefficients)
    by_hand = frozen.predict_proba(new_X)[new_codes == 1].mean(axis=0)
    np.testing.assert_allclose(quantifier.rates_[:, 1], by_hand)


def test_the_callers_classifier_stays_unfitted():
    classifier = GaussianNB()
    EMQ(classifier).fit(X, Y)
    assert not hasattr(classifier, "classes_")


def test_a_frozen_classifiers_columns_are_put_in_order():
    class Backwards(LogisticRegression):
        def fit(self, X, y):
            super().fit(X, y)
            self.sorted_ = self.classes_
            self.classes_ = self.classes_[::-1]
            return self

        def predict_proba(self, X):
            self.classes_ = self.sorted_
            found = super().predict_proba(X)[:, ::-1]
            self.classes_ = self.sorted_[::-1]
            return found

    plain = PCC(FrozenEstimator(LogisticRegression().fit(X, Y))).fit(X, Y)
    backwards = PCC(FrozenEstimator(Backwards().fit(X, Y))).fit(X, Y)
    np.testing.assert_allclose(backwards.predict(X), plain.predict(X))


def test_a_frozen_classifier_must_know_the_same_classes():
    frozen = FrozenEstimator(LogisticRegression().fit(X, np.where(CODES == 1, "yes", "maybe")))
    with pytest.raises(InvalidData, match=r"was fitted to the classes \['maybe', 'yes'\], but y has \['no', 'yes'\]"):
        CC(frozen).fit(X, Y)


def test_a_frozen_classifier_must_be_fitted():
    with pytest.raises(InvalidSetting, match="is not fitted"):
        CC(FrozenEstimator(LogisticRegression())).fit(X, Y)


def test_precomputed_posteriors_are_rows_as_they_are():
    posteriors = SOURCE.posteriors(X, [0.6, 0.4])
    quantifier = PCC("precomputed").fit(posteriors, Y)
    np.testing.assert_allclose(quantifier.represent(posteriors), posteriors)
    np.testing.assert_allclose(quantifier.predict(posteriors), posteriors.mean(axis=0))


@pytest.mark.parametrize("method", [CC, ACC])
def test_counting_labels_needs_no_posteriors(method):
    quantifier = method(LinearSVC()).fit(X, Y)
    assert set(np.unique(quantifier.represent(X))) == {0.0, 1.0}
    np.testing.assert_allclose(quantifier.predict(X), [0.6, 0.4], atol=0.1)


@pytest.mark.parametrize("method", [PCC, PACC, EMQ])
def test_a_classifier_without_posteriors_is_refused_with_the_way_out(method):
    with pytest.raises(InvalidSetting, match=r"no predict_proba. Wrap it: CalibratedClassifierCV\(LinearSVC\(\)\)"):
        method(LinearSVC()).fit(X, Y)
    method(CalibratedClassifierCV(LinearSVC())).fit(X, Y)


@pytest.mark.parametrize("kind", [csr_matrix, pd.DataFrame, list])
def test_numbers_come_in_any_container(kind):
    np.testing.assert_allclose(EMQ().fit(kind(X), Y).predict(kind(X)), [0.6, 0.4], atol=0.05)


@pytest.mark.parametrize("kind", [list, pd.Series, lambda y: pd.Series(y, dtype="category"), pd.Index])
def test_labels_come_in_any_container(kind):
    assert CC().fit(X, kind(Y)).classes_.tolist() == ["no", "yes"]


def test_a_classifier_that_can_take_nan_may_have_it():
    holes = np.where(np.arange(X.size).reshape(X.shape) % 7 == 0, np.nan, X)
    assert CC(HistGradientBoostingClassifier(max_iter=5)).fit(holes, Y).predict(holes).sum() == pytest.approx(1)


def test_score_is_minus_the_absolute_error():
    quantifier = PCC("precomputed").fit(np.eye(2)[CODES], Y)
    assert quantifier.score(np.eye(2)[[0, 0, 0, 1]], ["no", "no", "yes", "yes"]) == pytest.approx(-0.25)


def test_one_class_only_is_refused():
    with pytest.raises(InvalidData, match="one class only, 'yes'"):
        CC().fit(X, ["yes"] * len(X))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels_are_counted_and_the_first_is_named(missing):
    labels = Y.astype(object)
    labels[[3, 9]] = missing
    with pytest.raises(InvalidData, match=r"2 missing labels \(first at index 3\)"):
        CC().fit(X, labels)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[1:], "200 instances but y has 199 labels"),
        (Y[:, None], r"its shape is \(200, 1\)"),
        (np.linspace(0, 1, 200), "y contains fractions"),
        (np.array(["a", 1] * 100, dtype=object), "mix int and str"),
    ],
)
def test_labels_that_name_no_classes_are_refused(y, message):
    with pytest.raises(InvalidData, match=message):
        CC().fit(X, y)


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(InvalidData, match="X and y are empty"):
        CC().fit(np.empty((0, 2)), [])


@pytest.mark.parametrize(
    ("posteriors", "message"),
    [
        ([[0.5, 0.5], [0.7, 0.7]], r"1 of 2 rows .* not probability vectors \(first at index 1: \[0.7, 0.7\]\)"),
        ([[1.2, -0.2]], "at least 0 and sum to 1"),
        ([[np.nan, 1.0]], "1 of 1 rows"),
        ([[0.2, 0.3, 0.5]], r"one column per class \(2\); their shape is \(1, 3\)"),
        ([0.2, 0.8], r"stack \[1 - p, p\]"),
    ],
)
def test_what_is_no_probability_is_shown(posteriors, message):
    with pytest.raises(InvalidData, match=message):
        check_posteriors(posteriors, 2)


def test_rounded_posteriors_are_made_to_sum_to_one():
    np.testing.assert_allclose(check_posteriors([[0.3333, 0.6666]], 2).sum(axis=1), 1, atol=1e-15)


def test_errors_of_scikit_learn_become_one_line():
    frame = pd.DataFrame(X, columns=["height", "weight"])
    quantifier = CC().fit(frame, Y)
    with pytest.raises(InvalidData, match=r"Pipeline cannot use X: .*weight") as caught:
        quantifier.predict(frame.rename(columns={"weight": "mass"}))
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidData, match="cannot use X: Input X contains NaN"):
        CC().fit(np.where(X > 2, np.nan, X), Y)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv must be a whole number of at least 2, or a number between 0 and 1; got 1"),
        (1.5, "between 0 and 1; got 1.5"),
        (0.001, "cannot split 200"),
        ([], "returns no folds"),
        ("x", "cannot split 200"),
    ],
)
def test_an_impossible_cv_is_refused(cv, message):
    with pytest.raises(InvalidSetting, match=message):
        PACC(cv=cv).fit(X, Y)


def test_a_rare_class_lowers_the_number_of_folds_and_says_so():
    rare = np.array(["common"] * 196 + ["rare"] * 4)
    fewer = "Class 'rare' has 4 different instances, fewer than the 5 folds"
    with pytest.warns(QuanetWarning, match=fewer), pytest.warns(QuanetWarning, match="does not separate the classes"):
        PACC().fit(X[np.argsort(CODES)], rare)


def test_a_class_of_one_instance_cannot_be_learned():
    with pytest.raises(InvalidData, match="Class 'once' has only one instance"):
        PACC().fit(X, ["once"] + ["often"] * 199)


def test_the_classifier_is_an_estimator_or_one_word():
    with pytest.raises(InvalidSetting, match="None or 'precomputed'; got 'svm'"):
        CC("svm").fit(X, Y)


def test_one_column_of_numbers_is_refused():
    with pytest.raises(InvalidData, match="one-dimensional but does not contain strings"):
        CC().fit(np.arange(200.0), Y)


def test_a_method_of_ones_own_is_one_function():
    class Harmonic(AggregativeQuantifier):
        def aggregate(self, rows):
            means = 1 / (1 / np.clip(rows, 1e-9, 1)).mean(axis=-2)
            return means / means.sum(axis=-1, keepdims=True)

    assert Harmonic().fit(X, Y).predict(X).sum() == pytest.approx(1)
