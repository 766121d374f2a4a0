"""A diagnosis of instances that differ from the training data: points, words, examples, and what is unknown."""

from dataclasses import replace

import numpy as np
import pytest

from quanet import EMQ, Gaussians, GridSearchQ, TextClassifier, diagnose, load, save
from quanet.bags import Bags
from quanet.drift.scale import without_drift
from quanet.evaluation.contents import SomeTexts, contents_findings

TOPICS = {"film": ["film", "actor", "plot", "scene", "camera"], "flight": ["gate", "crew", "seat", "bag", "plane"]}


def texts(n, positive, rng, odd=0.05):
    """Texts of common words, of a mood, and of films; a share `odd` of them is about flights."""
    common = [f"w{at}" for at in range(60)]
    made, labels = [], []
    for at in range(n):
        label = int(at < round(n * positive))
        mood = ["good", "great", "nice"] if label else ["bad", "poor", "dull"]
        words = [*rng.choice(common, 14), *rng.choice(mood, 3)]
        words += [*rng.choice(TOPICS["flight" if rng.random() < odd else "film"], 4)]
        made.append(" ".join(rng.permutation(words)))
        labels.append(label)
    return made, labels


@pytest.fixture(scope="module")
def fitted():
    return EMQ(TextClassifier(views=["words"])).fit(*texts(2400, 0.5, np.random.default_rng(0)))


@pytest.fixture(scope="module")
def strange():
    return texts(300, 0.6, np.random.default_rng(3), odd=0.8)[0]


def test_texts_of_the_same_kind_are_quiet_at_any_prevalence(fitted):
    rng = np.random.default_rng(1)
    for positive in (0.1, 0.5, 0.9):
        bag, _ = texts(150, positive, rng)
        found = diagnose(fitted, bag)["contents"]
        assert found.severity in ("ok", "note")
        assert "are like the training texts" in found.sentence
        assert found.examples == ()


def test_other_texts_have_a_cost_words_and_three_examples(fitted, strange):
    found = diagnose(fitted, strange)["contents"]
    interval = fitted.predict_interval(strange)
    points = 100 * interval.drift.cost.max()
    assert interval.drift.state in ("widened", "refused")
    assert found.severity in {"widened": ("note", "warning"), "refused": ("alarm",)}[interval.drift.state]
    assert found.numbers["points"] == pytest.approx(points)
    assert f"drift may cost up to {points:.1f} points (from the bias on" in found.sentence
    assert "each left out once" in found.sentence
    more = found.sentence.split("; more ")[1].rstrip(".").split(", ")
    assert {word.strip("'") for word in more} <= set(TOPICS["flight"])
    assert f"Label about {int(interval.drift.labels)} random rows" in found.advice
    assert len(set(found.examples)) == 3
    assert set(found.examples) <= set(strange)
    assert all(set(example.split()) & set(TOPICS["flight"]) for example in found.examples)


def test_the_three_kinds_of_change_are_told_apart(fitted, strange):
    rng = np.random.default_rng(5)
    fewer = diagnose(fitted, texts(300, 0.1, rng)[0], level=0.99)
    assert fewer["prevalence"].severity == "note"
    assert fewer["contents"].severity in ("ok", "note")
    assert fewer["prior shift"].severity == "ok"
    about_flights = diagnose(fitted, strange)
    assert about_flights["contents"].severity in ("warning", "alarm")


def test_drift_that_costs_less_than_sampling_is_a_note(fitted, strange):
    inputs, interval = fitted.read(strange), fitted.predict_interval(strange)
    half = (interval.drift.upper - interval.drift.lower).max() / 2
    for factor, severity in ((0.9, "note"), (1.1, "warning")):
        cost = factor * half * interval.drift.cost / interval.drift.cost.max()
        drift = replace(interval.drift, cost=cost, state=np.array("widened", dtype=object)[()])
        (found,) = contents_findings(fitted, inputs, replace(interval, drift=drift))
        assert found.severity == severity


def test_a_copied_text_is_one_example(fitted, strange):
    found = diagnose(fitted, strange[:1] * 200)["contents"]
    assert found.examples == (strange[0],)


def test_a_loaded_model_and_a_search_say_the_same(fitted, strange, tmp_path):
    save(fitted, tmp_path / "model")
    found = diagnose(fitted, strange)["contents"]
    again = diagnose(load(tmp_path / "model"), strange)["contents"]
    assert (again.sentence, again.examples) == (found.sentence, found.examples)
    X, y = Gaussians().draw([0.5, 0.5], 300, rng=0)
    search = GridSearchQ(EMQ(), {"calibration": ["bcts"]}).fit(X, y)
    assert "other datasets" in diagnose(search, X[:200] + 3)["contents"].sentence


def test_what_is_unknown_is_reported_with_the_reason(fitted, strange):
    old = EMQ(TextClassifier(views=["words"]))
    with without_drift():  # as in models of older versions
        old.fit(*texts(300, 0.5, np.random.default_rng(0)))
    [finding] = contents_findings(old, old.read(strange), old.predict_interval(strange))
    assert finding.severity == "note"
    assert finding.sentence.startswith("It is unknown whether the instances differ from the training data: the model")
    assert "sampling only" in finding.advice
    alike = EMQ().fit(np.tile([[0.0, 0.0], [1.0, 1.0]], (50, 1)), [0, 1] * 50)
    sentence = diagnose(alike, np.tile([[0.0, 0.0], [1.0, 1.0]], (20, 1)))["contents"].sentence
    assert sentence.startswith(("It is unknown", "The instances are like"))
    one = fitted.predict_interval(strange[:1])
    [finding] = contents_findings(fitted, fitted.read(strange[:1]), one)
    assert "one instance does not show it" in finding.sentence


def test_no_finding_without_drift(fitted, strange):
    without = fitted.predict_interval(strange, drift=False)
    assert contents_findings(fitted, fitted.read(strange), without) == []
    assert "contents" not in [one.name for one in diagnose(fitted, strange, interval=without)]


def test_posteriors_alone_say_what_they_do_not_show():
    X, y = Gaussians().draw([0.5, 0.5], 1500, rng=0)
    positive = 1 / (1 + np.exp(-X[:, 0]))
    posteriors = np.column_stack([1 - positive, positive])
    quantifier = EMQ("precomputed").fit(posteriors, y)
    found = diagnose(quantifier, posteriors[:300])["contents"]
    assert found.sentence.startswith("The posteriors are like the training posteriors")
    assert found.sentence.endswith("Drift that posteriors do not show is unknown.")


def test_a_difference_in_one_group_is_reported_for_that_group(fitted, strange):
    rng = np.random.default_rng(9)
    usual = texts(1500, 0.5, rng)[0]
    every = [*usual, *strange[:40]]
    inputs = fitted.read(every)
    bags = Bags([np.arange(1500), np.arange(1500, 1540)], labels=["usual", "odd"])
    total, groups = fitted.predict_interval(inputs), fitted.predict_interval_bags(inputs, bags)
    trusted = replace(total, drift=replace(total.drift, state="trusted"))
    some = SomeTexts(every, inputs.descriptions, np.repeat([0, 1], [1500, 40]))
    [finding] = contents_findings(fitted, inputs, trusted, some, bags=bags, groups=groups)
    assert finding.sentence.startswith("Texts of 1 of 2 groups differ")
    assert "of such a group" in finding.advice
    assert set(finding.examples) <= set(strange)
    if groups.drift.state[1] == "refused":
        assert "1 refused (odd)" in finding.sentence
    assert finding.numbers["points"] == pytest.approx(100 * groups.drift.cost[1].max())


def test_drift_that_cannot_be_seen_is_named_where_it_may_cost_much():
    X, y = Gaussians().draw([0.5, 0.5], 300, rng=0)
    quantifier = EMQ().fit(X, y)
    bag, _ = Gaussians().draw([0.5, 0.5], 3000, rng=1)
    interval = quantifier.predict_interval(bag)
    assert interval.drift.state == "trusted"
    [finding] = contents_findings(quantifier, quantifier.read(bag), interval)
    assert finding.severity == "ok"
    assert "Drift of up to" in finding.sentence


def test_few_rows_are_said_to_show_little():
    quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 300, rng=0))
    bag, _ = Gaussians().draw([0.5, 0.5], 30, rng=1)
    interval = quantifier.predict_interval(bag)
    assert interval.drift.state == "few rows"
    [finding] = contents_findings(quantifier, quantifier.read(bag), interval)
    assert finding.severity == "note"
    assert "too few to rule out drift" in finding.sentence
    assert f"label {interval.drift.labels} at random" in finding.advice


def test_the_severity_of_a_misfit_depends_on_the_points_at_stake():
    X, y = Gaussians().draw([0.5, 0.5], 1500, rng=0)
    quantifier = EMQ().fit(X, y)
    bag = 0.6 * Gaussians().draw([0.5, 0.5], 500, rng=1)[0]
    interval = quantifier.predict_interval(bag)
    severities = []
    for half in (0.3, 0.005):
        narrow = replace(interval, lower=interval.estimate - half, upper=interval.estimate + half, drift=None)
        severities.append(diagnose(quantifier, bag, interval=narrow)["prior shift"].severity)
    assert severities == ["note", "alarm"]
