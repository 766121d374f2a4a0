"""The prediction-powered mean: agreement with ppi-python, Wilson's interval, strata, exposure, groups."""

import numpy as np
import pytest
from scipy import stats

from quanet import EMQ, Gaussians, plan_labels, refine
from quanet.labels.group_labels import GroupLabels, adapt_posteriors, refine_groups
from quanet.labels.label_plans import allocate, stratify_posteriors
from quanet.labels.prediction_powered import LabelDesign, prediction_powered, score_interval
from quanet.labels.refine import fixed_label_em, random_part

# fmt: off
F = np.array([
    0.43, 0.29, 0.24, 0.41, 0.42, 0.15, 0.65, 0.55, 0.16, 0.36, 0.67, 0.2, 0.13, 0.41, 0.32, 0.19,
    0.7, 0.07, 0.56, 0.67, 0.55, 0.23, 0.36, 0.44, 0.11, 0.79, 0.5, 0.49, 0.3, 0.52, 0.05, 0.42,
    0.77, 0.66, 0.27, 0.44, 0.35, 0.32, 0.46, 0.22,
])
Y = np.array([
    0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1,
    1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1,
])
# fmt: on
PART = np.array([0, 5, 10, 15, 20, 25, 30, 35, 2, 7, 12, 17, 22, 27, 32, 37])
# ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci(Y[PART], F[PART], F, alpha=0.05, lam=λ), for λ = 1 and 0.5;
# and the point estimate with w_unlabeled = 1 + arange(40) % 7, for λ = 0.5.
PEER = {
    1.0: (0.3832499999999999, 0.13041819513038277, 0.6360818048696171),
    0.5: (0.37912499999999993, 0.14254273747853866, 0.6157072625214612),
}
PEER_WEIGHTED = 0.3589327956989248


def posteriors(f):
    return np.stack([1 - f, f], axis=1)


@pytest.mark.parametrize("weight", PEER)
def test_the_mean_agrees_with_ppi_python(weight):
    found = prediction_powered(posteriors(F), posteriors(F[PART]), Y[PART], weight=weight)
    estimate, lower, upper = PEER[weight]
    np.testing.assert_allclose(found.estimate[1], estimate, rtol=0, atol=1e-12)
    # Its variance is that of an infinite source: without finite-population correction, with that of the mean posterior.
    n, N = len(PART), len(F)
    variance = found.variance[1] / (1 - n / N) * (n - 1) / n + weight**2 * F.var() / N
    half = stats.norm.isf(0.025) * np.sqrt(variance)
    np.testing.assert_allclose([estimate - half, estimate + half], [lower, upper], rtol=0, atol=1e-8)


def test_the_weighted_mean_agrees_with_ppi_python():
    exposure = 1.0 + np.arange(40) % 7
    design = LabelDesign.of(16, 40, exposure=exposure[PART])
    given = {"design": design, "exposure": exposure, "weight": 0.5}
    found = prediction_powered(posteriors(F), posteriors(F[PART]), Y[PART], **given)
    np.testing.assert_allclose(found.estimate[1], PEER_WEIGHTED, rtol=0, atol=1e-8)


def test_useless_posteriors_give_wilsons_interval_of_the_plain_share():
    same = np.full((1000, 2), 0.5)
    codes = np.repeat([0, 1], [42, 8])
    found = prediction_powered(same, same[:50], codes)
    lower, upper = found.interval(0.95)
    finite = score_interval(np.array([0.16]), np.array([50 / 0.95]), 0.95)  # 5 % are labelled
    np.testing.assert_allclose([lower[1], upper[1]], np.ravel(finite))
    wilson = stats.binomtest(8, 50).proportion_ci(method="wilson")
    np.testing.assert_allclose(np.ravel(score_interval(np.array([0.16]), np.array([50]), 0.95)), wilson)


def test_strata_of_equal_labels_have_no_variance():
    codes = np.repeat([0, 1], 10)
    known = np.full((20, 2), 0.5)
    design = LabelDesign.of(20, 1000, strata=np.repeat([0, 1], 10))
    assert prediction_powered(np.full((1000, 2), 0.5), known, codes, design=design).variance.max() < 1e-12
    assert prediction_powered(np.full((1000, 2), 0.5), known, codes).variance.min() > 0.01


def test_a_stratum_with_one_label_joins_its_neighbour():
    assert LabelDesign.of(6, 100, strata=np.array([3, 3, 5, 7, 7, 9])).strata.tolist() == [0, 0, 1, 1, 1, 1]
    assert LabelDesign.of(1, 100, strata=np.array([3])).strata.tolist() == [0]


def test_more_labels_of_the_same_kind_narrow_the_interval_until_all_are_labelled():
    found = prediction_powered(posteriors(F), posteriors(F[PART]), Y[PART])
    lower, upper = found.interval(0.95)
    widths = [found.after(more, 40, 0.95)[1] for more in (0, 5, 10, 24)]
    np.testing.assert_allclose(widths[0], upper[1] - lower[1])
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1e-9


def test_exposure_weights_estimate_the_share_of_exposure():
    quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 500, rng=0))
    X, y = Gaussians().draw([0.6, 0.4], 1000, rng=1)
    views = np.where(y == 1, 9.0, 1.0)  # 86 % of the views are of class 1
    truth = views[y == 1].sum() / views.sum()
    part = np.random.default_rng(0).permutation(1000)[:200]
    found = refine(quantifier, X, X[part], y[part], weights=views, weights_labelled=views[part])
    assert found.lower[1] <= truth <= found.upper[1]
    plain = refine(quantifier, X, X[part], y[part])
    assert plain.upper[1] < truth
    same = refine(quantifier, X, X[part], y[part], weights=np.ones(1000), weights_labelled=np.ones(200))
    np.testing.assert_allclose(same.lower, plain.lower)


def test_planned_labels_are_a_plan_at_every_length_and_by_group():
    quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 500, rng=0))
    X, _ = Gaussians().draw([0.6, 0.4], 1200, rng=1)
    plan = plan_labels(quantifier, X, n=100)
    assert plan.n == 100
    np.testing.assert_allclose(plan.design_weights.sum(), 1200)
    halves = [np.bincount(plan.strata[part], minlength=10) for part in (slice(0, 50), slice(50, 100))]
    assert np.abs(halves[0] - halves[1]).max() <= 1  # strata take turns
    larger = plan_labels(quantifier, X, n=150)
    assert len(np.intersect1d(plan.indices, larger.indices)) >= 95
    groups = np.repeat(["a", "b", "c"], 400)
    grouped = plan_labels(quantifier, X, n=30, groups=groups)
    assert np.unique(groups[grouped.indices], return_counts=True)[1].tolist() == [30, 30, 30]


def test_labels_are_shared_out_by_importance_within_the_sizes():
    counts = allocate(30, np.array([5, 100, 100, 1]), np.array([50.0, 30.0, 10.0, 0.0]))
    assert counts.sum() == 30
    assert counts[0] == 5
    assert counts[3] == 1
    assert counts[1] > counts[2] >= 2
    assert allocate(500, np.array([5, 7]), np.array([1.0, 1.0])).tolist() == [5, 7]


def test_few_labels_have_one_stratum():
    f = posteriors(np.linspace(0, 1, 500))
    assert stratify_posteriors(f, 1).max() == 0
    assert 3 <= stratify_posteriors(f, 10).max() <= 9


SIZES = (300, 300, 300, 40)


def drawn_groups(drift, seed):
    """Four groups; the first one drifts, and so does the last if `drift`."""
    rng = np.random.default_rng(seed)
    parts = [Gaussians().draw([1 - p, p], n, rng=rng) for p, n in zip((0.2, 0.4, 0.6, 0.3), SIZES, strict=True)]
    X = np.concatenate([X for X, _ in parts])
    y = np.concatenate([y for _, y in parts])
    owner = np.repeat(np.arange(4), SIZES)
    X[owner == 0] += np.array([-1.0, 1.0]) * drift
    return X, y, owner


@pytest.mark.parametrize("drift", [0.0, 0.8])
def test_intervals_of_groups_cover_whether_or_not_groups_differ(drift):
    quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 500, rng=0))
    inside, p_values = [], []
    for seed in range(25):
        X, y, owner = drawn_groups(drift, seed)
        ratios = quantifier.read(X).values / quantifier.prior_
        places = np.random.default_rng(seed).permutation(len(y))[:150]
        labels = GroupLabels(ratios, owner, ratios[places], owner[places], y[places], LabelDesign.of(150, len(y)))
        found = refine_groups(labels, np.array([0.6, 0.4]), level=0.95)
        truth = np.bincount(owner, y) / np.bincount(owner)
        inside.append((found.lower[:, 1] <= truth) & (truth <= found.upper[:, 1]))
        p_values.append(found.p_value)
        assert found.own[:3].all()
        assert (found.own == (found.labelled >= 10)).all()
    assert np.mean(inside) >= 0.9
    assert (np.median(p_values) < 0.05) == (drift > 0)


def test_a_group_without_labels_gets_the_correction_of_the_others():
    X, y, owner = drawn_groups(0.0, 0)
    quantifier = EMQ().fit(*Gaussians().draw([0.5, 0.5], 500, rng=0))
    ratios = quantifier.read(X).values / quantifier.prior_
    places = np.arange(0, 900, 6)
    labels = GroupLabels(ratios, owner, ratios[places], owner[places], y[places], LabelDesign.of(len(places), len(y)))
    found = refine_groups(labels, np.array([0.6, 0.4]), level=0.95)
    assert found.labelled[3] == 0
    assert not found.own[3]
    assert 0.05 < found.estimate[3, 1] < 0.6
    assert found.upper[3, 1] - found.lower[3, 1] > 0.15
    adapted, known = adapt_posteriors(labels, np.array([0.6, 0.4]))
    np.testing.assert_array_equal(known, adapted[places])
    assert adapted[owner == 2, 1].mean() > adapted[owner == 0, 1].mean() + 0.2


def rare_labels(numbers, share=0.03):
    """Groups of 200 instances with useless posteriors, and the numbers of labels in each."""
    rng = np.random.default_rng(0)
    owner, y = np.repeat(np.arange(len(numbers)), 200), (rng.random(200 * len(numbers)) < share).astype(int)
    places = np.concatenate([200 * group + rng.permutation(200)[:n] for group, n in enumerate(numbers)])
    ratios = np.ones((len(y), 2))
    return GroupLabels(ratios, owner, ratios[places], owner[places], y[places], LabelDesign.of(len(places), len(y))), y


def test_groups_that_borrow_have_on_average_the_share_of_all_labels():
    # Most groups have no label of the rare class, by chance. Their variance is not smaller because of that.
    labels, _ = rare_labels([4] * 30, 0.06)
    share = labels.codes.mean()
    assert 0.03 < share < 0.1
    found = refine_groups(labels, np.array([1 - share, share]), level=0.95)
    assert found.estimate[:, 1].mean() == pytest.approx(share)


def test_a_group_without_labels_is_not_more_certain_than_the_groups_it_borrows_from():
    labels, y = rare_labels([30] * 10 + [0] * 20)
    share = labels.codes.mean()
    found = refine_groups(labels, np.array([1 - share, share]), level=0.95)
    truth = y.reshape(30, 200).mean(axis=1)[10:]
    lower, upper = found.lower[10:, 1], found.upper[10:, 1]
    assert ((lower <= truth) & (truth <= upper)).mean() >= 0.9
    assert upper.min() > stats.beta.ppf(0.9, share * 300 + 1, 300 * (1 - share))


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_stand_for_several_instances_count_as_these(weighted):
    rng = np.random.default_rng(0)
    _, y, owner = drawn_groups(0.0, 0)
    ratios = np.round(rng.beta(1 + y, 2 - y), 1)[:, None] * [-1, 1] + [1.05, 0.05]  # few different values
    weights = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    places = rng.permutation(len(y))[:150]
    design = LabelDesign.of(150, len(y), exposure=weights[places])
    known = (ratios[places], owner[places], y[places], design)
    _, first, cell = np.unique(np.column_stack([owner, ratios]), axis=0, return_index=True, return_inverse=True)
    counts, sums, squares = (np.bincount(cell.ravel(), values) for values in (weights**0, weights, weights**2))
    shares = fixed_label_em(ratios, known[0], known[2])
    np.testing.assert_allclose(fixed_label_em(ratios[first], known[0], known[2], counts), shares, atol=1e-12)
    every = refine_groups(GroupLabels(ratios, owner, *known, weights), shares, level=0.95)
    some = refine_groups(GroupLabels(ratios[first], owner[first], *known, sums, counts, squares), shares, level=0.95)
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(getattr(some, name), getattr(every, name), atol=1e-12)
    assert len(first) < len(y) / 10
    assert random_part(ratios[first], known[0], counts) == pytest.approx(random_part(ratios, known[0]))
