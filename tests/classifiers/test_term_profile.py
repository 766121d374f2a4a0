"""The topics of texts compared with the training texts: the distance, its level, and what it does not detect."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from quanet import CC, EMQ, TextClassifier, diagnose, load, save
from quanet.classifiers.terms import TermProfile, unit_rows
from quanet.diagnostics.text_drift import excess_words

TOPICS = {"film": ["film", "actor", "plot", "scene", "camera"], "flight": ["gate", "crew", "seat", "bag", "plane"]}


def texts(n, positive, rng, topic="film", odd=0.0):
    """Texts of common words, of a mood, and of a topic; `odd` is the share of the other topic."""
    common = [f"w{at}" for at in range(60)]
    made, labels = [], []
    for at in range(n):
        label = int(at < round(n * positive))
        other = "flight" if topic == "film" else "film"
        mood = ["good", "great", "nice"] if label else ["bad", "poor", "dull"]
        words = [*rng.choice(common, 14), *rng.choice(mood, 3)]
        words += [*rng.choice(TOPICS[other if rng.random() < odd else topic], 4)]
        made.append(" ".join(rng.permutation(words)))
        labels.append(label)
    return made, labels


@pytest.fixture(scope="module")
def fitted():
    made, labels = texts(1200, 0.5, np.random.default_rng(0), odd=0.05)
    return TextClassifier(views=["words"]).fit(made, labels)


def test_bags_of_any_prevalence_are_alike_and_the_level_is_kept(fitted):
    rng = np.random.default_rng(1)
    bags = [texts(80, rng.random(), rng, odd=0.05)[0] for _ in range(150)]
    found = [fitted.topic_distance(bag) for bag in bags]
    assert 0.01 <= np.mean([one.p_value() < 0.05 for one in found]) <= 0.1
    assert abs(np.mean([one.distance for one in found])) < 0.001


def test_the_nearest_mixture_has_the_bags_prevalence(fitted):
    bag, _ = texts(600, 0.8, np.random.default_rng(2), odd=0.05)
    np.testing.assert_allclose(fitted.topic_distance(bag).prevalences, [0.2, 0.8], atol=0.05)


def test_another_topic_is_seen_and_its_words_are_named(fitted):
    bag, _ = texts(200, 0.5, np.random.default_rng(3), odd=0.5)
    found = fitted.topic_distance(bag)
    assert found.p_value() < 1e-6
    assert found.p_value(0.0005) < 1e-6
    assert found.p_value(1.0) == pytest.approx(1)
    assert set(excess_words(fitted, bag, found.excess)) <= set(TOPICS["flight"])


def test_the_distance_by_hand():
    # One class, two terms: texts have one of them, in training half the first, in the bag nine of ten.
    mean = np.full((1, 2), 0.5, dtype=np.float32)
    contents = TermProfile(mean, np.array([0.5]), np.array([[0.25]]), np.array([1000]))
    total = np.array([90.0, 10.0])
    found = contents.compare(total, 100.0, 100)
    spread = (1 - 0.9**2 - 0.1**2) * 100 / 99
    assert found.spread == pytest.approx(spread)
    assert found.distance == pytest.approx((2 * 0.4**2 - spread / 100 - 0.5 / 1000) / spread)
    # Chi-square with one degree of freedom for the training texts' covariance, whose trace is 1/2 and its square's 1/4.
    assert found.p_value() < 1e-6


def test_rows_have_length_one_or_none():
    rows = unit_rows(csr_matrix([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(rows.toarray(), [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_too_few_texts_or_terms_leave_nothing_to_compare_with():
    made, labels = texts(40, 0.5, np.random.default_rng(0))
    small = TextClassifier(views=["words"]).fit(made, labels)
    assert small.contents_ is None
    assert small.topic_distance(made) is None
    assert "contents" not in [finding.name for finding in diagnose(CC(small).fit(made, labels), made)]


def test_diagnose_says_so_also_of_a_loaded_model(tmp_path):
    made, labels = texts(1200, 0.5, np.random.default_rng(0), odd=0.05)
    quantifier = EMQ(TextClassifier(views=["words"])).fit(made, labels)
    rng = np.random.default_rng(4)
    same, other = texts(200, 0.7, rng, odd=0.05)[0], texts(200, 0.7, rng, odd=0.6)[0]
    assert diagnose(quantifier, same, level=0.999)["contents"].severity == "ok"
    found = diagnose(quantifier, other)["contents"]
    assert found.severity == "alarm"
    assert "The topics differ from the training texts" in found.sentence
    assert "refine" in found.advice
    save(quantifier, tmp_path / "model")
    assert diagnose(load(tmp_path / "model"), other)["contents"] == found


def test_a_little_else_is_a_note(fitted):
    quantifier = CC(fitted)
    made, labels = texts(1200, 0.5, np.random.default_rng(0), odd=0.05)
    bag, _ = texts(1500, 0.5, np.random.default_rng(5), odd=0.07)
    found = diagnose(quantifier.fit(made, labels), bag)["contents"]
    assert found.severity == "note"
    assert found.numbers["p_value"] < 0.05 <= found.numbers["p_beyond"]
