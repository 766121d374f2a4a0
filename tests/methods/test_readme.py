import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from quanet import Bags, ReadMe, WordBags
from quanet.errors import InvalidData, InvalidSetting

I = np.arange(60)  # noqa: E741
Y = np.where(I % 4 == 0, 0, (I * 7 + I // 5) % 3)
WORDS = (np.sin(np.outer(I + 1, np.arange(1, 7) * 0.37)) + 0.6 * (np.arange(6) % 3 == Y[:, None]) > 0.3).astype(int)
NEW = (np.cos(np.outer(I + 1, np.arange(1, 7) * 0.53)) + 0.6 * (np.arange(6) % 3 == 1) > 0.3).astype(int)


def mixture(words, y, new):
    """Class tables (patterns, k) and the bag's (patterns,), over all patterns of the words."""
    powers = 2 ** np.arange(words.shape[1])
    k, size = y.max() + 1, 2 ** words.shape[1]
    tables = np.stack([np.bincount(words[y == c] @ powers, minlength=size) / (y == c).sum() for c in range(k)], axis=1)
    return tables, np.bincount(new @ powers, minlength=size) / len(new)


@pytest.mark.parametrize("k", [2, 3])
def test_one_set_of_words_is_least_squares_on_the_simplex(k):
    known = k > Y
    estimate = ReadMe(rare=0.0).fit(WORDS[known], Y[known]).predict(NEW)
    tables, bag = mixture(WORDS[known], Y[known], NEW)
    loss = lambda p: np.square(tables @ p - bag).sum()  # noqa: E731
    found = minimize(
        loss,
        np.full(k, 1 / k),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        tol=1e-14,
    )
    np.testing.assert_allclose(estimate, found.x, atol=1e-4)
    assert loss(estimate) <= found.fun + 1e-10


def test_quapys_shares_are_bounded_and_scaled_and_explain_less():
    quapy = np.array([0.378225614265, 0.098697838693, 0.523076547042])  # one trial of QuaPy 0.2.3's ReadMe, these words
    estimate = ReadMe(rare=0.0).fit(WORDS, Y).predict(NEW)
    tables, bag = mixture(WORDS, Y, NEW)
    ours, theirs = (np.square(tables @ p - bag).sum() for p in (estimate, quapy))
    assert ours < theirs


def test_sets_are_averaged_and_bags_taken_together():
    quantifier = ReadMe(subsets=20, words=3, rare=0.0).fit(WORDS, Y)
    single = [ReadMe(rare=0.0).fit(WORDS[:, one], Y).predict(NEW[:, one]) for one in quantifier.words_]
    np.testing.assert_allclose(quantifier.predict(NEW), np.mean(single, axis=0), atol=1e-6)
    bags = quantifier.predict_bags(NEW, Bags(I.reshape(6, 10)))
    np.testing.assert_allclose(bags[2], quantifier.predict(NEW[20:30]), atol=1e-9)


def test_texts_are_counted_without_a_classifier():
    source = WordBags(k=3, preference=8)
    texts, y = source.draw([0.4, 0.3, 0.3], 900, rng=0)
    new, _ = source.draw([0.1, 0.3, 0.6], 900, rng=1)
    quantifier = ReadMe(subsets=100).fit(texts, y)
    np.testing.assert_allclose(quantifier.predict(new), [0.1, 0.3, 0.6], atol=0.08)


def test_the_bootstrap_spreads_as_far_as_fresh_data_do():
    source = WordBags(k=2, preference=4)
    texts, y = source.draw([0.5, 0.5], 400, rng=0)
    quantifier = ReadMe(subsets=30).fit(texts, y)
    fresh = []
    for seed in range(40):
        again, labels = source.draw([0.5, 0.5], 400, rng=100 + seed)
        new, _ = source.draw([0.3, 0.7], 300, rng=200 + seed)
        fresh.append(ReadMe(subsets=30).fit(again, labels).predict(new)[1])
    new, _ = source.draw([0.3, 0.7], 300, rng=1)
    drawn = quantifier.bootstrap(new, repeats=60, rng=0)
    assert drawn.shape == (60, 2)
    np.testing.assert_allclose(drawn.sum(axis=1), 1)
    assert 0.5 < drawn[:, 1].std() / np.std(fresh) < 2.0
    np.testing.assert_array_equal(drawn, quantifier.bootstrap(new, repeats=60, rng=0))


def test_a_profile_never_seen_counts_for_no_class():
    quantifier = ReadMe(rare=0.0, words=2).fit([[1, 0], [0, 1], [1, 0], [0, 1]], ["a", "b", "a", "b"])
    assert quantifier.represent([[1, 1]])[0, 0] == len(quantifier.profiles_)
    np.testing.assert_allclose(quantifier.predict([[1, 1], [1, 0], [1, 0], [0, 1]]), [0.625, 0.375], atol=1e-6)


def test_sparse_numbers_are_read_alike():
    dense, sparse = (ReadMe(rare=0.0).fit(kind(WORDS), Y).predict(kind(NEW)) for kind in (np.asarray, csr_matrix))
    np.testing.assert_array_equal(dense, sparse)


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (ReadMe(subsets=0), "subsets must be a whole number of at least 1; got 0"),
        (ReadMe(words=30), "words must be a whole number from 1 to 25; got 30"),
        (ReadMe(rare=0.5), "rare must be a number of at least 0 and below 0.5; got 0.5"),
    ],
)
def test_settings_that_mean_nothing_are_named(quantifier, message):
    with pytest.raises(InvalidSetting, match=message):
        quantifier.fit(WORDS, Y)


def test_data_without_shared_words_are_refused():
    with pytest.raises(InvalidData, match="no word occurs in 40 % to 60 % of the 4 texts"):
        ReadMe(rare=0.4).fit(["one", "two", "three", "four"], [0, 1, 0, 1])
    with pytest.raises(InvalidData, match="no words were found in the 2 texts"):
        ReadMe().fit(["!", "?"], [0, 1])
    with pytest.raises(InvalidData, match="X has 2 columns; the training data had 6"):
        ReadMe(rare=0.0).fit(WORDS, Y).predict(NEW[:, :2])
