import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from quanet import (
    APP,
    CC,
    EMQ,
    UPP,
    Bags,
    DeepSets,
    Gaussians,
    GMNet,
    HistNetQ,
    TextClassifier,
    WordBags,
    check_quantifier,
    evaluate,
    load,
    save,
)
from quanet.errors import InvalidData, InvalidSetting, QuanetWarning
from quanet.metrics import kullback_leibler_divergence, relative_absolute_error
from quanet.nn import set_networks as sets
from quanet.nn.networks import GaussianLikelihoods, Histograms, SetNetwork
from quanet.nn.set_networks import LOSSES, row_batches
from quanet.nn.training import BagPool

SOURCE = Gaussians(distance=2.0)
X, CODES = SOURCE.draw([0.6, 0.4], 600, rng=0)
ROWS = np.hstack([SOURCE.posteriors(X, [0.6, 0.4]), X])
QUICK = {"max_epochs": 1, "device": "cpu", "random_state": 0}
MAKES = [HistNetQ, GMNet, DeepSets, lambda *given, **options: DeepSets(*given, pooling="max", **options)]
NAMES = ["HistNetQ", "GMNet", "DeepSets mean", "DeepSets max"]
every_network = pytest.mark.parametrize("make", MAKES, ids=NAMES)


def random_network(show, features, shown, pooling="mean", embedding=3, seed=0, k=3):
    torch.manual_seed(seed)
    network = SetNetwork(k, embedding, show, features, shown, pooling=pooling).double().eval()
    for parameter in network.parameters():  # also those that start at zero
        torch.nn.init.normal_(parameter, std=0.3)
    return network


def random_rows(b, n, k, embedding=3, seed=0):
    rng = np.random.default_rng(seed)
    return torch.as_tensor(np.concatenate([rng.dirichlet(np.ones(k), (b, n)), rng.normal(size=(b, n, embedding))], -1))


NETWORKS = [
    lambda **options: random_network(Histograms(5), 4, 20, **options),
    lambda **options: random_network(GaussianLikelihoods(3, 7), 3, 7, **options),
    lambda **options: random_network(torch.nn.ReLU(), 6, 6, **options),
    lambda **options: random_network(torch.nn.ReLU(), 6, 6, pooling="max", **options),
]
every_forward_pass = pytest.mark.parametrize("build", NETWORKS, ids=NAMES)


@pytest.mark.same_lines
@every_network
@pytest.mark.parametrize(("labels", "k"), [("integer", 4)])
def test_set_networks_keep_the_contract(small, make, labels, k):
    check_quantifier(make(cv=3, **QUICK), k=k, labels=labels)


@every_forward_pass
def test_a_network_reordered_gives_the_same_answer_in_that_order(build):
    rows, order = random_rows(2, 9, 4), np.array([2, 0, 3, 1])
    permuted = torch.cat([rows[..., order], rows[..., 4:]], dim=-1)
    network = build(k=4)
    expected = network(rows)[:, order]
    network.reorder(order)
    torch.testing.assert_close(network(permuted), expected)


@every_forward_pass
@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 40), at_a_time=st.integers(1, 50), seed=st.integers(0, 99))
def test_neither_order_nor_portions_change_the_estimate(build, n, at_a_time, seed):
    network, rows = build(), random_rows(2, n, 3, seed=seed)
    shuffled = rows[:, np.random.default_rng(seed).permutation(n)]
    torch.testing.assert_close(network(shuffled, at_a_time), network(rows))


@every_forward_pass
def test_a_bag_repeated_is_the_same_bag(build):
    network, rows = build(), random_rows(2, 9, 3)
    torch.testing.assert_close(network(torch.cat([rows, rows, rows], dim=1)), network(rows))


def test_a_histogram_by_hand():
    features = torch.logit(torch.tensor([[0.0, 0.1], [0.5, 0.25]], dtype=torch.float64), eps=1e-12)
    shown = Histograms(3)(features).reshape(2, 2, 3)
    by_hand = [[[1, 0, 0], [0.8, 0.2, 0]], [[0, 1, 0], [0.5, 0.5, 0]]]
    torch.testing.assert_close(shown, torch.tensor(by_hand, dtype=torch.float64), atol=1e-9, rtol=0)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.integers(2, 20))
def test_a_histogram_counts_every_value_once(values, bins):
    shown = Histograms(bins)(torch.tensor(values, dtype=torch.float64)[:, None])
    torch.testing.assert_close(shown.sum(dim=-1), torch.ones(len(values), dtype=torch.float64))


def test_likelihoods_are_those_of_gaussians_up_to_their_peaks():
    torch.manual_seed(0)
    layer = GaussianLikelihoods(3, 2).double()
    torch.nn.init.normal_(layer.below)
    features = torch.randn(5, 3).double()
    for j in range(2):
        factor = layer.below[j].tril(-1) + torch.diag(layer.log_diagonal[j].exp())
        density = torch.distributions.MultivariateNormal(layer.centres[j], precision_matrix=factor.T @ factor)
        peak = density.log_prob(layer.centres[j])
        torch.testing.assert_close(layer(features)[:, j], (density.log_prob(features.sigmoid()) - peak).exp())


def test_losses_are_the_errors_of_their_names():
    network, rows = random_network(torch.nn.ReLU(), 6, 6), random_rows(4, 10, 3)
    truth = torch.as_tensor(np.random.default_rng(1).dirichlet(np.ones(3), 4))
    estimate, p = network(rows).exp().detach().numpy(), truth.numpy()
    expected = {
        "ae": np.abs(estimate - p).mean(),
        "mse": ((estimate - p) ** 2).mean(),
        "rae": relative_absolute_error(p, estimate, eps=0.05).mean(),
        "kld": kullback_leibler_divergence(p, estimate, eps=0.05).mean(),
    }
    found = {name: loss(network, (rows, truth)).item() for name, loss in LOSSES.items()}
    assert found == pytest.approx(expected)


def test_batches_are_rows_of_their_classes():
    pool = BagPool(np.hstack([ROWS, CODES[:, None]]), CODES, 2)
    stream = row_batches(pool, torch.device("cpu"), batches=3, bags=4, sizes=(20, 30), rng=np.random.default_rng(0))
    for rows, truth in stream:
        assert 20 <= rows.shape[1] <= 30
        torch.testing.assert_close(rows[..., -1].mean(dim=1), truth[:, 1])


@pytest.mark.no_cover
@pytest.mark.parametrize("make", MAKES[:3], ids=NAMES[:3])
def test_it_learns_what_counting_gets_wrong(monkeypatch, make):
    monkeypatch.setattr(
        sets, "RECIPE", replace(sets.RECIPE, bags=30, sizes=(20, 100), batches=40, stop_sizes=(50, 100))
    )
    (train, y), (pool, y_pool) = SOURCE.draw([0.8, 0.2], 2000, rng=3), SOURCE.draw([0.5, 0.5], 2000, rng=4)
    train, pool = SOURCE.posteriors(train, [0.8, 0.2]), SOURCE.posteriors(pool, [0.8, 0.2])
    network = make("precomputed", **QUICK | {"max_epochs": 5}).fit(train, y)
    protocol = APP(bag_size=100, repeats=5)
    found = evaluate(network, pool, y_pool, protocol, rng=0).error().mean()
    counted = evaluate(CC("precomputed").fit(train, y), pool, y_pool, protocol, rng=0).error().mean()
    assert found < 0.7 * counted
    assert [epoch.number for epoch in network.history_] == list(range(5))


@pytest.mark.no_cover
def test_it_learns_three_classes(monkeypatch):
    monkeypatch.setattr(
        sets, "RECIPE", replace(sets.RECIPE, bags=30, sizes=(20, 100), batches=40, stop_sizes=(50, 100))
    )
    source, prior = Gaussians(k=3, distance=2.0), [0.7, 0.2, 0.1]
    (train, y), (pool, y_pool) = source.draw(prior, 2000, rng=3), source.draw([1 / 3] * 3, 2000, rng=4)
    train, pool = source.posteriors(train, prior), source.posteriors(pool, prior)
    protocol = UPP(bag_size=100, repeats=100)
    found, counted = (
        evaluate(method.fit(train, y), pool, y_pool, protocol, rng=0).error().mean()
        for method in (DeepSets("precomputed", **QUICK | {"max_epochs": 5}), CC("precomputed"))
    )
    assert found < 0.7 * counted


@pytest.mark.no_cover
@pytest.mark.parametrize("make", [HistNetQ, DeepSets])
def test_it_learns_which_classes_are_confused_with_which(monkeypatch, make):
    monkeypatch.setattr(
        sets, "RECIPE", replace(sets.RECIPE, bags=30, sizes=(50, 200), batches=40, stop_sizes=(100, 200))
    )
    rng, k = np.random.default_rng(0), 5
    confusions = 0.75 * np.eye(k) + 0.25 * rng.dirichlet(np.full(k, 0.3), k)  # of the label, given the class
    posteriors = (confusions / confusions.sum(axis=0)).T

    def draw(n):
        y = rng.integers(k, size=n)
        return posteriors[(rng.random(n)[:, None] > confusions[y].cumsum(axis=1)).sum(axis=1)], y

    (train, y), (pool, y_pool) = draw(2000), draw(3000)
    protocol = UPP(bag_size=200, repeats=100)
    found, counted, likely = (
        evaluate(method.fit(train, y), pool, y_pool, protocol, rng=0).error().mean()
        for method in (make("precomputed", **QUICK | {"max_epochs": 6}), CC("precomputed"), EMQ("precomputed"))
    )
    assert found < 0.6 * counted
    assert found < 1.15 * likely


@pytest.mark.no_cover
def test_the_highest_feature_shows_whether_a_class_is_there(monkeypatch):
    monkeypatch.setattr(sets, "RECIPE", replace(sets.RECIPE, bags=30, sizes=(20, 30), batches=40, stop_sizes=(15, 30)))
    network = DeepSets("precomputed", pooling="max", **QUICK | {"max_epochs": 5}).fit(ROWS, CODES)
    absent, present = ROWS[CODES == 0][:25], ROWS[CODES == 1][:25]
    assert network.predict(absent)[1] < network.predict(np.vstack([absent, present]))[1] < network.predict(present)[1]


@every_network
def test_the_same_seed_gives_the_same_network_and_leaves_torch_alone(small, make):
    before = torch.get_rng_state()
    one, two, other = (make("precomputed", **QUICK | {"random_state": seed}).fit(ROWS, CODES) for seed in (1, 1, 2))
    assert (torch.get_rng_state() == before).all()
    first, again, third = (next(quantifier.network_.parameters()) for quantifier in (one, two, other))
    assert torch.equal(first, again)
    assert not torch.equal(first, third)


@every_network
def test_bags_of_one_and_of_very_many_instances_are_answered(small, monkeypatch, make):
    quantifier = make("precomputed", **QUICK).fit(ROWS, CODES)
    bags = Bags([[0], np.arange(600).repeat(20)])
    whole = quantifier.predict_bags(ROWS, bags)
    np.testing.assert_allclose(whole.sum(axis=1), 1)
    monkeypatch.setattr(sets, "AT_A_TIME", 2**12)
    np.testing.assert_allclose(quantifier.predict_bags(ROWS, bags), whole, atol=1e-12)


@pytest.mark.no_cover
@every_network
def test_a_large_bag_needs_little_more_than_its_rows(small, make):
    quantifier = make("precomputed", **QUICK).fit(ROWS, CODES)
    rows = quantifier.represent(ROWS)[np.zeros(200_000, dtype=int)]
    network, peak = quantifier.network_, 0
    shown_by = network.shown_by

    def watched(part):
        nonlocal peak
        peak = max(peak, part.shape[1])
        return shown_by(part)

    network.shown_by = watched
    tracemalloc.start()
    quantifier.aggregate(rows)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak * network.widest <= sets.AT_A_TIME
    assert used < 2 * rows.nbytes


@every_network
def test_saved_and_loaded_it_estimates_the_same(small, tmp_path, make):
    quantifier = make("precomputed", features=5, **QUICK).fit(ROWS, CODES)
    save(quantifier, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(ROWS), quantifier.predict(ROWS))
    assert loaded.history_ == quantifier.history_


@pytest.mark.parametrize(
    "classifier", [LogisticRegression(), FrozenEstimator(LogisticRegression().fit(X, CODES)), None]
)
def test_any_classifier_gives_rows_of_posteriors(small, classifier):
    quantifier = HistNetQ(classifier, cv=3, **QUICK).fit(X, CODES)
    assert quantifier.represent(X).shape == (600, 2)
    assert quantifier.predict(X).sum() == pytest.approx(1)


def test_text_goes_in_with_its_embedding(small):
    texts, codes = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
    quantifier = GMNet(TextClassifier(embedding_size=30), cv=3, **QUICK).fit(texts, codes)
    assert quantifier.represent(texts[:5]).shape == (5, 2 + 16)


@pytest.mark.parametrize(
    ("make", "options", "rows", "error", "message"),
    [
        (HistNetQ, {"device": "cuda:77"}, ROWS, InvalidSetting, "device 'cuda:77' is not available"),
        (
            HistNetQ,
            {"loss": "hinge"},
            ROWS,
            InvalidSetting,
            "loss must be one of 'ae', 'rae', 'mse', 'kld'; got 'hinge'",
        ),
        (HistNetQ, {"bins": 1}, ROWS, InvalidSetting, "bins must be a whole number of at least 2; got 1"),
        (GMNet, {"gaussians": 0}, ROWS, InvalidSetting, "gaussians must be a whole number of at least 1; got 0"),
        (DeepSets, {"max_epochs": 0}, ROWS, InvalidSetting, "max_epochs must be a whole number of at least 1; got 0"),
        (DeepSets, {"pooling": "sum"}, ROWS, InvalidSetting, "pooling must be 'mean' or 'max'; got 'sum'"),
        (GMNet, {}, ROWS[:, :1], InvalidData, "at least 2 columns"),
        (DeepSets, {"classifier": LinearSVC()}, X, InvalidSetting, "Networks over bags need posteriors"),
    ],
)
def test_bad_settings_are_clear_errors(small, make, options, rows, error, message):
    with pytest.raises(error, match=message):
        make(**{"classifier": "precomputed", **QUICK, **options}).fit(rows, CODES)


def test_bad_data_are_clear_errors(small):
    holes = ROWS.copy()
    holes[[5, 9], 3] = np.nan
    new = HistNetQ("precomputed", **QUICK)
    with pytest.raises(InvalidData, match="embedding of instance 5 contains NaN or infinity, and so do 1 others"):
        new.fit(holes, CODES)
    with pytest.raises(InvalidData, match="y has one class only, 0"):
        new.fit(ROWS, np.zeros(600, dtype=int))
    with pytest.raises(InvalidData, match="class 'b' has 3 different held-out instances; HistNetQ draws bags from two"):
        new.fit(ROWS, np.array(["a"] * 597 + ["b"] * 3))
    fitted = new.fit(ROWS, CODES)
    with pytest.raises(InvalidData, match="embedding has 1 columns, but had 2 in fit"):
        fitted.predict(ROWS[:, :3])
    with pytest.raises(InvalidData, match="Rows must have 4 columns; got 2"):
        fitted.aggregate(ROWS[:, :2])


def test_an_interruption_keeps_the_best_so_far(small, monkeypatch):
    real = sets.train

    def interrupted(*arguments, **options):
        epochs = real(*arguments, **options)
        yield next(epochs)
        epochs.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(sets, "train", interrupted)
    with pytest.warns(QuanetWarning, match="interrupted after 1 epochs"):
        quantifier = GMNet("precomputed", **QUICK | {"max_epochs": 5}).fit(ROWS, CODES)
    assert quantifier.predict(ROWS).sum() == pytest.approx(1)


def test_progress_is_shown_only_when_asked_for(small, capsys):
    HistNetQ("precomputed", **QUICK).fit(ROWS, CODES)
    assert capsys.readouterr().err == ""
    HistNetQ("precomputed", progress=True, **QUICK).fit(ROWS, CODES)
    assert "HistNetQ: loss" in capsys.readouterr().err
