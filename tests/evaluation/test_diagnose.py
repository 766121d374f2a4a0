"""What a diagnosis says of sound bags, of drift, of foreign texts, and of what it cannot know."""

from functools import cache

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from quanet import ACC, CC, EMQ, PACC, SVMQ, Gaussians, QuaNet, TextClassifier, WordBags, diagnose
from quanet.errors import InvalidBags, InvalidData, InvalidSetting, QuanetWarning
from quanet.evaluation.contents import unknown_share
from quanet.evaluation.findings import SEVERITIES, Diagnosis, Finding, zero_shares
from quanet.uncertainty.regions import Interval

X, Y = Gaussians().draw([0.5, 0.5], 1500, rng=0)
NAMES = ["prior shift", "prevalence", "classifier", "bag size", "confidence", "contents"]


@cache
def fitted_once():
    return EMQ().fit(X, Y)


@pytest.mark.parametrize("method", [EMQ(), PACC(), ACC(), QuaNet()], ids=repr)
def test_a_sound_bag_raises_no_alarm_with_any_method(method):
    bag, _ = Gaussians().draw([0.5, 0.5], 500, rng=11)
    fitted = method.fit(X, Y)
    found = diagnose(fitted, bag)
    assert [finding.name for finding in found] == NAMES
    assert found["prevalence"].severity == found["bag size"].severity == found["classifier"].severity == "ok"
    # At the usual level one sound bag of twenty is an alarm, and with few held-out instances some more.
    assert diagnose(fitted, bag, level=0.99)["prior shift"].severity == "ok"


def test_prior_shift_is_noted_as_another_prevalence_and_no_more():
    bag, _ = Gaussians().draw([0.9, 0.1], 500, rng=1)
    found = diagnose(fitted_once(), bag)
    assert found["prior shift"].severity == "ok"
    assert found["prevalence"].severity == "note"
    assert found["prevalence"].numbers["p_value"] < 1e-6
    assert "EMQ or PACC" in found["prevalence"].advice


def test_drift_raises_the_alarm_and_says_what_to_do():
    bag, _ = Gaussians().draw([0.5, 0.5], 500, rng=1)
    found = diagnose(fitted_once(), 0.3 * bag)
    assert found["contents"].severity == found.severity == "alarm"
    assert "refine" in found["contents"].advice
    # One alarm is enough: the interval of a refused bag includes what does not fit.
    assert found["prior shift"].severity == "note"
    assert found["prior shift"].numbers["points"] < 100 * found["prior shift"].numbers["half_width"]
    assert found["confidence"].severity == "note"
    assert "less confident" in found["confidence"].sentence
    assert "shorter, noisier" in found["confidence"].advice


def test_more_confident_than_expected_has_its_own_advice():
    bag, _ = Gaussians().draw([0.5, 0.5], 500, rng=1)
    found = diagnose(fitted_once(), 3 * bag)["confidence"]
    assert "more confident" in found.sentence
    assert "longer, clearer" in found.advice
    assert "does not mean more accurate" in found.advice
    assert "noisier" not in found.advice


def zero_interval(estimate, upper, classes=("neg", "pos")):
    estimate, upper = np.array(estimate), np.array(upper)
    k = len(classes)
    covariance, sizes = np.zeros((*estimate.shape, k)), np.full(estimate.shape[:-1], 100)
    return Interval(estimate, 0 * estimate, upper, covariance, sizes, 0.95, "closed", np.array(classes))


def test_a_share_of_zero_comes_with_what_cannot_be_ruled_out():
    total, sure = zero_interval([0.0004, 0.9996], [0.043, 1.0]), zero_interval([0.01, 0.99], [0.03, 1.0])
    groups = zero_interval([[0.0, 1.0], [0.0, 1.0], [0.02, 0.98]], [[0.05, 1.0], [0.082, 1.0], [0.3, 1.0]])
    assert zero_shares(sure) == []
    [alone] = zero_shares(total)
    assert alone.severity == "note"
    assert "'neg': up to 4.3 %." in alone.sentence
    assert "does not mean that a class is absent" in alone.advice
    [both] = zero_shares(total, groups)
    assert "'neg': up to 4.3 % overall, up to 8.2 % in 2 of 3 groups." in both.sentence
    assert both.numbers == {"neg": 0.082}
    [only] = zero_shares(sure, groups)
    assert "'neg': up to 8.2 % in 2 of 3 groups." in only.sentence


def test_of_many_shares_of_zero_those_with_the_highest_ends_are_named():
    total = zero_interval([0.0, 0.0, 0.0, 0.0, 1.0], [0.01, 0.04, 0.02, 0.00001, 1.0], tuple("abcde"))
    assert "'b': up to 4.0 %; 'c': up to 2.0 %; 'a': up to 1.0 %; and 1 more class." in zero_shares(total)[0].sentence
    assert "up to 0.05 %" in zero_shares(zero_interval([0.0, 1.0], [0.00001, 1.0]))[0].sentence


@pytest.mark.no_cover
def test_the_prevalence_test_keeps_its_level():
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(120):
        bag, _ = Gaussians().draw(rng.multinomial(60, [0.5, 0.5]) / 60, 60, rng=seed)
        p_values.append(diagnose(fitted_once(), bag, resamples=1)["prevalence"].numbers["p_value"])
    assert 0.01 <= np.mean(np.array(p_values) < 0.05) <= 0.1


def test_a_small_bag_is_told_how_large_it_should_be():
    bag, _ = Gaussians().draw([0.5, 0.5], 10, rng=1)
    finding = diagnose(fitted_once(), bag)["bag size"]
    assert finding.severity == "alarm"
    assert finding.numbers["needed"] == pytest.approx(10 * (finding.numbers["half_width"] / 0.05) ** 2)


def test_a_classifier_that_guesses_is_found_out():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.45, 0.55, size=2000)
    posteriors, labels = np.column_stack([rows, 1 - rows]), rng.integers(2, size=2000)
    with pytest.warns(QuanetWarning, match="does not separate the classes"):
        quantifier = PACC("precomputed").fit(posteriors, labels)
    found = diagnose(quantifier, posteriors[:300])
    assert found["shrinkage"].numbers == {"shrinkage": 1.0}
    assert found["classifier"].severity in ("warning", "alarm")
    assert found["bag size"].severity == "alarm"


def test_any_number_of_classes_will_do():
    source = Gaussians(k=4)
    quantifier = EMQ().fit(*source.draw([0.25] * 4, 2000, rng=0))
    bag, _ = source.draw([0.1, 0.2, 0.3, 0.4], 500, rng=1)
    found = diagnose(quantifier, bag)
    assert found["prior shift"].severity == "ok"
    assert found["prevalence"].severity == "note"


def test_texts_of_another_kind_are_noticed_by_their_words():
    source = WordBags()
    texts, labels = source.draw([0.5, 0.5], 600, rng=0)
    quantifier = EMQ().fit(texts, labels)
    bag, _ = source.draw([0.5, 0.5], 200, rng=1)
    assert diagnose(quantifier, bag)["words"].severity == "ok"
    foreign = diagnose(quantifier, ["völlig fremde wörter hier"] * 200)
    assert foreign["words"].severity == "alarm"
    assert foreign["words"].numbers["unknown"] == 1.0


def test_held_out_texts_say_how_many_new_words_are_usual():
    texts, labels = ["good film", "bad film"] * 30, ["yes", "no"] * 30
    quantifier = CC().fit(texts, labels)
    found = diagnose(quantifier, ["good one", "bad one"] * 10, X_held=["good day", "bad day"] * 10, y_held=labels[:20])
    assert found["words"].numbers == {"unknown": 0.5, "usual": 0.5}
    assert found["words"].severity == "ok"


def test_a_method_that_keeps_nothing_says_so_or_takes_held_out_instances():
    counted = CC().fit(X, Y)
    bag, _ = Gaussians().draw([0.5, 0.5], 500, rng=7)
    finding, contents = diagnose(counted, bag)
    assert finding.severity == "note"
    assert "X_held" in finding.advice
    assert contents.name == "contents"
    held = Gaussians().draw([0.5, 0.5], 800, rng=3)
    assert [one.name for one in diagnose(counted, bag, X_held=held[0], y_held=held[1])] == NAMES


def test_a_method_without_posteriors_names_one_with():
    finding = diagnose(SVMQ().fit(X[:300], Y[:300]), X[:100])[0]
    assert "does not use posteriors" in finding.sentence


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"level": 1.0}, InvalidSetting, "level must be a number from 0"),
        ({"level": 0}, InvalidSetting, "level must be a number from 0"),
        ({"X": X[:0]}, InvalidBags, "The bag is empty"),
        ({"X_held": X[:50]}, InvalidData, "must be passed together"),
        ({"X_held": X[:50], "y_held": [7] * 50}, InvalidData, "Label 7"),
        ({"X_held": X[:50], "y_held": [0] * 50}, InvalidData, "Class 1 has 0 held-out instances"),
    ],
)
def test_bad_input_is_named(change, error, words):
    with pytest.raises(error, match=words):
        diagnose(fitted_once(), **{"X": X[:100]} | change)


@pytest.mark.parametrize("wrap", [lambda c: c, FrozenEstimator], ids=["plain", "frozen"])
def test_unknown_words_are_counted_for_every_kind_of_reader(wrap):
    texts, labels = ["good film", "bad film"] * 10, ["yes", "no"] * 10
    for classifier in (TextClassifier(), make_pipeline(CountVectorizer(), LogisticRegression())):
        assert unknown_share(wrap(classifier.fit(texts, labels)), ["good flight", "film"]) == pytest.approx(1 / 3)
    assert unknown_share(LogisticRegression(), ["good"]) is None
    assert unknown_share(TextClassifier().fit(texts, labels), ["", "!"]) is None


def test_findings_are_found_by_place_and_name_and_the_worst_counts():
    findings = [Finding(str(at), severity, f"It is {severity}.") for at, severity in enumerate(SEVERITIES)]
    found = Diagnosis(findings)
    assert len(found) == 4
    assert found[0] is found["0"]
    assert found.severity == "alarm"
    assert found[:2].severity == "note"
    assert repr(found) == "Diagnosis(4 findings, worst: alarm)"
    assert str(found[:2]) == "ok: It is ok.\nnote: It is note."
    with pytest.raises(KeyError, match="Unknown finding 'size'"):
        found["size"]


def test_one_instance_is_told_what_cannot_be_checked():
    found = diagnose(fitted_once(), X[:1])
    assert [one.name for one in found] == ["bag size"]
    assert found.severity == "alarm"
    assert "prior shift, prevalence, classifier, confidence and drift cannot be checked" in found[0].sentence
