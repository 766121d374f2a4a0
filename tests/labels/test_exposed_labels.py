"""Labels of bags with exposure: strata and influences by hand, laws, coverage where few rows weigh most, plans."""

import numpy as np
import pytest

from quanet import EMQ, Gaussians, plan_labels, refine
from quanet.errors import InvalidData
from quanet.labels.group_labels import GroupLabels, refine_groups
from quanet.labels.prediction_powered import (
    BagExposure,
    ExposedDesign,
    LabelDesign,
    design_labels,
    exposure_limits,
    prediction_powered,
)


@pytest.fixture(scope="module")
def quantifier():
    return EMQ().fit(*Gaussians().draw([0.5, 0.5], 1000, rng=0))


def test_strata_of_exposure_have_their_own_corrections():
    views = np.r_[np.full(4, 40.0), np.full(40, 2.0)]  # 160 and 80: two strata
    assert exposure_limits(views).tolist() == [40.0, 2.0]
    places = np.array([0, 1, 4, 5, 6, 7])
    design = design_labels(6, 44, exposure=views[places], bag=BagExposure(views))
    # Each heavy label stands for 80 of 240, each light one for 20.
    np.testing.assert_allclose(design.influence, [1 / 3, 1 / 3, 1 / 12, 1 / 12, 1 / 12, 1 / 12])
    # Heavy: two unlabelled rows, 2 * 40² + 80² / 2; light: 36 unlabelled rows, 36 * 2² + 72² / 4.
    np.testing.assert_allclose(design.spreads, np.array([6400, 1440]) / 240**2)
    assert design.equivalent == pytest.approx((1 - 6 / 44) / (7840 / 240**2))
    # Labels 1 0 of the heavy rows vary by 1/2, and count with a further label of variance 1/4: (1/2 + 1/4) / 2.
    residuals = np.array([[0.5], [-0.5], [0], [0], [0], [0]])
    expected = (6400 * (0.5 + 0.25) / 2 + 1440 * 0.25 / 4) / 240**2
    assert design.variance(residuals)[0] == pytest.approx(expected)


def test_a_stratum_without_labels_is_as_uncertain_as_one_label_of_it_could_make_it():
    views = np.r_[np.full(4, 40.0), np.full(40, 2.0)]
    design = design_labels(5, 44, exposure=views[4:9], bag=BagExposure(views))
    np.testing.assert_allclose(design.influence, 0.2)
    assert design.spreads[0] == pytest.approx((4 * 40**2 + 160**2) / 240**2)
    assert design.variance(np.zeros((5, 1)))[0] > 0.25 * (160 / 240) ** 2


def test_influences_add_up_to_one_and_a_labelled_bag_is_known():
    rng = np.random.default_rng(0)
    views = rng.pareto(1, 300) + 1
    for n in (10, 60, 300):
        places = rng.permutation(300)[:n]
        design = design_labels(n, 300, exposure=views[places], bag=BagExposure(views))
        assert isinstance(design, ExposedDesign)
        assert design.influence.sum() == pytest.approx(1)
    codes = rng.integers(0, 2, 300)
    f = np.full((300, 2), 0.5)
    found = prediction_powered(f, f[places], codes[places], design=design, exposure=views)
    lower, upper = found.interval(0.95)
    assert found.estimate[1] == pytest.approx(views @ codes / views.sum())
    assert (upper - lower).max() < 1e-9


def test_similar_exposures_count_as_without_strata():
    views = np.random.default_rng(0).uniform(1, 4, 200)
    design = design_labels(50, 200, exposure=views[:50], bag=BagExposure(views))
    assert isinstance(design, LabelDesign)
    np.testing.assert_array_equal(design.influence, LabelDesign.of(50, 200, exposure=views[:50]).influence)


def exposed(kind, y, rng):
    """Exposure that depends on the class, or has heavy tails."""
    if kind == "3 % of rows x 11":
        return np.where((y == 1) & (rng.random(len(y)) < 0.03 / y.mean()), 11.0, 1.0)
    return rng.random(len(y)) ** (-1 / 1.2)


@pytest.mark.parametrize("kind", ["3 % of rows x 11", "Pareto"])
def test_intervals_cover_where_few_rows_have_most_of_the_exposure(quantifier, kind):
    rng = np.random.default_rng(0)
    inside, widths = [], []
    for _ in range(120):
        X, y = Gaussians().draw([0.9, 0.1], 1000, rng=rng)
        X += np.array([-0.4, 0.4])
        views = exposed(kind, y, rng)
        part = rng.permutation(1000)[:100]
        plan = plan_labels(quantifier, X, n=100, weights=views, random_state=None)
        for chosen, more in (
            (part, {}),
            (plan.indices, {"design_weights": plan.design_weights, "strata": plan.strata}),
        ):
            given = {"weights": views, "weights_labelled": views[chosen]}
            found = refine(quantifier, X, X[chosen], y[chosen], **given, **more)
            truth = views @ y / views.sum()
            inside.append(found.lower[1] - 1e-9 <= truth <= found.upper[1] + 1e-9)
            widths.append(found.upper[1] - found.lower[1])
    random, planned = np.reshape(inside, (-1, 2)).mean(axis=0)
    assert random >= 0.9  # 0.75 to 0.82 if few heavy labels are trusted
    assert planned >= 0.9
    width, narrower = np.reshape(widths, (-1, 2)).mean(axis=0)
    assert narrower < 0.6 * width


def test_a_plan_with_weights_takes_dominating_rows_with_certainty_and_none_of_weight_zero(quantifier):
    X, _ = Gaussians().draw([0.5, 0.5], 1000, rng=1)
    views = np.ones(1000)
    views[:5] = 500.0
    views[900:] = 0
    plan = plan_labels(quantifier, X, n=60, weights=views)
    assert plan.n == 60
    assert set(range(5)) <= set(plan.indices.tolist())
    assert plan.indices.max() < 900
    certain = plan.design_weights[plan.indices < 5]
    np.testing.assert_allclose(certain, 1)
    np.testing.assert_allclose(plan.design_weights.sum(), 900)
    assert plan.width < plan_labels(quantifier, X, n=60).width
    same = plan_labels(quantifier, X, n=60, weights=np.full(1000, 3.0))
    np.testing.assert_array_equal(same.indices, plan_labels(quantifier, X, n=60).indices)
    with pytest.raises(InvalidData, match="weights must be one number"):
        plan_labels(quantifier, X, n=60, weights=views[:10])


def test_a_group_with_labels_of_its_own_is_estimated_as_a_bag_of_its_own(quantifier):
    rng = np.random.default_rng(2)
    X, y = Gaussians().draw([0.6, 0.4], 600, rng=rng)
    owner = np.repeat([0, 1], 300)
    views = np.where(rng.random(600) < 0.05, 30.0, 1.0)
    places = rng.permutation(600)[:120]
    ratios = quantifier.read(X).values / quantifier.prior_
    design = design_labels(120, 600, exposure=views[places], bag=BagExposure(views))
    labels = GroupLabels(ratios, owner, ratios[places], owner[places], y[places], design, views)
    found = refine_groups(labels, np.array([0.6, 0.4]), level=0.95)
    truth = np.bincount(owner, views * y) / np.bincount(owner, views)
    assert (found.lower[:, 1] <= truth).all()
    assert (truth <= found.upper[:, 1]).all()
    part = design.part(np.flatnonzero(owner == 0), np.flatnonzero(owner[places] == 0))
    assert part.influence.sum() == pytest.approx(1)
    assert design.part(np.arange(300), np.empty(0, dtype=np.intp)) is None


def test_rows_that_stand_for_several_instances_have_at_least_the_variance_of_a_random_part():
    # 1,000 instances in ten rows; 30 of them have exposure 31, which the rows do not show.
    bag = BagExposure(np.full(10, 190.0), np.full(10, 100.0), np.full(10, 97 + 3 * 31.0**2))
    design = design_labels(50, 1000, exposure=np.ones(50), bag=bag)
    assert design.spread == pytest.approx(bag.squares.sum() / 1900**2 * 19)
    assert design.equivalent < 10
