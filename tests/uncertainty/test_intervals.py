import gc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import quanet
from quanet import ACC, APP, CC, EMQ, PACC, PCC, UPP, Bags, Gaussians, GridSearchQ, OneVsRest, TrainPrevalence
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.uncertainty import relearning

METHODS = ("conformal", "closed", "bootstrap", "bayes")


def drawn(k, n, rng, p=None):
    return Gaussians(k=k, distance=2.5).draw(np.full(k, 1 / k) if p is None else p, n, rng=rng)


@pytest.fixture(scope="module", params=[2, 3])
def case(request):
    k = request.param
    X, y = drawn(k, 1200, 0)
    return k, {kind: kind().fit(X, y) for kind in (ACC, PACC, EMQ)}, drawn(k, 6000, 1)


@pytest.mark.no_cover
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [PACC, EMQ])
def test_intervals_hold_the_truth_as_often_as_they_say(case, kind, method):
    k, fitted, (pool, labels) = case
    protocol = (
        APP(bag_size=100, repeats=6, prevalences=[0, 0.02, 0.2, 0.5, 0.8, 0.98, 1])
        if k == 2
        else UPP(bag_size=100, repeats=40)
    )
    bags = protocol.draw(labels, rng=2)
    found = quanet.predict_interval_bags(fitted[kind], pool, bags, method=method, resamples=100)
    inside = (bags.prevalences >= found.lower - 1e-9) & (bags.prevalences <= found.upper + 1e-9)
    assert 0.88 <= inside.mean() <= 1
    assert found.width.mean() < 0.35


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [ACC, EMQ])
def test_the_interval_contains_the_estimate_and_widens_with_the_level(case, kind, method):
    _, fitted, (pool, labels) = case
    bags = UPP(bag_size=60, repeats=5).draw(labels, rng=3)
    narrow, wide = (
        quanet.predict_interval_bags(fitted[kind], pool, bags, level, method=method, resamples=60)
        for level in (0.6, 0.95)
    )
    np.testing.assert_allclose(narrow.estimate, fitted[kind].predict_bags(pool, bags), atol=1e-9)
    assert (narrow.lower <= narrow.estimate).all()
    assert (narrow.estimate <= narrow.upper).all()
    assert (wide.lower <= narrow.lower + 1e-9).all()
    assert (wide.upper >= narrow.upper - 1e-9).all()
    assert (wide.lower >= 0).all()
    assert (wide.upper <= 1).all()


@pytest.mark.parametrize("method", METHODS)
def test_two_classes_have_the_same_interval_from_both_ends(method):
    X, y = drawn(2, 600, 0)
    found = PACC().fit(X, y).predict_interval(drawn(2, 80, 4)[0], method=method)
    np.testing.assert_allclose(found.lower + found.upper[::-1], 1, atol=2e-3)


@pytest.mark.parametrize("method", METHODS)
def test_the_share_of_the_source_is_less_certain_than_the_bags_own(case, method):
    _, fitted, (pool, _) = case
    own, source = (
        fitted[PACC].predict_interval(pool[:150], method=method, target=target) for target in ("bag", "source")
    )
    assert source.width.mean() > own.width.mean()


@pytest.mark.parametrize("method", METHODS)
def test_a_bag_never_depends_on_its_neighbours(case, method):
    k, fitted, (pool, _) = case
    if k > 2 and method == "bayes":
        pytest.skip("Gibbs's draws are random, and bags share them")
    bags = Bags([np.arange(70), np.arange(500, 540)])
    both = fitted[EMQ].predict_interval_bags(pool, bags, method=method, resamples=100)
    alone = fitted[EMQ].predict_interval(pool[:70], method=method, resamples=100)
    np.testing.assert_allclose(both.lower[0], alone.lower, atol=1e-9)
    np.testing.assert_allclose(both.upper[0], alone.upper, atol=1e-9)
    assert both.sizes.tolist() == [70, 40]


def test_few_held_out_instances_make_intervals_wider():
    bag, _ = drawn(2, 300, 5)
    few, many = (PACC().fit(*drawn(2, n, 0)) for n in (100, 4000))
    for method in ("conformal", "closed", "bootstrap"):
        assert (
            few.predict_interval(bag, method=method).width[1] > 1.2 * many.predict_interval(bag, method=method).width[1]
        )


@pytest.mark.parametrize("quantifier", [CC(), PCC(), TrainPrevalence(), OneVsRest(EMQ())], ids=repr)
def test_a_warning_says_what_an_interval_without_held_out_instances_does_not_include(quantifier):
    X, y = drawn(2, 200, 0)
    fitted = quantifier.fit(X, y)
    with pytest.warns(QuanetWarning, match="has no held-out instances"):
        found = fitted.predict_interval(X[:50])
    assert found.method == "bootstrap"
    assert (found.lower <= found.estimate).all()
    for method in ("conformal", "closed"):
        with pytest.raises(InvalidSetting, match=r"Pass labelled instances .* held_out=\(X, y\)"):
            fitted.predict_interval(X[:50], method=method)


@pytest.mark.parametrize("method", ["conformal", "closed", "bootstrap"])
def test_rows_given_by_hand_let_any_quantifier_know_its_bias(method):
    X, y = drawn(2, 1000, 0)
    bag, labels = drawn(2, 400, 1, p=[0.95, 0.05])
    fitted = CC().fit(X, y)
    found = fitted.predict_interval(bag, method=method, held_out=drawn(2, 1000, 2))
    share = (labels == 1).mean()
    assert found.estimate[1] > share + 0.02
    assert found.lower[1] <= share <= found.upper[1]


def test_auto_takes_the_formula_where_there_is_one():
    X, y = drawn(2, 300, 0)
    assert PACC().fit(X, y).predict_interval(X[:50]).method == "closed"
    assert TrainPrevalence().fit(X, y).predict_interval(X[:50], held_out=(X, y)).method == "conformal"


def test_a_search_gives_the_interval_of_what_it_chose():
    X, y = drawn(2, 400, 0)
    search = GridSearchQ(EMQ(), {"calibration": ["bcts"]}, protocol=UPP(bag_size=20, repeats=10)).fit(X, y)
    ours, theirs = (one.predict_interval(X[:60]) for one in (search, search.quantifier_))
    assert ours.method == "closed"
    np.testing.assert_array_equal(ours.lower, theirs.lower)


def test_what_was_calibrated_is_forgotten_with_the_fit_and_with_the_quantifier():
    X, y = drawn(2, 400, 0)
    quantifier = PACC().fit(X, y)
    first = quantifier.predict_interval(X[:60], method="conformal")
    again = quantifier.fit(*drawn(2, 100, 1)).predict_interval(X[:60], method="conformal")
    assert not np.array_equal(first.width, again.width)
    before = len(relearning._cache)
    del quantifier
    gc.collect()
    assert len(relearning._cache) < before


def test_a_loaded_quantifier_gives_the_same_interval(tmp_path):
    X, y = drawn(2, 400, 0)
    quantifier = EMQ().fit(X, y)
    quanet.save(quantifier, tmp_path / "model")
    loaded = quanet.load(tmp_path / "model")
    for method in METHODS:
        ours, theirs = (one.predict_interval(X[:60], method=method) for one in (quantifier, loaded))
        np.testing.assert_array_equal(ours.lower, theirs.lower)
        np.testing.assert_array_equal(ours.upper, theirs.upper)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, float("nan")])
def test_a_level_is_a_probability(level):
    X, y = drawn(2, 100, 0)
    with pytest.raises(InvalidSetting, match="level must be a number from 0"):
        PACC().fit(X, y).predict_interval(X, level)


def test_bad_input():
    X, y = drawn(2, 200, 0)
    quantifier = PACC().fit(X, y)
    with pytest.raises(InvalidSetting, match=r"method must be one of 'auto', 'network', 'conformal', .*; got 'magic'"):
        quantifier.predict_interval(X, method="magic")
    with pytest.raises(InvalidSetting, match="target must be 'bag' or 'source'; got 'world'"):
        quantifier.predict_interval(X, target="world")
    with pytest.raises(InvalidSetting, match="needs at least 200 resamples; got 100"):
        quantifier.predict_interval(X, 0.99, method="bootstrap", resamples=100)
    with pytest.raises(NotFittedError):
        PACC().predict_interval(X)
    plain = TrainPrevalence().fit(X, y)
    with pytest.raises(InvalidSetting, match="does not read posteriors"):
        plain.predict_interval(X, method="bayes")


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_a_bag_of_one_instance_has_an_estimate_and_any_share_is_possible(method):
    X, y = drawn(2, 200, 0)
    found = (
        PACC()
        .fit(X, y)
        .predict_interval_bags(X, Bags([[0, 1, 2, 3], [2]], labels=["June", "May"]), method=method, resamples=100)
    )
    np.testing.assert_array_equal([found.lower[1], found.upper[1]], [[0, 0], [1, 1]])
    np.testing.assert_allclose(found.estimate[1].sum(), 1)
    assert found.width[0].max() < 1
    assert found.notes.tolist() == ["", "one instance: any share is possible"]


def test_the_sizes_of_other_bags_do_not_change_an_interval():
    X, y = drawn(2, 400, 0)
    quantifier = EMQ().fit(X, y)
    bags = Bags([np.arange(300), np.arange(10), [7]])
    together = quantifier.predict_interval_bags(X, bags)
    assert together.method == "closed, conformal, none"
    for at, (members, method) in enumerate(
        zip(([*range(300)], [*range(10)], [7]), ("closed", "conformal", "none"), strict=True)
    ):
        alone = quantifier.predict_interval(X[members])
        assert alone.method == method
        np.testing.assert_allclose(alone.lower, together.lower[at])
        np.testing.assert_allclose(alone.upper, together.upper[at])


def test_only_a_bootstrap_needs_resamples_for_a_high_level():
    X, y = drawn(2, 300, 0)
    quantifier = PACC().fit(X, y)
    assert quantifier.predict_interval(X, 0.999).method == "closed"
    assert quantifier.predict_interval(X, 0.999, resamples=10).method == "closed"
    with pytest.raises(InvalidSetting, match=r"level of 0\.999 needs at least 2000 resamples; got 1000"):
        quantifier.predict_interval(X, 0.999, method="bootstrap", resamples=1000)
    assert quantifier.predict_interval(X[:30], 0.999, method="bootstrap").width[0] > 0


def test_a_table_names_its_groups_and_tells_their_size_and_plain_count():
    X, y = drawn(2, 300, 0)
    quantifier = PACC().fit(X, y)
    found = quantifier.predict_interval_bags(X, Bags([np.arange(100), [5]], labels=["May", "June"]))
    table = found.frame()
    assert list(table) == ["group", "n", "class", "estimate", "lower", "upper", "counted", "drift", "state", "note"]
    assert table["group"].tolist() == ["May", "May", "June", "June"]
    assert table["n"].tolist() == [100, 100, 1, 1]
    assert table["class"].tolist() == [0, 1, 0, 1]
    labels = quantifier.represent(X[:100]).argmax(axis=1)
    np.testing.assert_allclose(table["counted"][:2], [np.mean(labels == 0), np.mean(labels == 1)])
    assert table["note"].tolist() == ["", ""] + ["one instance: any share is possible"] * 2
    one = quantifier.predict_interval(X[:100]).frame()
    assert one["group"].tolist() == ["all", "all"]
    assert np.isnan(TrainPrevalence().fit(X, y).predict_interval(X, held_out=(X, y)).frame()["counted"]).all()


@pytest.mark.parametrize("method", ["conformal", "bootstrap"])
def test_intervals_estimate_bags_as_the_quantifier_does(method):
    class Counting(PACC):
        bags = 0
        inside = False

        def aggregate_bags(self, rows, bags):
            type(self).bags += len(bags)
            self.inside = True
            try:
                return super().aggregate_bags(rows, bags)
            finally:
                self.inside = False

        def aggregate(self, rows):
            assert self.inside  # by its own way to estimate many bags, which may run on another device
            return super().aggregate(rows)

    X, y = drawn(2, 200, 0)
    quantifier = Counting().fit(X, y)
    found = predict_without_likelihood(quantifier, X, method)
    assert Counting.bags > 0
    assert found.width[0] > 0


def predict_without_likelihood(quantifier, X, method):
    """Intervals of the quantifier itself, without maximum likelihood."""
    return quantifier.predict_interval(
        X[:50], method=method, held_out=(X, (X[:, 0] > X[:, 1]).astype(int)), resamples=100
    )


def test_too_few_held_out_instances_are_reported_with_the_number_needed():
    X, y = drawn(2, 200, 0)
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:12]]
    quantifier = PACC().fit(X[rows], y[rows])
    with pytest.raises(InvalidData, match=r"at least 39 held-out instances of every class; class 1 has 12"):
        quantifier.predict_interval(X, method="conformal")
    with pytest.raises(InvalidData, match=r"at least 2 held-out .* class 1 has 0"):
        CC().fit(X, y).predict_interval(X, method="closed", held_out=(X[y == 0], y[y == 0]))
    assert quantifier.predict_interval(X, method="closed").width[1] > 0


def test_one_held_out_instance_of_a_class_leaves_a_bootstrap_with_a_warning():
    posteriors = np.random.default_rng(0).dirichlet([1, 1], size=60)
    quantifier = PACC("precomputed").fit(posteriors, np.repeat([0, 1], [59, 1]))
    with pytest.warns(QuanetWarning, match="at least 2 held-out instances of every class; class 1 has 1"):
        found = quantifier.predict_interval(posteriors)
    assert found.method == "bootstrap"
    assert found.frame()["note"].tolist() == ["not enough held-out instances: the bias is unknown"] * 2
