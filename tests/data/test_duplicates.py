"""Copies of an instance are found, stay together, and count once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, vstack
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from quanet import CC, EMQ, PACC, Dataset, Gaussians, GridSearchQ, ReadMe, TextClassifier
from quanet.classifiers.cross_fitting import cross_fit, cross_fit_with_gap
from quanet.classifiers.folds import Folds, make_folds
from quanet.data.duplicates import find_distinct, hash_texts, independent_size
from quanet.data.synthetic import WordBags
from quanet.errors import QuanetWarning
from quanet.workflows.fit import held_out_errors

CLASSES = np.array([0, 1])


def texts_of(n, prevalence=(0.6, 0.4), rng=0):
    X, y = WordBags(k=2, words=300, length=12, preference=3.0).draw(prevalence, n, rng=rng)
    return list(X), np.asarray(y)


def written_three_times(texts, y):
    """The same texts again, in other letters and with other spaces."""
    return [*texts, *(text.upper() for text in texts), *(f"  {text}\n" for text in texts)], np.tile(y, 3)


@pytest.mark.parametrize(
    "cv",
    [5, 0.4, StratifiedKFold(5, shuffle=True, random_state=1), StratifiedShuffleSplit(3, random_state=0)],
    ids=["folds", "share", "shuffled folds", "random parts"],
)
@pytest.mark.parametrize("kind", ["texts", "numbers", "sparse"])
def test_copies_of_an_instance_are_never_on_both_sides_of_a_fold(cv, kind):
    texts, y = texts_of(60)
    numbers = np.random.default_rng(0).normal(size=(60, 3))
    if kind == "texts":
        X, y = written_three_times(texts, y)
    else:
        X = np.tile(numbers, (3, 1)) if kind == "numbers" else vstack([csr_matrix(numbers)] * 3).tocsr()
        y = np.tile(y, 3)
    for seen, held in make_folds(X, y, CLASSES, cv):
        assert not set(seen % 60) & set(held % 60)
        assert set(y[seen]) == set(y[held]) == {0, 1}


def test_folds_with_copies_are_those_of_the_distinct_instances():
    texts, y = texts_of(60)
    X, again = written_three_times(texts, y)
    for (seen, held), (some, kept) in zip(
        make_folds(X, again, CLASSES, 5), make_folds(texts, y, CLASSES, 5), strict=True
    ):
        np.testing.assert_array_equal(np.unique(seen % 60), some)
        np.testing.assert_array_equal(np.unique(held % 60), kept)


def test_folds_without_copies_are_those_of_scikit_learn():
    texts, y = texts_of(60)
    splitter = StratifiedKFold(5)
    for mine, theirs in zip(make_folds(texts, y, CLASSES, 5), splitter.split(texts, y), strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])


def test_copies_with_different_labels_share_a_fold():
    texts, y = texts_of(40)
    X, labels = [*texts, *texts[:10]], np.concatenate([y, 1 - y[:10]])
    for seen, held in make_folds(X, labels, CLASSES, 5):
        assert not set(np.where(seen < 40, seen, seen - 40)) & set(np.where(held < 40, held, held - 40))


def test_a_splitter_that_takes_groups_is_given_the_copies():
    X, y = written_three_times(*texts_of(40))
    for seen, held in make_folds(X, y, CLASSES, StratifiedGroupKFold(4)):
        assert not set(seen % 40) & set(held % 40)


def test_a_splitter_of_the_callers_own_that_separates_copies_is_warned_of():
    X, y = written_three_times(*texts_of(40))
    with pytest.warns(QuanetWarning, match="whose copies are in the training part"):
        make_folds(X, y, CLASSES, PredefinedSplit(np.arange(120) // 60))


def test_a_class_of_copies_only_is_split_and_warned_of():
    texts, y = texts_of(40)
    X, labels = [*texts, *["the same again"] * 6], np.concatenate([y, np.full(6, 2)])
    with pytest.warns(QuanetWarning, match="All instances of class 2 are copies of one"):
        folds = make_folds(X, labels, np.arange(3), 5)
    assert all(2 in labels[seen] for seen, _ in folds)


def test_a_class_with_fewer_distinct_instances_than_folds_has_as_many_folds():
    texts, y = texts_of(40)
    X, labels = [*texts, *["one text", "another"] * 4], np.concatenate([y, np.full(8, 2)])
    with pytest.warns(QuanetWarning, match="Class 2 has 2 different instances, fewer than the 5 folds"):
        assert len(make_folds(X, labels, np.arange(3), 5)) == 2


@pytest.mark.parametrize("method", [EMQ, PACC])
def test_rows_written_three_times_give_the_error_and_the_estimate_of_rows_written_once(method):
    texts, y = texts_of(500)
    new, _ = texts_of(400, (0.2, 0.8), rng=1)
    once = method().fit(texts, y)
    thrice = method().fit(*written_three_times(texts, y))
    errors = [held_out_errors(quantifier).error for quantifier in (once, thrice)]
    assert errors[1] == pytest.approx(errors[0], abs=0.02)
    assert errors[1] > 0.01
    np.testing.assert_allclose(thrice.predict(new), once.predict(new), atol=0.03)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ["closed", "conformal", "bootstrap", "bayes"])
def test_an_interval_takes_copies_for_one_instance(kind):
    X, y = Gaussians(distance=1.5).draw([0.6, 0.4], 200, rng=0)
    new, _ = Gaussians(distance=1.5).draw([0.3, 0.7], 2000, rng=1)
    width = [
        PACC(cv=5).fit(np.tile(X, (times, 1)), np.tile(y, times)).predict_interval(new, method=kind) for times in (1, 4)
    ]
    once, four = (float((found.upper - found.lower)[0]) for found in width)
    assert four > 0.8 * once  # half of it, were they four instances


def test_a_classifier_that_remembers_everything_gains_nothing_from_copies():
    X, y = Gaussians(distance=1.0).draw([0.5, 0.5], 200, rng=0)
    _, posteriors, held = cross_fit(KNeighborsClassifier(1), np.tile(X, (3, 1)), np.tile(y, 3), CLASSES, cv=5)
    accuracy = (posteriors.argmax(axis=1) == np.tile(y, 3)[held]).mean()
    assert accuracy < 0.8


def test_the_fold_gap_is_measured_without_copies():
    texts, y = texts_of(300)
    X, labels = written_three_times(texts, y)
    gap = cross_fit_with_gap(TextClassifier(), X, labels, CLASSES, cv=5).fold_gap
    once = cross_fit_with_gap(TextClassifier(), texts, y, CLASSES, cv=5).fold_gap
    np.testing.assert_allclose(gap, once, atol=0.4)


def test_copies_are_on_one_side_of_a_split_dataset():
    X, y = written_three_times(*texts_of(50))
    first, second = Dataset(X, y).split(0.6, rng=0)
    assert not set(hash_texts(list(first.X))) & set(hash_texts(list(second.X)))
    assert len(first) == 90


def test_a_dataset_of_numbers_loses_its_duplicates():
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert len(Dataset(np.vstack([X, X]), np.arange(40) % 2).without_duplicates()) == 20


def test_a_search_holds_out_copies_together():
    X, y = Gaussians(distance=1.0).draw([0.5, 0.5], 300, rng=0)
    grid = {"classifier": [KNeighborsClassifier(1), KNeighborsClassifier(51)]}
    search = GridSearchQ(CC(), grid).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    assert search.errors_[0] > 0.1  # 0 if its own copies were held out


def test_scikit_learns_searches_can_use_the_same_folds():
    X, y = written_three_times(*texts_of(40))
    folds = Folds(4)
    assert folds.get_n_splits(X, y) == 4
    assert all(not set(seen % 40) & set(held % 40) for seen, held in folds.split(X, y))


def test_standard_errors_of_readme_take_copies_for_one_text():
    texts, y = texts_of(150)
    new, _ = texts_of(150, (0.3, 0.7), rng=1)
    spread = [
        ReadMe(subsets=20, words=5).fit(*data).bootstrap(new, repeats=100, rng=0).std(axis=0)[0]
        for data in ((texts, y), (texts * 4, np.tile(y, 4)))
    ]
    assert spread[1] == pytest.approx(spread[0], rel=0.3)


def test_coarse_numbers_that_are_equal_by_chance_are_no_copies():
    rng = np.random.default_rng(0)
    assert find_distinct(rng.integers(0, 2, (2000, 6))) is None
    assert find_distinct(rng.integers(0, 9, (200, 1))) is None
    tenths = rng.integers(0, 11, 500) / 10
    assert find_distinct(np.column_stack([tenths, 1 - tenths])) is None


def test_equal_rows_of_a_table_are_copies():
    table = pd.DataFrame({"text": [f"text {at}" for at in range(30)], "size": np.arange(30) * 1.5})
    assert find_distinct(pd.concat([table, table.iloc[:5]])).copies == 5


def test_sparse_and_dense_rows_have_the_same_copies():
    dense = np.random.default_rng(0).poisson(0.3, (50, 40)).astype(float)
    twice = np.vstack([dense, dense[:7]])
    np.testing.assert_array_equal(find_distinct(csr_matrix(twice)).owner, find_distinct(twice).owner)


def test_all_different_instances_have_no_copies():
    assert find_distinct(np.random.default_rng(0).normal(size=(100, 2))) is None
    assert find_distinct([object(), object()]) is None
    assert find_distinct(["a", None, "a"]) is None


def test_unequal_numbers_of_copies_are_worth_less_than_there_are_instances():
    assert independent_size(np.arange(10)) == 10
    assert independent_size(np.array([0] * 9 + [1])) == pytest.approx(100 / 82)


def test_copies_are_known_from_the_fitted_quantifier():
    texts, y = texts_of(60)
    assert EMQ().fit(texts, y).held_out_.groups is None
    fitted = EMQ().fit(*written_three_times(texts, y))
    assert len(np.unique(fitted.held_out_.groups)) == 60


def test_no_warning_is_made_of_copies_that_fit_into_folds():
    X, y = Gaussians(distance=5).draw([0.5, 0.5], 60, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PACC(RandomForestClassifier(5, random_state=0)).fit(np.tile(X, (2, 1)), np.tile(y, 2))
