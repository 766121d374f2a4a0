import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from quanet.classifiers.calibration import METHODS, Calibration, calibrate, fit_weights, smooth_zeros, zero_floor
from quanet.data.synthetic import Gaussians
from quanet.errors import InvalidSetting


def honest(k, n=20_000):
    source, prior = Gaussians(k=k, distance=2.0), np.arange(1, k + 1) / (k * (k + 1) / 2)
    X, y = source.draw(prior, n, rng=0)
    return source.posteriors(X, prior), y


def cross_entropy(posteriors, y):
    return -np.log(posteriors[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("method", METHODS)
def test_honest_posteriors_are_left_nearly_alone(method, k):
    posteriors, y = honest(k)
    np.testing.assert_allclose(calibrate(posteriors, y, method=method)(posteriors), posteriors, atol=0.04)


@pytest.mark.parametrize(
    ("method", "scale", "shift"),
    [
        ("temperature", np.ones(3) * 2.5, np.zeros(3)),
        ("bcts", np.ones(3) * 0.6, np.array([-0.5, 0.0, 0.5])),
        ("vector", np.array([0.7, 1.0, 1.4]), np.array([0.3, 0.0, -0.3])),
    ],
)
def test_a_distortion_of_the_methods_own_kind_is_undone(method, scale, shift):
    posteriors, y = honest(3)
    distorted = softmax((log_softmax(np.log(posteriors), axis=1) - shift) / scale, axis=1)
    found = calibrate(distorted, y, method=method)
    np.testing.assert_allclose(found.scale, scale, rtol=0.1)
    np.testing.assert_allclose(found.shift, shift - shift.mean(), atol=0.1)
    np.testing.assert_allclose(found(distorted), posteriors, atol=0.05)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 4])
def test_calibration_lowers_the_cross_entropy_of_an_overconfident_classifier(method, k):
    posteriors, y = honest(k, n=3000)
    sure = posteriors**3 / (posteriors**3).sum(axis=1, keepdims=True)
    calibrated = calibrate(sure, y, method=method)(sure)
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)
    assert cross_entropy(calibrated, y) < cross_entropy(sure, y)


@pytest.mark.parametrize("method", ["bcts", "vector"])
def test_the_mean_calibrated_posterior_is_the_prior(method):
    # The derivative by each shift is zero at the optimum, and that is what it says.
    posteriors, y = honest(3, n=2000)
    skewed = posteriors * np.array([4.0, 1.0, 0.5])
    skewed /= skewed.sum(axis=1, keepdims=True)
    calibrated = calibrate(skewed, y, method=method)(skewed)
    np.testing.assert_allclose(calibrated.mean(axis=0), np.bincount(y) / len(y), atol=1e-5)


def test_for_two_classes_platt_and_bcts_nearly_agree():
    posteriors, y = honest(2, n=4000)
    distorted = posteriors**2 / (posteriors**2).sum(axis=1, keepdims=True)
    platt, bcts = (calibrate(distorted, y, method=method)(distorted) for method in ("platt", "bcts"))
    np.testing.assert_allclose(platt, bcts, atol=0.01)


def test_a_useless_classifier_is_calibrated_to_the_prior():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    calibrated = calibrate(np.column_stack([1 - p, p]), rng.permutation(np.repeat([0, 1], [1400, 600])), method="bcts")
    np.testing.assert_allclose(calibrated(np.array([[0.2, 0.8]])), [[0.7, 0.3]], atol=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_certain_posteriors_stay_finite(method):
    y = np.array([0, 1] * 10)
    calibrated = calibrate(np.eye(2)[y], y, method=method)(np.eye(2))
    assert np.isfinite(calibrated).all()
    assert calibrated[0, 0] > 0.9


def test_an_unknown_calibration_is_named():
    with pytest.raises(InvalidSetting, match=r"method must be one of 'platt', .*; got 'isotonic'"):
        calibrate(np.eye(2), np.array([0, 1]), method="isotonic")


def test_a_calibration_works_on_any_stack():
    calibration = Calibration("bcts", np.array([2.0, 2.0]), np.array([0.0, 0.0]))
    stack = np.array([[[0.8, 0.2]], [[0.5, 0.5]]])
    np.testing.assert_allclose(calibration(stack), [[[16 / 17, 1 / 17]], [[0.5, 0.5]]])


def test_weights_are_those_of_the_evidence():
    # Two independent looks at the same classes: their log likelihoods add up, so they count by how much they show.
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=20_000)
    signal = np.where(y == 1, 1.0, -1.0)
    looks = [signal * strength + rng.normal(size=len(y)) for strength in (1.0, 0.5)]
    logits = [np.column_stack([-look, look]) for look in looks]
    np.testing.assert_allclose(fit_weights(logits, y), [2 / 3, 1 / 3], atol=0.02)
    np.testing.assert_allclose(fit_weights(logits[::-1], y), [1 / 3, 2 / 3], atol=0.02)


def test_logits_that_mislead_count_for_nothing_and_alike_ones_evenly():
    y = np.array([0, 1, 2] * 40)
    right = np.eye(3)[y]
    np.testing.assert_allclose(fit_weights([right, -right], y), [1, 0], atol=1e-6)
    np.testing.assert_allclose(fit_weights([right, right], y), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(fit_weights([-right, -right], y), [0.5, 0.5])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [1e-3, 0.005, 0.1, 1.0, 4.0])
def test_calibrated_posteriors_do_not_depend_on_how_confident_the_classifier_is(method, confidence):
    posteriors, y = honest(2, n=2000)
    exact = calibrate(posteriors, y, method=method)(posteriors)
    distorted = softmax(confidence * np.log(posteriors), axis=1)
    # The scales of single classes act on log p, which a power of the odds moves in a curve.
    # Powers of 4 fall below 1e-12, where posteriors are clipped.
    close = 0.02 if method in {"vector", "nbvs"} else 2e-3 if confidence > 1 else 1e-5
    np.testing.assert_allclose(calibrate(distorted, y, method=method)(distorted), exact, atol=close)


@pytest.mark.parametrize("method", METHODS)
def test_an_underconfident_classifier_of_many_classes_is_calibrated_as_well(method):
    posteriors, y = honest(4, n=3000)
    distorted = softmax(0.005 * np.log(posteriors), axis=1)
    calibrated = calibrate(distorted, y, method=method)(distorted)
    assert cross_entropy(calibrated, y) < cross_entropy(posteriors, y) + 0.03


def votes(posteriors, voters, rng=0):
    """Posteriors as a vote of `voters` neighbours gives them: whole numbers of votes, many of them zero."""
    return np.random.default_rng(rng).multinomial(voters, posteriors) / voters


@pytest.mark.parametrize("method", METHODS)
def test_posteriors_of_zero_do_not_decide_how_far_the_others_are_trusted(method):
    posteriors, y = honest(4, n=3000)
    counted = votes(posteriors, 10)
    assert (counted == 0).any()
    # What votes can know, smoothed as by a Dirichlet prior that has the votes' own strength.
    smoothed = (10 * counted + 2 * np.bincount(y) / len(y)) / 12
    calibrated = calibrate(counted, y, method=method)(counted)
    assert cross_entropy(calibrated, y) < cross_entropy(smoothed, y) + 0.01
    np.testing.assert_allclose(calibrated.sum(axis=1), 1)


def test_the_floor_makes_held_out_labels_most_likely():
    posteriors, y = honest(3, n=1000)
    counted, prior = votes(posteriors, 5), np.bincount(y) / len(y)
    floor = zero_floor(counted, y)
    np.testing.assert_allclose(floor / floor.sum(), prior)
    others = [cross_entropy(smooth_zeros(counted, share * prior), y) for share in np.linspace(0.01, 0.9, 50)]
    assert cross_entropy(smooth_zeros(counted, floor), y) <= min(others) + 1e-9


def test_posteriors_without_zeros_and_zeros_that_are_right_have_no_floor():
    posteriors, y = honest(3, n=500)
    assert zero_floor(posteriors, y) is None
    assert calibrate(posteriors, y, method="bcts").floor is None
    assert zero_floor(np.eye(3)[y], y) is None


def test_zeros_that_say_nothing_are_replaced_by_the_prior():
    y = np.repeat([0, 1], [300, 100])
    said = np.eye(2)[np.random.default_rng(0).integers(2, size=400)]
    calibrated = calibrate(said, y, method="bcts")(np.eye(2))
    np.testing.assert_allclose(calibrated, [[0.75, 0.25]] * 2, atol=0.08)
