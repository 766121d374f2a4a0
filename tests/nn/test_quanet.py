from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.svm import LinearSVC

from quanet import (
    APP,
    EMQ,
    Bags,
    Gaussians,
    LSTMClassifier,
    QuaNet,
    TextClassifier,
    WordBags,
    check_quantifier,
    evaluate,
)
from quanet.data.instances import Inputs
from quanet.errors import InvalidBags, InvalidData, InvalidSetting, QuanetWarning
from quanet.nn import correction
from quanet.nn.bag_pools import BagPool, base_estimate, pooled_inputs
from quanet.nn.batches import training_batches
from quanet.nn.networks import PaperNetwork, ResidualNetwork
from quanet.nn.statistics import Statistics
from quanet.simplex import smooth

SOURCE = Gaussians(distance=2.0)
X, CODES = SOURCE.draw([0.6, 0.4], 600, rng=0)
POOL, POOL_CODES = SOURCE.draw([0.5, 0.5], 800, rng=1)
ROWS = np.hstack([SOURCE.posteriors(X, [0.6, 0.4]), X])


@pytest.fixture
def small(monkeypatch):
    """Recipes of a few small batches, so that a fit takes a moment."""
    for name, recipe in correction.RECIPES.items():
        tiny = replace(recipe, bags=6, sizes=(20, 30), batches=2, stop_sizes=(20, 30), stop_batches=2)
        monkeypatch.setitem(correction.RECIPES, name, tiny)


@pytest.mark.same_lines
@pytest.mark.parametrize(("labels", "k"), [("string", 2), ("integer", 4)])
def test_quanet_keeps_the_contract(small, labels, k):
    check_quantifier(QuaNet(cv=3, max_epochs=1, device="cpu", random_state=0), k=k, labels=labels)


def test_training_starts_from_the_base_estimate_itself():
    statistics = Statistics.fit(ROWS[:, :2], CODES)
    rows = ROWS[np.random.default_rng(0).integers(600, size=(3, 50))]
    inputs = pooled_inputs(rows, statistics, 32)
    found = ResidualNetwork(4, 8).double()(*map(torch.as_tensor, inputs)).exp()
    np.testing.assert_allclose(found.detach().numpy(), base_estimate(rows[..., :2].copy(), statistics), atol=1e-12)


def test_the_base_is_smoothed_calibrated_maximum_likelihood():
    quantifier = EMQ("precomputed").fit(ROWS[:, :2], CODES)
    bag = ROWS[:50, :2]
    base = base_estimate(bag[None], Statistics.fit(ROWS[:, :2], CODES))
    np.testing.assert_allclose(base[0], smooth(quantifier.predict(bag), 0.01), atol=1e-9)


def test_the_residual_network_is_equivariant_to_the_order_of_classes():
    torch.manual_seed(0)
    network = ResidualNetwork(5, 8).double().eval()
    torch.nn.init.normal_(network.residual.weight)
    groups, numbers, base = torch.rand(2, 3, 16, 5).double(), torch.rand(2, 3, 8).double(), torch.rand(2, 3).double()
    order = [2, 0, 1]
    straight, permuted = network(groups, numbers, base), network(groups[:, order], numbers[:, order], base[:, order])
    torch.testing.assert_close(permuted, straight[:, order])


@pytest.mark.parametrize("n", [1, 7, 32, 1000])
def test_pooling_keeps_the_mean_whatever_the_size(n):
    statistics = Statistics.fit(ROWS[:, :2], CODES)
    rows = ROWS[np.random.default_rng(n).integers(600, size=(2, n))]
    pooled, _, _ = pooled_inputs(rows, statistics, 32)
    calibrated = statistics.calibration(rows[..., :2])
    np.testing.assert_allclose(pooled[..., 0].mean(axis=2), calibrated.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(pooled[:, 0, :, 2:].mean(axis=1), rows[..., 2:].mean(axis=1), atol=1e-12)
    assert (np.diff(pooled[..., 0], axis=2) >= -1e-12).all()


def test_pools_for_training_stopping_and_the_last_word_share_no_instance():
    pool = BagPool(np.arange(600.0)[:, None], CODES, 2)
    parts = pool.parts((0.6, 0.2, 0.2), rng=np.random.default_rng(0))
    seen = np.concatenate([part.rows.ravel() for part in parts])
    assert len(np.unique(seen)) == len(seen) == 600
    for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
        np.testing.assert_allclose(np.bincount(part.codes), share * np.bincount(CODES), atol=1)


def test_the_paper_network_is_its_section_by_hand():
    torch.manual_seed(0)
    network = PaperNetwork(3, hidden=4, dense=(6, 5)).double().eval()
    rows, statistics = torch.rand(1, 7, 3).double(), torch.rand(1, 8).double()
    states, _ = network.lstm(rows)
    both_ends = torch.cat([states[0, -1, :4], states[0, 0, 4:], statistics[0]])  # forward's last, backward's first
    first, second, last = (layer for layer in network.head if isinstance(layer, torch.nn.Linear))
    by_hand = last(second(first(both_ends).relu()).relu()).softmax(dim=-1)
    torch.testing.assert_close(network(rows, statistics)[0], by_hand)
    assert first.in_features == 2 * 4 + 8


def test_rows_that_bags_share_are_multiplied_once_to_the_same_end():
    torch.manual_seed(0)
    network = PaperNetwork(3, hidden=4, dense=(6, 5)).double().eval()
    table, order, statistics = torch.rand(9, 3).double(), torch.randint(9, (5, 7)), torch.rand(5, 8).double()
    expected = network(table[order], statistics)
    torch.testing.assert_close(network.of_shared_rows(table, order, statistics), expected, rtol=0, atol=1e-13)


def test_the_papers_statistics_by_hand():
    posteriors = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]])
    statistics = Statistics.fit(posteriors, np.array([0, 0, 0, 1, 1, 1]))
    bag = posteriors[[0, 2, 3, 4]]
    cc, pcc, tpr_b, fpr_b = 3 / 4, (0.1 + 0.7 + 0.6 + 0.8) / 4, 2 / 3, 1 / 3
    tpr_s, fpr_s = (0.6 + 0.8 + 0.3) / 3, (0.1 + 0.2 + 0.7) / 3
    expected = [
        cc, (cc - fpr_b) / (tpr_b - fpr_b), pcc, (pcc - fpr_s) / (tpr_s - fpr_s), tpr_b, fpr_b, tpr_s, fpr_s
    ]  # fmt: skip
    np.testing.assert_allclose(statistics.of_the_paper(bag[None])[0], expected)


def test_batches_have_the_rows_sorted_and_the_true_prevalences():
    statistics = Statistics.fit(ROWS[:, :2], CODES)
    stream = training_batches(
        BagPool(ROWS, CODES, 2), statistics, torch.device("cpu"), batches=2, bags=5, sizes=(40, 40), groups=None,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    for rows, numbers, truth in stream:
        assert rows.shape == (5, 40, 3)
        assert (rows[..., 0].diff(dim=1) >= 0).all()
        assert numbers.shape == (5, 8)
        torch.testing.assert_close(truth.sum(dim=1), torch.ones(5))


def hidden_in_the_embedding(n, seed, *, linear):
    """Posteriors that say little, and an embedding that says much: by itself, or only beside the posterior."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    p = 1 / (1 + np.exp(-(0.5 * (2 * y - 1) + rng.normal(size=n))))
    side = 1 if linear else np.where(p < 0.5, 1, -1)
    return np.column_stack([1 - p, p, 3.0 * y * side + rng.normal(size=n), rng.normal(size=n)]), y


def test_a_reader_is_used_when_the_embedding_clearly_improves_posteriors(small):
    rows, y = hidden_in_the_embedding(2000, 0, linear=True)
    quantifier = QuaNet("precomputed", cv=0.4, max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    assert quantifier.rows_.reader is not None
    new, y_new = hidden_in_the_embedding(2000, 1, linear=True)
    read = quantifier.represent(new)[:, :2]
    assert (read.argmax(axis=1) == y_new).mean() > (new[:, :2].argmax(axis=1) == y_new).mean() + 0.1
    without = QuaNet("precomputed", cv=0.4, max_epochs=1, device="cpu", random_state=0).fit(ROWS, CODES)
    assert without.rows_.reader is None  # the posteriors there are the true ones


def test_cross_fitted_posteriors_are_never_read_again(small):
    # Logits of a linear model that has not seen its own fold, beside its features: their difference tells the label.
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(400, 40)), np.arange(400) % 2
    posteriors = cross_val_predict(LogisticRegression(), features, y, cv=20, method="predict_proba")
    rows = np.hstack([posteriors, features])
    tempted = QuaNet("precomputed", cv=0.4, max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    read = tempted.rows_.reader.predict_proba(np.hstack([np.log(posteriors), features]))
    assert (read.argmax(axis=1) == y).mean() > 0.9  # of labels that have nothing to do with the features
    quantifier = QuaNet("precomputed", max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    assert quantifier.rows_.reader is None
    fitted = QuaNet(LogisticRegression(), max_epochs=1, device="cpu", random_state=0).fit(features, y)
    assert fitted.rows_.reader is None


def test_bags_of_the_papers_network_are_read_together_to_the_same_end(small, monkeypatch):
    rows, y = hidden_in_the_embedding(300, 0, linear=True)
    quantifier = QuaNet.paper("precomputed", max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    rng = np.random.default_rng(0)
    bags = Bags([rng.integers(300, size=n) for n in (1, 30, 30, 7, 30)])
    one_by_one = np.array([quantifier.predict(rows[bag]) for bag in np.split(bags.flat, np.cumsum(bags.sizes)[:-1])])
    np.testing.assert_allclose(quantifier.predict_bags(rows, bags), one_by_one, atol=1e-12)
    monkeypatch.setitem(correction.AT_A_TIME, "cpu", 1)
    np.testing.assert_allclose(quantifier.predict_bags(rows, bags), one_by_one, atol=1e-12)
    many = Bags(rng.integers(300, size=(25, 30)))  # they share rows
    one_by_one = np.array([quantifier.predict(rows[bag]) for bag in many.flat.reshape(25, 30)])
    np.testing.assert_allclose(quantifier.predict_bags(rows, many), one_by_one, atol=1e-12)
    with pytest.raises(InvalidBags, match="outside the pool"):
        quantifier.predict_bags(rows[:5], bags)


def test_single_precision_as_in_states_is_enough_for_the_papers_network(small):
    rows, y = hidden_in_the_embedding(300, 0, linear=True)
    quantifier = QuaNet.paper("precomputed", max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    assert not quantifier.pools_rows
    single = Inputs(quantifier.read(rows).values.astype(np.float32))
    found = quantifier.predict_bags(single, Bags([np.arange(300)], pool_size=300))
    np.testing.assert_allclose(found[0], quantifier.predict(rows), atol=1e-6)


def test_bags_larger_than_those_of_training_are_not_extrapolated():
    rows, y = hidden_in_the_embedding(4000, 0, linear=True)
    statistics = Statistics.fit(rows[:, :2], y)
    few, many = (pooled_inputs(np.tile(rows, (1, copies, 1)), statistics, 16) for copies in (1, 3))
    np.testing.assert_allclose(few[0], many[0], atol=1e-9)
    np.testing.assert_allclose(few[1], many[1], atol=1e-3)  # the size among them


@pytest.mark.no_cover
def test_the_network_is_used_when_it_shows_a_gain_on_instances_it_has_not_seen():
    rows, y = hidden_in_the_embedding(6000, 2, linear=False)
    quantifier = QuaNet("precomputed", max_epochs=10, device="cpu", random_state=2).fit(rows, y)
    assert quantifier.corrects_
    assert quantifier.p_value_ < 0.05
    new, y_new = hidden_in_the_embedding(3000, 1, linear=False)
    protocol = APP(bag_size=200, repeats=5)
    corrected = evaluate(quantifier, new, y_new, protocol, rng=2).error().mean()
    base = evaluate(EMQ("precomputed").fit(rows[:, :2], y), new[:, :2], y_new, protocol, rng=2).error().mean()
    assert corrected < 0.9 * base
    stack = quantifier.represent(new)[np.random.default_rng(0).integers(3000, size=(4, 60))]
    alone = np.stack([quantifier.aggregate(bag) for bag in stack])
    np.testing.assert_allclose(quantifier.aggregate(stack), alone, atol=1e-9)


def test_without_a_gain_the_answer_is_the_base_estimate(small):
    quantifier = QuaNet("precomputed", max_epochs=2, device="cpu", random_state=0).fit(ROWS, CODES)
    assert not quantifier.corrects_
    rows = quantifier.represent(ROWS[:80])
    np.testing.assert_allclose(quantifier.aggregate(rows), base_estimate(rows[None, :, :2], quantifier.statistics_)[0])


@pytest.mark.parametrize("k", [2, 3])
def test_bags_that_share_rows_have_the_estimates_of_each_alone_to_the_last_bit(small, k):
    source = Gaussians(k=k)
    X, y = source.draw(np.full(k, 1 / k), 400, rng=0)
    rows = np.hstack([source.posteriors(X, np.full(k, 1 / k)), X])
    quantifier = QuaNet("precomputed", max_epochs=1, device="cpu", random_state=0).fit(rows, y)
    quantifier.corrects_ = False
    bags = Bags([np.random.default_rng(n).integers(400, size=n) for n in (1, 30, 301, 301, 7)])
    for dtype in (np.float64, np.float32):
        pool = quantifier.represent(rows).astype(dtype)
        alone = [quantifier.aggregate(pool[bag]) for bag in bags.members]
        np.testing.assert_array_equal(quantifier.aggregate_bags(pool, bags), alone)


def test_a_few_instances_can_show_nothing(small):
    quantifier = QuaNet("precomputed", max_epochs=1, device="cpu", random_state=0).fit(ROWS[:60], CODES[:60])
    assert (quantifier.corrects_, quantifier.p_value_) == (False, 1.0)


@pytest.mark.parametrize("make", [QuaNet, QuaNet.paper])
def test_the_same_seed_gives_the_same_network_and_leaves_torch_alone(small, make):
    before = torch.get_rng_state()
    one, two, other = (
        make("precomputed", max_epochs=2, device="cpu", random_state=seed).fit(ROWS, CODES) for seed in (1, 1, 2)
    )
    assert (torch.get_rng_state() == before).all()
    first, again, third = (next(quantifier.network_.parameters()) for quantifier in (one, two, other))
    torch.testing.assert_close(first, again)
    assert not torch.equal(first, third)
    assert [epoch.valid_loss for epoch in one.history_] == [epoch.valid_loss for epoch in two.history_]


@pytest.mark.parametrize("names", [["no", "yes"], [1, 2], [False, True]])
def test_labels_of_any_type_train_the_same_network(small, names):
    y = np.array(names)[CODES]
    quantifier = QuaNet.paper("precomputed", max_epochs=1, device="cpu", random_state=0).fit(ROWS, y)
    plain = QuaNet.paper("precomputed", max_epochs=1, device="cpu", random_state=0).fit(ROWS, CODES)
    assert quantifier.classes_.tolist() == names
    np.testing.assert_array_equal(quantifier.predict(ROWS), plain.predict(ROWS))


def test_one_epoch_trains(small, monkeypatch):
    first_weights = []

    class Watched(PaperNetwork):
        def __init__(self, width):
            super().__init__(width)
            first_weights.append(next(self.parameters()).detach().clone())

    monkeypatch.setattr(correction, "PaperNetwork", Watched)
    quantifier = QuaNet.paper("precomputed", max_epochs=1, device="cpu", random_state=0).fit(ROWS, CODES)
    assert len(quantifier.history_) == 1
    assert not torch.allclose(next(quantifier.network_.parameters()).float(), first_weights[0])


def test_bags_of_one_and_of_very_many_instances_are_answered(small):
    quantifier = QuaNet("precomputed", max_epochs=1, device="cpu", random_state=0).fit(ROWS, CODES)
    quantifier.corrects_ = True
    estimate = quantifier.predict_bags(ROWS, Bags([[0], np.arange(600).repeat(100)]))
    assert np.isfinite(estimate).all()
    np.testing.assert_allclose(estimate.sum(axis=1), 1)


@pytest.mark.parametrize(
    "classifier", [LogisticRegression(), FrozenEstimator(LogisticRegression().fit(X, CODES)), None]
)
def test_any_classifier_gives_rows_of_posteriors(small, classifier):
    quantifier = QuaNet(classifier, cv=3, max_epochs=1, device="cpu", random_state=0).fit(X, CODES)
    assert quantifier.represent(POOL).shape == (800, 2)
    np.testing.assert_allclose(quantifier.predict(POOL), [0.5, 0.5], atol=0.07)


def test_text_goes_in_with_its_embedding(small):
    texts, codes = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
    quantifier = QuaNet(TextClassifier(embedding_size=30), cv=3, max_epochs=1, random_state=0).fit(texts, codes)
    assert quantifier.represent(texts[:5]).shape == (5, 2 + 16)


def test_a_classifier_whose_embedding_knows_labels_is_not_cross_fitted(small):
    texts, codes = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
    classifier = LSTMClassifier(hidden=8, dense=16, embedding_size=5, max_steps=20, device="cpu", random_state=0)
    quantifier = QuaNet.paper(classifier, max_epochs=1, device="cpu", random_state=0).fit(texts, codes)
    assert quantifier.represent(texts).shape == (300, 2 + 5)
    assert quantifier.predict(texts).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "rows", "error", "message"),
    [
        ({"device": "cuda:77"}, ROWS, InvalidSetting, "device 'cuda:77' is not available"),
        ({"network": "transformer"}, ROWS, InvalidSetting, "network must be 'paper' or 'residual'; got 'transformer'"),
        ({}, ROWS[:, :1], InvalidData, "at least 2 columns"),
        ({}, np.where(ROWS[5] == ROWS, np.nan, ROWS), InvalidData, "posteriors|embedding of instance 5"),
        ({"classifier": LinearSVC()}, X, InvalidSetting, "QuaNet needs posteriors"),
    ],
)
def test_bad_input_is_a_clear_error(small, settings, rows, error, message):
    with pytest.raises(error, match=message):
        QuaNet(**{"classifier": "precomputed", "device": "cpu", "max_epochs": 1, **settings}).fit(rows, CODES)


def test_nan_in_an_embedding_is_named(small):
    holes = ROWS.copy()
    holes[[5, 9], 3] = np.nan
    with pytest.raises(InvalidData, match="embedding of instance 5 contains NaN or infinity, and so do 1 others"):
        QuaNet("precomputed", max_epochs=1).fit(holes, CODES)
    quantifier = QuaNet("precomputed", max_epochs=1, device="cpu", random_state=0).fit(ROWS, CODES)
    with pytest.raises(InvalidData, match="embedding has 1 columns, but had 2 in fit"):
        quantifier.predict(ROWS[:, :3])


def test_the_papers_network_is_for_two_classes():
    rows = np.hstack([np.full((30, 3), 1 / 3), np.zeros((30, 2))])
    with pytest.raises(InvalidSetting, match=r"two classes, but y has 3\. Use QuaNet\(\)"):
        QuaNet.paper("precomputed").fit(rows, np.arange(30) % 3)


def test_an_interruption_keeps_the_best_so_far(small, monkeypatch):
    real = correction.train

    def interrupted(*arguments, **options):
        epochs = real(*arguments, **options)
        yield next(epochs)
        epochs.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(correction, "train", interrupted)
    with pytest.warns(QuanetWarning, match="interrupted after 1 epochs"):
        quantifier = QuaNet("precomputed", max_epochs=5, device="cpu", random_state=0).fit(ROWS, CODES)
    assert quantifier.predict(ROWS).sum() == pytest.approx(1)


def test_progress_is_shown_only_when_asked_for(small, capsys):
    settings = {"max_epochs": 1, "device": "cpu", "random_state": 0}
    QuaNet("precomputed", **settings).fit(ROWS, CODES)
    assert capsys.readouterr().err == ""
    QuaNet("precomputed", progress=True, **settings).fit(ROWS, CODES)
    printed = capsys.readouterr()
    assert "QuaNet: loss" in printed.err
    assert printed.out == ""
