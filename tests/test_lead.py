"""How far a classifier is ahead of those of its folds: what is measured, and what is done with it."""

import numpy as np
import pytest

from quanet import EMQ, PACC, TextClassifier, WordBags, load, save
from quanet.classifiers import cross_fit, cross_fit_ahead
from quanet.lead import measure_lead, move_ahead
from quanet.uncertainty.held import brought_ahead

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
    lead = measure_lead(less, more, CODES, (0.6, 0.8))
    # Errors of learning shrink with the root: from .8 to all is worth so much of from .6 to .8.
    share = (0.8**-0.5 - 1) / (0.6**-0.5 - 0.8**-0.5)
    moved = move_ahead(more, CODES, lead)
    np.testing.assert_allclose(mean_odds(moved) - mean_odds(more), 0.3 * share * np.array([-1, 1]))
    np.testing.assert_allclose(moved.sum(axis=1), 1)


def test_posteriors_that_spread_more_will_spread_more():
    lead = measure_lead(posteriors(1.0), posteriors(1.0, spread=1.2), CODES, (0.6, 0.8))
    assert (lead[:, 2] > 1).all()
    rows = posteriors(1.0)
    spread = [np.log(one[CODES == 1, 1] / one[CODES == 1, 0]).std() for one in (rows, move_ahead(rows, CODES, lead))]
    assert spread[1] == pytest.approx(spread[0] * lead[1, 2])


def test_no_lead_changes_nothing():
    rows = posteriors(1.0)
    np.testing.assert_allclose(move_ahead(rows, CODES, measure_lead(rows, rows, CODES, (0.6, 0.8))), rows)


def test_too_few_instances_of_a_class_say_nothing():
    rows = posteriors(1.0)
    assert measure_lead(rows[:210], rows[:210], CODES[:210], (0.6, 0.8)) is None


@pytest.fixture(scope="module")
def words():
    return WordBags().draw([0.5, 0.5], 300, rng=0)


def test_it_is_measured_beside_the_same_posteriors(words):
    texts, labels = words
    classes, codes = np.unique(labels, return_inverse=True)
    found = cross_fit_ahead(TextClassifier(views=["words"]), texts, codes, classes, cv=5)
    _, plain, held = cross_fit(TextClassifier(views=["words"]), texts, codes, classes, cv=5)
    np.testing.assert_allclose(found.posteriors, plain, atol=1e-5)
    np.testing.assert_array_equal(found.held, held)
    assert found.lead.shape == (2, 3)
    assert found.lead[0, 0] > 0  # surer of the class that it is
    assert found.lead[1, 1] > 0


def test_two_folds_cannot_tell(words):
    texts, labels = words
    classes, codes = np.unique(labels, return_inverse=True)
    assert cross_fit_ahead(TextClassifier(views=["words"]), texts, codes, classes, cv=2).lead is None


def test_it_is_kept_and_used_for_intervals_and_not_for_estimates(words, tmp_path):
    texts, labels = words
    fitted = PACC(TextClassifier(views=["words"])).fit(texts, labels)
    ahead = brought_ahead(fitted)
    assert ahead is not fitted
    assert ahead.rates_[1, 1] > fitted.rates_[1, 1]
    assert ahead.rates_[1, 0] < fitted.rates_[1, 0]
    found = fitted.predict_interval(texts[:80])
    np.testing.assert_allclose(found.estimate, fitted.predict(texts[:80]), rtol=1e-12)
    save(fitted, tmp_path / "model")
    again = load(tmp_path / "model").predict_interval(texts[:80])
    np.testing.assert_allclose(again.lower, found.lower)


def test_where_it_is_not_known_a_quantifier_is_as_it_is():
    fitted = EMQ("precomputed").fit(posteriors(1.0), CODES)
    assert fitted.lead_ is None
    assert brought_ahead(fitted) is fitted


def test_posteriors_of_zero_do_not_decide_the_lead():
    # A tenth of a per cent of zeros, by rounding: what is measured must stay what it is without them.
    less, more = posteriors(1.0), posteriors(1.3)
    with_zeros = [rows.copy() for rows in (less, more)]
    for rows in with_zeros:
        rows[[0, 399]] = [[1, 0], [0, 1]]
    plain, zeros = (measure_lead(*pair, CODES, (0.6, 0.8)) for pair in ((less, more), with_zeros))
    np.testing.assert_allclose(zeros, plain, atol=0.06)
    moved = move_ahead(with_zeros[1], CODES, zeros)
    np.testing.assert_array_equal(moved == 0, with_zeros[1] == 0)
    np.testing.assert_allclose(moved.sum(axis=1), 1)
