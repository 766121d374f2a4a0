import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from quanet import Interval
from quanet.errors import InvalidData, InvalidSetting
from tests.strategies import prevalences


def interval(estimate, covariance, *, level=0.95, n=100):
    estimate = np.asarray(estimate, dtype=float)
    covariance = np.asarray(covariance, dtype=float)
    reach = norm.ppf((1 + level) / 2) * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    sizes = np.full(estimate.shape[:-1], n)
    lower, upper = np.clip(estimate - reach, 0, 1), np.clip(estimate + reach, 0, 1)
    return Interval(estimate, lower, upper, covariance, sizes, level, "test", np.arange(estimate.shape[-1]))


def multinomial(p, n=100):
    return (np.einsum("...i,ij->...ij", p, np.eye(p.shape[-1])) - p[..., :, None] * p[..., None, :]) / n


TWO = interval([0.7, 0.3], [[0.01, -0.01], [-0.01, 0.01]])


@given(prevalences(), st.sampled_from(["box", "ellipse", "clr"]))
def test_every_region_contains_its_estimate(points, kind):
    assert interval(points, multinomial(points)).region(kind).contains(points).all()


@given(prevalences(), st.sampled_from(["box", "ellipse", "clr"]))
def test_regions_are_wider_at_a_higher_level(points, kind):
    narrow, wide = (interval(points, multinomial(points), level=level).region(kind) for level in (0.5, 0.99))
    assert (wide.width >= narrow.width - 1e-9).all()


@given(prevalences(), prevalences(k=3))
def test_what_a_region_contains_a_higher_level_contains_too(points, others):
    points, others = points[:, :3], others[:, : points[:, :3].shape[1]]
    points, others = (part / part.sum(axis=1, keepdims=True) for part in (points + 1e-3, others + 1e-3))
    for kind in ("box", "ellipse", "clr"):
        narrow, wide = (interval(points, multinomial(points), level=level).region(kind) for level in (0.5, 0.99))
        assert (~narrow.contains(others) | wide.contains(others)).all()


def test_for_two_classes_box_and_ellipse_are_the_same_interval():
    box, ellipse = TWO.region("box"), TWO.region("ellipse")
    np.testing.assert_allclose(box.width, ellipse.width)
    for share, inside in ((0.3 + 0.1959, True), (0.3 + 0.1961, False), (0.3 - 0.1959, True), (0.3 - 0.1961, False)):
        assert box.contains([1 - share, share]) == ellipse.contains([1 - share, share]) == inside


def test_the_log_ratio_ellipse_by_hand():
    # Smoothed by 1/200: p = .305/1.01; the log-odds have the standard deviation .1 / (p (1 - p)) of the delta method.
    p = 0.305 / 1.01
    reach = 1.959964 * 0.1 / (p * (1 - p))
    ends = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + np.array([-reach, reach]))))
    np.testing.assert_allclose(TWO.region("clr").width, np.full(2, ends[1] - ends[0]), rtol=1e-5)


def test_a_region_without_spread_contains_the_estimate_alone():
    exact = interval([0.7, 0.3], np.zeros((2, 2)))
    for kind in ("box", "ellipse", "clr"):
        assert exact.region(kind).contains([0.7, 0.3])
        assert not exact.region(kind).contains([0.69, 0.31])


def test_regions_of_many_bags():
    both = interval([[0.7, 0.3], [0.2, 0.8]], np.tile(TWO.covariance, (2, 1, 1)))
    for kind in ("box", "ellipse", "clr"):
        assert both.region(kind).contains([[0.7, 0.3], [0.7, 0.3]]).tolist() == [True, False]


def test_a_table_has_a_row_for_every_class():
    table = TWO.frame()
    assert table["class"].tolist() == [0, 1]
    np.testing.assert_allclose(table["estimate"], [0.7, 0.3])


def test_bad_input():
    with pytest.raises(InvalidSetting, match="one of 'box', 'ellipse', 'clr'; got 'circle'"):
        TWO.region("circle")
    with pytest.raises(InvalidData, match="not a prevalence vector"):
        TWO.contains([0.7, 0.7])
