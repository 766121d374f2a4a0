import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import logit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from quanet import CC, EMQ, PACC, TextClassifier, WordBags
from quanet.classifiers.calibration import fit_weights
from quanet.classifiers.cross_fitting import cross_fit
from quanet.classifiers.text import check_texts, is_text, log_odds
from quanet.errors import InvalidData, InvalidSetting

SOURCE = WordBags(k=3, length=15, preference=4.0)
TEXTS, CODES = SOURCE.draw([0.5, 0.3, 0.2], 600, rng=0)
Y = np.array(["ham", "news", "spam"])[CODES]
PAIR = [("words",), ("characters",), ("words", "characters")]


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "b"],
        ("a", "b"),
        pd.Series(["a", "b"]),
        np.array(["a", "b"]),
        np.array(["a", None], dtype=object),
        pd.Series(["a", "b"], dtype="string"),
        pd.DataFrame({"a": ["b"]}),
        np.array([["a"], ["b"]]),
        "a",
    ],
)
def test_strings_in_a_column_are_text(texts):
    assert is_text(texts)


@pytest.mark.parametrize("numbers", [[[1.0], [2.0]], np.zeros((2, 2)), np.zeros(3), [1, 2]])
def test_numbers_and_tables_are_not(numbers):
    assert not is_text(numbers)


def test_a_text_that_is_none_is_named():
    with pytest.raises(InvalidData, match=r"2 of 4 texts are not strings \(first at index 1: None\)"):
        check_texts(["a", None, "b", float("nan")])
    with pytest.raises(InvalidData, match=r"one string, 'a text'\. Pass a list"):
        check_texts("a text")


@pytest.mark.parametrize("method", [CC, PACC, EMQ])
def test_text_in_prevalence_out(method):
    new_texts, _ = SOURCE.draw([0.1, 0.2, 0.7], 500, rng=1)
    estimate = method().fit(TEXTS, Y).predict(new_texts)
    assert estimate.argmax() == 2
    assert estimate.sum() == pytest.approx(1)


def test_emq_on_text_is_near_the_truth_where_counting_is_not():
    new_texts, _ = SOURCE.draw([0.1, 0.1, 0.8], 1000, rng=2)
    truth = np.array([0.1, 0.1, 0.8])
    counted, corrected = (method().fit(TEXTS, Y).predict(new_texts) for method in (CC, EMQ))
    assert np.abs(corrected - truth).mean() < 0.03 < np.abs(counted - truth).mean()


def test_the_embedding_knows_no_labels_and_has_the_size_asked_for():
    classifier = TextClassifier(embedding_size=7).fit(TEXTS, Y)
    other = TextClassifier(embedding_size=7).fit(TEXTS, np.roll(Y, 1))
    assert classifier.transform(TEXTS).shape == (600, 7)
    np.testing.assert_array_equal(classifier.transform(TEXTS), other.transform(TEXTS))
    assert TextClassifier().fit(TEXTS[:20], Y[:20]).transform(TEXTS[:2]).shape == (2, 20)


def test_a_texts_posterior_does_not_depend_on_its_neighbours():
    classifier = TextClassifier().fit(TEXTS, Y)
    np.testing.assert_allclose(classifier.predict_proba(TEXTS)[7:8], classifier.predict_proba(TEXTS[7:8]), rtol=1e-6)


def test_folds_share_the_words_but_not_the_labels():
    classes = np.array(["ham", "news", "spam"])
    # Labels at random cannot be guessed out of fold, and are fitted closely in it.
    noise = np.random.default_rng(0).integers(3, size=600)
    fitted, posteriors, held = cross_fit(TextClassifier(), TEXTS, noise, classes, cv=5)
    assert (posteriors.argmax(axis=1) == noise[held]).mean() < 0.42
    assert (fitted.predict_proba(TEXTS).argmax(axis=1) == noise).mean() > 0.5


def test_out_of_fold_posteriors_are_those_of_a_fit_to_the_rest():
    seen, held = np.arange(400), np.arange(400, 600)
    one = TextClassifier(views=["words"])  # weights of several are learnt from the folds
    (posteriors,) = one.fit_out_of_fold(TEXTS, Y, [(seen, held)])
    wrong = Y.copy()
    wrong[held] = np.roll(Y[held], 1)
    # Labels of the fold itself change nothing, though all texts and the fit to them do: the start is not the end.
    (others,) = one.fit_out_of_fold(TEXTS, wrong, [(seen, held)])
    np.testing.assert_allclose(posteriors, others, atol=0.02)
    assert posteriors.shape == (200, 3)


@pytest.mark.parametrize("views", [("words",), ("weighted words",), ("characters",), ("words", "characters")])
def test_views_can_be_chosen(views):
    classifier = TextClassifier(views=views).fit(TEXTS, Y)
    assert list(classifier.weights_) == list(views)
    assert classifier.score(TEXTS, Y) > 0.7
    assert classifier.transform(TEXTS[:3]).shape == (3, 100)


def test_unknown_views_are_refused():
    with pytest.raises(InvalidSetting, match=r"views must be some of 'words', .*; got \['letters'\]"):
        TextClassifier(views=["letters"]).fit(TEXTS, Y)
    with pytest.raises(InvalidSetting, match="views must be some of"):
        TextClassifier(views=()).fit(TEXTS, Y)


def test_logits_of_the_views_are_averaged():
    posteriors = {views: TextClassifier(views=views).fit(TEXTS, Y == "ham").predict_proba(TEXTS) for views in PAIR}
    logits = [logit(posteriors[views][:, 1]) for views in PAIR]
    np.testing.assert_allclose((logits[0] + logits[1]) / 2, logits[2], atol=1e-5)


def test_weights_of_views_are_learnt_where_there_are_folds():
    alone = TextClassifier().fit(TEXTS, Y)
    assert set(alone.shares_.values()) == {1 / 3}
    classes = np.array(["ham", "news", "spam"])
    fitted, posteriors, held = cross_fit(TextClassifier(), TEXTS, CODES, classes, cv=5)
    shares = np.array(list(fitted.shares_.values()))
    assert shares.sum() == pytest.approx(1)
    assert shares.max() > 0.4
    alone = [cross_fit(TextClassifier(views=[view]), TEXTS, CODES, classes, cv=5)[1] for view in fitted.shares_]
    np.testing.assert_allclose(posteriors, softmax(np.tensordot(shares, np.log(alone), 1), axis=1), atol=1e-5)
    np.testing.assert_allclose(shares, fit_weights(list(np.log(alone)), CODES[held]), atol=1e-3)


def test_texts_are_read_once_for_posteriors_and_embedding():
    classifier = TextClassifier(embedding_size=5).fit(TEXTS, Y)
    posteriors, embedding = classifier.read(TEXTS)
    np.testing.assert_array_equal(posteriors, classifier.predict_proba(TEXTS))
    np.testing.assert_array_equal(embedding, classifier.transform(TEXTS))


def test_scripts_without_spaces_are_read_by_their_characters():
    good, bad = (
        ["这部电影非常好看", "演员演得很好看", "真的好看的电影"],
        ["这部电影太难看了", "演员很糟糕难看", "难看得要命"],
    )
    classifier = TextClassifier().fit(good + bad, ["好"] * 3 + ["坏"] * 3)
    assert classifier.predict(["故事好看", "故事难看"]).tolist() == ["好", "坏"]


def test_a_text_without_known_terms_gets_posteriors_too():
    classifier = TextClassifier().fit(TEXTS, Y)
    for unknown in ("", "   ", "日本"):
        posteriors = classifier.predict_proba([unknown])
        assert posteriors.sum() == pytest.approx(1)
        np.testing.assert_array_equal(posteriors, classifier.predict_proba([""]))
    assert classifier.predict_proba([]).shape == (0, 3)


def test_the_log_odds_of_terms():
    # Three texts of the class and one of the others; the first term is in two of the class, the second in the other.
    present = csr_matrix(np.array([[1, 0], [1, 0], [0, 0], [0, 1]], dtype=np.float32))
    signs = np.array([[1], [1], [1], [-1]], dtype=np.float32)
    share = 3.5 / 5
    prior = np.log(share / (1 - share))
    expected = [
        np.log((2 + 10 * share) / (10 * (1 - share))) - prior,
        np.log(10 * share / (1 + 10 * (1 - share))) - prior,
        1,
    ]
    np.testing.assert_allclose(log_odds(present, signs)[:, 0], expected, rtol=1e-5)


def test_labels_must_fit_the_texts():
    with pytest.raises(InvalidData, match="2 texts but 3 labels"):
        TextClassifier().fit(["a", "b"], [0, 1, 1])
    with pytest.raises(InvalidData, match="A classifier needs two"):
        TextClassifier().fit(["a", "b"], [1, 1])


def test_the_same_seed_gives_the_same_model():
    first, second = (TextClassifier(random_state=3).fit(TEXTS, Y).predict_proba(TEXTS) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_blank_texts_are_refused():
    with pytest.raises(InvalidData, match=r"The 4 texts contain no words. Check the text column"):
        TextClassifier().fit(["", " ", "\n", "\t "], [0, 1, 0, 1])


def test_it_is_a_scikit_learn_classifier():
    classifier = clone(TextClassifier(C=2.0))
    for ask in (classifier.predict_proba, classifier.transform, classifier.read):
        with pytest.raises(NotFittedError):
            ask(["a"])
    assert classifier.fit(TEXTS, Y).score(TEXTS, Y) > 0.8
    frozen = CC(FrozenEstimator(classifier)).fit(TEXTS, Y)
    assert frozen.classifier_.predict(["word0 word4"]).shape == (1,)


def test_numbers_for_a_model_of_texts_are_refused():
    with pytest.raises(InvalidData, match="none of the 2 values of X is a string"):
        CC().fit(TEXTS, Y).predict([1, 2])
