import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from quanet import ACC, APP, CC, EMQ, MS, PACC, TAC, Bags, Ensemble, Gaussians, Median, evaluate
from quanet.data.duplicates import canonical_order
from quanet.errors import InvalidData, InvalidSetting
from quanet.methods.ensemble import histograms
from quanet.metrics import absolute_error


@pytest.fixture(scope="module")
def clouds():
    X, y = Gaussians(distance=2).draw([0.7, 0.3], 400, rng=0)
    order = canonical_order(X, y)  # as in `fit`
    return X[order], y[order]


@pytest.fixture(scope="module")
def new():
    return Gaussians(distance=2).draw([0.4, 0.6], 300, rng=1)[0]


def test_the_median_is_over_what_each_setting_says(clouds, new):
    grid = {"threshold": [0.2, 0.4, 0.6, 0.8]}
    together = Median(TAC(), grid).fit(*clouds)
    alone = [TAC(threshold=one).fit(*clouds).predict(new)[1] for one in grid["threshold"]]
    assert together.predict(new)[1] == pytest.approx(np.median(alone))
    bags = Bags(np.arange(300).reshape(30, 10))
    np.testing.assert_allclose(together.predict_bags(new, bags)[3], together.predict(new[30:40]))


def test_rows_of_a_given_classifier_are_kept_once(clouds, new):
    source = Gaussians(distance=2)
    held, rows = source.posteriors(clouds[0], [0.7, 0.3]), source.posteriors(new, [0.7, 0.3])
    for one in (Ensemble(ACC("precomputed"), size=6), Median(TAC("precomputed"), {"threshold": [0.3, 0.5]})):
        fitted = one.fit(held, clouds[1])
        assert fitted.represent(rows).shape == (300, 2)
        combine = np.mean if isinstance(one, Ensemble) else np.median
        expected = combine([member.predict(rows) for member in fitted.members_], axis=0)
        np.testing.assert_allclose(fitted.predict(rows), expected)
    frozen = FrozenEstimator(LogisticRegression().fit(*clouds))
    assert Ensemble(PACC(frozen), size=3).fit(*clouds).represent(new).shape == (300, 2)
    assert Ensemble(PACC(), size=3).fit(*clouds).represent(new).shape == (300, 6)


def test_members_that_change_the_posteriors_of_a_given_classifier_have_their_own_rows(clouds, new):
    X, y = clouds
    classifier = LogisticRegression().fit(X, y)
    posteriors, bag = classifier.predict_proba(X), classifier.predict_proba(new)
    grid = {"calibration": [None, "temperature", "bcts"]}
    median = Median(EMQ("precomputed"), grid).fit(posteriors, y)
    alone = [EMQ("precomputed", calibration=one).fit(posteriors, y).predict(bag) for one in grid["calibration"]]
    assert not median.shared_
    np.testing.assert_allclose(median.predict(bag), np.median(alone, axis=0), atol=1e-12)


def test_medians_of_more_classes_are_scaled_to_one():
    X, y = Gaussians(k=3, distance=2).draw([0.3, 0.3, 0.4], 300, rng=0)
    together = Median(PACC(), {"cv": [2, 3, 5]}).fit(X, y)
    middle = np.median([PACC(cv=cv).fit(X, y).predict(X[:50]) for cv in (2, 3, 5)], axis=0)
    np.testing.assert_allclose(together.predict(X[:50]), middle / middle.sum())


def test_members_are_trained_at_many_prevalences(clouds):
    ensemble = Ensemble(PACC(), size=30, least=5).fit(*clouds)
    share = ensemble.prevalences_[:, 1]
    assert share.min() < 0.2
    assert share.max() > 0.8
    assert (ensemble.prevalences_ * 400 >= 4.5).all()
    np.testing.assert_allclose([member.prior_ for member in ensemble.members_], ensemble.prevalences_)


def says(ensemble, new):
    return np.stack([member.predict(new) for member in ensemble.members_])


def test_the_average_hears_all(clouds, new):
    ensemble = Ensemble(PACC(), size=8).fit(*clouds)
    np.testing.assert_allclose(ensemble.predict(new), says(ensemble, new).mean(axis=0))


def test_prevalence_hears_those_trained_near_the_first_estimate(clouds, new):
    ensemble = Ensemble(CC(), size=12, policy="prevalence", kept=4).fit(*clouds)
    found = says(ensemble, new)
    nearest = np.argsort(np.abs(ensemble.prevalences_[:, 1] - found[:, 1].mean()))[:4]
    np.testing.assert_allclose(ensemble.predict(new), found[nearest].mean(axis=0))


def test_distribution_hears_those_trained_on_similar_posteriors(clouds, new):
    ensemble = Ensemble(CC(), size=12, policy="distribution", kept=4).fit(*clouds)
    found = says(ensemble, new)
    bag = np.histogram(ensemble.classifier_.predict_proba(new)[:, 1], bins=8, range=(0, 1))[0] / len(new)
    distance = [np.sqrt(1 - np.sqrt(bag * one).sum()) for one in ensemble.histograms_[:, 1]]
    np.testing.assert_allclose(ensemble.predict(new), found[np.argsort(distance)[:4]].mean(axis=0))


def test_accuracy_keeps_those_that_do_well_on_the_others_bags(clouds):
    X, _ = clouds
    everyone = Ensemble(ACC(), size=10, random_state=3).fit(*clouds)
    best = Ensemble(ACC(), size=10, policy="accuracy", kept=3, random_state=3).fit(*clouds)
    bags = everyone._draw(clouds[1])
    errors = np.array([absolute_error(bags.prevalences, one.predict_bags(X, bags)) for one in everyone.members_])
    errors[np.diag_indices(10)] = 0
    chosen = np.sort(np.argsort(errors.sum(axis=1))[:3])
    np.testing.assert_allclose(best.prevalences_, everyone.prevalences_[chosen])
    assert len(best.members_) == 3
    assert Ensemble(ACC(), size=4, policy="accuracy", kept=2, metric="kld").fit(*clouds).prevalences_.shape == (2, 2)


def test_histograms_count_posteriors_of_every_class():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 50))
    found = histograms(rows)
    expected = np.histogram(rows[2, :, 1], bins=8, range=(0, 1))[0] / 50
    np.testing.assert_allclose(found[2, 1], expected)


def test_an_ensemble_of_counts_beats_one_count():
    source = Gaussians(distance=2)
    (X, y), (pool, y_pool) = source.draw([0.8, 0.2], 600, rng=0), source.draw([0.5, 0.5], 4000, rng=1)
    protocol = APP(bag_size=200, repeats=3)
    one, many = (
        evaluate(quantifier.fit(X, y), pool, y_pool, protocol, rng=2).error().mean()
        for quantifier in (CC(), Ensemble(CC(), size=30, policy="prevalence", kept=10))
    )
    assert many < one


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (Median(MS(), {"bins": [1]}), "MS has no parameter 'bins'. Choose from classifier, cv, positive"),
        (Median(MS(), {"cv": None}), "grid must give each parameter a list of values"),
        (
            Ensemble(CC(), policy="best"),
            "policy must be one of 'average', 'prevalence', 'distribution'",
        ),
        (Ensemble(CC(), size=0), "size must be a whole number of at least 1; got 0"),
        (Ensemble(CC(), policy="accuracy", metric="bias"), "bias is one number per class"),
    ],
)
def test_settings_that_mean_nothing_are_named(quantifier, message, clouds):
    with pytest.raises(InvalidSetting, match=message):
        quantifier.fit(*clouds)


def test_too_few_instances_for_every_class_are_named(clouds):
    with pytest.raises(InvalidData, match="8 instances cannot have 5 of each of 2 classes in a bag"):
        Ensemble(CC()).fit(clouds[0][:8], [0, 1] * 4)
