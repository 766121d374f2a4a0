"""Cross-fitting, and the fold gap: how it is measured and closed."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from quanet import ACC, BBSE, EMQ, PACC, RLLS, QuaNet, TextClassifier, WordBags, load, save
from quanet.classifiers.cross_fitting import (
    ENOUGH_OF_CLASS,
    CrossFit,
    close_fold_gap,
    cross_fit,
    cross_fit_with_gap,
    measure_fold_gap,
    usual_folds,
)
from quanet.uncertainty.relearning import as_full_fit

CODES = np.repeat([0, 1], 200)


def posteriors(separation, spread=1.0):
    """Posteriors of two classes whose log odds are normal, `separation` either side of 0."""
    noise = np.random.default_rng(0).normal(size=len(CODES)) * spread
    odds = np.exp(np.where(CODES == 1, separation, -separation) + noise)
    return np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)


def mean_odds(rows):
    odds = np.log(rows[:, 1] / rows[:, 0])
    return np.array([odds[:200].mean(), odds[200:].mean()])


def test_what_a_part_of_the_data_is_worth_tells_of_the_next():
    less, more = posteriors(1.0), posteriors(1.3)
    gap = measure_fold_gap(less, more, CODES, (0.6, 0.8))
    # Errors of learning shrink with the root: from .8 to all is worth so much of from .6 to .8.
    share = (0.8**-0.5 - 1) / (0.6**-0.5 - 0.8**-0.5)
    moved = close_fold_gap(more, CODES, gap)
    np.testing.assert_allclose(mean_odds(moved) - mean_odds(more), 0.3 * share * np.array([-1, 1]))
    np.testing.assert_allclose(moved.sum(axis=1), 1)


def test_posteriors_that_spread_more_will_spread_more():
    gap = measure_fold_gap(posteriors(1.0), posteriors(1.0, spread=1.2), CODES, (0.6, 0.8))
    assert (gap[:, 2] > 1).all()
    rows = posteriors(1.0)
    spread = [np.log(one[CODES == 1, 1] / one[CODES == 1, 0]).std() for one in (rows, close_fold_gap(rows, CODES, gap))]
    assert spread[1] == pytest.approx(spread[0] * gap[1, 2])


def test_no_gap_changes_nothing():
    rows = posteriors(1.0)
    np.testing.assert_allclose(close_fold_gap(rows, CODES, measure_fold_gap(rows, rows, CODES, (0.6, 0.8))), rows)


def test_too_few_instances_of_a_class_say_nothing():
    rows = posteriors(1.0)
    assert measure_fold_gap(rows[:210], rows[:210], CODES[:210], (0.6, 0.8)) is None


@pytest.fixture(scope="module")
def words():
    return WordBags().draw([0.5, 0.5], 300, rng=0)


def test_measuring_the_gap_leaves_the_posteriors_unchanged(words):
    texts, labels = words
    classes, codes = np.unique(labels, return_inverse=True)
    found = cross_fit_with_gap(TextClassifier(views=["words"]), texts, codes, classes, cv=5)
    _, plain, held = cross_fit(TextClassifier(views=["words"]), texts, codes, classes, cv=5)
    np.testing.assert_allclose(found.posteriors, plain, atol=5e-4)  # folds are solved together, up to a tolerance
    np.testing.assert_array_equal(found.positions, held)
    assert found.fold_gap.shape == (2, 3)
    assert found.fold_gap[0, 0] > 0  # more confident of the class that it is
    assert found.fold_gap[1, 1] > 0


def test_two_folds_cannot_tell(words):
    texts, labels = words
    classes, codes = np.unique(labels, return_inverse=True)
    assert cross_fit_with_gap(TextClassifier(views=["words"]), texts, codes, classes, cv=2).fold_gap is None


def test_few_instances_of_a_class_move_intervals_but_not_estimates(words, tmp_path):
    texts, labels = words  # 60 of each class in two of five folds
    fitted = PACC(TextClassifier(views=["words"])).fit(texts, labels)
    moved = as_full_fit(fitted)
    assert moved is not fitted
    assert moved.rates_[1, 1] > fitted.rates_[1, 1]
    assert moved.rates_[1, 0] < fitted.rates_[1, 0]
    found = fitted.predict_interval(texts[:80])
    np.testing.assert_allclose(found.estimate, fitted.predict(texts[:80]), rtol=1e-12)
    save(fitted, tmp_path / "model")
    again = load(tmp_path / "model").predict_interval(texts[:80])
    np.testing.assert_allclose(again.lower, found.lower)


@pytest.mark.parametrize("rarest", [ENOUGH_OF_CLASS - 1, ENOUGH_OF_CLASS])
def test_rates_are_learned_with_the_gap_closed_if_enough_instances_show_it(rarest):
    rows = posteriors(1.3)
    gap = measure_fold_gap(posteriors(1.0), rows, CODES, (0.6, 0.8))
    found = CrossFit(None, rows, np.arange(len(CODES)), gap, None, rarest).as_full_fit(CODES)
    np.testing.assert_array_equal(found, close_fold_gap(rows, CODES, gap) if rarest == ENOUGH_OF_CLASS else rows)


@pytest.fixture(scope="module")
def many_words():
    return WordBags().draw([0.5, 0.5], 560, rng=0)  # 112 of each class in two of five folds


@pytest.mark.parametrize("method", [PACC, RLLS, partial(BBSE, outputs="soft")])
def test_mean_posteriors_of_a_class_are_those_of_the_final_classifier(many_words, method):
    fitted = method(TextClassifier(views=["words"])).fit(*many_words)
    held_out = fitted.held_out_.doubles()
    closed = as_full_fit(fitted)
    of_folds = fitted.relearn(held_out.inputs, held_out.codes)
    name = "rates_" if method is PACC else "joint_"
    np.testing.assert_allclose(getattr(closed, name), getattr(fitted, name), atol=1e-6)
    assert np.trace(getattr(fitted, name)) > np.trace(getattr(of_folds, name)) + 1e-3


@pytest.mark.parametrize("method", [ACC, BBSE, EMQ])
def test_methods_of_labels_and_likelihoods_learn_from_the_folds(many_words, method):
    texts, labels = many_words
    fitted = method(TextClassifier(views=["words"])).fit(texts, labels)
    held_out = fitted.held_out_.doubles()
    assert held_out.fold_gap is not None
    of_folds = fitted.relearn(held_out.inputs, held_out.codes)
    np.testing.assert_allclose(of_folds.predict(texts[:80]), fitted.predict(texts[:80]), atol=1e-6)


def test_where_it_is_not_known_a_quantifier_is_as_it_is():
    fitted = EMQ("precomputed").fit(posteriors(1.0), CODES)
    assert fitted.held_out_.fold_gap is None
    assert as_full_fit(fitted) is fitted


def test_posteriors_of_zero_do_not_decide_the_gap():
    # A tenth of a per cent of zeros, by rounding: what is measured must stay what it is without them.
    less, more = posteriors(1.0), posteriors(1.3)
    with_zeros = [rows.copy() for rows in (less, more)]
    for rows in with_zeros:
        rows[[0, 399]] = [[1, 0], [0, 1]]
    plain, zeros = (measure_fold_gap(*pair, CODES, (0.6, 0.8)) for pair in ((less, more), with_zeros))
    np.testing.assert_allclose(zeros, plain, atol=0.06)
    moved = close_fold_gap(with_zeros[1], CODES, zeros)
    np.testing.assert_array_equal(moved == 0, with_zeros[1] == 0)
    np.testing.assert_allclose(moved.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("classifier", "sizes", "folds"),
    [
        (TextClassifier(), [100, 100], 10),
        (TextClassifier(), [100, 99], 5),
        (TextClassifier(), [1000, 1000], 10),
        (TextClassifier(), [1000, 1001], 5),
        (TextClassifier(), [300, 9], 5),  # ten folds would not all have the rarest class
        (LogisticRegression(), [500, 500], 5),  # twice the folds take twice the time
    ],
)
def test_more_folds_only_where_they_are_cheap_and_classes_are_large_enough(classifier, sizes, folds):
    assert usual_folds(classifier, np.array(sizes)) == folds


@pytest.mark.parametrize(("copied", "folds"), [(False, 10), (True, 5)])
def test_copies_do_not_make_more_folds(words, copied, folds):
    """Nine copies of one text are one text: 199 different ones are too few for ten folds."""
    texts, labels = words
    rows = [*range(199), *([0] * 9 if copied else range(199, 208))]
    texts, labels = [texts[row] for row in rows], labels[rows]
    chosen, given = (QuaNet(cv=cv).fit(texts, labels).held_out_.inputs for cv in (None, folds))
    np.testing.assert_array_equal(chosen, given)
