"""Kernel densities: scikit-learn's, the peers' estimates, the integrals by brute force, and bandwidths that fail."""

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

from quanet import UPP, Gaussians, GridSearchQ, KDEyCS, KDEyHD, KDEyML
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.methods.kde import interpolate, log_densities
from quanet.simplex import check_prevalences
from tests.strategies import fixed_posteriors

GIVEN = "precomputed"


def fixed(k):
    held, y = fixed_posteriors(120, k, 0.0)
    bag, classes = fixed_posteriors(90, k, 0.7)
    return held, y, bag[(classes == 1) | (np.arange(90) % 3 == 0)]


def scikit_learns(held, y, rows, bandwidth):
    parts = [KernelDensity(bandwidth=bandwidth).fit(held[y == c]).score_samples(rows) for c in range(held.shape[1])]
    return np.exp(np.stack(parts, axis=1))


# mlquantify 0.5.1, QuaPy 0.2.3; the last number is what SLSQP leaves open.
PEERS = [
    ("mlquantify KDEyML()", KDEyML(GIVEN), [0.308896193, 0.691103807], 1e-6),
    ("mlquantify KDEyML()", KDEyML(GIVEN), [0.212606405, 0.704875529, 0.082518065], 1e-6),
    ("QuaPy KDEyML()", KDEyML(GIVEN), [0.308956027, 0.691043973], 1e-4),
    ("QuaPy KDEyML()", KDEyML(GIVEN), [0.212607393, 0.704903292, 0.082489315], 1e-4),
    ("QuaPy KDEyCS()", KDEyCS(GIVEN), [0.336715825, 0.663284175], 3e-4),
    ("QuaPy KDEyCS()", KDEyCS(GIVEN), [0.273454287, 0.59081295, 0.135732763], 3e-4),
    # It draws points even on a line, and others than ours where both draw.
    ("QuaPy KDEyHD(random_state=0)", KDEyHD(GIVEN), [0.347195239, 0.652804761], 5e-3),
    ("QuaPy KDEyHD(random_state=0)", KDEyHD(GIVEN), [0.258333157, 0.630878585, 0.110788258], 1e-2),
]


@pytest.mark.parametrize(("peer", "quantifier", "theirs", "tolerance"), PEERS)
def test_estimates_are_the_peers(peer, quantifier, theirs, tolerance):
    held, y, bag = fixed(len(theirs))
    np.testing.assert_allclose(quantifier.fit(held, y).predict(bag), theirs, atol=tolerance)


@pytest.mark.parametrize("k", [2, 3])
def test_where_quapys_search_stops_early_ours_goes_on(k):
    held, y, bag = fixed(k)
    theirs = {2: [0.336715825, 0.663284175], 3: [0.273454287, 0.59081295, 0.135732763]}[k]
    quantifier = KDEyCS(GIVEN).fit(held, y)
    means = quantifier.represent(bag).mean(axis=0)

    def angle(p):
        return np.dot(p, means) / np.sqrt(p @ quantifier.gram_ @ p)

    assert angle(quantifier.predict(bag)) > angle(np.array(theirs))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("bandwidth", [0.3, 0.1, 0.02])
def test_densities_are_scikit_learns(k, bandwidth):
    held, y, bag = fixed(k)
    rows = KDEyML(GIVEN, bandwidth=bandwidth).fit(held, y).represent(bag)
    densities = scikit_learns(held, y, bag, bandwidth)
    np.testing.assert_allclose(rows, densities / densities.max(axis=1, keepdims=True), atol=1e-6)


def test_overlaps_are_integrals_of_products():
    held, y, bag = fixed(2)
    h = 0.1
    quantifier = KDEyCS(GIVEN, bandwidth=h).fit(held, y)
    line = np.linspace(-1, 2, 6001)
    no, yes, here = (
        np.exp(-np.square(line[:, None] - part[:, 1]) / h**2).mean(axis=1) for part in (held[y == 0], held[y == 1], bag)
    )  # twice the squared distance of one posterior, over 2 h^2
    grid = np.linspace(0, 1, 100_001)
    mixed = (1 - grid) ** 2 * (no @ no) + 2 * grid * (1 - grid) * (no @ yes) + grid**2 * (yes @ yes)
    angle = ((1 - grid) * (no @ here) + grid * (yes @ here)) / np.sqrt(mixed)
    assert quantifier.predict(bag)[1] == pytest.approx(grid[angle.argmax()], abs=2e-5)


def test_hellinger_on_a_line_is_the_integral():
    held, y, bag = fixed(2)
    h = 0.1
    line = np.linspace(-1, 2, 3001)
    no, yes, here = (
        np.exp(-np.square(line[:, None] - part[:, 1]) / h**2).mean(axis=1) for part in (held[y == 0], held[y == 1], bag)
    )
    grid = np.linspace(0, 1, 10_001)
    likeness = np.sqrt(np.outer(1 - grid, no) + np.outer(grid, yes)) @ np.sqrt(here)
    line_, drawn = KDEyHD(GIVEN, bandwidth=h), KDEyHD(GIVEN, bandwidth=h, trials=20_000)
    exact = grid[likeness.argmax()]
    assert line_.fit(held, y).predict(bag)[1] == pytest.approx(exact, abs=2e-4)
    # The same integral by drawn points, as for more classes.
    drawn.fit(held, y)
    drawn.on_a_line_ = False
    drawn.points_ = drawn._draw(h)
    classes = log_densities(drawn.points_, drawn.centres_, drawn.starts_, bandwidth=h)
    drawn.log_drawn_ = np.logaddexp.reduce(classes, axis=1) - np.log(2)
    drawn.templates_ = np.exp(classes - drawn.log_drawn_[:, None])
    assert drawn.predict(bag)[1] == pytest.approx(exact, abs=5e-3)


def test_cubics_are_interpolated_exactly_and_a_table_to_its_ends():
    table = (np.arange(-1, 14)[:, None] * 0.1) ** [1, 3]
    at = np.array([0.0, 0.05, 0.333, 0.95, 1.0])
    np.testing.assert_allclose(interpolate(table, 0.1, at), at[:, None] ** [1, 3], atol=1e-12)


@pytest.mark.parametrize("method", [KDEyML, KDEyCS, KDEyHD])
@pytest.mark.parametrize("bandwidth", [0, 0.0, -0.1, np.nan, np.inf, "wide", None, True, [0.1]])
def test_a_bandwidth_that_is_none_is_refused(method, bandwidth):
    held, y, _ = fixed(2)
    with pytest.raises(InvalidSetting, match="bandwidth must be a number of at least 1e-05"):
        method(GIVEN, bandwidth=bandwidth).fit(held, y)


@pytest.mark.parametrize("method", [KDEyML, KDEyCS, KDEyHD])
@pytest.mark.parametrize("k", [2, 3])
def test_a_narrow_bandwidth_is_refused_or_works(method, k):
    held, y, bag = fixed(k)
    with pytest.raises(InvalidSetting, match=r"at least 1e-05; got 1e-07\. 0\.01 to 0\.2 is usual"):
        method(GIVEN, bandwidth=1e-7).fit(held, y)
    for bandwidth in (1e-5, 1e-3, 50.0):
        quantifier = method(GIVEN, bandwidth=bandwidth).fit(held, y)
        check_prevalences(quantifier.predict(bag))
        check_prevalences(quantifier.predict(np.eye(k)))


def test_a_bag_out_of_every_classs_reach_has_the_prior():
    held, y = np.array([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1], [0.2, 0.8]]), [0, 0, 0, 1]
    np.testing.assert_allclose(KDEyCS(GIVEN, bandwidth=1e-4).fit(held, y).predict([[0.5, 0.5]]), [0.75, 0.25])


def test_the_bandwidth_is_found_by_protocol():
    X, y = Gaussians(distance=2).draw([0.5, 0.5], 600, rng=0)
    search = GridSearchQ(KDEyML(), {"bandwidth": [0.05, 5.0]}, protocol=UPP(bag_size=50, repeats=50)).fit(X, y)
    assert search.best_setting_ == {"bandwidth": 0.05}


def test_what_cannot_be_done_is_said():
    held, y, bag = fixed(3)
    with pytest.raises(InvalidSetting, match="trials must be a whole number"):
        KDEyHD(GIVEN, trials=2).fit(held, y)
    with pytest.warns(QuanetWarning, match="KDEyML did not settle within 1 steps"):
        KDEyML(GIVEN, max_iter=1, tol=1e-15).fit(held, y).predict(bag)
    X, y = Gaussians().draw([0.5, 0.5], 100, rng=0)
    few = np.where((y == 1) & (np.cumsum(y == 1) > 2), 0, y)
    with pytest.raises(InvalidData, match="class 1 has no instance in the held-out part that"):
        KDEyML(cv=[(np.arange(2, 100), np.flatnonzero(few == 0)[:2])]).fit(X, few)
