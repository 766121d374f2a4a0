"""Distribution matching: the published definitions by hand and by brute force, and the peers' numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer

from quanet import (
    ACC,
    KMM,
    PACC,
    RUN,
    SMM,
    SORD,
    UPP,
    Bags,
    CvMy,
    Distances,
    DMy,
    DyS,
    EDx,
    EDy,
    FourierFeatures,
    GaussianKernel,
    Gaussians,
    HDx,
    HDy,
    Histogram,
    Labels,
    Matching,
    MatchingX,
    Moments,
    QUANTy,
    Tikhonov,
)
from quanet.errors import InvalidBags, InvalidData, InvalidSetting, QuanetWarning
from quanet.methods.divergences import DIVERGENCES, Divergence, find_divergence
from quanet.methods.matching import FEW_BINS, MANY_BINS, middle, nearest_on_grid, posterior_columns, prevalence_grid
from quanet.methods.order import smoothness
from quanet.methods.solvers import _Search, nearest_mixtures
from quanet.simplex import check_prevalences
from tests.strategies import fixed_posteriors, posteriors

GIVEN = "precomputed"


def fixed(k):
    held, y = fixed_posteriors(120, k, 0.0)
    bag, classes = fixed_posteriors(90, k, 0.7)
    return held, y, bag[(classes == 1) | (np.arange(90) % 3 == 0)]


def fixed_features(k):
    def draw(n, shift):
        i = np.arange(n)
        y = (i * 7 + i // 5) % k
        columns = [np.sin(1.3 * i + shift) + y, 1.5 * np.cos(0.7 * i * i + shift) - y / 2, np.sin(0.11 * i * i)]
        return np.stack(columns, axis=1) + 0.3 * np.outer(y == 1, [0, 0, 1]), y

    X, y = draw(150, 0.0)
    bag, classes = draw(90, 0.7)
    return X, y, bag[(classes == 1) | (np.arange(90) % 3 == 0)].clip(X.min(axis=0), X.max(axis=0))


# On the posteriors of `fixed`: QuaPy 0.2.3, mlquantify 0.5.1 and quantificationlib 0.1.2, with a classifier that passes
# its input on. The last number is what their searches leave open: a ternary or golden search's tolerance, or SLSQP's.
PEERS = [
    ("QuaPy DMy()", DMy(GIVEN), [0.356521911, 0.643478089], 3e-5),
    ("QuaPy DMy(divergence='topsoe')", DMy(GIVEN, divergence="topsoe"), [0.356618369, 0.643381631], 2e-4),
    ("quantificationlib HDy()", DMy(GIVEN), [0.356478702, 0.643521298], 5e-5),
    ("quantificationlib DFy(L2)", DMy(GIVEN, divergence="l2"), [0.34922752, 0.65077248], 1e-8),
    (
        "quantificationlib DFy(L2, CDF)",
        DMy(GIVEN, divergence="l2", cumulative=True),
        [0.318102491, 0.681897509],
        1e-8,
    ),
    ("QuaPy EDy(); quantificationlib EDy()", EDy(GIVEN), [0.314757302, 0.685242698], 1e-8),
    ("quantificationlib CvMy()", CvMy(GIVEN), [0.318215918, 0.681784082], 1e-8),
    ("QuaPy SMM(); mlquantify SMM()", SMM(GIVEN), [0.311738833, 0.688261167], 1e-8),
    ("QuaPy DyS()", DyS(GIVEN, bins=8, divergence="hellinger"), [0.356504954, 0.643495046], 1e-5),
    ("QuaPy DyS(n_bins=10, divergence='topsoe')", DyS(GIVEN, bins=10), [0.37008069, 0.62991931], 1e-5),
    ("mlquantify DyS(bin_strategy='median')", DyS(GIVEN), [0.342353847, 0.657646153], 1e-5),
    ("QuaPy HDy()", HDy(GIVEN, step=1 / 99), [0.313131313, 0.686868687], 1e-8),
    ("mlquantify HDy()", HDy(GIVEN, step=0.01), [0.31, 0.69], 1e-9),
    ("mlquantify SORD()", SORD(GIVEN), [0.32, 0.68], 1e-9),
    ("quantificationlib SORDy()", SORD(GIVEN), [0.319996608, 0.680003392], 1e-5),
    ("quantificationlib QUANTy()", QUANTy(GIVEN), [0.307735542, 0.692264458], 1e-4),
    ("quantificationlib HDy(), 3 classes", DMy(GIVEN), [0.291253175, 0.608130843, 0.100615982], 2e-5),
    ("quantificationlib DFy(L2)", DMy(GIVEN, divergence="l2"), [0.324212957, 0.569675602, 0.106111441], 1e-8),
    (
        "quantificationlib DFy(L2, CDF)",
        DMy(GIVEN, divergence="l2", cumulative=True),
        [0.282412438, 0.61444064, 0.103146921],
        1e-8,
    ),
    ("QuaPy EDy(); quantificationlib EDy()", EDy(GIVEN), [0.272944396, 0.596181465, 0.130874139], 1e-8),
    ("mlquantify EDy()", EDy(GIVEN, metric="euclidean"), [0.273693208, 0.597898948, 0.128407844], 1e-5),
    ("quantificationlib CvMy()", CvMy(GIVEN), [0.276028671, 0.590559488, 0.133411842], 1e-8),
]


@pytest.mark.parametrize(("peer", "quantifier", "theirs", "tolerance"), PEERS, ids=[str(one[0]) for one in PEERS])
def test_estimates_are_the_peers(peer, quantifier, theirs, tolerance):
    held, y, bag = fixed(len(theirs))
    np.testing.assert_allclose(quantifier.fit(held, y).predict(bag), theirs, atol=tolerance)


MEANS = MatchingX(representation=Moments(), divergence="l2")
FEATURE_PEERS = [  # on `fixed_features`
    ("mlquantify MMD_RKHS()", MEANS, [0.366855604, 0.633144396]),
    ("mlquantify MMD_RKHS()", MEANS, [0.222049455, 0.608027322, 0.169923223]),
    ("QuaPy DMx.HDx()", HDx(step=1 / 99), [0.222222222, 0.777777778]),
    ("QuaPy EDx()", EDx(metric="manhattan"), [0.352999509, 0.647000491]),
    ("QuaPy EDx('euclidean'); quantificationlib EDX()", EDx(), [0.370577218, 0.629422782]),
    ("QuaPy EDx()", EDx(metric="manhattan"), [0.155807756, 0.725348256, 0.118843988]),
    ("QuaPy EDx('euclidean'); quantificationlib EDX()", EDx(), [0.199416452, 0.652472341, 0.148111207]),
]


@pytest.mark.parametrize(("peer", "quantifier", "theirs"), FEATURE_PEERS, ids=[str(one[0]) for one in FEATURE_PEERS])
def test_estimates_from_features_are_the_peers(peer, quantifier, theirs):
    X, y, bag = fixed_features(len(theirs))
    np.testing.assert_allclose(quantifier.fit(X, y).predict(bag), theirs, atol=1e-7)


@pytest.mark.parametrize(
    ("divergence", "theirs", "tolerance"),
    [
        ("hellinger", [0.356521911, 0.643478089], 3e-5),
        ("topsoe", [0.356618369, 0.643381631], 2e-4),
        ("topsoe", [0.291685152, 0.606910254, 0.101404595], 2e-3),
    ],
)
def test_where_quapys_search_stops_early_ours_goes_on(divergence, theirs, tolerance):
    held, y, bag = fixed(len(theirs))
    quantifier = DMy(GIVEN, divergence=divergence).fit(held, y)
    ours, matcher = quantifier.predict(bag), quantifier.matcher_
    target = matcher.representation.summarise(matcher.representation.encode(posterior_columns(bag)))
    height = [DIVERGENCES[divergence].value(matcher.templates @ p, target).sum() for p in (np.array(theirs), ours)]
    assert height[1] < height[0]
    np.testing.assert_allclose(ours, theirs, atol=tolerance)


def hellinger(p, q):
    return np.sqrt(np.square(np.sqrt(p) - np.sqrt(q)).sum())


def test_hdy_is_the_published_search():
    held, y, bag = fixed(2)
    found = []
    for bins in range(10, 111, 10):
        no, yes, here = (
            np.histogram(part, bins=bins, range=(0, 1))[0] / len(part)
            for part in (held[y == 0, 1], held[y == 1, 1], bag[:, 1])
        )
        grid = np.arange(101) / 100
        found.append(grid[np.argmin([hellinger((1 - p) * no + p * yes, here) for p in grid])])
    assert HDy(GIVEN, step=0.01).fit(held, y).predict(bag)[1] == pytest.approx(np.median(found))
    assert tuple(range(10, 111, 10)) == MANY_BINS
    assert HDy(GIVEN).fit(held, y).predict(bag)[1] == pytest.approx(np.median(found), abs=0.02)


def test_hdx_is_the_published_search():
    X, y, bag = fixed_features(2)
    grid, found = np.arange(101) / 100, []
    for bins in range(10, 111, 10):
        distances = np.zeros(101)
        for column in range(3):
            span = (X[:, column].min(), X[:, column].max())
            no, yes, here = (
                np.histogram(part[:, column], bins=bins, range=span)[0] / len(part)
                for part in (X[y == 0], X[y == 1], bag)
            )
            distances += [hellinger((1 - p) * no + p * yes, here) for p in grid]
        found.append(grid[np.argmin(distances)])
    assert HDx().fit(X, y).predict(bag)[1] == pytest.approx(np.median(found))


def test_dys_is_the_median_over_the_published_bin_numbers():
    held, y, bag = fixed(2)
    assert FEW_BINS == (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 30)
    each = [DyS(GIVEN, bins=bins).fit(held, y).predict(bag)[1] for bins in FEW_BINS]
    assert DyS(GIVEN).fit(held, y).predict(bag)[1] == pytest.approx(np.median(each))


@given(posteriors(2), st.integers(2, 12))
def test_histograms_are_numpys(stack, bins):
    histogram = Histogram(bins).fit(stack[0], np.zeros(len(stack[0]), dtype=int))
    shares = histogram.summarise(histogram.encode(stack[0]))
    by_numpy = [np.histogram(column, bins=bins, range=(0, 1))[0] for column in stack[0].T]
    np.testing.assert_allclose(shares * len(stack[0]), np.concatenate(by_numpy), atol=1e-9)
    several = Histogram((bins, 2 * bins, 5)).fit(stack[0], np.zeros(len(stack[0]), dtype=int))
    together = several.summarise(several.encode(stack[0]))
    np.testing.assert_allclose(together[: 2 * bins], shares, atol=1e-12)
    assert len(together) == 2 * (bins + 2 * bins + 5)


@pytest.mark.same_lines
@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_nearest_mixture_is_a_general_optimisers(name, k):
    rng = np.random.default_rng(k)
    templates = rng.dirichlet(np.full(12, 0.6), size=k).T
    targets = rng.dirichlet(np.full(12, 0.6), size=5)
    targets[0] = templates[:, 0]  # a corner
    targets[1, :6] = 0  # empty bins
    targets /= targets.sum(axis=1, keepdims=True)
    divergence, start = DIVERGENCES[name], np.full(k, 1 / k)
    found = nearest_mixtures(templates, targets, divergence, start)
    check_prevalences(found)
    for target, ours in zip(targets, found, strict=True):

        def height(p, target=target):
            return divergence.value(np.maximum(templates @ p, 1e-30), target).sum()

        theirs = minimize(
            height,
            start,
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        ).x
        assert height(ours) <= height(theirs) + 1e-8


@pytest.mark.parametrize("name", DIVERGENCES)
def test_slopes_and_curvatures_are_those_of_the_value(name):
    divergence, m, q, h = DIVERGENCES[name], np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.0, 0.7]), 1e-5
    rise = (divergence.value(m + h, q) - divergence.value(m - h, q)) / (2 * h)
    bend = (divergence.slope(m + h, q) - divergence.slope(m - h, q)) / (2 * h)
    np.testing.assert_allclose(divergence.slope(m, q), rise, atol=1e-8)
    np.testing.assert_allclose(divergence.curvature(m, q), bend, atol=1e-8)


def test_ones_own_divergence_in_one_line():
    held, y, bag = fixed(3)
    chi = Divergence("chi", lambda m, q: (m - q) ** 2 / m, lambda m, q: 1 - (q / m) ** 2, lambda m, q: 2 * q**2 / m**3)
    assert find_divergence(chi) is chi
    ours = Matching(GIVEN, divergence=chi).fit(held, y).predict(bag)
    np.testing.assert_allclose(ours, DMy(GIVEN).fit(held, y).predict(bag), atol=0.05)


def test_sord_is_the_least_area_between_distribution_functions():
    held, y, bag = fixed(2)
    steps = np.unique(np.concatenate([held[:, 1], bag[:, 1]]))
    no, yes, here = (
        np.searchsorted(np.sort(part), steps, side="right")[:-1] / len(part)
        for part in (held[y == 0, 1], held[y == 1, 1], bag[:, 1])
    )
    grid = np.linspace(0, 1, 20_001)
    areas = np.abs(np.outer(1 - grid, no) + np.outer(grid, yes) - here) @ np.diff(steps)
    assert SORD(GIVEN).fit(held, y).predict(bag)[1] == pytest.approx(grid[areas.argmin()], abs=1e-4)


@pytest.mark.parametrize("ends", [(0, 1.0), (1, 0.0)])
def test_bags_of_one_class_are_all_of_it(ends):
    held, y, _ = fixed(2)
    only = np.tile([[0.01, 0.99]] if ends[0] == 0 else [[0.99, 0.01]], (30, 1))
    for method in (SORD, QUANTy, CvMy, EDy, DyS, HDy, DMy, SMM):
        estimate = method(GIVEN).fit(held, y).predict(only)
        assert estimate[1] == pytest.approx(ends[1], abs=1e-6), method


def test_rounded_scores_are_ranked_by_their_middle():
    held, y, bag = (np.round(part, 1) if np.ndim(part) == 2 else part for part in fixed(2))
    held, bag = held / held.sum(axis=1, keepdims=True), bag / bag.sum(axis=1, keepdims=True)
    quantifier = CvMy(GIVEN).fit(held, y)
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([held[:, 1], bag[:, 1]]))[:, None]
    by_ranks = MatchingX(representation=Distances()).fit(ranks[: len(held)], y).predict(ranks[len(held) :])
    np.testing.assert_allclose(quantifier.predict(bag), by_ranks, atol=1e-7)


def test_kernel_means_are_matched_in_the_kernels_space():
    X, y, bag = fixed_features(3)
    gamma = 0.5

    def kernel(a, b):
        return np.exp(-gamma * np.square(a[:, None] - b[None]).sum(axis=2)).mean()

    parts = [X[y == c] for c in range(3)]
    gram = np.array([[kernel(a, b) for b in parts] for a in parts])
    means = np.array([kernel(a, bag) for a in parts])
    ours = KMM(gamma=gamma).fit(X, y).predict(bag)
    rng = np.random.default_rng(0)
    trials = rng.dirichlet(np.ones(3), size=20_000)
    heights = np.einsum("ti,ij,tj->t", trials, gram, trials) - 2 * trials @ means
    assert ours @ gram @ ours - 2 * ours @ means <= heights.min() + 1e-9
    features = MatchingX(representation=FourierFeatures(4000, gamma=gamma), divergence="l2").fit(X, y).predict(bag)
    np.testing.assert_allclose(features, ours, atol=0.05)


def test_smm_is_pacc_and_first_moments():
    held, y, bag = fixed(2)
    pacc = PACC(GIVEN).fit(held, y).predict(bag)
    np.testing.assert_allclose(SMM(GIVEN).fit(held, y).predict(bag), pacc)
    moments = Matching(GIVEN, representation=Moments(), divergence="l2").fit(held, y)
    np.testing.assert_allclose(moments.predict(bag), pacc)
    tikhonov = Tikhonov(GIVEN).fit(held, y)
    np.testing.assert_allclose(tikhonov.predict(bag), ACC(GIVEN).fit(held, y).predict(bag), atol=1e-9)


@pytest.mark.parametrize(("method", "tau"), [(RUN, 30.0), (Tikhonov, 0.7)])
def test_unfolding_is_what_a_general_optimiser_finds(method, tau):
    held, y, bag = fixed(5)
    quantifier = method(GIVEN, tau=tau, representation=Histogram(4)).fit(held, y)
    matcher = quantifier.matcher_
    target, n = matcher.representation.summarise(matcher.representation.encode(bag)), len(bag)

    def height(p):
        mixed = matcher.templates @ p
        bends = (p[:-2] - 2 * p[1:-1] + p[2:]) @ (p[:-2] - 2 * p[1:-1] + p[2:])
        fit = (n * mixed - n * target * np.log(n * mixed)).sum() if method is RUN else np.square(mixed - target).sum()
        return fit + tau / 2 * bends

    theirs = minimize(
        height,
        np.full(5, 0.2),
        bounds=[(1e-9, 1)] * 5,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x
    ours = quantifier.predict(bag)
    assert height(ours) <= height(theirs) + 1e-8
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    smoother = method(GIVEN, tau=100 * tau, representation=Histogram(4)).fit(held, y).predict(bag)
    assert np.square(smoothness(np.arange(5)) @ smoother).sum() < np.square(smoothness(np.arange(5)) @ ours).sum()


@pytest.mark.parametrize("divergence", ["hellinger", "topsoe", "likelihood"])
def test_no_bag_of_many_classes_is_left_above_its_minimum(divergence):
    clouds, even = Gaussians(k=28, distance=2.5), np.full(28, 1 / 28)
    (X, y), (pool, y_pool) = clouds.draw(even, 2000, rng=0), clouds.draw(even, 5000, rng=1)
    quantifier = DMy(GIVEN, divergence=divergence).fit(clouds.posteriors(X, even), y)
    rows, bags = quantifier.represent(clouds.posteriors(pool, even)), UPP(bag_size=100, repeats=200).draw(y_pool, rng=2)
    matcher, found = quantifier.matcher_, quantifier.aggregate(rows[bags.indices])
    targets = matcher.representation.summarise(rows[bags.indices])
    slopes = DIVERGENCES[divergence].slope(np.maximum(found @ matcher.templates.T, 1e-30), targets) @ matcher.templates
    # What a convex function can still lose within the simplex, at most.
    assert ((slopes * found).sum(axis=1) - slopes.min(axis=1)).max() < 1e-6


@pytest.mark.parametrize("tau", [0.0, 0.05, 5.0])
def test_unfolding_by_a_kernel_minimises_its_own_distance_and_roughness(tau):
    held, y, bag = fixed(4)
    quantifier = Tikhonov(GIVEN, tau=tau, representation=GaussianKernel(2.0)).fit(held, y)
    gram, means = quantifier.matcher_.templates, quantifier.represent(bag).mean(axis=0)

    def height(p):
        return p @ gram @ p - 2 * p @ means + tau / 2 * np.square(smoothness(np.arange(4)) @ p).sum()

    ours = quantifier.predict(bag)
    trials = 0.02 * np.random.default_rng(0).dirichlet(np.ones(4), size=5000) + 0.98 * ours
    assert height(ours) <= min(height(p) for p in trials) + 1e-12


def test_texts_are_matched_by_their_embedding():
    texts = ["red apple pie", "red wine and cheese", "green tea leaf", "green leaf salad"] * 10
    labels = ["red", "red", "green", "green"] * 10
    for method in (EDx(), KMM(), HDx(bins=4)):
        np.testing.assert_allclose(
            method.fit(texts, labels).predict(texts[:2] * 3 + texts[2:3] * 2), [0.25, 0.75], atol=0.1
        )
    numbers, y = Gaussians().draw([0.5, 0.5], 100, rng=0)
    with pytest.raises(InvalidData, match="EDx was fitted to numbers, but X contains texts"):
        EDx().fit(numbers, y).predict(texts)


def test_sparse_features_and_fitted_transformers_do():
    X, y, bag = fixed_features(2)
    plain = EDx().fit(X, y).predict(bag)
    np.testing.assert_allclose(EDx().fit(csr_matrix(X), y).predict(csr_matrix(bag)), plain)
    frozen = FrozenEstimator(FunctionTransformer().fit(X))
    np.testing.assert_allclose(EDx(frozen).fit(X, y).predict(bag), plain)


@pytest.mark.parametrize("name", ["hellinger", "topsoe"])
def test_a_step_into_the_wall_of_an_empty_bin_is_shortened(name, monkeypatch):
    rng = np.random.default_rng(0)
    templates, target = rng.dirichlet(np.full(5, 0.15), size=3).T, rng.dirichlet(np.full(5, 0.15), size=1)
    lengths, plain = [], _Search._lengths
    monkeypatch.setattr(_Search, "_lengths", lambda *given: lengths.append(plain(*given)) or lengths[-1])
    found = nearest_mixtures(templates, target, DIVERGENCES[name], np.full(3, 1 / 3))
    assert np.min(lengths) < 1
    trials = rng.dirichlet(np.full(3, 0.5), size=50_000)
    heights = DIVERGENCES[name].value(np.maximum(np.vstack([found, trials]) @ templates.T, 1e-30), target).sum(axis=1)
    assert heights[0] <= heights.min() + 1e-9


def test_features_that_cannot_be_used_are_named():
    X, y = Gaussians().draw([0.5, 0.5], 100, rng=0)
    with pytest.raises(InvalidData, match=r"feature 1 of instance 3 is nan\. Fill it in"):
        EDx().fit(np.where((np.arange(100) == 3)[:, None] & (np.arange(X.shape[1]) == 1), np.nan, X), y)
    with pytest.raises(InvalidData, match=r"X has 1 features, but had \d in fit"):
        EDx().fit(X, y).predict(X[:, :1])
    with pytest.raises(InvalidData, match="reads numbers, but X contains other values"):
        EDx().fit(np.array([["a", 1], ["b", 2]] * 50, dtype=object), y)
    with pytest.raises(InvalidData, match=r"reads a matrix \(n, d\)"):
        EDx().fit(X[:, 0], y)
    with pytest.raises(InvalidSetting, match="features must be an estimator with transform, or None"):
        EDx(features=object()).fit(X, y)


@pytest.mark.parametrize("method", [HDy, DyS, DMy, SORD, QUANTy, EDy, CvMy, RUN, SMM])
def test_a_bag_smaller_than_the_bins_has_an_estimate(method):
    held, y, bag = fixed(2)
    quantifier = method(GIVEN).fit(held, y)
    for n in (1, 2, 3):
        check_prevalences(quantifier.predict(bag[:n]))
    with pytest.raises(InvalidBags, match="empty"):
        quantifier.aggregate(quantifier.represent(bag)[:0])
    stack = quantifier.predict_bags(bag, Bags([[0], [1, 2], [3, 4, 5, 6]]))
    np.testing.assert_allclose(stack[1], quantifier.predict(bag[1:3]), atol=1e-9)


def test_bins_that_no_class_fills_say_nothing():
    held = np.array([[0.9, 0.1], [0.8, 0.2], [0.15, 0.85], [0.05, 0.95]])
    y = ["no", "no", "yes", "yes"]
    quantifier = DMy(GIVEN, bins=10).fit(held, y)
    between = np.array([[0.9, 0.1], [0.05, 0.95], [0.5, 0.5], [0.55, 0.45]])
    np.testing.assert_allclose(quantifier.predict(between), [0.5, 0.5], atol=1e-6)
    nowhere = quantifier.predict([[0.5, 0.5], [0.55, 0.45]])
    np.testing.assert_allclose(nowhere, [0.5, 0.5])  # the training prevalences


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("divergence", ["hellinger", "l2"])
def test_classes_that_look_alike_follow_the_prior_with_a_warning(k, divergence):
    useless, y = np.full((30, k), 1 / k), np.arange(30) % k
    with pytest.warns(QuanetWarning, match="DMy cannot separate all classes"):
        quantifier = DMy(GIVEN, divergence=divergence).fit(useless, y)
    np.testing.assert_allclose(quantifier.predict(useless), np.full(k, 1 / k), atol=1e-9)


def test_a_class_without_held_out_instances_is_named():
    X, y = Gaussians().draw([0.5, 0.5], 100, rng=0)
    few = np.where((y == 1) & (np.cumsum(y == 1) > 2), 0, y)
    splits = [(np.arange(2, 100), np.flatnonzero(few == 0)[:2])]
    for method in (DMy, SORD, CvMy, QUANTy, HDy):
        with pytest.raises(InvalidData, match="class 1 has no instance in the held-out part that"):
            method(cv=splits).fit(X, few)


@pytest.mark.parametrize(
    ("quantifier", "message"),
    [
        (DMy(GIVEN, bins=1), "bins must be a whole number of at least 2"),
        (DMy(GIVEN, bins=2.5), "bins must be a whole number"),
        (DMy(GIVEN, bins=()), "bins must be a whole number"),
        (DMy(GIVEN, divergence="chi"), "divergence must be one of 'hellinger', 'topsoe'"),
        (Matching(GIVEN, representation=8), "representation must be a representation of quanet"),
        (Matching(GIVEN, representation=Histogram(span=(1.0, 0.0))), "span must be two numbers, the smaller one first"),
        (Matching(GIVEN, representation=Moments(0)), "order must be a whole number"),
        (Matching(GIVEN, representation=FourierFeatures(0)), "size must be a whole number"),
        (Matching(GIVEN, representation=GaussianKernel(-1.0)), "gamma must be a number above 0"),
        (Matching(GIVEN, representation=Distances("cosine")), "metric must be 'manhattan' or 'euclidean'"),
        (HDy(GIVEN, step=0.7), "step must be a number above 0 and at most 0.5"),
        (QUANTy(GIVEN, quantiles=0), "quantiles must be a whole number"),
        (RUN(GIVEN, tau=-1.0), "tau must be a number of at least 0"),
        (RUN(GIVEN, representation=Histogram((4, 8))), "one number of bins"),
    ],
    ids=repr,
)
def test_settings_that_mean_nothing_are_refused(quantifier, message):
    held, y, _ = fixed(2)
    with pytest.raises(InvalidSetting, match=message):
        quantifier.fit(held, y)


def test_the_grid_and_the_median_by_hand():
    np.testing.assert_allclose(prevalence_grid(0.01), np.arange(101) / 100)
    assert nearest_on_grid(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.26, 0.74]), prevalence_grid(0.5)) == 0.5
    np.testing.assert_allclose(middle(np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])), 1 / 3)


def test_labels_of_posteriors_are_counted():
    held, y, bag = fixed(3)
    rates = Matching(GIVEN, representation=Labels(), divergence="l2").fit(held, y)
    np.testing.assert_allclose(rates.predict(bag), ACC(GIVEN).fit(held, y).predict(bag), atol=1e-7)


@pytest.mark.parametrize("metric", ["manhattan", "euclidean"])
@pytest.mark.parametrize("level", [1 / 3, 0.1, 0.7])
def test_equal_posteriors_leave_the_energy_distance_at_the_training_prevalences(metric, level):
    row = np.array([level, 0.75 * (1 - level), 0.25 * (1 - level)])
    posteriors, codes = np.tile(row, (17, 1)), np.repeat([0, 1, 2], [1, 6, 10])
    quantifier = EDy("precomputed", metric=metric)
    with pytest.warns(QuanetWarning, match="cannot separate all classes"):
        quantifier.fit(posteriors, codes)
    np.testing.assert_allclose(quantifier.predict(posteriors[:4]), [1 / 17, 6 / 17, 10 / 17], atol=1e-6)


@pytest.mark.parametrize("method", [RUN(tau=50.0), Tikhonov(tau=1.0)], ids=repr)
def test_unfolding_follows_the_order_that_it_is_given_not_the_alphabet(method):
    source = Gaussians(k=4, distance=1.5)
    (X, y), (bag, _) = source.draw([0.25] * 4, 800, rng=0), source.draw([0.1, 0.2, 0.3, 0.4], 300, rng=1)
    names = np.array(["cold", "mild", "warm", "hot"])
    numbered = clone(method).fit(X, y).predict(bag)
    named = clone(method).set_params(order=names.tolist()).fit(X, names[y])
    np.testing.assert_allclose(named.predict(bag), numbered[np.argsort(names)], atol=1e-6)
    alphabet = clone(method).set_params(order=sorted(names)).fit(X, names[y]).predict(bag)
    assert np.abs(alphabet - numbered[np.argsort(names)]).max() > 0.01


@pytest.mark.parametrize("method", [RUN, Tikhonov])
def test_unfolding_needs_an_order_of_names_only_where_smoothness_counts(method):
    X, y = Gaussians(k=3).draw([0.3, 0.3, 0.4], 60, rng=0)
    names = np.array(["bad", "ok", "good"])[y]
    name = method.__name__
    with pytest.raises(InvalidData, match=rf"{name} needs ordered classes.*{name}\(order="):
        method(tau=1.0).fit(X, names)
    assert len(method().fit(X, names).classes_) == 3
    assert len(method(tau=1.0).fit(X[y < 2], names[y < 2]).classes_) == 2
