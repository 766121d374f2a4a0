"""Copies in the data to estimate say nothing new: intervals are those of the different instances."""

from functools import cache

import numpy as np
import pytest

import quanet
from quanet import ACC, CC, EMQ, PACC, Bags, DMy, Gaussians, HDx, WordBags
from quanet.data.copies import content_hashes, count_copies

SOURCE = Gaussians(distance=2.0)
X, Y = SOURCE.draw([0.5, 0.5], 1500, rng=0)
POOL, CODES = SOURCE.draw([0.7, 0.3], 400, rng=1)
METHODS = {"ACC": ACC, "PACC": PACC, "EMQ": EMQ, "DMy": DMy, "HDx": HDx}


@cache
def fitted(name):
    return METHODS[name]().fit(X, Y)


def test_the_factor_is_that_of_kish_by_hand():
    hashes = content_hashes(["a", "a", "a", "b", "c", "d"])
    # Contents 3 + 1: 10 / 4. Row 4 twice: 6 / 4.
    found = count_copies(hashes, Bags([[0, 1, 2, 3], [3, 4, 4, 5], [3, 4, 5]]))
    np.testing.assert_allclose(found.factor, [2.5, 1.5, 1])
    assert found.number.tolist() == [2, 1, 0]
    # Weights of the contents 6 and 4: 52 against 1 + 4 + 9 + 16.
    weighted = count_copies(hashes, Bags([[0, 1, 2, 3]], weights=[1, 2, 3, 4, 1, 1]))
    np.testing.assert_allclose(weighted.factor, [52 / 30])
    # Only the first two are in one cluster: (2^2 + 1 + 1) / 4.
    within = count_copies(hashes, Bags([[0, 1, 2, 3]]), np.array([0, 0, 1, 1, 1, 1]))
    np.testing.assert_allclose(within.factor, [6 / 4])
    by_row = count_copies(None, Bags([[0, 1, 2, 3], [0, 0, 1, 1], [2, 2, 2, 2]]))
    np.testing.assert_allclose(by_row.factor, [1, 2, 4])


def test_coarse_numbers_are_equal_by_chance_and_fine_ones_are_not():
    coarse = np.array([[1.0, 0.5], [1.0, 0.5]])
    assert content_hashes(coarse).tolist() == [0, 0]
    assert content_hashes(coarse.astype(np.float32) * np.float32(0.1)).tolist() == [0, 0]
    first, second, third = content_hashes(POOL[[0, 0, 1]])
    assert first == second != third


@pytest.mark.filterwarnings("ignore:HDx has no held-out")
@pytest.mark.parametrize("target", ["bag", "source"])
@pytest.mark.parametrize("name", METHODS)
def test_copies_do_not_narrow_an_interval(name, target):
    once = fitted(name).predict_interval(POOL[:100], target=target)
    often = fitted(name).predict_interval(np.tile(POOL[:100], (10, 1)), target=target)
    np.testing.assert_allclose(often.estimate, once.estimate, atol=1e-4)
    np.testing.assert_allclose([often.lower, often.upper], [once.lower, once.upper], atol=0.01)
    assert "900 of 1,000 rows are copies of other rows; the interval is that of 100 different rows" in str(often.notes)
    assert "copies" not in str(once.notes)


@pytest.mark.parametrize("method", ["closed", "conformal", "bootstrap", "bayes"])
def test_every_kind_of_interval_and_repeated_row_numbers(method):
    rows = np.arange(100), np.tile(np.arange(100), 2), np.arange(200)
    widths = [  # of three seeds, because some kinds draw at random
        [
            fitted("PACC").predict_interval_bags(POOL, Bags([bag]), drift=False, method=method, rng=seed).width[0, 0]
            for bag in rows
        ]
        for seed in range(3)
    ]
    once, twice, half = np.mean(widths, axis=0)
    assert twice == pytest.approx(once, rel=0.05)
    assert half < 0.8 * twice


def test_a_few_copies_are_not_worth_a_note():
    few = np.concatenate([POOL[:200], POOL[:2]])
    found = fitted("EMQ").predict_interval(few)
    assert found.notes == ""
    assert found.width[0] == pytest.approx(fitted("EMQ").predict_interval(POOL[:202]).width[0], rel=0.03)


def test_texts_are_copies_up_to_case_and_addresses_with_weights_too():
    quantifier = EMQ().fit(*WordBags().draw([0.5, 0.5], 400, rng=0))
    texts = WordBags().draw([0.6, 0.4], 60, rng=1)[0]
    copies = [*texts, *(f"{text.upper()} https://t.co/{at}" for at, text in enumerate(texts))]
    once, twice = (quantifier.predict_interval(one, drift=False) for one in (texts, copies))
    assert twice.width[0] == pytest.approx(once.width[0], rel=0.1)
    weights = np.tile(np.arange(60) % 2 * 2 + 1.0, 2)
    once, twice = (
        quantifier.predict_interval(one, weights=weights[: len(one)], drift=False) for one in (texts, copies)
    )
    assert twice.width[0] == pytest.approx(once.width[0], rel=0.1)
    assert "60 of 120 rows are copies" in str(twice.notes)
    assert "48 different rows of equal weight" in str(twice.notes)


def test_copies_of_one_row_leave_any_share_possible():
    found = fitted("EMQ").predict_interval(POOL[np.zeros(50, dtype=int)], drift=False)
    np.testing.assert_array_equal([found.lower, found.upper], [[0, 0], [1, 1]])
    assert "copies of one row" in str(found.notes)


def test_posteriors_do_not_identify_instances():
    posteriors = np.tile([[2 / 3, 1 / 3], [1 / 3, 2 / 3]], (50, 1))
    quantifier = CC("precomputed").fit(posteriors, np.tile([0, 1], 50))
    with pytest.warns(UserWarning, match="no held-out"):
        found = quantifier.predict_interval(posteriors)
    assert "copies" not in str(found.notes)


def test_differences_and_trends_do_not_count_copies():
    quantifier = fitted("EMQ")
    first, second = POOL[:100], POOL[100:200]
    copied = (np.tile(one, (10, 1)) for one in (first, second))
    once = quanet.difference(quantifier, first, second)
    often = quanet.difference(quantifier, *copied)
    np.testing.assert_allclose([often.lower, often.upper], [once.lower, once.upper], atol=0.005)
    assert often.p_value == pytest.approx(once.p_value, rel=0.1)
    assert "900 of 1,000 rows are copies" in often.notes[0]
    periods, repeated = Bags(np.arange(400).reshape(4, 100)), Bags(np.tile(np.arange(400).reshape(4, 100), 5))
    line, again = (quanet.trend_bags(quantifier, POOL, bags) for bags in (periods, repeated))
    np.testing.assert_allclose([again.lower, again.upper], [line.lower, line.upper], atol=0.002)


def test_drift_of_copies_is_not_more_certain():
    once = fitted("EMQ").predict_interval(POOL[:60])
    often = fitted("EMQ").predict_interval(np.tile(POOL[:60], (20, 1)))
    assert often.drift.distance == pytest.approx(once.drift.distance, abs=1e-6)


@pytest.mark.no_cover
def test_coverage_with_copies():
    quantifier, rng, hits = fitted("EMQ"), np.random.default_rng(0), 0
    for _ in range(150):
        new, truth = SOURCE.draw([0.7, 0.3], 80, rng=rng)
        found = quantifier.predict_interval(np.repeat(new, 4, axis=0), drift=False)
        hits += bool(found.contains([(truth == 0).mean(), (truth == 1).mean()]))
    assert 0.91 <= hits / 150 <= 0.99


def test_a_diagnosis_names_copies_and_tests_without_them():
    quantifier, new = fitted("EMQ"), SOURCE.draw([0.6, 0.4], 150, rng=3)[0] + [0.25, -0.25]
    once, often = quanet.diagnose(quantifier, new), quanet.diagnose(quantifier, np.tile(new, (10, 1)))
    assert "copies" not in [finding.name for finding in once]
    assert often["copies"].sentence == (
        "1,350 of 1,500 rows are copies of other rows; the interval is that of 150 different rows."
    )
    p = [one["prior shift"].numbers["p_value"] for one in (once, often)]
    assert p[1] == pytest.approx(p[0], abs=0.1)


def test_the_expected_accuracy_of_copies_is_not_more_certain():
    once, often = (quanet.predict_accuracy(fitted("EMQ"), new) for new in (POOL[:100], np.tile(POOL[:100], (10, 1))))
    width = [one.upper - one.lower for one in (once.accuracy, often.accuracy)]
    assert width[1] == pytest.approx(width[0], rel=0.05)
