"""Clusters of instances, such as the reviews of an author: they say less about the source than independent ones."""

from functools import cache

import numpy as np
import pytest

import quanet
from quanet import EMQ, PACC, Bags, Gaussians, HDx
from quanet.errors import InvalidData
from quanet.uncertainty.sampling import design_effect

SOURCE = Gaussians(distance=2.0)
X, Y = SOURCE.draw([0.5, 0.5], 1500, rng=0)


@cache
def fitted(kind):
    return kind().fit(X, Y)


def draw(authors, rows, share, rho, rng):
    """Instances of authors whose share of the second class has this mean, with intraclass correlation rho."""
    strength = (1 - rho) / rho
    of_authors = rng.beta(share * strength, (1 - share) * strength, authors)
    labels = rng.random((authors, rows)) < of_authors[:, None]
    codes = labels.ravel().astype(int)
    values, truth = SOURCE.draw([1 - codes.mean(), codes.mean()], len(codes), rng=rng)
    ordered = np.empty_like(values)
    for c in (0, 1):
        ordered[codes == c] = values[truth == c][: (codes == c).sum()]
    return ordered, np.repeat(np.arange(authors), rows)


def test_the_design_effect_by_hand():
    # Authors with the sums 2, 2, -2, -2: 16 against 8, times 4 / 3.
    values = np.array([[1.0], [1.0], [1.0], [1.0], [-1.0], [-1.0], [-1.0], [-1.0]])
    assert design_effect(values, np.repeat(np.arange(4), 2), np.ones(8)).effect == pytest.approx(2 * 4 / 3)
    assert design_effect(np.tile([[1.0], [-1.0]], (4, 1)), np.repeat(np.arange(4), 2), np.ones(8)).effect == 1


def test_few_clusters_with_a_rare_class_leave_few_degrees_of_freedom():
    # Two of 50 authors have all of it: the sum of the fourth powers is half of the squared sum of squares.
    values = np.zeros((500, 1))
    values[:10], values[10:20] = 1, -1
    assert design_effect(values, np.repeat(np.arange(50), 10), np.ones(500)).freedom == pytest.approx(2 / 0.48 - 1)


@pytest.mark.filterwarnings("ignore:HDx has no held-out")
@pytest.mark.parametrize("kind", [EMQ, PACC, HDx])
def test_clusters_never_narrow_and_unrelated_ones_hardly_widen(kind):
    new, _ = SOURCE.draw([0.7, 0.3], 400, rng=2)
    options = {"drift": False, "target": "source"}
    plain = fitted(kind).predict_interval(new, **options)
    alone = fitted(kind).predict_interval(new, clusters=np.arange(400), **options)
    assert (alone.width >= plain.width - 1e-12).all()
    assert alone.width[0] == pytest.approx(plain.width[0], rel=0.02)
    if kind is not HDx:
        unrelated = fitted(kind).predict_interval(new, clusters=np.arange(400) % 100, **options)
        assert plain.width[0] <= unrelated.width[0] + 1e-12 < 1.25 * plain.width[0]


def test_clusters_do_not_matter_for_the_bag_itself():
    new, authors = draw(40, 10, 0.3, 0.6, np.random.default_rng(3))
    plain, clustered = (fitted(EMQ).predict_interval(new, drift=False, clusters=c) for c in (None, authors))
    np.testing.assert_array_equal(plain.lower, clustered.lower)
    source, wider = (
        fitted(EMQ).predict_interval(new, drift=False, clusters=c, target="source") for c in (None, authors)
    )
    assert wider.width[0] > 1.5 * source.width[0]


def test_copies_within_clusters_count_once():
    new, _ = SOURCE.draw([0.7, 0.3], 100, rng=4)
    options = {"drift": False, "target": "source"}
    once = fitted(EMQ).predict_interval(new, clusters=np.arange(100), **options)
    often = fitted(EMQ).predict_interval(np.repeat(new, 10, axis=0), clusters=np.repeat(np.arange(100), 10), **options)
    assert often.width[0] == pytest.approx(once.width[0], rel=0.03)


def test_one_cluster_leaves_any_share_possible():
    new, _ = SOURCE.draw([0.7, 0.3], 200, rng=5)
    bags = Bags([np.arange(100), np.arange(100, 200)], labels=["one", "many"])
    clusters = np.where(np.arange(200) < 100, "x", np.arange(200).astype(str))
    found = fitted(EMQ).predict_interval_bags(new, bags, clusters=clusters, target="source", drift=False)
    np.testing.assert_array_equal([found.lower[0], found.upper[0]], [[0, 0], [1, 1]])
    assert found.notes.tolist() == ["all rows belong to one cluster: any share is possible", ""]


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (["a"] * 9, r"one cluster per instance \(10\); got shape \(9,\)"),
        (["a"] * 8 + [None, float("nan")], "2 of 10 clusters are missing .first at index 8: None"),
    ],
)
def test_clusters_are_checked(clusters, message):
    with pytest.raises(InvalidData, match=message):
        fitted(EMQ).predict_interval(X[:10], clusters=clusters)


def test_differences_and_trends_with_clusters_are_wider():
    rng, quantifier = np.random.default_rng(6), fitted(EMQ)
    (first, one), (second, other) = (draw(30, 10, share, 0.6, rng) for share in (0.3, 0.4))
    plain = quanet.difference(quantifier, first, second, drift=False)
    wider = quanet.difference(quantifier, first, second, clusters=(one, other), drift=False)
    assert (wider.upper - wider.lower > 1.5 * (plain.upper - plain.lower)).all()
    pool, bags = np.concatenate([first, second]), Bags(np.arange(600).reshape(4, 150))
    authors = np.concatenate([one, 100 + other])
    line, flat = (quanet.trend_bags(quantifier, pool, bags, drift=False, clusters=c) for c in (authors, None))
    assert (line.upper - line.lower > 1.3 * (flat.upper - flat.lower)).all()
    rest = quanet.difference_bags(quantifier, pool, bags, "rest", drift=False, clusters=authors)
    assert len(rest) == 4


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", [EMQ, PACC])
def test_coverage_of_the_source(kind):
    rng, hits = np.random.default_rng(7), 0
    for _ in range(120):
        new, authors = draw(40, 10, 0.3, 0.5, rng)
        found = fitted(kind).predict_interval(new, drift=False, target="source", clusters=authors)
        hits += bool(found.contains([0.7, 0.3]))
    assert 0.9 <= hits / 120 <= 0.99
