import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.svm import LinearSVC

from quanet import DeepSets, Gaussians, TextClassifier, WordBags
from quanet.errors import InvalidData, InvalidSetting

SOURCE = Gaussians(distance=2.0)
X, CODES = SOURCE.draw([0.6, 0.4], 600, rng=0)
ROWS = np.hstack([SOURCE.posteriors(X, [0.6, 0.4]), X])
QUICK = {"max_epochs": 1, "device": "cpu", "random_state": 0}
POOL, _ = SOURCE.draw([0.5, 0.5], 800, rng=1)


def hidden_in_the_embedding(n, seed, *, linear):
    """Posteriors that say little, and an embedding that says much: by itself, or only beside the posterior."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    p = 1 / (1 + np.exp(-(0.5 * (2 * y - 1) + rng.normal(size=n))))
    side = 1 if linear else np.where(p < 0.5, 1, -1)
    return np.column_stack([1 - p, p, 3.0 * y * side + rng.normal(size=n), rng.normal(size=n)]), y


def test_a_reader_is_used_when_the_embedding_clearly_improves_posteriors(small):
    rows, y = hidden_in_the_embedding(2000, 0, linear=True)
    quantifier = DeepSets("precomputed", cv=0.4, max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    assert quantifier.rows_.reader is not None
    new, y_new = hidden_in_the_embedding(2000, 1, linear=True)
    read = quantifier.represent(new)[:, :2]
    assert (read.argmax(axis=1) == y_new).mean() > (new[:, :2].argmax(axis=1) == y_new).mean() + 0.1
    without = DeepSets("precomputed", cv=0.4, max_epochs=1, device="cpu", random_state=0).fit(ROWS, CODES)
    assert without.rows_.reader is None  # the posteriors there are the true ones


def test_cross_fitted_posteriors_are_never_read_again(small):
    # Logits of a linear model that has not seen its own fold, beside its features: their difference tells the label.
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(400, 40)), np.arange(400) % 2
    posteriors = cross_val_predict(LogisticRegression(), features, y, cv=20, method="predict_proba")
    rows = np.hstack([posteriors, features])
    tempted = DeepSets("precomputed", cv=0.4, max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    read = tempted.rows_.reader.predict_proba(np.hstack([np.log(posteriors), features]))
    assert (read.argmax(axis=1) == y).mean() > 0.9  # of labels that have nothing to do with the features
    quantifier = DeepSets("precomputed", max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    assert quantifier.rows_.reader is None
    fitted = DeepSets(LogisticRegression(), max_epochs=1, device="cpu", random_state=0).fit(features, y)
    assert fitted.rows_.reader is None


@pytest.mark.parametrize(
    "classifier", [LogisticRegression(), FrozenEstimator(LogisticRegression().fit(X, CODES)), None]
)
def test_any_classifier_gives_rows_of_posteriors(small, classifier):
    quantifier = DeepSets(classifier, cv=3, max_epochs=1, device="cpu", random_state=0).fit(X, CODES)
    assert quantifier.represent(POOL).shape == (800, 2)
    np.testing.assert_allclose(quantifier.predict(POOL), [0.5, 0.5], atol=0.07)


def test_text_goes_in_with_its_embedding(small):
    texts, codes = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
    quantifier = DeepSets(TextClassifier(embedding_size=30), cv=3, max_epochs=1, random_state=0).fit(texts, codes)
    assert quantifier.represent(texts[:5]).shape == (5, 2 + 16)


@pytest.mark.parametrize(
    ("settings", "rows", "error", "message"),
    [
        ({"device": "cuda:77"}, ROWS, InvalidSetting, "device 'cuda:77' is not available"),
        ({}, ROWS[:, :1], InvalidData, "at least 2 columns"),
        ({}, np.where(ROWS[5] == ROWS, np.nan, ROWS), InvalidData, "posteriors|embedding of instance 5"),
        ({"classifier": LinearSVC()}, X, InvalidSetting, "Networks over bags need posteriors"),
    ],
)
def test_bad_input_is_a_clear_error(small, settings, rows, error, message):
    with pytest.raises(error, match=message):
        DeepSets(**{"classifier": "precomputed", "device": "cpu", "max_epochs": 1, **settings}).fit(rows, CODES)


def test_nan_in_an_embedding_is_named(small):
    holes = ROWS.copy()
    holes[[5, 9], 3] = np.nan
    with pytest.raises(InvalidData, match="embedding of instance 5 contains NaN or infinity, and so do 1 others"):
        DeepSets("precomputed", max_epochs=1).fit(holes, CODES)
    quantifier = DeepSets("precomputed", max_epochs=1, device="cpu", random_state=0).fit(ROWS, CODES)
    with pytest.raises(InvalidData, match="embedding has 1 columns, but had 2 in fit"):
        quantifier.predict(ROWS[:, :3])
