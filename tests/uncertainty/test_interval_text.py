"""What an interval shows: text, a figure, frames."""

import numpy as np
import pytest
from sklearn.base import clone

from quanet import EMQ, Bags, Gaussians, evaluate, load, save
from quanet.errors import InvalidSetting
from quanet.protocols import UPP


@pytest.fixture(scope="module")
def data():
    X, codes = Gaussians().draw([0.5, 0.5], 300, rng=0)
    return X, np.array(["no", "yes"])[codes]


@pytest.fixture(scope="module")
def fitted(data):
    return EMQ().fit(*data)


@pytest.fixture(scope="module")
def bags():
    return Bags([np.arange(100), np.arange(100, 300)], labels=["May", "June"])


def test_the_text_of_one_bag_has_a_line_per_class(fitted, data):
    interval = fitted.predict_interval(data[0])
    no, yes, last = str(interval).splitlines()
    estimate, lower, upper = (100 * part[1] for part in (interval.estimate, interval.lower, interval.upper))
    assert yes == f"yes  {estimate:.1f} %  ({lower:.1f} to {upper:.1f} %)"
    assert no.startswith("no ")
    assert last.startswith("95 % intervals of 300 instances")
    assert repr(interval) == str(interval)


def test_the_text_of_many_bags_has_a_line_per_bag(fitted, data, bags):
    lines = str(fitted.predict_interval_bags(data[0], bags)).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["bag", "May", "June"]
    many = fitted.predict_interval_bags(data[0], Bags(np.arange(300).reshape(30, 10)))
    assert "... and 10 more bags" in str(many)


def test_a_figure_has_a_row_per_class_or_bag(fitted, data, bags):
    one = fitted.predict_interval(data[0]).plot()
    many = fitted.predict_interval_bags(data[0], bags).plot(focus="no", width=5)
    for figure, names in ((one, {"no", "yes"}), (many, {"May", "June"})):
        assert names <= {label.get_text() for label in figure.axes[0].get_yticklabels()}
    assert many.get_size_inches()[0] == 5


def test_frames_have_the_classes_as_names(data, bags, fitted):
    quantifier = clone(fitted.set_output(transform="pandas")).fit(*data)
    fitted.set_output(transform="default")
    one, many = quantifier.predict(data[0]), quantifier.predict_bags(data[0], bags)
    assert one.index.tolist() == many.columns.tolist() == ["no", "yes"]
    assert many.index.tolist() == ["May", "June"]
    np.testing.assert_array_equal(one, fitted.predict(data[0]))
    np.testing.assert_array_equal(many, fitted.predict_bags(data[0], bags))


def test_frames_change_nothing_else(data, fitted, tmp_path):
    framed = clone(fitted).fit(*data).set_output(transform="pandas")
    assert framed.set_output() is framed
    assert framed.score(*data) == fitted.score(*data)
    assert isinstance(framed.predict_interval(data[0]).estimate, np.ndarray)
    results = evaluate(framed, *data, UPP(bag_size=50, repeats=5), rng=0)
    assert isinstance(results.estimate, np.ndarray)
    save(framed, tmp_path / "model")
    assert load(tmp_path / "model").predict(data[0]).index.tolist() == ["no", "yes"]
    with pytest.raises(InvalidSetting, match="transform"):
        framed.set_output(transform="polars")
