"""The simulated tasks are what the table in the simulator's docstring says."""

import numpy as np
import pytest
import torch

from quanet.nn.pretrain import draw_batch
from quanet.nn.simulator import CERTAIN, FEWEST, Prior, Problem, Simulator, Warp, ridge


def simulator(seed=0, **prior):
    return Simulator(torch.Generator("cpu").manual_seed(seed), Prior(**prior))


def auc(scores, counts):
    """Chance that a held-out instance of the second class has the larger score, in every task."""
    found = []
    for values, number in zip(scores, counts, strict=True):
        first, second = (values[number[c] > 0] for c in (0, 1))
        found.append(
            float((second[:, None] > first[None]).float().mean() + (second[:, None] == first[None]).float().mean() / 2)
        )
    return np.array(found)


@pytest.mark.parametrize("draw", [lambda one: one.small(64, 60, 90), lambda one: one.large(64, 256, 2000.0, 5000.0)])
def test_tasks_have_rows_of_both_classes_and_the_share_of_their_bag(draw):
    tasks = draw(simulator())
    sizes = tasks.counts.sum(2)
    assert tasks.scores.isfinite().all()
    assert sizes.min() >= FEWEST - 1e-3
    assert tasks.share.min() == 0
    assert tasks.share.max() == 1
    assert 0.4 < tasks.share.mean() < 0.6


def test_a_task_uses_each_place_for_one_set():
    tasks = simulator().small(32, 60, 90)
    assert (tasks.counts.sum(1) <= 1).all()
    assert (tasks.counts[:, 2, :120] == 0).all()


def test_the_same_seed_draws_the_same_tasks():
    ours, theirs, others = (draw_batch(simulator(seed), 24) for seed in (3, 3, 4))
    for first, second in zip(ours.parts(), theirs.parts(), strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert not torch.equal(ours.share, others.share)


def test_scores_of_the_second_class_are_larger_from_useless_to_nearly_perfect():
    tasks = simulator(1, folds=False).small(300, 60, 60)
    found = auc(tasks.scores, tasks.counts)
    assert found.mean() > 0.7
    assert (found < 0.6).mean() > 0.05
    assert (found > 0.99).mean() > 0.03


def test_nearly_perfect_classifiers_can_be_left_out():
    shares = [
        (
            auc((tasks := simulator(2, near_perfect=near, folds=False).small(200, 60, 60)).scores, tasks.counts) > 0.995
        ).mean()
        for near in (True, False)
    ]
    assert shares[1] < 0.5 * shares[0]


def test_held_out_scores_are_worse_than_those_of_bags_because_of_folds():
    drawn, seen = simulator(3, fitted=1.0, steps=False), []
    drawn._finished = lambda *parts: seen.append(parts) or Simulator._finished(drawn, *parts)
    drawn.small(800, 40, 400)
    held, new, negative, positive, kept, classes = seen[0]
    gaps = []
    for at in range(800):
        known = torch.cat([negative[at], torch.zeros_like(positive[at])]), torch.cat([0 * negative[at], positive[at]])
        of_bag = kept[at] & (classes[at] == 0), kept[at] & (classes[at] == 1)
        if min(int(part.sum()) for part in of_bag) >= 20:
            before, after = (
                auc(scores[at][None], torch.stack(parts)[None]) for scores, parts in ((held, known), (new, of_bag))
            )
            gaps.append(float(after[0] - before[0]))
    assert np.mean(gaps) > 3 * np.std(gaps) / np.sqrt(len(gaps))


def test_scores_with_steps_have_few_values():
    values = [len(one.unique()) for one in simulator(4, fitted=0.0).small(200, 60, 60).scores]
    smooth = [len(one.unique()) for one in simulator(4, fitted=0.0, steps=False).small(50, 60, 60).scores]
    assert 0.05 < np.mean(np.array(values) <= 101) < 0.35
    assert min(smooth) > 101


def test_shares_are_more_often_near_the_ends_than_uniform_ones():
    often, uniform = (simulator(5, ends=ends).shares(20_000) for ends in (True, False))
    assert 0.06 < ((often == 0) | (often == 1)).float().mean() < 0.1
    assert ((uniform == 0) | (uniform == 1)).float().mean() == 0
    assert (often < 0.05).float().mean() > 1.5 * (uniform < 0.05).float().mean()


def test_a_score_by_ratio_grows_with_the_likelihood_ratio():
    problem = Problem.draw(simulator(6, likelihood_ratio=1.0), 50)
    points = problem.grid(200)
    density = problem.log_densities(points)
    ratio = (density[:, 1] - density[:, 0]).clamp(-CERTAIN, CERTAIN)
    order = ratio.argsort(1)
    assert (problem.scores(points).gather(1, order).diff(dim=1) >= -1e-4).all()


def test_plain_problems_are_not_warped():
    values = torch.linspace(-8, 8, 33)[None]
    warp = Warp.draw(simulator(7), 1, torch.ones(1, 1))
    np.testing.assert_allclose(warp(values), values, rtol=0.02, atol=1e-9)
    bent = Warp.draw(simulator(7), 100, torch.zeros(100, 1))(values.expand(100, -1))
    assert (bent.diff(dim=1) >= 0).all()
    assert (bent - values).abs().amax(1).median() > 1


def test_ridge_is_least_squares_without_a_penalty():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(1, 40, 3)), rng.normal(size=(1, 40)), (rng.random((1, 40)) < 0.7).astype(float)
    coefficients, centre, mean = (
        part.numpy()[0] for part in ridge(*map(torch.tensor, (X, y, weight)), torch.tensor([1e-12]))
    )
    used = weight[0] > 0
    design = np.column_stack([np.ones(used.sum()), X[0, used]])
    intercept, *slopes = np.linalg.lstsq(design, y[0, used], rcond=None)[0]
    np.testing.assert_allclose(coefficients, slopes, atol=1e-8)
    np.testing.assert_allclose(mean - centre @ coefficients, intercept, atol=1e-8)
