"""Expected accuracy: laws, worked examples, and agreement with the truth where nothing is uncertain."""

from dataclasses import replace

import numpy as np
import pytest

from quanet import CC, EMQ, PACC, Gaussians, predict_accuracy
from quanet.arrays import Merged
from quanet.drift.scale import without_drift
from quanet.errors import InvalidSetting
from quanet.evaluation.accuracy import learn_label_errors, rake
from quanet.uncertainty.relearning import REPLICATES, as_full_fit


@pytest.fixture(scope="module")
def fitted():
    with without_drift():
        return EMQ().fit(*Gaussians(k=3).draw([0.3, 0.3, 0.4], 600, rng=0))


@pytest.fixture(scope="module")
def bag():
    return Gaussians(k=3).draw([0.6, 0.3, 0.1], 500, rng=1)


@pytest.fixture(scope="module")
def found(fitted, bag):
    return predict_accuracy(fitted, bag[0])


def test_rows_sum_to_the_prevalences_and_columns_to_the_predicted_labels(fitted, bag, found):
    table = found.confusion.estimate
    np.testing.assert_allclose(table.sum(axis=1), fitted.predict(bag[0]), atol=1e-9)
    labels = fitted.classifier_.predict(bag[0])
    np.testing.assert_allclose(table.sum(axis=0), [(labels == c).mean() for c in range(3)], atol=1e-9)


def test_accuracy_and_f1_are_those_of_the_confusion_matrix(found):
    table = found.confusion.estimate
    f1 = 2 * np.diag(table) / (table.sum(axis=0) + table.sum(axis=1))
    assert found.accuracy.estimate == pytest.approx(np.trace(table))
    np.testing.assert_allclose(found.f1.estimate, f1)
    assert found.macro_f1.estimate == pytest.approx(f1.mean())


def test_intervals_contain_the_estimate_and_widen_with_the_level(fitted, bag, found):
    wide = predict_accuracy(fitted, bag[0], level=0.99)
    for name in ("accuracy", "macro_f1", "f1", "confusion"):
        near, far = getattr(found, name), getattr(wide, name)
        assert ((near.lower <= near.estimate) & (near.estimate <= near.upper)).all()
        assert ((far.lower <= near.lower) & (far.upper >= near.upper)).all()
        assert (near.lower >= 0).all()
        assert (near.upper <= 1).all()


def test_a_perfect_classifier_is_expected_to_be_perfect():
    posteriors, labels = np.repeat(np.eye(2), 200, axis=0), np.repeat([0, 1], 200)
    with without_drift():
        perfect = PACC("precomputed").fit(posteriors, labels)
    found = predict_accuracy(perfect, np.repeat(np.eye(2), [30, 70], axis=0))
    assert found.accuracy.estimate == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found.confusion.estimate, np.diag([0.3, 0.7]), atol=1e-6)


def test_uninformative_posteriors_leave_the_held_out_rates():
    """All posteriors are alike given the label, so nothing but rates is known: recalls 0.9 and 0.8, by hand."""
    by_label = np.array([[0.7, 0.3], [0.3, 0.7]])
    labels = np.repeat([0, 1, 0, 1], [90, 10, 20, 80])
    truth = np.repeat([0, 1], 100)
    with without_drift():
        quantifier = PACC("precomputed").fit(by_label[labels], truth)
    # A bag of 1,000 with prevalences 0.5 and 0.5: 0.5 * 0.9 + 0.5 * 0.2 = 0.55 are labelled 0.
    found = predict_accuracy(quantifier, by_label[np.repeat([0, 1], [550, 450])])
    assert found.accuracy.estimate == pytest.approx(0.85, abs=1e-3)
    np.testing.assert_allclose(found.confusion.estimate, [[0.45, 0.05], [0.1, 0.4]], atol=1e-3)


def test_relabelling_the_classes_permutes_the_answer(bag, found):
    names = np.array(["c", "a", "b"])
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 600, rng=0)
    with without_drift():
        other = predict_accuracy(EMQ().fit(X, names[y]), bag[0])
    order = np.argsort(names)
    np.testing.assert_allclose(other.f1.estimate, found.f1.estimate[order], atol=1e-4)
    assert other.accuracy.estimate == pytest.approx(found.accuracy.estimate, abs=1e-4)


def test_weights_count_like_copies(fitted, bag):
    X, weights = bag[0], np.r_[np.full(250, 2.0), np.ones(250)]
    copies = np.concatenate([X[:250], X])
    interval = fitted.predict_interval(copies)
    weighted = predict_accuracy(fitted, X, interval=interval, weights=weights)
    copied = predict_accuracy(fitted, copies, interval=interval)
    np.testing.assert_allclose(weighted.confusion.estimate, copied.confusion.estimate, atol=1e-3)


def test_rows_that_stand_for_several_instances_count_as_these(fitted, bag):
    read, interval = fitted.read(bag[0][:100]), fitted.predict_interval(bag[0])
    counts = np.arange(100) % 7 + 1
    merged = Merged(counts, counts.astype(float), np.zeros(100))
    few = predict_accuracy(fitted, read, interval=interval, weights=counts, merged=merged)
    alike = replace(read.take(np.repeat(np.arange(100), counts)), hashes=None)  # different instances, no copies
    every = predict_accuracy(fitted, alike, interval=interval)
    assert few.n == every.n == counts.sum()
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(getattr(few.f1, name), getattr(every.f1, name), atol=1e-9)


def test_a_method_without_held_out_instances_knows_nothing(bag):
    with without_drift():
        cc = CC().fit(*Gaussians(k=3).draw([0.3, 0.3, 0.4], 100, rng=0))
    with pytest.raises(InvalidSetting, match="CC keeps no posteriors"):
        predict_accuracy(cc, bag[0])


@pytest.mark.no_cover
def test_most_intervals_contain_the_truth(fitted):
    inside = []
    for seed in range(12):
        X, y = Gaussians(k=3).draw([0.2, 0.3, 0.5], 200, rng=100 + seed)
        one = predict_accuracy(fitted, X, drift=False).accuracy
        inside.append(one.lower <= (fitted.classifier_.predict(X) == y).mean() <= one.upper)
    assert np.sum(inside) >= 9  # of 12; fewer has probability 0.0002 at 95 %


def test_the_table_and_the_text(found):
    table = found.frame()
    assert table["measure"].tolist() == ["accuracy", "macro F1", "F1", "F1", "F1"]
    assert str(found).startswith(f"Expected accuracy {100 * found.accuracy.estimate:.1f} %")


def test_raking_keeps_the_odds_ratio():
    table = rake(np.array([[0.4, 0.1], [0.2, 0.3]]), np.array([0.6, 0.4]), np.array([0.3, 0.7]))
    assert table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]) == pytest.approx(6)


def test_every_resample_has_the_quantifier_that_learned_from_it(fitted):
    full, known = as_full_fit(fitted), learn_label_errors(fitted)[1:]
    held_out = full.held_out_.doubles()
    resamples = held_out.resamples(np.random.default_rng(0), REPLICATES)
    for one, resampled in zip(known, resamples, strict=True):
        np.testing.assert_array_equal(one.codes, resampled.codes)
        relearned = full.relearn(resampled.inputs, resampled.codes)
        bag = held_out.inputs[:50]
        np.testing.assert_array_equal(
            one.quantifier.aggregate(one.quantifier.rows(bag)), relearned.aggregate(relearned.rows(bag))
        )
