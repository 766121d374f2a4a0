"""The network that is trained once: what it reads, and that its compiled form is the same arithmetic."""

import numpy as np
import pytest
import torch

from quanet import kernels
from quanet.nn.pretrain import draw_batch, quantile, shipped_network
from quanet.nn.share_network import (
    BINS,
    GRID,
    ShareNetwork,
    binned,
    calibrated_ratios,
    cell_sizes,
    grid_nodes,
    most_likely,
    paper_statistics,
    read_tasks,
    surprise,
)
from quanet.nn.share_reader import ShareCurves, network
from quanet.nn.simulator import Simulator


def simulator(seed=0):
    return Simulator(torch.Generator("cpu").manual_seed(seed))


def task(first, second, bag):
    """One task with these scores of both classes and of a bag."""
    scores = torch.tensor([[*first, *second, *bag]], dtype=torch.float32)
    counts = torch.zeros(1, 3, scores.shape[1])
    sizes = np.cumsum([0, len(first), len(second), len(bag)])
    for c in range(3):
        counts[:, c, sizes[c] : sizes[c + 1]] = 1
    return scores, counts


def gaussian_task(seed, m=60, n=80, share=0.3):
    rng = np.random.default_rng(seed)
    second = round(n * share)
    bag = np.concatenate([rng.normal(-1, 1, n - second), rng.normal(1, 1, second)])
    return task(rng.normal(-1, 1, m), rng.normal(1, 1, m), bag)


def mirror(scores, counts):
    """The same task with the classes in each other's place."""
    return -scores, counts[:, [1, 0, 2]]


@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_network_is_the_network_that_was_trained(seed):
    scores, counts = gaussian_task(seed, m=40 + 30 * seed, n=30 * 3**seed, share=0.1 + 0.25 * seed)
    nodes = read_tasks(scores, counts)[-1]
    with torch.no_grad():
        both = [shipped_network()(*read_tasks(*one)[:3]) for one in ((scores, counts), mirror(scores, counts))]
    wanted = ((both[0] + both[1].flip(1)) / 2).softmax(1).numpy()
    ratios = calibrated_ratios(scores, counts[:, :2])[0].double().numpy()
    members = counts[0].numpy() > 0
    known = members[0] | members[1]
    order = np.argsort(ratios[known], kind="stable")
    held, of_class = ratios[known][order], counts[0, :2].double().numpy()[:, known][:, order].T
    bag = np.sort(ratios[members[2]])
    places, chances = np.empty((1, GRID)), np.empty((1, GRID))
    kernels.read_shares(
        held[None], np.ascontiguousarray(of_class)[None], bag[None], np.ones(1), *network(), places, chances
    )
    np.testing.assert_allclose(places, nodes.numpy(), atol=2e-5)
    ours, theirs = ShareCurves(places, chances), ShareCurves(nodes.double().numpy(), wanted.astype(float))
    for level in (0.025, 0.5, 0.975):
        np.testing.assert_allclose(ours.quantile(level), theirs.quantile(level), atol=3e-4)


def test_names_of_the_classes_change_nothing():
    batch, mirrored = (read_tasks(*one) for one in (gaussian_task(1, share=0.2), mirror(*gaussian_task(1, share=0.2))))
    bins, base, facts = (part[0].double().numpy().copy() for part in batch[:3])
    kernels.mirror(bins, base, facts)
    for ours, theirs in zip((bins, base, facts), mirrored, strict=False):
        np.testing.assert_allclose(ours, theirs[0], atol=2e-4)


def test_scores_may_be_stretched_and_shifted():
    # Single precision and a slightly different ridge of the calibration are all that differs.
    scores, counts = gaussian_task(0)
    for ours, theirs in zip(read_tasks(scores, counts), read_tasks(7 * scores - 3, counts), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=5e-3)


def test_calibration_gives_the_log_likelihood_ratio_of_gaussians():
    rng = np.random.default_rng(0)
    scores, counts = task(rng.normal(-1, 1, 20_000), rng.normal(1, 1, 20_000), [-1.0, 0.0, 1.0])
    np.testing.assert_allclose(calibrated_ratios(scores, counts[:, :2])[0, -3:], [-2, 0, 2], atol=0.1)


def test_the_most_likely_share_by_hand():
    # Ratios of 3 and 1/3: the likelihood (1 + 2p)(1 - 2p/3) is largest at p = 1/2.
    ratios, bag = torch.tensor([[np.log(3), -np.log(3)]]), torch.ones(1, 2)
    np.testing.assert_allclose(most_likely(ratios.float(), bag), [0.5], atol=1e-6)
    assert most_likely(ratios.abs().float(), bag).item() == pytest.approx(1.0)


@pytest.mark.parametrize("centre", [0.0, 0.02, 0.5, 1.0])
def test_nodes_reach_from_0_to_1_and_are_dense_around_the_estimate(centre):
    nodes = grid_nodes(torch.tensor([centre]), torch.tensor([0.05]))[0]
    assert nodes[0] == 0
    assert nodes[-1] == 1
    assert (nodes.diff() > 0).all()
    near = (nodes - centre).abs() < 0.1
    assert near.float().mean() > 0.4
    np.testing.assert_allclose(cell_sizes(nodes[None]).sum(), 1, atol=1e-6)


def test_bins_have_equal_weight_and_equal_scores_share_them():
    scores, counts = gaussian_task(1)
    found, _ = binned(scores, counts, scores)
    np.testing.assert_allclose(found.sum(1), counts.sum(2), rtol=1e-5)
    np.testing.assert_allclose((found / counts.sum(2)[:, None]).sum(2), 3 / BINS, rtol=1e-4)
    found, _ = binned(torch.zeros_like(scores), counts, scores)
    np.testing.assert_allclose(found, (counts.sum(2)[:, None] / BINS).expand(1, BINS, 3), rtol=1e-4)


def test_statistics_of_the_paper_by_hand():
    # Predictions are right on 3 of 4 instances of either class; 3 of 4 instances of the bag look positive.
    odds = torch.tensor([[-1.0, -1, -1, 1, 1, 1, 1, -1, 1, 1, 1, -1]])
    counts = torch.zeros(1, 3, 12)
    counts[0, 0, :4] = counts[0, 1, 4:8] = counts[0, 2, 8:] = 1
    found = paper_statistics(odds, counts)[0]
    np.testing.assert_allclose(found[:4], [0.75, 1.0, 0.75, 0.25], atol=1e-6)  # CC, ACC, rates
    assert found[5] == pytest.approx(1.0)  # PACC: .5 + .5 sigmoid: the same proportions


def test_an_untrained_network_returns_the_likelihood():
    bins, base, facts, _ = read_tasks(*gaussian_task(2))
    with torch.no_grad():
        np.testing.assert_allclose(ShareNetwork()(bins, base, facts), base, atol=1e-6)


def test_the_surprise_divides_a_share_between_two_nodes():
    nodes, logits = torch.tensor([[0.0, 0.5, 1.0]]), torch.tensor([[0.2, 0.3, 0.5]]).log()
    wanted = -(0.6 * np.log(0.2) + 0.4 * np.log(0.3))
    assert surprise(logits, nodes, torch.tensor([0.2])).item() == pytest.approx(wanted, abs=1e-6)


def test_quantiles_of_the_training_are_those_of_the_estimates():
    batch = draw_batch(simulator(), 40)
    with torch.no_grad():
        logits = shipped_network()(batch.bins, batch.base, batch.facts)
    curves = ShareCurves(batch.nodes.double().numpy(), logits.double().softmax(1).numpy())
    for level in (0.025, 0.5, 0.975):
        np.testing.assert_allclose(curves.quantile(level), quantile(logits, batch.nodes, level), atol=1e-4)


def test_the_shipped_network_beats_likelihood_on_new_tasks():
    batch = draw_batch(simulator(5), 600)
    with torch.no_grad():
        logits = shipped_network()(batch.bins, batch.base, batch.facts)
    ours = surprise(logits, batch.nodes, batch.share).mean()
    assert ours < surprise(batch.base, batch.nodes, batch.share).mean() - 1
    errors = [
        (values - batch.share).abs().mean()
        for values in (quantile(logits, batch.nodes, 0.5), (batch.facts[:, 3] + 1) / 2)
    ]
    assert errors[0] < 0.85 * errors[1]


def test_tasks_without_a_class_in_the_bag_can_be_read():
    scores, counts = gaussian_task(3, share=0.0)
    assert all(torch.isfinite(part).all() for part in read_tasks(scores, counts))
