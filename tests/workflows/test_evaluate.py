import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from quanet import APP, CC, EMQ, KMM, PACC, ByGroup, DyS, Gaussians, GridSearchQ, evaluate
from quanet.corpus.grouped_inputs import GroupedInputs
from quanet.errors import QuanetWarning
from quanet.workflows.drawing import Drawing, LabelledBags, draw_bags
from quanet.workflows.evaluate import evaluate_model, posteriors_in
from quanet.workflows.predict import estimate_shares

DRAWING = Drawing(bag_size=60, repeats=3)


def read(quantifier, X):
    """Instances as one group, the way a file is read."""
    return GroupedInputs(quantifier.read(X), np.zeros(len(X), dtype=np.int32), [()], {}, None)


@pytest.fixture(scope="module")
def data():
    return Gaussians().draw([0.5, 0.5], 600, rng=0), Gaussians().draw([0.3, 0.7], 500, rng=1)


@pytest.fixture(scope="module")
def fitted(data):
    return EMQ().fit(*data[0])


@pytest.fixture(scope="module")
def found(data, fitted):
    X, y = data[1]
    drawn = draw_bags(DRAWING, y, fitted.classes_, rng=5)
    return evaluate_model(fitted, read(fitted, X), y, drawn, source="x.csv")


def test_errors_are_those_of_evaluate_on_the_same_bags(data, fitted, found):
    expected = evaluate(fitted, *data[1], APP(bag_size=60, repeats=3), rng=5)
    np.testing.assert_allclose(found.results["EMQ"].estimate, expected.estimate, atol=1e-9)
    np.testing.assert_array_equal(found.results["EMQ"].truth, expected.truth)


def test_beside_it_stand_a_plain_count_of_its_labels_and_the_training_shares(data, fitted, found):
    counting = CC(FrozenEstimator(fitted.classifier_)).fit(*data[0])
    expected = evaluate(counting, *data[1], APP(bag_size=60, repeats=3), rng=5)
    np.testing.assert_allclose(found.results["CC"].estimate, expected.estimate)
    assert (found.results["TrainPrevalence"].estimate == fitted.prior_).all()
    assert found.results["EMQ"].error().mean() < found.results["CC"].error().mean()


def test_coverage_is_counted_class_by_class(found):
    assert found.covered.shape == found.interval.lower.shape
    both = found.interval.contains(found.results["EMQ"].truth)
    np.testing.assert_array_equal(found.covered.all(axis=1), both)
    assert found.covered.mean() > 0.9


def test_the_whole_file_is_one_bag_with_its_truth(data, found):
    np.testing.assert_allclose(found.whole_truth, [0.3, 0.7])
    assert found.whole.contains(found.whole_truth)
    assert [one.name for one in found.diagnosis][:2] == ["prior shift", "prevalence"]
    assert found.limit is not None
    assert 0 < found.limit.errors.mean() < found.results["EMQ"].error().mean() * 2


@pytest.mark.parametrize("kind", [EMQ, DyS, CC])
def test_the_intervals_are_those_that_predict_gives_for_the_same_bags(data, kind):
    # Groups of 1, 10, 19, 20 and 150 instances: by their sizes they get different kinds of intervals.
    X, y = data[1][0][:200], data[1][1][:200]
    codes = np.repeat(np.arange(5, dtype=np.int32), [1, 10, 19, 20, 150])
    quantifier = kind().fit(*data[0])
    reading = GroupedInputs(quantifier.read(X), codes, [(f"g{g}",) for g in range(5)], {}, None)
    bags = ByGroup(groups=codes).draw(y, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuanetWarning)
        shares = estimate_shares(quantifier, reading)
        direct = quantifier.predict_interval_bags(X, bags)
    measured = evaluate_model(quantifier, reading, y, LabelledBags(bags, "by group"))
    assert measured.interval.method == shares.interval.method == direct.method
    for end in ("estimate", "lower", "upper"):
        np.testing.assert_array_equal(getattr(measured.interval, end), getattr(shares.interval, end))
        np.testing.assert_array_equal(getattr(measured.interval, end), getattr(direct, end))
        np.testing.assert_array_equal(getattr(measured.whole, end), getattr(shares.total, end))


def test_a_search_is_judged_as_what_it_has_chosen(data, fitted):
    search = GridSearchQ(EMQ(), {"calibration": ["bcts"]}).fit(*data[0])
    X, y = data[1]
    drawn = draw_bags(DRAWING, y, search.classes_, rng=5)
    found = evaluate_model(search, read(search, X), y, drawn)
    assert list(found.results) == ["GridSearchQ", "CC", "TrainPrevalence"]
    np.testing.assert_allclose(found.results["GridSearchQ"].estimate, fitted.predict_bags(X, drawn.bags), atol=1e-9)


def test_without_posteriors_there_is_neither_a_count_nor_a_limit(data):
    X, y = data[1]
    quantifier = KMM().fit(*data[0])
    drawn = draw_bags(Drawing(bag_size=60, repeats=1), y, quantifier.classes_, rng=5)
    assert posteriors_in(quantifier, quantifier.read(X)) is None
    found = evaluate_model(quantifier, read(quantifier, X), y, drawn, name="mine")
    assert list(found.results) == ["mine", "TrainPrevalence"]
    assert found.limit is None
    assert found.diagnosis.severity == "note"


@pytest.mark.filterwarnings("ignore:The classifier (hardly|does not) separate")
def test_what_cannot_be_diagnosed_says_why():
    # Three held-out instances of a class are too few for a diagnosis, and no reason to give up.
    rng = np.random.default_rng(0)
    posteriors, labels = rng.dirichlet([1, 1], size=60), np.repeat([0, 1], [57, 3])
    quantifier = PACC("precomputed").fit(posteriors, labels)
    drawn = draw_bags(Drawing(bag_size=20, repeats=1), labels, quantifier.classes_, rng=0)
    found = evaluate_model(quantifier, read(quantifier, posteriors), labels, drawn)
    assert any("held-out instances" in finding.sentence for finding in found.diagnosis)
    assert found.limit is None  # nor are three of the pool enough


@pytest.mark.filterwarnings("ignore:The classifier (hardly|does not) separate")
def test_too_few_held_out_instances_leave_intervals_of_the_bag_alone():
    rng = np.random.default_rng(0)
    posteriors, labels = rng.dirichlet([1, 1], size=60), np.repeat([0, 1], [56, 4])
    quantifier = DyS("precomputed").fit(posteriors, labels)
    drawn = draw_bags(Drawing(bag_size=20, repeats=1), labels, quantifier.classes_, rng=0)
    found = evaluate_model(quantifier, read(quantifier, posteriors), labels, drawn)
    assert found.interval.method == "bootstrap"
    assert found.whole.lower.shape == (2,)


def test_intervals_are_compared_with_those_without_drift(data, fitted, found):
    X, y = data[1]
    drawn = draw_bags(DRAWING, y, fitted.classes_, rng=5)
    plain = evaluate_model(fitted, read(fitted, X), y, drawn, drift=False)
    assert plain.interval.drift is None
    assert plain.states == {}
    np.testing.assert_array_equal(plain.covered, found.plain_covered)
    np.testing.assert_array_equal(plain.covered, plain.plain_covered)
    assert (found.interval.width >= plain.interval.width).all()
    assert (found.covered >= found.plain_covered).all()
    assert sum(found.states.values()) == pytest.approx(1)


def test_drift_widens_the_intervals_and_shows_in_the_states(data, fitted):
    X, y = data[1]
    moved = X + np.array([0.0, 0.8])  # across the difference between the classes
    drawn = draw_bags(DRAWING, y, fitted.classes_, rng=5)
    far = evaluate_model(fitted, read(fitted, moved), y, drawn)
    assert far.states["trusted"] == 0
    assert far.interval.width.mean() > 1.2 * far.interval.without_drift.width.mean()
