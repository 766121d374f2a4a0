"""Where the classifier hardly separates the classes, estimates are shrunk towards the training prevalence."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import quanet
from quanet import (
    ACC,
    BBSE,
    CC,
    EMQ,
    MS,
    PACC,
    PCC,
    RLLS,
    T50,
    TAC,
    Bags,
    DMy,
    DyS,
    EDy,
    Ensemble,
    Gaussians,
    HDy,
    KDEyML,
    OneVsRest,
)
from quanet.classifiers.cross_fitting import cross_fit, resolve_classifier
from quanet.errors import QuanetWarning
from quanet.held_out import knowledge
from quanet.methods.aggregative import AggregativeQuantifier
from quanet.metrics import absolute_error
from quanet.simplex import prevalence_of

SIX = np.array([0.38, 0.24, 0.16, 0.11, 0.07, 0.04])
TWO = np.array([0.7, 0.3])
HARDLY = r"hardly separates|does not separate"
MULTICLASS = [EMQ, PACC, ACC, KDEyML, DMy, EDy, BBSE, RLLS]
BINARY = [HDy, DyS, MS, T50, TAC]


def posts(codes, strength, rng):
    """Texts of twelve words; a share of them has one word of its class."""
    common = np.array([f"w{number}" for number in range(400)])
    often = 1 / np.arange(1, 401)
    words = rng.choice(common, (len(codes), 12), p=often / often.sum()).astype(object)
    for at in np.flatnonzero(rng.random(len(codes)) < strength):
        words[at, 0] = f"c{codes[at]}x{rng.integers(15)}"
    return [" ".join(text) for text in words]


def out_of_fold(X, y, k):
    return cross_fit(resolve_classifier(None, X, np.arange(k)), X, y, np.arange(k), cv=5)[1:]


def learned(shares, strength, seed=0, n=499):
    """Out-of-fold posteriors of posts and their classes, by the default classifier for texts."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(shares), n, p=shares)
    posteriors, held = out_of_fold(posts(y, strength, rng), y, len(shares))
    return posteriors, y[held]


def fitted(method, posteriors, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)
        return method("precomputed").fit(posteriors, y)


@cache
def nothing():
    return learned(SIX, 0.0)


@cache
def little():
    return learned(SIX, 0.2)


@cache
def much():
    return learned(SIX, 1.0)


@pytest.mark.parametrize("method", MULTICLASS)
def test_no_estimate_is_worse_than_the_training_prevalence_when_the_classifier_knows_nothing(method):
    posteriors, y = nothing()
    quantifier = fitted(method, posteriors, y)
    bags = posteriors[np.random.default_rng(1).integers(len(y), size=(20, 300))]  # posteriors of no use to anyone
    raw, found = (absolute_error(SIX, part(bags)).mean() for part in (quantifier._aggregate, quantifier.aggregate))
    plain = absolute_error(SIX, quantifier.prior_)
    assert found <= plain + 0.003 < raw


@pytest.mark.parametrize("method", BINARY)
def test_no_estimate_of_two_classes_is_worse_either(method):
    rng = np.random.default_rng(3)
    y = rng.choice(2, 400, p=TWO)
    X = rng.normal(size=(400, 20))
    posteriors, held = out_of_fold(X, y, 2)
    quantifier = fitted(method, posteriors, y[held])
    np.testing.assert_allclose(quantifier.predict(posteriors[:100]), quantifier.prior_, atol=0.02)


@pytest.mark.parametrize("method", MULTICLASS)
def test_no_digit_changes_when_the_classifier_knows_much(method):
    quantifier = fitted(method, *much())
    bag = much()[0][::3]
    assert quantifier.shrinkage_ == 0
    assert (quantifier.predict(bag) == quantifier._aggregate(quantifier.represent(bag))).all()


@pytest.mark.parametrize("method", [EMQ, PACC, ACC, KDEyML])
def test_estimates_are_shrunk_less_the_more_the_classifier_knows(method):
    none, some, all_ = (fitted(method, *part()).shrinkage_ for part in (nothing, little, much))
    assert none > some > all_ == 0


def test_what_few_posteriors_know_is_less_than_what_many_do():
    source, shares = Gaussians(distance=1.0), [0.5, 0.5]
    found = []
    for n in (40, 200, 2000):
        X, y = source.draw(shares, n, rng=0)
        found.append(knowledge(source.posteriors(X, np.array(shares)), y))
    assert found[0] < found[1] < found[2]
    assert found[2] > 0.95


def test_labels_that_are_all_the_same_know_nothing_though_posteriors_do():
    X, y = Gaussians(distance=1.5).draw([0.95, 0.05], 1000, rng=0)
    posteriors = Gaussians(distance=1.5).posteriors(X, np.array([0.95, 0.05]))
    posteriors[:, 1] *= 0.5
    posteriors[:, 0] = 1 - posteriors[:, 1]
    assert (posteriors.argmax(axis=1) == 0).all()
    assert fitted(PACC, posteriors, y).shrinkage_ == 0
    for method in (ACC, BBSE, TAC):
        quantifier = fitted(method, posteriors, y)
        np.testing.assert_allclose(quantifier.predict(posteriors[:50]), quantifier.prior_)


def test_a_classifier_that_is_always_wrong_knows_as_much_as_one_that_is_right():
    y = np.repeat([0, 1], 50)
    assert fitted(PACC, np.eye(2)[1 - y], y).predict(np.eye(2)[[1, 1, 1, 0]]) == pytest.approx([0.75, 0.25])


def test_a_weak_classifier_is_reported_once_at_fit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), rng.integers(3, size=300)
    for quantifier in (EMQ(), OneVsRest(PACC()), Ensemble(PACC(), size=4)):
        with pytest.warns(QuanetWarning, match=HARDLY) as caught:
            quantifier.fit(X, y)
        assert len([one for one in caught if "would help" in str(one.message)]) == 1
        assert quantifier.shrinkage_ > 0.5


def test_members_of_an_ensemble_are_shrunk_together_towards_the_prevalence_of_all_data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 20)), rng.choice(2, 400, p=[0.8, 0.2])
    with pytest.warns(QuanetWarning, match=HARDLY):
        ensemble = Ensemble(PACC(), size=5).fit(X, y)
    assert not any(member.shrinkage_ for member in ensemble.members_)
    raw = ensemble._aggregate(ensemble.represent(X[:60]))
    expected = raw + ensemble.shrinkage_ * (ensemble.prior_ - raw)
    np.testing.assert_allclose(ensemble.predict(X[:60]), expected)


def test_counting_is_left_as_it_is():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.choice(2, 300, p=TWO)
    for method in (CC, PCC):
        assert method().fit(X, y).shrinkage_ == 0


def test_a_method_that_writes_aggregate_itself_is_left_as_it_is():
    class Half(AggregativeQuantifier):
        def _fit_aggregation(self, posteriors, codes):
            self.learned_ = len(codes)

        def aggregate(self, rows):
            return np.full((*np.shape(rows)[:-2], 2), 0.5)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.choice(2, 300, p=TWO)
    quantifier = Half().fit(X, y)
    assert quantifier.shrinkage_ == 0
    assert quantifier.predict(X).tolist() == [0.5, 0.5]


def test_other_names_of_classes_change_nothing():
    posteriors, y = little()
    reverse = np.arange(6)[::-1]
    one, other = fitted(PACC, posteriors, y), fitted(PACC, posteriors[:, reverse], reverse[y])
    assert 0 < one.shrinkage_ < 1
    assert one.shrinkage_ == pytest.approx(other.shrinkage_)
    np.testing.assert_allclose(
        one.predict(posteriors[:99]), other.predict(posteriors[:99, reverse])[reverse], atol=1e-6
    )


def test_the_interval_is_not_shrunk_and_holds_the_estimate():
    rng = np.random.default_rng(0)
    posteriors, y = rng.dirichlet([7, 3], 400), rng.choice(2, 400, p=TWO)
    for method in (EMQ, PACC, ACC, DyS):
        quantifier = fitted(method, posteriors, y)
        bags = Bags(rng.integers(400, size=(10, 100)))
        found = quantifier.predict_interval_bags(posteriors, bags)
        np.testing.assert_allclose(found.estimate, quantifier.predict_bags(posteriors, bags))
        assert (found.lower <= found.estimate).all()
        assert (found.estimate <= found.upper).all()
        assert quantifier.shrinkage_ == 1
        assert (found.upper - found.lower).min() == 1


def test_a_saved_model_shrinks_as_before_and_one_without_the_attribute_does_not(tmp_path):
    posteriors, y = little()
    quantifier = fitted(PACC, posteriors, y)
    quanet.save(quantifier, tmp_path / "model")
    loaded = quanet.load(tmp_path / "model")
    assert loaded.shrinkage_ == quantifier.shrinkage_ > 0
    np.testing.assert_array_equal(loaded.predict(posteriors[:50]), quantifier.predict(posteriors[:50]))
    raw = quantifier._aggregate(posteriors[:50])
    del quantifier.shrinkage_  # as versions before 0.2 have saved it
    np.testing.assert_allclose(quantifier.predict(posteriors[:50]), raw, atol=1e-12)


def test_a_diagnosis_reports_the_shrinkage():
    posteriors, y = nothing()
    found = quanet.diagnose(fitted(EMQ, posteriors, y), posteriors[:200])
    assert found["shrinkage"].severity == "alarm"
    assert "training prevalence" in found["shrinkage"].sentence
    assert "shrinkage" not in [one.name for one in quanet.diagnose(fitted(EMQ, *much()), much()[0][:200])]


ONCE = r"Dropped 1 of 4 classes that have only one instance: 'once'\. Their prevalence is not"


@pytest.mark.parametrize("quantifier", [EMQ(), PACC(), OneVsRest(PACC()), Ensemble(PACC(), size=15)])
def test_a_class_of_one_instance_is_left_out_and_the_others_are_estimated(quantifier):
    X, codes = Gaussians(k=3, distance=4.0).draw([0.5, 0.3, 0.2], 200, rng=0)
    y = np.array(["a", "b", "c"], dtype=object)[codes]
    y[0] = "once"
    with pytest.warns(QuanetWarning, match=ONCE):
        quantifier.fit(X, y)
    assert quantifier.classes_.tolist() == ["a", "b", "c"]
    assert quantifier.left_out_ == ("once",)
    np.testing.assert_allclose(quantifier.predict(X), prevalence_of(y[1:], ["a", "b", "c"]), atol=0.05)


def test_a_class_of_one_instance_stays_where_no_folds_are_made():
    X, codes = Gaussians(k=3, distance=4.0).draw([0.5, 0.3, 0.2], 200, rng=0)
    y = np.append(codes[:-1], 3)
    assert CC().fit(X, y).classes_.tolist() == [0, 1, 2, 3]
    assert CC().fit(X, y).left_out_ == ()


def test_copies_of_the_training_instances_do_not_make_a_weak_classifier_more_trusted():
    X, y = Gaussians(distance=0.5).draw([0.5, 0.5], 260, rng=0)
    classifier = FrozenEstimator(LogisticRegression().fit(X[:200], y[:200]))
    with pytest.warns(QuanetWarning, match=HARDLY):
        once = PACC(classifier).fit(X[200:], y[200:]).shrinkage_
    assert once > 0.1
    with pytest.warns(QuanetWarning, match=HARDLY):
        assert PACC(classifier).fit(np.tile(X[200:], (4, 1)), np.tile(y[200:], 4)).shrinkage_ == pytest.approx(once)
