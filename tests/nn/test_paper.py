import json

import numpy as np
import pytest
import torch

from quanet import Bags, Gaussians, LSTMClassifier, QuaNet, WordBags, load, save
from quanet.data.instances import Inputs
from quanet.errors import InvalidBags, InvalidModel, InvalidSetting, QuanetWarning
from quanet.nn import paper
from quanet.nn.networks import PaperNetwork
from quanet.nn.paper import PaperQuaNet, Statistics, sorted_batches
from quanet.nn.training import BagPool
from quanet.persist.trust import canonical_json, digest

SOURCE = Gaussians(distance=2.0)
X, CODES = SOURCE.draw([0.6, 0.4], 600, rng=0)
ROWS = np.hstack([SOURCE.posteriors(X, [0.6, 0.4]), X])
POOL, _ = SOURCE.draw([0.5, 0.5], 800, rng=1)
QUICK = {"max_epochs": 1, "device": "cpu", "random_state": 0}


def fit_paper(rows=ROWS, codes=CODES, **settings):
    return QuaNet.paper("precomputed", **QUICK | settings).fit(rows, codes)


def test_pools_share_no_instance():
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
    np.testing.assert_allclose(statistics.of_bags(bag[None])[0], expected)


def test_batches_have_the_rows_sorted_and_the_true_prevalences():
    statistics = Statistics.fit(ROWS[:, :2], CODES)
    stream = sorted_batches(
        BagPool(ROWS, CODES, 2), statistics, torch.device("cpu"), batches=2, bags=5, sizes=(40, 40),
        rng=np.random.default_rng(0),
    )  # fmt: skip
    for rows, numbers, truth in stream:
        assert rows.shape == (5, 40, 3)
        assert (rows[..., 0].diff(dim=1) >= 0).all()
        assert numbers.shape == (5, 8)
        torch.testing.assert_close(truth.sum(dim=1), torch.ones(5))


def test_bags_of_the_papers_network_are_read_together_to_the_same_end(small, monkeypatch):
    rows = ROWS[:300]
    quantifier = fit_paper(rows, CODES[:300])
    rng = np.random.default_rng(0)
    bags = Bags([rng.integers(300, size=n) for n in (1, 30, 30, 7, 30)])
    one_by_one = np.array([quantifier.predict(rows[bag]) for bag in np.split(bags.flat, np.cumsum(bags.sizes)[:-1])])
    np.testing.assert_allclose(quantifier.predict_bags(rows, bags), one_by_one, atol=1e-12)
    monkeypatch.setitem(paper.AT_A_TIME, "cpu", 1)
    np.testing.assert_allclose(quantifier.predict_bags(rows, bags), one_by_one, atol=1e-12)
    many = Bags(rng.integers(300, size=(25, 30)))  # they share rows
    one_by_one = np.array([quantifier.predict(rows[bag]) for bag in many.flat.reshape(25, 30)])
    np.testing.assert_allclose(quantifier.predict_bags(rows, many), one_by_one, atol=1e-12)
    with pytest.raises(InvalidBags, match="outside the pool"):
        quantifier.predict_bags(rows[:5], bags)


def test_single_precision_as_in_states_is_enough_for_the_papers_network(small):
    rows = ROWS[:300]
    quantifier = fit_paper(rows, CODES[:300])
    single = Inputs(quantifier.read(rows).values.astype(np.float32))
    found = quantifier.predict_bags(single, Bags([np.arange(300)], pool_size=300))
    np.testing.assert_allclose(found[0], quantifier.predict(rows), atol=1e-6)


def test_the_same_seed_gives_the_same_network_and_leaves_torch_alone(small):
    before = torch.get_rng_state()
    one, two, other = (fit_paper(max_epochs=2, random_state=seed) for seed in (1, 1, 2))
    assert (torch.get_rng_state() == before).all()
    first, again, third = (next(quantifier.network_.parameters()) for quantifier in (one, two, other))
    torch.testing.assert_close(first, again)
    assert not torch.equal(first, third)
    assert [epoch.valid_loss for epoch in one.history_] == [epoch.valid_loss for epoch in two.history_]


@pytest.mark.parametrize("names", [["no", "yes"], [1, 2], [False, True]])
def test_labels_of_any_type_train_the_same_network(small, names):
    y = np.array(names)[CODES]
    quantifier = fit_paper(codes=y)
    plain = fit_paper()
    assert quantifier.classes_.tolist() == names
    np.testing.assert_array_equal(quantifier.predict(ROWS), plain.predict(ROWS))


def test_one_epoch_trains(small, monkeypatch):
    first_weights = []

    class Watched(PaperNetwork):
        def __init__(self, width):
            super().__init__(width)
            first_weights.append(next(self.parameters()).detach().clone())

    monkeypatch.setattr(paper, "PaperNetwork", Watched)
    quantifier = fit_paper()
    assert len(quantifier.history_) == 1
    assert not torch.allclose(next(quantifier.network_.parameters()).float(), first_weights[0])


def test_bags_of_one_and_of_very_many_instances_are_answered(small):
    quantifier = fit_paper()
    estimate = quantifier.predict_bags(ROWS, Bags([[0], np.arange(600).repeat(100)]))
    assert np.isfinite(estimate).all()
    np.testing.assert_allclose(estimate.sum(axis=1), 1)


def test_a_classifier_whose_embedding_knows_labels_is_not_cross_fitted(small):
    texts, codes = WordBags(length=20).draw([0.5, 0.5], 300, rng=0)
    classifier = LSTMClassifier(hidden=8, dense=16, embedding_size=5, max_steps=20, device="cpu", random_state=0)
    quantifier = QuaNet.paper(classifier, max_epochs=1, device="cpu", random_state=0).fit(texts, codes)
    assert quantifier.represent(texts).shape == (300, 2 + 5)
    assert quantifier.predict(texts).sum() == pytest.approx(1)


def test_the_papers_network_is_for_two_classes():
    rows = np.hstack([np.full((30, 3), 1 / 3), np.zeros((30, 2))])
    with pytest.raises(InvalidSetting, match=r"two classes, but y has 3\. Use QuaNet\(\)"):
        QuaNet.paper("precomputed").fit(rows, np.arange(30) % 3)


def test_an_interruption_keeps_the_best_so_far(small, monkeypatch):
    real = paper.train

    def interrupted(*arguments, **options):
        epochs = real(*arguments, **options)
        yield next(epochs)
        epochs.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(paper, "train", interrupted)
    with pytest.warns(QuanetWarning, match="interrupted after 1 epochs"):
        quantifier = fit_paper(max_epochs=5)
    assert quantifier.predict(ROWS).sum() == pytest.approx(1)


def test_progress_is_shown_only_when_asked_for(small, capsys):
    fit_paper()
    assert capsys.readouterr().err == ""
    fit_paper(progress=True)
    printed = capsys.readouterr()
    assert "QuaNet: loss" in printed.err
    assert printed.out == ""


def test_only_rows_that_the_network_was_not_trained_on_are_kept_for_intervals(small):
    quantifier = QuaNet.paper(**QUICK).fit(X, CODES)
    assert len(quantifier.held_out_.inputs) == 60  # a quarter of 40 % of 600
    assert quantifier.predict_interval(POOL[:100], level=0.9).method == "conformal"
    with pytest.raises(InvalidSetting, match=r"PaperQuaNet has no closed-form interval\. Use method='conformal'"):
        quantifier.predict_interval(POOL[:100], method="closed")


def test_a_model_saved_by_version_0_2_is_loaded(small, tmp_path):
    quantifier = fit_paper()
    save(quantifier, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["sha256"]
    model = config["model"]
    model["$object"] = "QuaNet"
    model["state"] |= {"network": "paper", "cv": 0.4, "corrects_": True, "p_value_": {"$float": "nan"}}
    model["state"]["statistics_"]["state"] |= {"prior": [0.5, 0.5], "calibration": None}
    write_config(tmp_path / "model", config)
    loaded = load(tmp_path / "model")
    assert (type(loaded), vars(loaded).keys()) == (PaperQuaNet, vars(quantifier).keys())
    np.testing.assert_array_equal(loaded.predict(ROWS), quantifier.predict(ROWS))
    model["state"]["network"] = "residual"
    write_config(tmp_path / "model", config)
    with pytest.raises(InvalidModel, match=r"QuaNet of version 0\.2 or older.*Fit it again"):
        load(tmp_path / "model")


def write_config(folder, config):
    stated = config | {"sha256": digest(canonical_json(config))}
    (folder / "config.json").write_text(json.dumps(stated))
