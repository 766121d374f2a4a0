"""Descriptions of texts, numbers and posteriors."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from quanet import Bags, WordBags
from quanet.drift.descriptions import (
    NumberDescriber,
    PosteriorDescriber,
    TextDescriber,
    describe_left_out,
    fit_describer,
)
from quanet.drift.profile import BagMeans, Profile

TEXTS, CODES = WordBags(k=2, length=12).draw([0.5, 0.5], 600, rng=0)


def rng():
    return np.random.default_rng(0)


def test_texts_are_described_by_directions_of_variance_1():
    describer = TextDescriber.fit(list(TEXTS), rng())
    found = describer(list(TEXTS))
    assert found.shape[0] == 600
    assert found.shape[1] <= 30  # 20 texts for each dimension
    np.testing.assert_allclose(found.std(axis=0), 1, atol=0.02)


def test_a_text_without_known_words_is_at_the_origin():
    describer = TextDescriber.fit(list(TEXTS), rng())
    assert not describer(["", "zzzz qqqq"]).any()


def test_the_words_behind_a_shift_are_named():
    things = ("film", "book", "song", "game", "phone", "lamp", "table", "chair", "pen", "bag")
    plain = [f"the {word} was good" for word in things * 40]
    about = [f"{text} battery" if at % 3 == 0 else text for at, text in enumerate(plain)]
    describer = TextDescriber.fit(about, rng())
    nothing = np.zeros(describer.directions.shape[1])
    assert describer.words(["the film was good battery"] * 5 + ["the film was good"] * 2, nothing)[0] == "film"
    several = [f"the {word} was good battery" for word in things]
    assert describer.words(several, nothing) == ["battery"]
    # What class prevalences explain is not named.
    explained = describer(several).mean(axis=0) - describer(about).mean(axis=0)
    assert "battery" not in describer.words(several, explained.astype(float), most=1)


@pytest.mark.parametrize("texts", [["good film"] * 5, ["same words here"] * 500, [""] * 500])
def test_texts_that_share_too_little_or_everything_have_no_description(texts):
    assert TextDescriber.fit(texts, rng()) is None


def test_units_of_columns_do_not_matter():
    X = rng().normal(size=(500, 4)) * [1, 10, 0.1, 5] + [0, 3, 0, -20]
    first, second = (NumberDescriber.fit(matrix, rng())(matrix) for matrix in (X, 100 * X + 7))
    np.testing.assert_allclose(np.abs(first), np.abs(second), atol=1e-3)


def test_missing_numbers_count_as_the_mean_and_outliers_are_cut():
    X = rng().normal(size=(500, 3))
    describer = NumberDescriber.fit(X, rng())
    missing, mean = describer(np.array([[np.nan, 0.0, 0.0]])), describer(np.array([[X[:, 0].mean(), 0.0, 0.0]]))
    np.testing.assert_allclose(missing, mean, atol=1e-5)
    far, farther = describer(np.array([[50.0, 0, 0], [5000.0, 0, 0]]))
    np.testing.assert_allclose(far, farther)


def test_sparse_matrices_and_constant_columns():
    X = (rng().random((400, 6)) < 0.3).astype(float)
    X[:, 5] = 0
    describer = NumberDescriber.fit(csr_matrix(X), rng())
    np.testing.assert_allclose(
        describer(csr_matrix(X)), X @ (describer.scale[:, None] * describer.directions), atol=1e-4
    )
    assert describer.directions[5].tolist() == [0.0] * describer.directions.shape[1]
    assert NumberDescriber.fit(np.ones((400, 2)), rng()) is None
    assert NumberDescriber.fit(np.array([["a", "b"]] * 400), rng()) is None


def test_posteriors_are_described_by_bins_that_hold_equal_shares_of_both_classes():
    shares = rng().random(1000)
    codes = (np.random.default_rng(1).random(1000) < shares).astype(int)
    describer = PosteriorDescriber.fit(np.column_stack([1 - shares, shares]), codes)
    found = describer(np.column_stack([1 - shares, shares]))
    assert found.shape == (1000, 10)
    np.testing.assert_array_equal(found.sum(axis=1), 1)
    weights = (1 / np.bincount(codes))[codes] / 2
    np.testing.assert_allclose(weights @ found, 0.1, atol=0.01)


def test_the_kind_of_describer_follows_the_instances():
    values = np.column_stack([np.linspace(0, 1, 600), np.linspace(1, 0, 600)])
    assert isinstance(fit_describer(list(TEXTS), values, CODES, precomputed=False), TextDescriber)
    assert isinstance(fit_describer(rng().normal(size=(600, 3)), values, CODES, precomputed=False), NumberDescriber)
    assert isinstance(fit_describer(values, values, CODES, precomputed=True), PosteriorDescriber)
    joined = np.hstack([values, rng().normal(size=(600, 5))])
    described = fit_describer(joined, joined, CODES, precomputed=True)
    assert isinstance(described, NumberDescriber)
    assert described(joined).shape == (600, 5)


def test_left_out_instances_are_described_as_by_a_describer_that_has_not_seen_them():
    texts, codes = WordBags(k=2, length=12).draw([0.5, 0.5], 1200, rng=0)
    texts = [f"{text} battery charger" if at < 300 and at % 3 else text for at, text in enumerate(texts)]
    numbers = rng().normal(size=(1200, 4)) * [1, 2, 3, 4]
    held_out, seen = np.arange(300), np.arange(300, 1200)
    for X, rest in ((texts, texts[300:]), (numbers, numbers[300:])):
        [found] = describe_left_out(X, np.empty((1200, 0)), codes, [(seen, held_out)], precomputed=False)
        expected = fit_describer(rest, np.empty((900, 0)), codes[300:], precomputed=False)(X)
        distances = [
            Profile.fit(some[seen], codes[seen], 2).compare(BagMeans.of(some, Bags([held_out]))).distances[0]
            for some in (found, expected)
        ]
        assert found.shape == expected.shape
        assert distances[0] == pytest.approx(distances[1], abs=1e-3)


def test_words_of_left_out_texts_only_do_not_describe_them():
    texts, codes = WordBags(k=2, length=12).draw([0.5, 0.5], 1200, rng=0)
    held_out, seen = np.arange(300), np.arange(300, 1200)
    unknown = [f"{text} battery charger" if at < 300 else text for at, text in enumerate(texts)]
    plain, added = (
        next(describe_left_out(some, np.empty((1200, 0)), codes, [(seen, held_out)], precomputed=False))
        for some in (list(texts), unknown)
    )
    np.testing.assert_allclose(np.abs(plain), np.abs(added), atol=1e-3)


def test_posteriors_that_are_left_out_decide_no_bins():
    posteriors = np.r_[np.full(100, 0.99), rng().uniform(0, 1, 400)]
    values, codes = np.column_stack([1 - posteriors, posteriors]), np.arange(500) % 2
    fold = np.arange(100, 500), np.arange(100)
    [found] = describe_left_out(values, values, codes, [fold], precomputed=True)
    np.testing.assert_allclose(found[100:].mean(axis=0), 0.1, atol=0.01)
